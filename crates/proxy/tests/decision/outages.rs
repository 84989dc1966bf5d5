//! The breaker in an outage: few calls while it lasts, and right again within a second of its end.

use super::stage::{Reply, Stage, ask, millis, paused, refused, seconds};
use keelson_proxy::decision::{Failure, Refusal, Settings, Verdict, lifetime::Terms};
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn status(code: u16) -> Reply {
    Reply::Fails(Failure::Status {
        code,
        retry_after: None,
    })
}

/// Ways to be down at once.
fn outage() -> impl Strategy<Value = Reply> {
    prop_oneof![
        Just(refused()),
        Just(Reply::Fails(Failure::ConnectionLost)),
        Just(Reply::Fails(Failure::Unreachable("no route".into()))),
        Just(status(429)),
        Just(status(500)),
        Just(status(503)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_outage_costs_three_calls_and_one_a_second_and_is_over_a_second_after_its_end(
        reply in outage(),
        lasts in 1u64..40_000,
        gaps in prop::collection::vec(1u64..400, 1..300),
    ) {
        paused(async {
            let stage = Stage::new();
            let engine = stage.engine(Settings::access());
            let began = Instant::now();
            let mut keys = 0..;
            let mut gaps = gaps.into_iter().cycle();
            stage.replies(reply);
            while began.elapsed() < millis(lasts) {
                prop_assert!(ask(&engine, keys.next().unwrap()).await.is_err());
                sleep(millis(gaps.next().unwrap())).await;
            }
            let lasted = began.elapsed();
            let calls = stage.count() as u64;
            prop_assert!(calls <= 3 + lasted.as_secs(), "{calls} calls in {lasted:?}");

            stage.replies(Reply::Yes);
            let back = Instant::now();
            while back.elapsed() < seconds(3) {
                let late = back.elapsed() >= seconds(1);
                let outcome = ask(&engine, keys.next().unwrap()).await;
                prop_assert!(outcome.is_ok() || !late, "{outcome:?} {:?}", back.elapsed());
                sleep(millis(gaps.next().unwrap())).await;
            }
            Ok(())
        })?;
    }
}

#[test]
fn without_an_api_server_from_the_start_misses_fail_fast_and_say_when_to_come_back() {
    paused(async {
        let stage = Stage::new();
        stage.replies(refused());
        let engine = stage.engine(Settings::tokens());
        let began = Instant::now();
        let first = ask(&engine, 1).await.unwrap_err();
        assert_eq!(first, Refusal::Failed(Failure::ConnectionRefused));
        assert_eq!(
            began.elapsed(),
            millis(250),
            "tried again after 50 and 200 ms"
        );
        assert_eq!(stage.count(), 3);
        assert!(engine.breaker().open());

        sleep(millis(400)).await;
        let began = Instant::now();
        let retry_after = millis(600);
        let second = ask(&engine, 2).await.unwrap_err();
        assert_eq!(second, Refusal::Unavailable { retry_after });
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!((stage.count(), engine.counters().opened.get()), (3, 1));

        sleep(retry_after).await;
        let began = Instant::now();
        let probe = ask(&engine, 3).await.unwrap_err();
        assert_eq!(probe, Refusal::Failed(Failure::ConnectionRefused));
        assert_eq!(began.elapsed(), Duration::ZERO, "a probe is not repeated");
        assert_eq!(stage.count(), 4);
    });
}

#[test]
fn a_single_restart_of_the_api_server_is_not_noticed() {
    paused(async {
        let stage = Stage::new();
        stage.replies(refused());
        let engine = stage.engine(Settings::tokens());
        let caller = tokio::spawn({
            let engine = engine.clone();
            async move { ask(&engine, 1).await }
        });
        sleep(millis(100)).await;
        stage.replies(Reply::Yes);
        assert!(caller.await.unwrap().is_ok());
        assert!(!engine.breaker().open());
    });
}

#[test]
fn retries_end_with_their_budget() {
    paused(async {
        let stage = Stage::new();
        stage.replies(Reply::Fails(Failure::Status {
            code: 403,
            retry_after: Some(millis(0)),
        }));
        let engine = stage.engine(Settings::tokens());
        let began = Instant::now();
        assert!(ask(&engine, 1).await.is_err());
        assert!(began.elapsed() <= seconds(3));
        assert_eq!(stage.count(), 4);
        assert!(
            !engine.breaker().open(),
            "a server that answers is not down"
        );
    });
}

#[test]
fn a_black_hole_is_left_within_a_second_even_by_the_one_key_in_use() {
    paused(async {
        let stage = Stage::new();
        stage.replies(Reply::Nothing);
        let engine = stage.engine(Settings::tokens());
        let began = Instant::now();
        while began.elapsed() < seconds(90) {
            assert!(ask(&engine, 7).await.is_err());
            sleep(millis(50)).await;
        }
        assert!(engine.breaker().open());
        assert!(stage.count() <= 3 + 60, "{}", stage.count());
        let unfinished = stage
            .calls()
            .iter()
            .filter(|call| call.ended.is_none())
            .count();
        assert!(
            unfinished <= 10,
            "{unfinished} calls wait for their deadline"
        );

        stage.replies(Reply::Yes);
        let back = Instant::now();
        while ask(&engine, 7).await.is_err() {
            assert!(back.elapsed() <= seconds(1));
            sleep(millis(50)).await;
        }
    });
}

#[test]
fn calls_that_an_outage_swallowed_do_not_bring_it_back_when_they_end() {
    paused(async {
        let stage = Stage::new();
        stage.replies(Reply::Nothing);
        let engine = stage.engine(Settings::tokens());
        let began = Instant::now();
        while began.elapsed() < seconds(60) {
            assert!(ask(&engine, 7).await.is_err());
            sleep(millis(50)).await;
        }
        stage.replies(Reply::Yes);
        sleep(seconds(1)).await;
        assert!(ask(&engine, 7).await.is_ok());
        // Nothing else is asked meanwhile, so nothing else could close it again.
        for _ in 0..120 {
            sleep(millis(100)).await;
            assert!(!engine.breaker().open());
        }
    });
}

#[test]
fn a_server_that_comes_back_slow_is_heard_all_the_same() {
    paused(async {
        let stage = Stage::new();
        stage.replies(refused());
        let engine = stage.engine(Settings::tokens());
        assert!(ask(&engine, 7).await.is_err());
        assert!(engine.breaker().open());

        stage.replies(Reply::Yes);
        stage.takes(seconds(3));
        sleep(seconds(1)).await;
        let began = Instant::now();
        let refusal = ask(&engine, 7).await.unwrap_err();
        assert_eq!(refusal, Refusal::Failed(Failure::TimedOut));
        assert_eq!(
            began.elapsed(),
            seconds(1),
            "nobody waits longer for a probe"
        );
        sleep(millis(2_001)).await;
        assert!(!engine.breaker().open());
        assert!(ask(&engine, 7).await.is_ok());
    });
}

#[test]
fn an_answer_nobody_waited_for_does_not_overrule_a_later_one() {
    paused(async {
        let stage = Stage::new();
        stage.replies(refused());
        let engine = stage.engine(Settings::access());
        assert!(ask(&engine, 7).await.is_err());
        sleep(seconds(1)).await;
        stage.replies(Reply::Yes);
        stage.takes(seconds(3));
        assert!(ask(&engine, 7).await.is_err());

        stage.replies(Reply::No);
        stage.takes(Duration::ZERO);
        assert_eq!(ask(&engine, 7).await.unwrap().verdict(), Verdict::Negative);
        sleep(seconds(3)).await;
        assert!(stage.calls().iter().all(|call| call.ended.is_some()));
        assert_eq!(ask(&engine, 7).await.unwrap().verdict(), Verdict::Negative);
    });
}

#[test]
fn a_no_nobody_waited_for_ends_the_yes_before_it() {
    let unusable = Reply::Fails(Failure::Unusable("allowed and denied".into()));
    for late in [Reply::No, unusable] {
        paused(async {
            let settings = Settings::access();
            let stage = Stage::new();
            let engine = stage.engine(Settings {
                terms: Terms {
                    stale_if_error: seconds(600),
                    ..settings.terms
                },
                ..settings
            });
            ask(&engine, 7).await.unwrap();
            sleep(seconds(300)).await;
            stage.replies(refused());
            assert!(ask(&engine, 7).await.is_ok(), "covered");
            sleep(seconds(1)).await;
            stage.replies(late);
            stage.takes(seconds(3));
            assert!(ask(&engine, 7).await.is_ok(), "covered, and asked about");
            sleep(seconds(4)).await;
            assert!(!engine.breaker().open());

            stage.replies(refused());
            stage.takes(Duration::ZERO);
            assert!(ask(&engine, 7).await.is_err());
            assert!(ask(&engine, 7).await.is_err());
        });
    }
}

#[test]
fn waiting_reviews_are_not_made_once_the_breaker_is_open() {
    paused(async {
        let stage = Stage::new();
        stage.replies(status(503));
        stage.takes(millis(10));
        let settings = Settings {
            in_flight: 4,
            ..Settings::access()
        };
        let engine = stage.engine(settings);
        let outcomes = futures::future::join_all((0..500).map(|key| ask(&engine, key))).await;
        assert!(outcomes.iter().all(Result::is_err));
        assert_eq!(stage.count(), 4);
        assert_eq!(engine.counters().unavailable.get(), 496);
    });
}
