//! The caches stay within their bounds under floods, and keys in use stay in them.

use super::stage::{Key, Reply, Stage, ask, paused};
use keelson_proxy::decision::{Engine, Provenance, Settings, settings::Bounds};
use proptest::prelude::*;

const LIVE: std::ops::Range<Key> = 0..200;
const JUNK: std::ops::Range<Key> = 1_000_000..1_010_000;

async fn use_live(engine: &Engine<Key, Stage>) {
    for key in LIVE {
        ask(engine, key).await.unwrap();
    }
}

async fn assert_live_remembered(engine: &Engine<Key, Stage>) {
    for key in LIVE {
        let decision = ask(engine, key).await.unwrap();
        assert_eq!(decision.provenance(), Provenance::Cache, "{key}");
    }
}

fn assert_within(held: Bounds, bounds: Bounds) {
    assert!(held.entries <= bounds.entries, "{held:?} {bounds:?}");
    assert!(held.bytes <= bounds.bytes, "{held:?} {bounds:?}");
}

#[test]
fn ten_thousand_rejected_tokens_stay_within_their_own_small_bounds() {
    paused(async {
        let stage = Stage::new();
        let settings = Settings::tokens();
        let engine = stage.engine(settings.clone());
        use_live(&engine).await;
        stage.replies(Reply::No);
        for key in JUNK {
            ask(&engine, key).await.unwrap();
        }
        assert_within(engine.size().negatives, settings.negatives);
        assert!(engine.size().negatives.entries > settings.negatives.entries / 2);
        assert_eq!(engine.size().positives.entries, LIVE.len());
        assert!(engine.counters().evictions.get() >= 8_000);
        assert_live_remembered(&engine).await;
    });
}

#[test]
fn ten_thousand_accepted_tokens_used_once_do_not_push_out_those_in_use() {
    paused(async {
        let stage = Stage::new();
        for settings in [Settings::tokens(), Settings::access()] {
            let engine = stage.engine(settings.clone());
            use_live(&engine).await;
            for key in JUNK {
                if key % 500 == 0 {
                    assert_live_remembered(&engine).await;
                    assert_within(engine.size().positives, settings.positives);
                }
                ask(&engine, key).await.unwrap();
            }
            assert_live_remembered(&engine).await;
            assert_within(engine.size().positives, settings.positives);
            assert!(engine.size().positives.entries > settings.positives.entries / 2);
        }
    });
}

#[test]
fn large_answers_are_bounded_by_their_bytes() {
    paused(async {
        let stage = Stage::new();
        let settings = Settings::tokens();
        let engine = stage.engine(settings.clone());
        use_live(&engine).await;
        stage.answers_with_bytes(20_000);
        for key in JUNK.take(2_000) {
            if key % 100 == 0 {
                assert_live_remembered(&engine).await;
            }
            ask(&engine, key).await.unwrap();
            if key % 10 == 0 {
                assert_within(engine.size().positives, settings.positives);
            }
        }
        assert_live_remembered(&engine).await;
        assert!(engine.size().positives.bytes > settings.positives.bytes / 2);
    });
}

#[test]
fn a_renewed_answer_is_no_eviction() {
    paused(async {
        let stage = Stage::new();
        let engine = stage.engine(Settings::tokens());
        for _ in 0..10 {
            ask(&engine, 7).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_secs(100)).await;
        }
        assert!(stage.count() > 5);
        assert_eq!(engine.counters().evictions.get(), 0);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_the_bounds_and_the_answers_the_bounds_hold(
        entries in 1usize..300,
        bytes in 1u64..200_000,
        questions in prop::collection::vec((0u32..600, 0usize..4_000, any::<bool>()), 1..600),
    ) {
        paused(async {
            let stage = Stage::new();
            let bounds = Bounds { entries, bytes };
            let engine = stage.engine(Settings {
                positives: bounds,
                negatives: bounds,
                ..Settings::access()
            });
            for (key, bytes, yes) in questions {
                stage.answers_with_bytes(bytes);
                stage.replies(if yes { Reply::Yes } else { Reply::No });
                ask(&engine, key).await.unwrap();
                assert_within(engine.size().positives, bounds);
                assert_within(engine.size().negatives, bounds);
            }
        });
    }
}
