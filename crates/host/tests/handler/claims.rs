//! Whose turn it is: the limit, and what becomes of a claim.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_host::handler::claims::{Answer, Ask, Claim, Claims, Ended, Fate, Holder, limit};

const LIFETIME: SignedDuration = SignedDuration::from_secs(60);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn ask(node: &str, generation: i64, limit: usize, now: i64) -> Ask<'_> {
    Ask {
        node,
        policy: "p",
        generation,
        limit,
        lifetime: LIFETIME,
        now: at(now),
    }
}

fn working(_: &Claim) -> Holder {
    Holder::Ready(None)
}

fn yours(answer: Answer) -> Claims {
    match answer {
        Answer::Yours(claims) => claims,
        other => panic!("expected a place, got {other:?}"),
    }
}

#[test]
fn the_limit_is_a_number_or_a_share_rounded_up_and_never_none() {
    let text = |text: &str| IntOrString::String(text.to_owned());
    for (given, nodes, expected) in [
        (text("50%"), 5, 3),
        (text("50%"), 6, 3),
        (text("100%"), 5, 5),
        (text("1%"), 5, 1),
        (text("0%"), 5, 1),
        (text("-50%"), 5, 1),
        (text("50%"), 0, 1),
        (IntOrString::Int(3), 5, 3),
        (IntOrString::Int(0), 5, 1),
        (IntOrString::Int(-2), 5, 1),
    ] {
        assert_eq!(limit(&given, nodes), (expected, Ok(())), "{given:?}");
    }
}

#[test]
fn a_limit_nobody_can_read_is_half_and_said_to_be() {
    for bad in ["asdf", "42", "", "%", "5 %", "1.5%", "99999999999%"] {
        let (half, read) = limit(&IntOrString::String(bad.to_owned()), 5);
        assert_eq!(half, 3, "{bad:?}");
        let said = read.expect_err("not a limit").to_string();
        assert!(
            said.contains(&format!("{bad:?}")) && said.contains("50%"),
            "{said}"
        );
    }
}

#[test]
fn as_many_as_may_be_get_a_place_and_the_next_waits_for_them_by_name() {
    let one = yours(Claims::default().take(&ask("a", 1, 2, 0), working));
    let two = yours(one.take(&ask("b", 1, 2, 1), working));
    let told = two.take(&ask("c", 1, 2, 2), working);
    let holders = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(told, Answer::Wait { holders });
    let free = two.released("a", "p");
    let three = yours(free.take(&ask("c", 1, 2, 3), working));
    assert_eq!(three.counts(), [("p", 2)].into());
}

#[test]
fn policies_do_not_share_their_places() {
    let one = yours(Claims::default().take(&ask("a", 1, 1, 0), working));
    let mut other = ask("b", 1, 1, 0);
    other.policy = "q";
    let two = yours(one.take(&other, working));
    assert_eq!(two.counts(), [("p", 1), ("q", 1)].into());
    assert_eq!(two.released("a", "q"), two, "nobody releases another's");
}

#[test]
fn an_expired_claim_is_lost_and_still_counts() {
    let claims = yours(Claims::default().take(&ask("a", 1, 1, 0), working));
    let before = claims.settled(at(59), |_| Holder::NotReady);
    assert_eq!(before.claims[0].state, Fate::Held);
    for holder in [Holder::NotReady, Holder::Ready(None)] {
        let after = claims.settled(at(60), |_| holder);
        assert_eq!(after.claims[0].state, Fate::Lost);
        let told = claims.take(&ask("b", 1, 1, 60), |_| holder);
        let because = vec![("a".to_owned(), Fate::Lost)];
        assert_eq!(told, Answer::Stop { because });
    }
}

#[test]
fn a_lost_claim_is_free_when_its_handler_reported_or_its_node_is_gone() {
    let claims = yours(Claims::default().take(&ask("a", 1, 1, 0), working));
    for holder in [Holder::Gone, Holder::Ready(Some(Ended::Well))] {
        let after = yours(claims.take(&ask("b", 1, 1, 60), |_| holder));
        assert_eq!(after.of("a", "p"), None);
    }
    let failed = claims.settled(at(60), |_| Holder::Ready(Some(Ended::Failed)));
    assert_eq!(failed.claims[0].state, Fate::Failed);
}

#[test]
fn a_node_that_is_gone_frees_its_place_at_once() {
    let claims = yours(Claims::default().take(&ask("a", 1, 1, 0), working));
    let gone = |it: &Claim| match it.node.as_str() {
        "a" => Holder::Gone,
        _ => Holder::Ready(None),
    };
    yours(claims.take(&ask("b", 1, 1, 1), gone));
    let failed = claims.failed("a", "p");
    yours(failed.take(&ask("b", 1, 1, 1), gone));
}

#[test]
fn who_comes_back_goes_on_with_its_own_claim() {
    let claims = yours(Claims::default().take(&ask("a", 1, 1, 0), working));
    let lost = claims.settled(at(100), |_| Holder::NotReady);
    let back = yours(lost.take(&ask("a", 1, 1, 101), working));
    let own = back.of("a", "p").expect("its claim");
    assert_eq!(
        (own.state, own.since, own.expires),
        (Fate::Held, at(0), at(161))
    );
    assert_eq!(lost.renewed(&ask("a", 1, 1, 101)), Some(back));
}

#[test]
fn a_claim_a_person_took_away_is_not_renewed() {
    let claims = yours(Claims::default().take(&ask("a", 1, 1, 0), working));
    assert_eq!(claims.released("a", "p").renewed(&ask("a", 1, 1, 5)), None);
}

#[test]
fn failures_at_the_limit_stop_the_rest_until_the_policy_is_edited() {
    let one = yours(Claims::default().take(&ask("a", 1, 2, 0), working)).failed("a", "p");
    let two = yours(one.take(&ask("b", 1, 2, 1), working));
    let waits = two.take(&ask("c", 1, 2, 2), working);
    assert!(
        matches!(waits, Answer::Wait { .. }),
        "one of two is at work"
    );
    let both = two.failed("b", "p");
    let told = both.take(&ask("c", 1, 2, 3), working);
    let because = vec![
        ("a".to_owned(), Fate::Failed),
        ("b".to_owned(), Fate::Failed),
    ];
    assert_eq!(told, Answer::Stop { because });
    // Even who failed does not begin again by itself.
    let again = both.take(&ask("a", 1, 2, 3), working);
    assert!(matches!(again, Answer::Stop { .. }));
    let edited = yours(both.take(&ask("c", 2, 2, 4), working));
    assert_eq!(edited.counts(), [("p", 1)].into());
}

#[test]
fn a_host_at_work_on_an_old_generation_keeps_its_place_for_the_new_one() {
    let one = yours(Claims::default().take(&ask("a", 1, 1, 0), working));
    let other = one.take(&ask("b", 2, 1, 1), working);
    assert!(
        matches!(other, Answer::Wait { .. }),
        "a is still under change"
    );
    let own = yours(one.take(&ask("a", 2, 1, 2), working));
    let claim = own.of("a", "p").expect("its claim");
    assert_eq!((claim.generation, claim.since), (2, at(2)));
    let old = own.take(&ask("a", 1, 1, 3), working);
    assert!(matches!(old, Answer::Wait { .. }), "what it knows is old");
}

#[test]
fn claims_are_written_as_people_read_them() {
    let claims = yours(Claims::default().take(&ask("a", 7, 1, 0), working));
    let text = serde_json::to_value(&claims).expect("JSON");
    let expected = serde_json::json!({ "claims": [{
        "node": "a", "policy": "p", "generation": 7,
        "since": "1970-01-01T00:00:00Z", "expires": "1970-01-01T00:01:00Z", "state": "Held",
    }] });
    assert_eq!(text, expected);
    let read: Claims = serde_json::from_value(text).expect("claims");
    assert_eq!(read, claims);
}
