//! Single flight: one review for everybody who asks the same, and nobody's to cancel.

use super::stage::{Key, Reply, Stage, ask, millis, paused, seconds};
use futures::{FutureExt, future::join_all};
use keelson_proxy::decision::{
    Engine, Failure, Inquiry, Provenance, Refusal, Settings, Verdict, limiter::Rate,
};
use std::net::{IpAddr, Ipv4Addr};
use tokio::{
    runtime::Handle,
    task::{block_in_place, yield_now},
    time::Instant,
};

#[test]
fn callers_who_ask_the_same_at_once_share_one_review() {
    paused(async {
        let stage = Stage::new();
        stage.takes(millis(100));
        let engine = stage.engine(Settings::access());
        let outcomes = join_all((0..40).map(|_| ask(&engine, 7))).await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(stage.count(), 1);
        assert_eq!(engine.counters().misses.get(), 40);
        assert_eq!(engine.counters().coalesced.get(), 39);
        assert_eq!(engine.size().reviews, 0);
    });
}

#[test]
fn an_answer_that_comes_in_while_it_is_looked_for_is_not_asked_for_again() {
    // Threads, so that somebody else can ask between the look and the question.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::access());
        let inquiry = || {
            let other = ask(&engine, 7);
            block_in_place(|| Handle::current().block_on(other)).unwrap();
            Ok(Inquiry {
                question: 7,
                not_after: None,
            })
        };
        let decision = engine.decide(&7, None, inquiry).await.unwrap();
        assert_eq!(decision.provenance(), Provenance::Cache);
        assert_eq!(stage.count(), 1);
    });
}

#[test]
fn a_caller_who_leaves_does_not_take_the_review_along() {
    paused(async {
        let stage = Stage::new();
        stage.takes(millis(100));
        let engine = stage.engine(Settings::access());
        let impatient = tokio::time::timeout(millis(10), ask(&engine, 7)).await;
        assert!(impatient.is_err());

        let began = Instant::now();
        let patient = ask(&engine, 7).await.unwrap();
        assert_eq!(began.elapsed(), millis(90), "joined the review under way");
        assert_eq!(patient.verdict(), Verdict::Positive);
        assert_eq!(stage.count(), 1);
    });
}

#[test]
fn a_review_left_by_everybody_is_remembered_for_the_next_who_asks() {
    paused(async {
        let stage = Stage::new();
        stage.takes(millis(100));
        let engine = stage.engine(Settings::access());
        assert!(
            tokio::time::timeout(millis(10), ask(&engine, 7))
                .await
                .is_err()
        );
        tokio::time::sleep(millis(200)).await;
        let decision = ask(&engine, 7).await.unwrap();
        assert_eq!(decision.provenance(), Provenance::Cache);
        assert_eq!(stage.count(), 1);
    });
}

#[test]
fn a_review_is_over_after_its_deadline() {
    paused(async {
        let stage = Stage::new();
        stage.replies(Reply::Nothing);
        let engine = stage.engine(Settings::access());
        let began = Instant::now();
        let outcome = ask(&engine, 7).await;
        assert_eq!(outcome.unwrap_err(), Refusal::Failed(Failure::TimedOut));
        assert_eq!(began.elapsed(), seconds(10));
        yield_now().await;
        assert!(stage.calls()[0].ended.is_some(), "the call is given up");
    });
}

#[test]
fn a_slow_server_is_waited_for() {
    paused(async {
        let stage = Stage::new();
        stage.takes(seconds(9));
        let engine = stage.engine(Settings::access());
        assert!(ask(&engine, 7).await.is_ok());
        assert_eq!(stage.count(), 1);
    });
}

#[test]
fn the_waiters_of_one_review_are_bounded_and_a_place_given_back_is_free() {
    paused(async {
        let stage = Stage::new();
        stage.takes(seconds(1));
        let engine = stage.engine(Settings::access());
        let mut waiting: Vec<_> = (0..1024).map(|_| Box::pin(ask(&engine, 7))).collect();
        for waiter in &mut waiting {
            assert!(waiter.as_mut().now_or_never().is_none());
        }
        assert_eq!(ask(&engine, 7).await.unwrap_err(), Refusal::Overloaded);
        assert_eq!(engine.counters().overloaded.get(), 1);

        waiting.pop();
        let late = ask(&engine, 7);
        assert!(late.await.is_ok());
        assert!(join_all(waiting).await.iter().all(Result::is_ok));
        assert_eq!(stage.count(), 1);
    });
}

#[test]
fn a_review_that_dies_frees_its_waiters_and_its_key() {
    paused(async {
        let stage = Stage::new();
        stage.replies(Reply::Panics);
        let engine = stage.engine(Settings::access());
        let outcome = ask(&engine, 7).await;
        assert!(matches!(
            outcome,
            Err(Refusal::Failed(Failure::Unusable(_)))
        ));
        stage.replies(Reply::Yes);
        assert!(ask(&engine, 7).await.is_ok());
    });
}

#[test]
fn reviews_at_the_server_are_bounded_others_wait_their_turn_and_the_rest_are_refused() {
    paused(async {
        let stage = Stage::new();
        stage.takes(seconds(1));
        let settings = Settings {
            in_flight: 16,
            queued: 20,
            ..Settings::access()
        };
        let engine = stage.engine(settings);
        let outcomes = join_all((0..100).map(|key| ask(&engine, key))).await;
        let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        assert_eq!(refused, 64);
        assert_eq!(engine.counters().overloaded.get(), 64);
        assert!(most_at_once(&stage) <= 16);
        assert_eq!(stage.count(), 36);
    });
}

#[test]
fn a_turn_that_does_not_come_before_the_deadline_is_a_refusal_and_no_failure_of_the_server() {
    paused(async {
        let stage = Stage::new();
        stage.takes(seconds(9));
        let settings = Settings {
            in_flight: 1,
            ..Settings::access()
        };
        let engine = stage.engine(settings);
        let outcomes = join_all((0..3).map(|key| ask(&engine, key))).await;
        assert!(outcomes[0].is_ok());
        assert_eq!(
            outcomes[1].as_ref().unwrap_err(),
            &Refusal::Failed(Failure::TimedOut)
        );
        assert_eq!(outcomes[2].as_ref().unwrap_err(), &Refusal::Overloaded);
        assert_eq!(engine.counters().failures.get(), 1);
    });
}

#[test]
fn a_source_that_causes_too_many_reviews_is_refused_and_others_are_not() {
    paused(async {
        let stage = Stage::new();
        stage.replies(Reply::No);
        let settings = Settings {
            per_source: Some(Rate {
                per_second: 10.0,
                burst: 5,
            }),
            ..Settings::tokens()
        };
        let engine = stage.engine(settings);
        let [loud, quiet] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(192, 0, 2, last)));
        stage.replies_to(0, Reply::Yes);
        for key in 0..5 {
            assert!(from(&engine, key, loud).await.is_ok());
        }
        let retry_after = millis(100);
        let refusal = from(&engine, 5, loud).await.unwrap_err();
        assert_eq!(refusal, Refusal::Throttled { retry_after });
        assert!(from(&engine, 6, quiet).await.is_ok());
        assert_eq!(stage.count(), 6);
        assert_eq!(engine.counters().throttled.get(), 1);

        assert!(from(&engine, 0, loud).await.is_ok(), "a hit costs nothing");
        tokio::time::sleep(seconds(120)).await;
        for key in 10..15 {
            assert!(from(&engine, key, loud).await.is_ok());
        }
        assert!(from(&engine, 15, loud).await.is_err());
        assert!(
            from(&engine, 0, loud).await.is_ok(),
            "nor does an answer that was good and has ended"
        );
    });
}

async fn from(engine: &Engine<Key, Stage>, key: Key, source: IpAddr) -> super::stage::Outcome {
    let inquiry = || {
        Ok(Inquiry {
            question: key,
            not_after: None,
        })
    };
    engine.decide(&key, Some(source), inquiry).await
}

fn most_at_once(stage: &Stage) -> usize {
    let calls = stage.calls();
    calls
        .iter()
        .map(|one| {
            calls
                .iter()
                .filter(|other| {
                    other.asked <= one.asked && other.ended.is_none_or(|end| end > one.asked)
                })
                .count()
        })
        .max()
        .unwrap_or_default()
}
