//! The roles while the API server is away, in each of the ways it can be: real processes, side by
//! side, that become healthy at once, stay up, and are in sync soon after it is back.
//!
//! The original's metrics end after two minutes of this, and its handler after thirty seconds.
//! `KEELSON_SOAK=1` makes the outage longer than that.

#[path = "common/mod.rs"]
mod common;

use common::client::Tls;
use common::outage::{Begin, HEALTHY, IN_SYNC, WAYS, outage};
use common::program::{Folder, PROMISED, Program, SOON, shipped, value};
use common::rights;
use futures::future::{join, join_all};
use keelson_api::NodeNetworkConfigurationPolicy;
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, until};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use std::any::Any;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// And the program that ships, on a machine that does nothing else, within this.
const SHIPPED: Duration = Duration::from_millis(50);
const SYNCED: &str = "keelson_host_source_synced{source=\"policies\"}";
const AGE: &str = "keelson_host_source_age_seconds{source=\"policies\"}";
const AVAILABLE: &str = "kubernetes_nmstate_policies_status{status=\"Available\"}";
const QUESTION: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":{"metadata":{}}}}"#;

/// Both roles behind one API server that is away in one way.
struct Away {
    way: &'static str,
    faults: FaultProxy,
    outage: Option<Box<dyn Any + Send>>,
    metrics: Program,
    webhook: Program,
}

impl Away {
    async fn begin(cluster: &Cluster, way: &'static str, begin: Begin) -> Self {
        let faults = cluster.faults().expect("a proxy");
        let outage = begin(&faults);
        let start = |words: &[&str]| {
            let folder = Folder::certified(cluster.authority());
            folder.start_at(&faults.kubeconfig(), words)
        };
        let metrics = start(&["metrics", "--metrics-auth=None"]);
        let until_metrics = metrics.healthy().await;
        let webhook = start(&["webhook"]);
        let until_webhook = webhook.healthy().await;
        println!("{way}: healthy after {until_metrics:?} (metrics), {until_webhook:?} (webhook)");
        let healthy = if shipped().is_some() {
            SHIPPED
        } else {
            HEALTHY
        };
        assert!(until_metrics <= healthy, "{way}: {until_metrics:?}");
        assert!(until_webhook <= healthy, "{way}: {until_webhook:?}");
        Self {
            way,
            faults,
            outage: Some(outage),
            metrics,
            webhook,
        }
    }

    /// Both live, are ready, and do what they can without an API server.
    async fn serves(&mut self, tls: &Tls) {
        let way = self.way;
        for program in [&mut self.metrics, &mut self.webhook] {
            assert!(program.runs(), "{way}: ended");
            for path in ["/healthz", "/readyz"] {
                let said = program.health(path).map(|(status, _)| status);
                assert_eq!(said, Some(200), "{way}: {path}");
            }
        }
        let page = tls.get(self.metrics.address(), "/metrics", "").await;
        assert_eq!(page.status, 200, "{way}");
        assert_eq!(value(&page.body, SYNCED).as_deref(), Some("0"), "{way}");
        assert_eq!(
            value(&page.body, AVAILABLE),
            None,
            "{way}: a nought would be a lie"
        );
        let path = "/nodenetworkconfigurationpolicies-timestamp-mutate";
        let said = tls.post(self.webhook.address(), path, QUESTION).await;
        assert!(said.body.contains("\"patch\""), "{way}: {}", said.body);
    }

    /// That the server is looked for about once a second, however long it has been away.
    fn keeps_asking(&self, since: Duration) {
        let asked = self.faults.calls();
        let asked = asked
            .iter()
            .filter(|call| call.resource.ends_with("policies"));
        let (asked, seconds) = (asked.count() as u64, since.as_secs());
        assert!(asked >= seconds * 2 / 3, "{asked} calls in {seconds} s");
    }

    /// Ends the outage; how long it then takes to be in sync.
    async fn back(&mut self, tls: &Tls) -> Duration {
        self.outage = None;
        let back = Instant::now();
        counts(&self.metrics, tls).await;
        back.elapsed()
    }
}

/// Waits until the one policy is counted.
async fn counts(metrics: &Program, tls: &Tls) {
    until("in sync", SOON, async || {
        let page = tls.get(metrics.address(), "/metrics", "").await.body;
        match value(&page, AVAILABLE).as_deref() {
            Some("1") => Ok(()),
            _ => Err(page),
        }
    })
    .await
    .expect("in sync");
}

/// One policy that is available.
async fn one_policy(cluster: &Cluster) {
    cluster.install_crds().await.expect("types");
    let policies = Api::<NodeNetworkConfigurationPolicy>::all(cluster.client());
    let policy = serde_json::from_value(json!({"apiVersion": "nmstate.io/v1",
        "kind": "NodeNetworkConfigurationPolicy", "metadata": {"name": "one"}, "spec": {}}));
    let policy = policy.expect("a policy");
    let made = policies.create(&PostParams::default(), &policy).await;
    made.expect("a policy");
    let status = json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}});
    let how = PatchParams::default();
    let status = Patch::Merge(status);
    let written = policies.patch_status("one", &how, &status).await;
    written.expect("a status");
}

#[tokio::test]
async fn without_an_api_server_both_roles_are_healthy_at_once_stay_up_and_catch_up() {
    let cluster = Cluster::shared().await;
    one_policy(cluster).await;
    let tls = Tls::of(cluster.authority());
    let began = Instant::now();
    let mut all = Vec::new();
    for (way, begin) in WAYS {
        all.push(Away::begin(cluster, way, begin).await);
    }
    for away in &mut all {
        away.serves(&tls).await;
    }
    // The outage itself: there is no event to wait for, only that nothing ends.
    let passes = tokio::time::sleep(outage().saturating_sub(began.elapsed()));
    join(passes, later_outage(cluster, &tls)).await;
    for away in &mut all {
        away.serves(&tls).await;
        if away.way == "503" {
            away.keeps_asking(began.elapsed());
        }
    }
    let held = |it: &Away| (it.metrics.resident(), it.webhook.resident());
    let held: Vec<_> = all.iter().map(held).collect();
    let back = join_all(all.iter_mut().map(|away| away.back(&tls))).await;
    for ((away, (metrics, webhook)), took) in all.iter().zip(held).zip(back) {
        let way = away.way;
        println!("{way}: in sync after {took:?}; {metrics} KiB (metrics), {webhook} KiB (webhook)");
        assert!(took <= IN_SYNC, "{way}: {took:?}");
        if shipped().is_some() {
            assert!(webhook <= PROMISED, "{way}: {webhook} KiB (webhook)");
        }
    }
}

/// A second outage, after all was in sync: what was known is served, its age grows, and is none again
/// soon after the server's return.
async fn later_outage(cluster: &Cluster, tls: &Tls) {
    let faults = cluster.faults().expect("a proxy");
    let first = faults.refuse();
    let folder = Folder::certified(cluster.authority());
    let metrics = folder.start_at(&faults.kubeconfig(), &["metrics", "--metrics-auth=None"]);
    metrics.healthy().await;
    first.clear();
    counts(&metrics, tls).await;
    let age = async || {
        let page = tls.get(metrics.address(), "/metrics", "").await.body;
        assert_eq!(value(&page, AVAILABLE).as_deref(), Some("1"), "still known");
        let age = value(&page, AGE).expect("an age");
        age.parse::<f64>().expect("a number")
    };
    let outage = faults.black_hole();
    until("an age", SOON, async || match age().await {
        12.0.. => Ok(()),
        age => Err(age.to_string()),
    })
    .await
    .expect("an age past every sign of life");
    outage.clear();
    let back = Instant::now();
    until("no age", SOON, async || match age().await {
        ..5.0 => Ok(()),
        age => Err(age.to_string()),
    })
    .await
    .expect("no age");
    let took = back.elapsed();
    println!("a later outage: in sync after {took:?}");
    assert!(took <= IN_SYNC, "{took:?}");
}

/// In a soak the outage is longer than a yes is remembered for, so this one has outlived its time.
#[tokio::test]
async fn in_an_outage_a_known_reader_is_let_in_throughout_and_others_are_not() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("reader").await.name().to_owned();
    let faults = cluster.faults().expect("a proxy");
    let folder = Folder::certified(cluster.authority());
    let metrics = folder.start_at(&faults.kubeconfig(), &["metrics"]);
    metrics.healthy().await;
    let tls = Tls::of(cluster.authority());
    let known = rights::token(cluster, &namespace, "known", true).await;
    let other = rights::token(cluster, &namespace, "other", true).await;
    let read = async |token: &str| {
        let began = Instant::now();
        let said = tls.get(metrics.address(), "/metrics", token).await;
        // A scraper that waits longer than ten seconds has given up.
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?}",
            began.elapsed()
        );
        said.status.as_u16()
    };
    assert_eq!(read(&known).await, 200);
    let _away = faults.black_hole();
    let began = Instant::now();
    while began.elapsed() < outage() {
        assert_eq!(read(&known).await, 200, "after {:?}", began.elapsed());
        assert_eq!(read(&other).await, 503, "after {:?}", began.elapsed());
        // As a scraper does.
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

/// A network that drops packets resets nothing when it comes back: who waits in it waits on, and only
/// who gives up and dials anew is served.
#[tokio::test]
async fn what_fell_into_a_black_hole_is_given_up_and_asked_anew() {
    let cluster = Cluster::shared().await;
    cluster.install_crds().await.expect("types");
    let hole = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let kubeconfig = cluster.kubeconfig();
    let server = kubeconfig.split("https://").nth(1).expect("a server");
    let server = server.split('"').next().expect("an address");
    let through = hole.local_addr().expect("an address").to_string();
    let kubeconfig = kubeconfig.replace(server, &through);
    let (open, opened) = watch::channel(false);
    let (fell, mut fallen) = watch::channel(0);
    let server = server.to_owned();
    tokio::spawn(async move {
        let mut swallowed = Vec::new();
        while let Ok((mut outside, _)) = hole.accept().await {
            if !*opened.borrow() {
                swallowed.push(outside);
                fell.send_replace(swallowed.len());
                continue;
            }
            let inside = TcpStream::connect(&server).await;
            let mut inside = inside.expect("the API server");
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    let folder = Folder::certified(cluster.authority());
    let metrics = folder.start_at(&kubeconfig, &["metrics", "--metrics-auth=None"]);
    metrics.healthy().await;
    let tls = Tls::of(cluster.authority());
    // Three watches, each at its second attempt, which has only just begun: the worst moment.
    let second = timeout(SOON, fallen.wait_for(|count| *count >= 6)).await;
    second.expect("in time").expect("attempts");
    open.send_replace(true);
    let back = Instant::now();
    until("in sync", SOON, async || {
        let page = tls.get(metrics.address(), "/metrics", "").await.body;
        match value(&page, SYNCED).as_deref() {
            Some("1") => Ok(()),
            _ => Err(page),
        }
    })
    .await
    .expect("in sync");
    let took = back.elapsed();
    println!("a black hole that keeps what fell in: in sync after {took:?}");
    assert!(took <= IN_SYNC, "{took:?}");
}
