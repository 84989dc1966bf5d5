//! What is held to be true of the cluster after any row of answers.

use jiff::Timestamp;
use keelson_operator::host::platform::{
    AGAIN, Answer, BREAK, Capability, Held, PATIENCE, Platform,
};
use proptest::prelude::*;

const START: i64 = 1_800_000_000;

fn at(seconds: u64) -> Timestamp {
    let seconds = START + i64::try_from(seconds).expect("a small number");
    Timestamp::from_second(seconds).expect("a moment of this century")
}

fn unclear() -> Answer {
    Answer::Unclear("the API server answered 503".to_owned())
}

/// What is held after answers, each so many seconds after the one before.
fn heard(held: Held, answers: &[(u64, Answer)]) -> Held {
    let mut now = 0;
    answers.iter().fold(held, |held, (after, answer)| {
        now += after;
        held.hear(answer, at(now))
    })
}

fn answers() -> impl Strategy<Value = Vec<(u64, Answer)>> {
    let answer = prop_oneof![
        2 => Just(Answer::Served),
        6 => Just(Answer::Absent),
        2 => Just(unclear()),
    ];
    prop::collection::vec((0..180_u64, answer), 0..60)
}

proptest! {
    #[test]
    fn an_error_is_never_taken_for_yes_or_no(answers in answers(), after in 0..4000_u64) {
        let held = heard(Held::default(), &answers);
        let later = held.clone().hear(&unclear(), at(20_000 + after));
        prop_assert_eq!(later.there(), held.there());
    }

    /// The rule, said anew: how long the unbroken row of absences at the end is.
    #[test]
    fn what_was_there_is_gone_only_after_ten_unbroken_minutes_of_explicit_absence(
        answers in answers(),
    ) {
        let held = heard(Held::known(true), &answers);
        let mut now = 0;
        let moments: Vec<(u64, &Answer)> = answers
            .iter()
            .map(|(after, answer)| {
                now += after;
                (now, answer)
            })
            .collect();
        let mut there = true;
        let mut row: Vec<u64> = Vec::new();
        for (now, answer) in moments {
            match answer {
                Answer::Served => {
                    there = true;
                    row.clear();
                }
                Answer::Unclear(_) => row.clear(),
                Answer::Absent => {
                    if row.last().is_some_and(|last| now - last >= BREAK.as_secs()) {
                        row.clear();
                    }
                    row.push(now);
                    if now - row[0] >= PATIENCE.as_secs() {
                        there = false;
                    }
                }
            }
        }
        prop_assert_eq!(held.there(), Some(there));
    }

    #[test]
    fn what_is_served_is_there_at_once_whatever_was_before(answers in answers()) {
        let held = heard(Held::default(), &answers).hear(&Answer::Served, at(20_000));
        prop_assert_eq!(held, Held::known(true));
    }

    #[test]
    fn an_answer_about_one_capability_says_nothing_about_another(
        answers in prop::collection::vec((0..180_u64, 0..6_usize, prop::bool::ANY), 0..40),
        other in 0..6_usize,
    ) {
        let mut all = Platform::default();
        let mut without = Platform::default();
        let mut now = 0;
        for (after, which, served) in answers {
            now += after;
            let answer = if served { Answer::Served } else { Answer::Absent };
            all.hear(Capability::ALL[which], &answer, at(now));
            if which != other {
                without.hear(Capability::ALL[which], &answer, at(now));
            }
        }
        for (which, capability) in Capability::ALL.into_iter().enumerate() {
            if which != other {
                prop_assert_eq!(all.of(capability), without.of(capability));
            }
        }
    }
}

#[test]
fn ten_minutes_of_looks_without_an_answer_but_no_end_an_openshift_and_nine_do_not() {
    let step = AGAIN.as_secs();
    let looks = |minutes: u64| {
        vec![(step, Answer::Absent); usize::try_from(minutes * 60 / step).expect("a few") + 1]
    };
    assert_eq!(heard(Held::known(true), &looks(9)).there(), Some(true));
    assert_eq!(heard(Held::known(true), &looks(10)).there(), Some(false));
}

#[test]
fn an_absence_before_and_one_after_a_long_silence_are_no_ten_minutes() {
    let row = [(0, Answer::Absent), (3600, Answer::Absent)];
    assert_eq!(heard(Held::known(true), &row).there(), Some(true));
}

#[test]
fn a_clock_that_is_set_back_ends_nothing() {
    let held = Held::known(true).hear(&Answer::Absent, at(5000));
    let held = held.hear(&Answer::Absent, at(10));
    assert_eq!(held.there(), Some(true));
}

#[test]
fn on_a_cluster_never_seen_before_the_first_explicit_answer_counts() {
    let first = Held::default();
    assert_eq!(first.there(), None);
    let first = first.hear(&unclear(), at(0));
    assert_eq!(
        (first.there(), first.trouble()),
        (None, Some("the API server answered 503"))
    );
    assert_eq!(first.hear(&Answer::Absent, at(1)).there(), Some(false));
}

#[test]
fn an_operator_that_starts_while_openshift_does_not_answer_still_knows_it_is_openshift() {
    let mut platform = Platform::remembered(Some(true), None);
    platform.hear(Capability::SecurityConstraints, &Answer::Absent, at(0));
    assert_eq!(platform.openshift(), Some(true));
    let mut vanilla = Platform::remembered(None, None);
    vanilla.hear(Capability::SecurityConstraints, &Answer::Absent, at(0));
    assert_eq!(vanilla.openshift(), Some(false));
}

#[test]
fn what_is_not_known_yet_is_named_with_the_reason() {
    let mut platform = Platform::default();
    for capability in Capability::ALL {
        platform.hear(capability, &Answer::Absent, at(0));
    }
    assert_eq!(platform.unknown(), Vec::<String>::new());
    let mut platform = Platform::default();
    for capability in Capability::ALL.into_iter().skip(1) {
        platform.hear(capability, &Answer::Served, at(0));
    }
    platform.hear(Capability::ClusterProfile, &unclear(), at(1));
    assert_eq!(
        platform.unknown(),
        [
            "whether apiservers of config.openshift.io/v1 are served is not known: \
          the API server answered 503"
        ]
    );
}
