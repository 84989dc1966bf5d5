//! Random histories of questions, answers, failures and waiting, checked decision by decision
//! against what the server was asked and said.

use super::stage::{
    Call, Key, Outcome, Reply, Said, Stage, ask_until, millis, paused, refused, seconds,
};
use keelson_proxy::decision::{Decision, Failure, Provenance, Settings, Verdict, lifetime::Terms};
use proptest::{prelude::*, test_runner::TestCaseResult};
use tokio::time::{Instant, sleep, timeout};

#[derive(Clone, Debug)]
enum Step {
    Ask(Key),
    /// Asks and leaves after so many milliseconds.
    Glance(Key, u64),
    Wait(u64),
    Reply(Reply),
    ReplyTo(Key, Reply),
    Take(u64),
}

const KEYS: Key = 4;

/// The life of the token behind a key, in milliseconds from the beginning of the history.
fn ends(key: Key) -> Option<u64> {
    [None, None, Some(30_000), Some(61_000)][key as usize]
}

fn word() -> impl Strategy<Value = Reply> {
    prop_oneof![
        4 => Just(Reply::Yes),
        2 => Just(Reply::No),
    ]
}

fn trouble() -> impl Strategy<Value = Reply> {
    let status = |code| {
        Reply::Fails(Failure::Status {
            code,
            retry_after: None,
        })
    };
    prop_oneof![
        Just(refused()),
        Just(status(500)),
        Just(status(503)),
        Just(status(403)),
        Just(Reply::Fails(Failure::Unusable("html".into()))),
        Just(Reply::Nothing),
    ]
}

fn step(reply: BoxedStrategy<Reply>, slowest: u64) -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..KEYS).prop_map(Step::Ask),
        2 => (0..KEYS, 0u64..2_000).prop_map(|(key, patience)| Step::Glance(key, patience)),
        6 => (0u64..8_000).prop_map(Step::Wait),
        2 => reply.clone().prop_map(Step::Reply),
        1 => (0..KEYS, reply).prop_map(|(key, reply)| Step::ReplyTo(key, reply)),
        1 => (0..slowest).prop_map(Step::Take),
    ]
}

#[derive(Debug)]
struct Asked {
    key: Key,
    began: Instant,
    ended: Instant,
    outcome: Outcome,
}

struct History {
    began: Instant,
    terms: Terms,
    calls: Vec<Call>,
    asked: Vec<Asked>,
}

fn terms(grace: u64) -> Terms {
    Terms {
        positive_ttl: seconds(20),
        negative_ttl: seconds(3),
        refresh_window: 0.25,
        stale_if_error: seconds(grace),
    }
}

fn play(steps: Vec<Step>, terms: Terms) -> History {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings {
            terms,
            ..Settings::access()
        });
        let began = Instant::now();
        let mut callers = Vec::new();
        for step in steps {
            match step {
                Step::Wait(time) => sleep(millis(time)).await,
                Step::Reply(reply) => stage.replies(reply),
                Step::ReplyTo(key, reply) => stage.replies_to(key, reply),
                Step::Take(time) => stage.takes(millis(time)),
                Step::Ask(key) | Step::Glance(key, _) => {
                    let patience = match step {
                        Step::Glance(_, patience) => millis(patience),
                        _ => seconds(3_600),
                    };
                    let engine = engine.clone();
                    callers.push(tokio::spawn(async move {
                        let asked = Instant::now();
                        let not_after = ends(key).map(|end| began + millis(end));
                        let outcome = timeout(patience, ask_until(&engine, key, not_after)).await;
                        outcome.ok().map(|outcome| Asked {
                            key,
                            began: asked,
                            ended: Instant::now(),
                            outcome,
                        })
                    }));
                }
            }
        }
        let mut asked = Vec::new();
        for caller in callers {
            asked.extend(caller.await.unwrap());
        }
        sleep(seconds(20)).await;
        assert_eq!(
            engine.size().reviews,
            0,
            "every review is over by its deadline"
        );
        History {
            began,
            terms,
            calls: stage.calls(),
            asked,
        }
    })
}

/// The word of a server that works, and no answer.
fn unusable(reply: &Reply) -> bool {
    matches!(reply, Reply::Fails(failure) if !failure.infrastructure())
}

impl History {
    fn end_of(&self, key: Key) -> Option<Instant> {
        ends(key).map(|end| self.began + millis(end))
    }

    /// Replies to a key that came after one call and were known before a moment.
    fn between(&self, key: Key, call: &Call, before: Instant) -> impl Iterator<Item = &Reply> {
        let after = call.ended.unwrap();
        let within = move |end: Instant| end > after && end < before;
        self.calls
            .iter()
            .filter(move |call| call.key == key && call.ended.is_some_and(within))
            .filter_map(|call| call.reply.as_ref())
    }

    fn check(&self) -> TestCaseResult {
        for asked in &self.asked {
            if let Ok(decision) = &asked.outcome {
                self.check_decision(asked, decision)?;
            }
        }
        self.check_single_flight()
    }

    fn check_decision(&self, asked: &Asked, decision: &Decision<Said>) -> TestCaseResult {
        let call = &self.calls[decision.answer().call];
        let yes = decision.verdict() == Verdict::Positive;
        prop_assert_eq!(call.key, asked.key);
        let said = if yes { Reply::Yes } else { Reply::No };
        prop_assert_eq!(call.reply.clone(), Some(said), "what was served was said");
        if decision.provenance() == Provenance::Review {
            prop_assert_eq!(
                call.ended,
                Some(asked.ended),
                "a review is new when it is served"
            );
            return Ok(());
        }
        self.check_age(asked, decision, call)?;
        let since: Vec<&Reply> = self.between(asked.key, call, asked.began).collect();
        prop_assert!(
            !yes || !since.contains(&&Reply::No),
            "a no is the end of every yes before it"
        );
        if decision.provenance() == Provenance::Cache {
            prop_assert_eq!(
                asked.began,
                asked.ended,
                "what is remembered is served at once"
            );
            return Ok(());
        }
        prop_assert!(yes, "only a yes stands in");
        prop_assert!(since.iter().all(|reply| !unusable(reply)));
        prop_assert!(self.in_trouble(call.ended.unwrap(), asked.ended));
        Ok(())
    }

    /// Whether the server failed a call, or let one wait for too long, in this time.
    fn in_trouble(&self, after: Instant, until: Instant) -> bool {
        self.calls.iter().any(|call| {
            let failed = matches!(call.reply, Some(Reply::Fails(_)))
                && call.ended.is_some_and(|end| end >= after && end <= until);
            let slow = call.asked + seconds(1) <= until
                && call.ended.is_none_or(|end| end >= call.asked + seconds(1));
            failed || slow
        })
    }

    fn check_age(&self, asked: &Asked, decision: &Decision<Said>, call: &Call) -> TestCaseResult {
        let now = asked.ended;
        let life = match decision.verdict() {
            Verdict::Positive => call.asked + self.terms.positive_ttl,
            Verdict::Negative => call.ended.unwrap() + self.terms.negative_ttl,
        };
        let grace = match decision.provenance() {
            Provenance::Stale => self.terms.stale_if_error,
            Provenance::Cache | Provenance::Review => seconds(0),
        };
        prop_assert!(now < life + grace, "older than it may be");
        if let Some(end) = self.end_of(asked.key) {
            prop_assert!(now < end, "past the end of its token");
        }
        Ok(())
    }

    /// A call may overlap an earlier one for its key only if that one was a probe which nobody
    /// waits for any more.
    fn check_single_flight(&self) -> TestCaseResult {
        for (place, call) in self.calls.iter().enumerate() {
            for earlier in &self.calls[..place] {
                let over = earlier.ended.is_some_and(|end| end <= call.asked);
                let left = call.asked - earlier.asked >= seconds(1);
                prop_assert!(
                    earlier.key != call.key || over || left,
                    "two reviews for one key: {:?} {:?}",
                    earlier,
                    call
                );
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_decision_outlives_its_answer_or_its_token_whatever_happens(
        steps in prop::collection::vec(step(prop_oneof![word(), trouble()].boxed(), 12_000), 1..120),
        grace in prop_oneof![Just(0u64), Just(15), Just(100)],
    ) {
        play(steps, terms(grace)).check()?;
    }

    #[test]
    fn with_a_server_that_works_every_question_is_decided_and_one_review_at_a_time_suffices(
        steps in prop::collection::vec(step(word().boxed(), 5_000), 1..120),
    ) {
        let history = play(steps, terms(0));
        history.check()?;
        for asked in &history.asked {
            prop_assert!(asked.outcome.is_ok(), "{:?}", asked);
        }
        for (place, call) in history.calls.iter().enumerate() {
            for earlier in &history.calls[..place] {
                prop_assert!(
                    earlier.key != call.key || earlier.ended.is_some_and(|end| end <= call.asked)
                );
            }
        }
    }
}
