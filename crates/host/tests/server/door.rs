//! Who may read metrics, as the real API server says; and what holds while it says nothing.

use crate::common::client::Tls;
use crate::common::program::{Folder, Program, SOON};
use crate::world::cluster;
use http::Request;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::until;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

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

    /// A token of a new account, that may read metrics or may not.
    async fn token(&self, account: &str, may: bool) -> String {
        let client = cluster().await.client();
        let params = PostParams::default();
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &self.namespace);
        let made = json!({"metadata": {"name": account}});
        let made = serde_json::from_value(made).expect("an account");
        accounts.create(&params, &made).await.expect("an account");
        if may {
            let role: ClusterRole = serde_json::from_value(json!({
                "metadata": {"generateName": "reader-"},
                "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
            }))
            .expect("a role");
            let roles = Api::<ClusterRole>::all(client.clone());
            let role = roles.create(&params, &role).await.expect("a role");
            let binding: ClusterRoleBinding = serde_json::from_value(json!({
                "metadata": {"generateName": "reader-"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": role.metadata.name},
                "subjects": [{"kind": "ServiceAccount", "name": account,
                    "namespace": self.namespace}],
            }))
            .expect("a binding");
            let bindings = Api::<ClusterRoleBinding>::all(client.clone());
            bindings.create(&params, &binding).await.expect("a binding");
            self.known(account).await;
        }
        let spec = json!({"audiences": [], "expirationSeconds": 600});
        let request: TokenRequest =
            serde_json::from_value(json!({"metadata": {}, "spec": spec})).expect("a request");
        let made = accounts.create_token_request(account, &params, &request);
        let made = made.await.expect("a token");
        made.status.expect("a status").token
    }

    /// Waits until the API server itself knows of an account's right.
    async fn known(&self, account: &str) {
        let user = format!("system:serviceaccount:{}:{account}", self.namespace);
        let review: SubjectAccessReview = serde_json::from_value(json!({
            "metadata": {},
            "spec": {"user": user, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
        }))
        .expect("a review");
        let reviews = Api::<SubjectAccessReview>::all(cluster().await.client());
        let params = PostParams::default();
        until("a right", SOON, async || {
            let said = reviews.create(&params, &review).await;
            let status = said.map_err(|it| it.to_string())?.status;
            match status {
                Some(status) if status.allowed => Ok(()),
                status => Err(format!("{status:?}")),
            }
        })
        .await
        .expect("a right");
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
