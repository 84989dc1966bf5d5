//! Readers of metrics at the real API server.

use super::program::SOON;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use keelson_testbed::{Cluster, until};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

/// A token of a new account, that may read metrics or may not.
pub(crate) async fn token(cluster: &Cluster, namespace: &str, account: &str, may: bool) -> String {
    let client = cluster.client();
    let params = PostParams::default();
    let accounts = Api::<ServiceAccount>::namespaced(client, namespace);
    let made = json!({"metadata": {"name": account}});
    let made = serde_json::from_value(made).expect("an account");
    accounts.create(&params, &made).await.expect("an account");
    if may {
        permit(cluster, namespace, account).await;
    }
    let spec = json!({"audiences": [], "expirationSeconds": 600});
    let request: TokenRequest =
        serde_json::from_value(json!({"metadata": {}, "spec": spec})).expect("a request");
    let made = accounts.create_token_request(account, &params, &request);
    let made = made.await.expect("a token");
    made.status.expect("a status").token
}

/// Lets an account read metrics, and returns when the API server itself knows.
async fn permit(cluster: &Cluster, namespace: &str, account: &str) {
    let client = cluster.client();
    let params = PostParams::default();
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
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }))
    .expect("a binding");
    let bindings = Api::<ClusterRoleBinding>::all(client.clone());
    bindings.create(&params, &binding).await.expect("a binding");
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let review: SubjectAccessReview = serde_json::from_value(json!({
        "metadata": {},
        "spec": {"user": user, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
    }))
    .expect("a review");
    let reviews = Api::<SubjectAccessReview>::all(client);
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
