//! How often the API server and the upstream are bothered, and how long answers are believed.

use crate::case::get;
use crate::fake::Script;
use crate::stage::{Place, Stage};
use crate::subject::{Running, Subject};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures::future::join_all;
use keelson_testbed::until;
use std::time::{Duration, Instant, SystemTime};

const SOON: Duration = Duration::from_secs(20);

/// Sends as many requests at once, each with a token of its own that nobody knows.
async fn strangers(running: &Running, count: usize) -> Duration {
    let started = Instant::now();
    let asked = (0..count).map(async |number| {
        let bearer = format!("Authorization: Bearer stranger-{number}");
        let request = get("/", &[&bearer]);
        let answer = running.door.exchange(request.as_bytes()).await;
        assert_eq!(answer.status, Some(401));
    });
    join_all(asked).await;
    assert_eq!(running.reviews().0, count);
    started.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a14_five_questions_a_second_there_and_as_many_as_there_are_here() {
    let stage = Stage::new("throttle").await;
    let reference = stage.plain(Subject::KubeRbacProxy, "", &[]).await;
    let ours = stage.plain(Subject::Keelson, "", &[]).await;
    let theirs = strangers(&reference, 25).await;
    let ours = strangers(&ours, 25).await;
    let flags = ["--kube-api-qps=5", "--kube-api-burst=10"];
    let restored = stage.plain(Subject::Keelson, "", &flags).await;
    let restored = strangers(&restored, 25).await;
    // Ten at once and five a second: fifteen more take three seconds, however fast the machine.
    let throttled = Duration::from_millis(2800);
    assert!(theirs > throttled, "{theirs:?}");
    assert!(ours < throttled, "{ours:?}");
    assert!(restored > throttled, "{restored:?}");
}

/// Sixteen requests at once, twice; how many connections the upstream saw.
async fn sixteen_twice(running: &Running) -> usize {
    let request = get("/held", &[]);
    for _ in 0..2 {
        let all = join_all((0..16).map(async |_| {
            let answer = running.door.exchange(request.as_bytes()).await;
            assert_eq!(answer.status, Some(200));
        }));
        let released = async {
            until("sixteen requests", SOON, async || {
                match running.upstream.arrived() {
                    16 => Ok(()),
                    other => Err(format!("{other}")),
                }
            })
            .await
            .expect("all at once");
            running.upstream.take();
            running.upstream.release(16);
        };
        tokio::join!(all, released);
    }
    running.upstream.connections()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a15_two_connections_are_kept_there_and_all_of_them_here() {
    let stage = Stage::new("pool").await;
    for (subject, flags, wanted) in [
        (Subject::KubeRbacProxy, &["--ignore-paths=/held"][..], 30),
        (Subject::Keelson, &["--ignore-paths=/held"][..], 16),
        (
            Subject::Keelson,
            &["--ignore-paths=/held", "--upstream-max-idle-connections=2"][..],
            30,
        ),
    ] {
        let running = stage.plain(subject, "", flags).await;
        assert_eq!(
            sixteen_twice(&running).await,
            wanted,
            "{subject:?} {flags:?}"
        );
    }
}

/// A token that ends at this time, as far as it can be read.
fn ending(at: SystemTime) -> String {
    let seconds = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let part = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
    let head = part(r#"{"alg":"none"}"#.into());
    format!(
        "{head}.{}.{}",
        part(format!(r#"{{"exp":{seconds}}}"#)),
        part("none".into())
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a22_a_token_is_believed_past_its_end_there_and_not_here() {
    let stage = Stage::new("ends").await;
    let place = Place::scripted(Script::GoodOnce);
    let reference = stage.start(Subject::KubeRbacProxy, place, "", &[]).await;
    let ours = stage.start(Subject::Keelson, place, "", &[]).await;
    let end = SystemTime::now() + Duration::from_secs(3);
    let bearer = format!("Authorization: Bearer {}", ending(end));
    let request = get("/", &[&bearer]);
    for subject in [&reference, &ours] {
        let answer = subject.door.exchange(request.as_bytes()).await;
        assert_eq!(answer.status, Some(200), "{:?}", subject.subject);
    }
    until("the end of the token, here", SOON, async || {
        match ours.door.exchange(request.as_bytes()).await.status {
            Some(401) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .expect("it is not believed for ever");
    assert!(
        SystemTime::now() >= end - Duration::from_secs(1),
        "not before its time"
    );
    assert_eq!(ours.reviews().0, 2, "the server was asked again");
    let answer = reference.door.exchange(request.as_bytes()).await;
    assert_eq!((answer.status, reference.reviews().0), (Some(200), 1));
}
