//! Refresh ahead: keys in use never wait for their answer again, and no answer lives longer for it.

use super::stage::{Reply, Stage, ask, ask_until, millis, paused, refused, seconds};
use keelson_proxy::decision::{Failure, Provenance, Refusal, Settings, Verdict, lifetime::Terms};
use tokio::{
    task::yield_now,
    time::{Instant, sleep},
};

#[test]
fn a_hot_key_never_waits_at_the_end_of_an_answer() {
    paused(async {
        let stage = Stage::new();
        stage.takes(millis(500));
        let engine = stage.engine(Settings::tokens());
        ask(&engine, 7).await.unwrap();
        let start = Instant::now();
        while start.elapsed() < seconds(3600) {
            sleep(seconds(5)).await;
            let began = Instant::now();
            let decision = ask(&engine, 7).await.unwrap();
            assert_eq!(began.elapsed(), millis(0));
            assert_eq!(decision.provenance(), Provenance::Cache);
            assert!(decision.asked().elapsed() < seconds(120));
        }
        sleep(millis(1)).await;
        // A review each 90 s and what it takes to come by, instead of each 120 s.
        assert!((36..=41).contains(&stage.count()), "{}", stage.count());
        assert_eq!(engine.counters().refreshes.get() + 1, stage.count() as u64);
    });
}

#[test]
fn a_key_that_is_not_used_in_its_last_quarter_is_not_renewed() {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::tokens());
        ask(&engine, 7).await.unwrap();
        sleep(seconds(89)).await;
        ask(&engine, 7).await.unwrap();
        sleep(seconds(31)).await;
        assert_eq!(stage.count(), 1);
        assert_eq!(
            ask(&engine, 7).await.unwrap().provenance(),
            Provenance::Review
        );
    });
}

#[test]
fn a_renewal_that_is_answered_no_takes_effect_at_once() {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::tokens());
        ask(&engine, 7).await.unwrap();
        sleep(seconds(100)).await;
        stage.replies(Reply::No);
        assert_eq!(ask(&engine, 7).await.unwrap().verdict(), Verdict::Positive);
        sleep(millis(1)).await;
        let decision = ask(&engine, 7).await.unwrap();
        assert_eq!(decision.verdict(), Verdict::Negative);
        assert_eq!(decision.provenance(), Provenance::Cache);
    });
}

#[test]
fn a_renewal_that_fails_leaves_the_answer_to_its_end_and_is_tried_again_each_second() {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::tokens());
        ask(&engine, 7).await.unwrap();
        sleep(seconds(100)).await;
        stage.replies(Reply::Fails(Failure::Unusable("html".into())));
        let in_window = Instant::now();
        while in_window.elapsed() < seconds(20) {
            assert_eq!(
                ask(&engine, 7).await.unwrap().provenance(),
                Provenance::Cache
            );
            sleep(millis(10)).await;
        }
        assert!(ask(&engine, 7).await.is_err());
        assert_eq!(stage.count(), 1 + 20 + 1);
    });
}

#[test]
fn in_an_outage_renewals_are_not_tried_beyond_the_probes() {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::tokens());
        for key in 0..50 {
            ask(&engine, key).await.unwrap();
        }
        sleep(seconds(95)).await;
        stage.replies(refused());
        let began = Instant::now();
        while began.elapsed() < seconds(10) {
            for key in 0..50 {
                assert!(ask(&engine, key).await.is_ok());
                yield_now().await;
            }
            sleep(millis(100)).await;
        }
        let calls = stage.count() - 50;
        assert!((9..=3 + 10).contains(&calls), "{calls}");
        assert!(engine.counters().refreshes.get() <= calls as u64);
    });
}

#[test]
fn a_token_that_ends_before_its_answer_would_is_not_renewed() {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::tokens());
        let end = Some(Instant::now() + seconds(110));
        ask_until(&engine, 7, end).await.unwrap();
        for _ in 0..109 {
            sleep(seconds(1)).await;
            ask_until(&engine, 7, end).await.unwrap();
        }
        assert_eq!(stage.count(), 1);
        sleep(seconds(1)).await;
        stage.replies(Reply::No);
        let decision = ask_until(&engine, 7, end).await.unwrap();
        assert_eq!(decision.verdict(), Verdict::Negative);
    });
}

#[test]
fn the_window_can_be_half_the_life_of_an_answer() {
    paused(async {
        let stage = Stage::new();
        let settings = Settings::tokens();
        let terms = Terms {
            refresh_window: 0.5,
            ..settings.terms
        };
        let engine = stage.engine(Settings { terms, ..settings });
        ask(&engine, 7).await.unwrap();
        // A scrape each minute.
        for _ in 0..10 {
            sleep(seconds(60)).await;
            let decision = ask(&engine, 7).await.unwrap();
            assert_eq!(decision.provenance(), Provenance::Cache);
        }
    });
}

#[test]
fn a_flood_of_strangers_does_not_keep_known_keys_from_being_renewed() {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::access());
        ask(&engine, 7).await.unwrap();
        sleep(seconds(290)).await;
        stage.takes(seconds(5));
        let flood: Vec<_> = (1000..1500)
            .map(|key| {
                let engine = engine.clone();
                tokio::spawn(async move { ask(&engine, key).await })
            })
            .collect();
        sleep(millis(1)).await;
        assert_eq!(stage.count(), 1 + 56);
        ask(&engine, 7).await.unwrap();
        sleep(seconds(15)).await;
        assert_eq!(
            ask(&engine, 7).await.unwrap().provenance(),
            Provenance::Cache
        );
        for stranger in flood {
            let outcome = stranger.await.unwrap();
            assert!(matches!(
                outcome,
                Ok(_) | Err(Refusal::Overloaded | Refusal::Failed(_))
            ));
        }
    });
}
