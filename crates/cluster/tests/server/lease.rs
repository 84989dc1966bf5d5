//! The lease between contenders, on a real API server and by real clocks.

use crate::stage::{Stage, holds, soon};
use k8s_openapi::api::coordination::v1::Lease as Stored;
use keelson_api::names;
use keelson_cluster::{Error, Lease, Led, Standing, lead};
use keelson_testbed::faults::{Fault, On, Pause, Verb};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{from_value, json};
use std::future::{pending, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep, timeout};

const NAME: &str = names::Lease::Sei.as_str();

fn lease(stage: &Stage, identity: &str) -> Lease {
    Lease {
        namespace: stage.name().to_owned(),
        name: NAME.to_owned(),
        identity: identity.to_owned(),
    }
}

fn stored(stage: &Stage) -> Api<Stored> {
    Api::namespaced(stage.cluster.client(), stage.name())
}

/// Says when it is dropped.
struct Dropped(Option<oneshot::Sender<Instant>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(Instant::now());
        }
    }
}

struct Contender {
    task: JoinHandle<Result<Led<()>, Error>>,
    standing: Standing,
    stop: Option<oneshot::Sender<()>>,
    ended: oneshot::Receiver<Instant>,
}

/// Somebody who wants the lease and, once it has it, works for ever.
fn contend(client: Client, lease: Lease) -> Contender {
    let standing = Standing::new();
    let (stop, stopped) = oneshot::channel::<()>();
    let (ending, ended) = oneshot::channel();
    let shared = standing.clone();
    let task = tokio::spawn(async move {
        let mark = Dropped(Some(ending));
        let work = async move {
            let _mark = mark;
            pending::<()>().await;
        };
        let stop = async {
            // A sender that is dropped never stops anybody.
            if stopped.await.is_err() {
                pending::<()>().await;
            }
        };
        lead(client, lease, &shared, stop, work).await
    });
    Contender {
        task,
        standing,
        stop: Some(stop),
        ended,
    }
}

#[tokio::test]
async fn a_killed_leader_is_followed_after_the_lease_and_no_sooner() {
    let stage = Stage::new("lease-killed").await;
    let first = contend(stage.client(), lease(&stage, "first"));
    soon("the first to lead", first.standing.leads()).await;
    let second = contend(stage.client(), lease(&stage, "second"));
    // Let the second see a renewal, so that what it waits for is the end and not the start.
    stage.faults.forget();
    let renewal = |call: &keelson_testbed::faults::Call| call.verb.writes();
    let seen = stage.faults.called("a renewal", renewal).await;
    seen.expect("a renewal");
    assert!(!second.standing.leading());
    first.task.abort();
    let killed = Instant::now();
    soon("the second to lead", second.standing.leads()).await;
    let took = killed.elapsed();
    println!("takeover after a kill: {took:?}");
    // Renewals are up to two seconds old, looks up to two and a half apart.
    assert!((12..=25).contains(&took.as_secs()), "{took:?}");
    let spec = stored(&stage).get(NAME).await.expect("the lease").spec;
    let spec = spec.expect("a spec");
    assert_eq!(spec.holder_identity.as_deref(), Some("second"));
    assert_eq!(spec.lease_transitions, Some(1));
    assert_eq!(spec.lease_duration_seconds, Some(15));
    second.task.abort();
}

#[tokio::test]
async fn a_leader_that_stops_lets_go_and_the_next_need_not_wait() {
    let stage = Stage::new("lease-stop").await;
    let mut first = contend(stage.client(), lease(&stage, "first"));
    soon("the first to lead", first.standing.leads()).await;
    assert_eq!(first.standing.sentence(), "leading");
    let second = contend(stage.client(), lease(&stage, "second"));
    let sees = || second.standing.holder().as_deref() == Some("first");
    holds("the second sees who leads", sees).await;
    assert_eq!(second.standing.sentence(), "standing by: first leads");
    let _ = first.stop.take().expect("a way to stop").send(());
    let stopped = Instant::now();
    let ended = soon("the first to end", &mut first.task).await;
    let ended = ended.expect("no panic").expect("no error");
    assert_eq!(ended, Led::Stopped);
    let work_ended = first.ended.await.expect("the work was dropped");
    assert!(!first.standing.leading());
    soon("the second to lead", second.standing.leads()).await;
    let took = stopped.elapsed();
    println!("takeover after a stop: {took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(work_ended <= Instant::now());
    second.task.abort();
}

#[tokio::test]
async fn who_stops_before_it_hears_that_it_leads_lets_go_too() {
    let stage = Stage::new("lease-unheard").await;
    let unheard = Fault::SlowAnswer(Pause::UntilCleared);
    let writes = On::verb(Verb::Create).resource("leases");
    let held = stage.faults.inject(unheard, writes.next(1));
    let mut first = contend(stage.client(), lease(&stage, "first"));
    held.hit(1).await.expect("a lease that is asked for");
    let leases = stored(&stage);
    let until = Instant::now() + Duration::from_secs(10);
    while leases.get_opt(NAME).await.expect("an answer").is_none() {
        assert!(Instant::now() < until, "no lease");
        sleep(Duration::from_millis(10)).await;
    }
    let _ = first.stop.take().expect("a way to stop").send(());
    let ended = soon("the first to end", &mut first.task).await;
    assert_eq!(ended.expect("no panic").expect("no error"), Led::Stopped);
    let spec = leases.get(NAME).await.expect("the lease").spec;
    assert_eq!(spec.expect("a spec").holder_identity.as_deref(), Some(""));
}

#[tokio::test]
async fn work_that_is_done_leaves_a_lease_without_a_holder() {
    let stage = Stage::new("lease-done").await;
    let standing = Standing::new();
    let led = lead(
        stage.client(),
        lease(&stage, "first"),
        &standing,
        pending(),
        ready(7),
    );
    assert_eq!(soon("the work", led).await.expect("no error"), Led::Done(7));
    let spec = stored(&stage).get(NAME).await.expect("the lease").spec;
    let spec = spec.expect("a spec");
    // As client-go leaves it.
    assert_eq!(spec.holder_identity.as_deref(), Some(""));
    assert_eq!(spec.lease_duration_seconds, Some(1));
    assert_eq!(spec.lease_transitions, Some(0));
    assert!(spec.renew_time.is_some() && spec.acquire_time.is_some());
}

#[tokio::test]
async fn a_leader_cut_off_ends_its_work_before_another_begins() {
    let stage = Stage::new("lease-cut").await;
    let first = contend(stage.client(), lease(&stage, "first"));
    soon("the first to lead", first.standing.leads()).await;
    let second = contend(stage.cluster.client(), lease(&stage, "second"));
    let _outage = stage.faults.black_hole();
    let cut = Instant::now();
    let ended = soon("the end of the work", first.ended).await;
    let ended = ended.expect("the work was dropped");
    let took = ended - cut;
    println!("the work ended {took:?} after the cut");
    // Ten seconds from the last renewal, and a loaded machine.
    assert!(took < Duration::from_millis(11_500), "{took:?}");
    assert!(!second.standing.leading(), "nobody leads yet");
    soon("the second to lead", second.standing.leads()).await;
    println!("the other led after {:?}", cut.elapsed());
    let led = first.task.await.expect("no panic").expect("no error");
    let Led::Lost(why) = led else {
        panic!("{led:?}");
    };
    assert!(
        why.starts_with("the lease was not renewed within 10s: "),
        "{why}"
    );
    second.task.abort();
}

/// The lease as an operator in Go writes it, with a clock that is years behind.
async fn written_in_go(stage: &Stage, seconds: i32) -> Stored {
    let lease: Stored = from_value(json!({
        "metadata": { "name": NAME },
        "spec": {
            "holderIdentity": "sei-k8s-controller-manager-7d9f_3b0c",
            "leaseDurationSeconds": seconds,
            "acquireTime": "2019-01-01T00:00:00.000000Z",
            "renewTime": "2019-01-01T00:00:00.000001Z",
            "leaseTransitions": 41,
        },
    }))
    .expect("a lease");
    let made = stored(stage).create(&PostParams::default(), &lease).await;
    made.expect("a lease")
}

#[tokio::test]
async fn a_lease_of_client_go_is_respected_while_renewed_and_taken_when_not() {
    let stage = Stage::new("lease-go").await;
    written_in_go(&stage, 4).await;
    let ours = contend(stage.client(), lease(&stage, "ours"));
    let api = stored(&stage);
    // Renewed for three times its length, by a clock that has nothing to do with ours.
    let mut tick = interval(Duration::from_secs(1));
    for second in 2..14 {
        tick.tick().await;
        let renewed =
            json!({ "spec": { "renewTime": format!("2019-01-01T00:00:{second:02}.000000Z") } });
        let how = PatchParams::default();
        let patched = api.patch(NAME, &how, &Patch::Merge(&renewed)).await;
        patched.expect("a renewal");
        assert!(!ours.standing.leading(), "not while it is renewed");
    }
    let last = Instant::now();
    let holder = ours.standing.holder();
    assert_eq!(
        holder.as_deref(),
        Some("sei-k8s-controller-manager-7d9f_3b0c")
    );
    soon("our turn", ours.standing.leads()).await;
    let took = last.elapsed();
    println!("taken {took:?} after the last renewal of a lease of 4 s");
    assert!((4..15).contains(&took.as_secs()), "{took:?}");
    let spec = api
        .get(NAME)
        .await
        .expect("the lease")
        .spec
        .expect("a spec");
    assert_eq!(spec.lease_transitions, Some(42));
    // The other way round: the operator in Go takes it by force, and we end.
    let stolen = json!({ "spec": { "holderIdentity": "another", "leaseDurationSeconds": 15 } });
    let how = PatchParams::default();
    let patched = api.patch(NAME, &how, &Patch::Merge(&stolen)).await;
    patched.expect("a theft");
    let led = soon("the end", ours.task).await.expect("no panic");
    assert_eq!(
        led.expect("no error"),
        Led::Lost("another took the lease".to_owned())
    );
}

#[tokio::test]
async fn a_lease_without_a_namespace_is_an_error_and_stopping_ends_the_waiting() {
    let stage = Stage::new("lease-errors").await;
    let nowhere = Lease {
        namespace: "no-such-namespace".to_owned(),
        ..lease(&stage, "ours")
    };
    let standing = Standing::new();
    let led = lead(stage.client(), nowhere, &standing, pending(), ready(()));
    let error = soon("an error", led).await.expect_err("no namespace");
    assert!(
        error.is_absent() && error.to_string().contains("no-such-namespace"),
        "{error}"
    );
    written_in_go(&stage, 600).await;
    let stop = sleep(Duration::from_millis(500));
    let ours = lease(&stage, "ours");
    let led = lead(stage.client(), ours, &standing, stop, ready(()));
    let led = timeout(Duration::from_secs(10), led).await.expect("an end");
    assert_eq!(led.expect("no error"), Led::Stopped);
}
