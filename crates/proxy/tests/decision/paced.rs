//! A limit of our own on the calls: it delays, it refuses who would wait for too long, and it is not
//! held against the server.

use super::stage::{Key, Said, Stage, millis, paused, seconds};
use keelson_proxy::decision::limiter::Rate;
use keelson_proxy::decision::pace::Pace;
use keelson_proxy::decision::{Engine, Failure, Inquiry, Refusal, Reviewer, Settings};
use std::sync::Arc;

struct Paced(Stage, Arc<Pace>);

impl Reviewer for Paced {
    type Question = Key;
    type Answer = Said;

    async fn review(&self, question: &Key) -> Result<Said, Failure> {
        self.0.answer(*question).await
    }

    async fn turn(&self) {
        self.1.turn().await;
    }
}

#[test]
fn both_engines_share_the_rate_and_who_would_wait_past_the_deadline_is_refused() {
    paused(async {
        let stage = Stage::new();
        let pace = Arc::new(Pace::new(Rate {
            per_second: 1.0,
            burst: 2,
        }));
        let engine = |settings| Engine::new(Paced(stage.clone(), Arc::clone(&pace)), settings);
        let engines = [engine(Settings::tokens()), engine(Settings::access())];
        let decide = async |key: Key| {
            let inquiry = Inquiry {
                question: key,
                not_after: None,
            };
            let engine = &engines[usize::try_from(key % 2).unwrap()];
            engine.decide(&key, None, || Ok(inquiry)).await
        };
        let asked = (0..20).map(decide);
        let outcomes = futures::future::join_all(asked).await;
        let refused = outcomes.iter().filter_map(|it| it.as_ref().err());
        assert!(refused.clone().all(|it| *it == Refusal::Overloaded));
        // Two at once, then one a second for the ten seconds a review may take.
        let calls = stage.calls();
        assert!((11..=12).contains(&calls.len()), "{}", calls.len());
        assert_eq!(refused.count(), 20 - calls.len());
        let first = calls[0].asked;
        for (place, call) in calls.iter().enumerate().skip(2) {
            let earliest = seconds(u64::try_from(place - 1).unwrap());
            assert!(call.asked - first + millis(5) >= earliest, "{place}");
        }
        for engine in &engines {
            assert!(
                !engine.breaker().open(),
                "the server has done nothing wrong"
            );
            assert_eq!(engine.counters().failures.get(), 0);
        }
    });
}
