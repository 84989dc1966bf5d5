//! Stale if error: off unless asked for, and then only for a yes that nothing has contradicted.

use super::stage::{Key, Outcome, Reply, Stage, ask, ask_until, millis, paused, refused, seconds};
use keelson_proxy::decision::{
    Engine, Failure, Provenance, Refusal, Settings, Verdict, lifetime::Terms,
};
use tokio::time::{Instant, sleep};

fn settings(grace: u64) -> Settings {
    let settings = Settings::tokens();
    Settings {
        terms: Terms {
            stale_if_error: seconds(grace),
            ..settings.terms
        },
        ..settings
    }
}

fn stale(outcome: &Outcome) -> bool {
    outcome
        .as_ref()
        .is_ok_and(|decision| decision.provenance() == Provenance::Stale)
}

/// An engine that was told yes and whose answer has just ended.
async fn ended(stage: &Stage, grace: u64, not_after: Option<Instant>) -> Engine<Key, Stage> {
    let engine = stage.engine(settings(grace));
    ask_until(&engine, 7, not_after).await.unwrap();
    sleep(seconds(120)).await;
    engine
}

#[test]
fn by_default_an_outage_fails_closed() {
    paused(async {
        let stage = Stage::new();
        let engine = ended(&stage, 0, None).await;
        stage.replies(refused());
        assert_eq!(
            ask(&engine, 7).await.unwrap_err(),
            Refusal::Failed(Failure::ConnectionRefused)
        );
        assert!(matches!(
            ask(&engine, 7).await,
            Err(Refusal::Unavailable { .. })
        ));
        assert_eq!(engine.counters().unavailable.get(), 1);
        assert_eq!(engine.counters().stale.get(), 0);
    });
}

#[test]
fn a_yes_stands_in_while_the_server_is_down_and_each_use_is_counted() {
    paused(async {
        let stage = Stage::new();
        let engine = ended(&stage, 600, None).await;
        stage.replies(refused());
        for _ in 0..5 {
            assert!(stale(&ask(&engine, 7).await));
        }
        assert_eq!(engine.counters().stale.get(), 5);
        assert!(ask(&engine, 8).await.is_err(), "nobody else is let in");

        sleep(seconds(599)).await;
        assert!(stale(&ask(&engine, 7).await));
        sleep(seconds(1)).await;
        assert!(ask(&engine, 7).await.is_err());
    });
}

#[test]
fn every_infrastructure_failure_is_covered_and_no_other() {
    let status = |code| Failure::Status {
        code,
        retry_after: None,
    };
    for (failure, covered) in [
        (Failure::ConnectionRefused, true),
        (Failure::ConnectionLost, true),
        (Failure::Unreachable("tls".into()), true),
        (status(429), true),
        (status(500), true),
        (status(503), true),
        (status(401), false),
        (status(403), false),
        (Failure::Unusable("allowed and denied".into()), false),
    ] {
        paused(async {
            let stage = Stage::new();
            let engine = ended(&stage, 600, None).await;
            stage.replies(Reply::Fails(failure.clone()));
            assert_eq!(stale(&ask(&engine, 7).await), covered, "{failure}");
        });
    }
}

#[test]
fn a_token_that_has_ended_is_not_covered() {
    paused(async {
        let stage = Stage::new();
        let end = Some(Instant::now() + seconds(150));
        let engine = ended(&stage, 600, end).await;
        stage.replies(refused());
        sleep(seconds(29)).await;
        assert!(stale(&ask_until(&engine, 7, end).await));
        sleep(seconds(1)).await;
        assert!(ask_until(&engine, 7, end).await.is_err());
    });
}

#[test]
fn after_a_no_or_a_word_that_may_have_been_one_the_old_yes_is_never_used_again() {
    let unusable = || Reply::Fails(Failure::Unusable("allowed and denied".into()));
    for reply in [Reply::No, unusable()] {
        paused(async {
            let stage = Stage::new();
            let engine = ended(&stage, 600, None).await;
            stage.replies(reply);
            let outcome = ask(&engine, 7).await;
            assert!(
                outcome.is_err() || outcome.is_ok_and(|said| said.verdict() == Verdict::Negative)
            );
            stage.replies(refused());
            sleep(seconds(60)).await;
            assert!(ask(&engine, 7).await.is_err());
            assert!(ask(&engine, 7).await.is_err());
            assert_eq!(engine.counters().stale.get(), 0);
        });
    }
}

#[test]
fn once_the_server_is_known_to_be_down_nobody_who_can_be_covered_waits_for_it() {
    paused(async {
        let stage = Stage::new();
        let engine = ended(&stage, 600, None).await;
        stage.replies(refused());
        ask(&engine, 7).await.unwrap();
        assert!(engine.breaker().open());
        stage.replies(Reply::Nothing);
        let calls = stage.count();
        for _ in 0..100 {
            let began = Instant::now();
            assert!(stale(&ask(&engine, 7).await));
            assert_eq!(began.elapsed(), millis(0));
            sleep(millis(100)).await;
        }
        let probes = stage.count() - calls;
        assert!((9..=10).contains(&probes), "{probes}");

        stage.replies(Reply::Yes);
        sleep(seconds(1)).await;
        ask(&engine, 7).await.unwrap();
        sleep(millis(1)).await;
        let decision = ask(&engine, 7).await.unwrap();
        assert_eq!(decision.provenance(), Provenance::Cache);
    });
}
