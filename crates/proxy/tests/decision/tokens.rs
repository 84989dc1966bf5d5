//! Tokens in front of the engine: `exp`, audiences, and floods of bad ones.

use super::stage::{Reply, Said, Stage, millis, paused, seconds};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use keelson_proxy::decision::{
    Authentication, Failure, Keys, Provenance, Refusal, Reviewer, Settings, Token, Verdict,
    authn::EXPIRED_LEEWAY,
};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::{Instant, sleep};

struct Door(Stage);

impl Reviewer for Door {
    type Question = Token;
    type Answer = Said;

    async fn review(&self, token: &Token) -> Result<Said, Failure> {
        self.0.answer(token.text.len() as u32).await
    }
}

struct Scene {
    stage: Stage,
    door: Authentication<Door>,
    began: Instant,
}

/// The wall clock when a scene begins, in seconds.
const MORNING: u64 = 1_700_000_000;

impl Scene {
    fn new(leeway: Option<Duration>) -> Scene {
        let stage = Stage::new();
        let keys = Arc::new(Keys::random().unwrap());
        let door = Authentication::new(Door(stage.clone()), Settings::tokens(), keys, leeway);
        Scene {
            stage,
            door,
            began: Instant::now(),
        }
    }

    async fn show(&self, token: &str, audiences: &[&str]) -> super::stage::Outcome {
        let audiences: Arc<[String]> = audiences.iter().map(ToString::to_string).collect();
        let source = IpAddr::from(Ipv4Addr::LOCALHOST);
        let wall = SystemTime::UNIX_EPOCH + seconds(MORNING) + self.began.elapsed();
        self.door
            .authenticate(token, &audiences, source, wall)
            .await
    }
}

fn ends_at(seconds: u64) -> String {
    let claims = URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":{seconds}}}"#));
    format!("e30.{claims}.c2ln")
}

#[test]
fn a_token_that_ends_soon_is_not_honoured_after_its_end() {
    paused(async {
        let scene = Scene::new(Some(EXPIRED_LEEWAY));
        let token = ends_at(MORNING + 5);
        assert_eq!(
            scene.show(&token, &[]).await.unwrap().verdict(),
            Verdict::Positive
        );
        sleep(millis(4_999)).await;
        assert_eq!(
            scene.show(&token, &[]).await.unwrap().provenance(),
            Provenance::Cache
        );
        sleep(millis(1)).await;
        scene.stage.replies(Reply::No);
        assert_eq!(
            scene.show(&token, &[]).await.unwrap().verdict(),
            Verdict::Negative
        );
        assert_eq!(scene.stage.count(), 2);
    });
}

#[test]
fn a_token_that_ended_long_ago_is_refused_without_asking_unless_all_are_asked_about() {
    paused(async {
        for (leeway, ended, asked) in [
            (Some(EXPIRED_LEEWAY), 61, 0),
            (Some(EXPIRED_LEEWAY), 60, 1),
            (None, 100_000, 1),
        ] {
            let scene = Scene::new(leeway);
            let outcome = scene.show(&ends_at(MORNING - ended), &[]).await;
            assert_eq!(scene.stage.count(), asked, "ended {ended} s ago");
            assert_eq!(outcome.err() == Some(Refusal::Expired), asked == 0);
            let counters = scene.door.engine().counters();
            assert_eq!(counters.expired.get(), 1 - asked as u64);
        }
    });
}

#[test]
fn an_answer_to_a_token_past_its_end_is_used_but_not_kept() {
    paused(async {
        let scene = Scene::new(Some(EXPIRED_LEEWAY));
        let token = ends_at(MORNING - 10);
        for _ in 0..2 {
            let decision = scene.show(&token, &[]).await.unwrap();
            assert_eq!(decision.provenance(), Provenance::Review);
        }
        assert_eq!(scene.door.engine().size().positives.entries, 0);
    });
}

#[test]
fn a_token_without_a_readable_end_lives_as_long_as_its_answer() {
    paused(async {
        let far = ends_at(u64::MAX);
        for token in ["opaque", "a.b.c", "..", far.as_str()] {
            let scene = Scene::new(Some(EXPIRED_LEEWAY));
            scene.show(token, &[]).await.unwrap();
            sleep(millis(119_999)).await;
            let decision = scene.show(token, &[]).await.unwrap();
            assert_eq!(decision.provenance(), Provenance::Cache, "{token}");
        }
    });
}

#[test]
fn the_same_token_for_other_audiences_is_another_question() {
    paused(async {
        let scene = Scene::new(None);
        for audiences in [&[][..], &["a"], &["a", "b"], &["a"], &[]] {
            scene.show("token", audiences).await.unwrap();
        }
        assert_eq!(scene.stage.count(), 3);
    });
}

#[test]
fn a_bad_token_shown_again_is_asked_about_once_in_two_seconds() {
    paused(async {
        let scene = Scene::new(None);
        scene.stage.replies(Reply::No);
        for (pause, calls) in [(0, 1), (0, 1), (1_999, 1), (1, 2), (0, 2)] {
            sleep(millis(pause)).await;
            let decision = scene.show("bad", &[]).await.unwrap();
            assert_eq!(decision.verdict(), Verdict::Negative);
            assert_eq!(scene.stage.count(), calls);
        }
    });
}

#[test]
fn ten_thousand_bad_tokens_from_one_address_cause_a_bounded_number_of_reviews() {
    paused(async {
        let scene = Scene::new(None);
        scene.show("good", &[]).await.unwrap();
        scene.stage.replies(Reply::No);
        for guess in 0..10_000 {
            let outcome = scene.show(&format!("guess-{guess}"), &[]).await;
            assert!(match outcome {
                Ok(decision) => decision.verdict() == Verdict::Negative,
                Err(refusal) => matches!(refusal, Refusal::Throttled { .. }),
            });
            sleep(millis(1)).await;
        }
        // The burst, and ten seconds of a hundred each.
        assert!(
            scene.stage.count() <= 1_000 + 1_000 + 1,
            "{}",
            scene.stage.count()
        );
        let size = scene.door.engine().size();
        assert!(size.negatives.entries <= 1024);
        let good = scene.show("good", &[]).await.unwrap();
        assert_eq!(good.provenance(), Provenance::Cache);
    });
}

#[test]
fn a_token_to_be_reviewed_does_not_show_itself() {
    let token = Token {
        text: "secret".into(),
        audiences: Arc::new(["vault".to_string()]),
    };
    assert!(!format!("{token:?}").contains("secret"));
}
