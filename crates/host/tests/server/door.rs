//! Who may read metrics, as the real API server says; and what holds while it says nothing.

use crate::common::client::Tls;
use crate::common::program::{Folder, Program, SOON};
use crate::common::rights;
use crate::world::cluster;
use http::Request;
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::until;

struct Stage {
    metrics: Program,
    tls: Tls,
    faults: FaultProxy,
    namespace: String,
}

impl Stage {
    async fn new(name: &str) -> Self {
        let cluster = cluster().await;
        let namespace = cluster.namespace(name).await.name().to_owned();
        let faults = cluster.faults().expect("a proxy");
        let folder = Folder::certified(cluster.authority());
        let metrics = folder.start_at(&faults.kubeconfig(), &["metrics"]);
        metrics.healthy().await;
        Self {
            metrics,
            tls: Tls::of(cluster.authority()),
            faults,
            namespace,
        }
    }

    async fn token(&self, account: &str, may: bool) -> String {
        rights::token(cluster().await, &self.namespace, account, may).await
    }

    async fn read(&self, token: &str) -> u16 {
        let said = self.tls.get(self.metrics.address(), "/metrics", token);
        said.await.status.as_u16()
    }
}

#[tokio::test]
async fn metrics_are_shown_to_those_the_api_server_lets_and_to_nobody_else() {
    let stage = Stage::new("door").await;
    assert_eq!(stage.read("").await, 401, "no token");
    assert_eq!(stage.read("made-up").await, 401, "nobody's token");
    let stranger = stage.token("stranger", false).await;
    assert_eq!(stage.read(&stranger).await, 403);
    let reader = stage.token("reader", true).await;
    assert_eq!(stage.read(&reader).await, 200);
    let request = Request::head("/metrics")
        .header("host", "localhost")
        .header("authorization", format!("Bearer {reader}"))
        .body(http_body_util::Full::default())
        .expect("a request");
    let said = stage.tls.ask(stage.metrics.address(), request).await;
    assert_eq!(
        said.expect("an answer").status,
        403,
        "head is a verb of its own"
    );
    for path in ["/", "/readyz", "/metrics/", "/debug/pprof"] {
        let said = stage.tls.get(stage.metrics.address(), path, &reader).await;
        assert_eq!(said.status, 404, "{path}");
    }
}

#[tokio::test]
async fn in_an_outage_a_known_reader_goes_on_and_others_are_told_to_come_back() {
    let stage = Stage::new("outage").await;
    let reader = stage.token("reader", true).await;
    let other = stage.token("other", true).await;
    assert_eq!(stage.read(&reader).await, 200);
    let outage = stage.faults.refuse();
    assert_eq!(stage.read(&reader).await, 200, "known");
    let said = stage.tls.get(stage.metrics.address(), "/metrics", &other);
    let said = said.await;
    assert_eq!(said.status, 503, "not known yet");
    assert!(said.headers.contains_key("retry-after"));
    assert_eq!(stage.read("").await, 401, "nobody asks about no token");
    outage.clear();
    until("the other", SOON, async || match stage.read(&other).await {
        200 => Ok(()),
        status => Err(status.to_string()),
    })
    .await
    .expect("the other");
}
