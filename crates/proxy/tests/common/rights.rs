//! Callers at the real API server: their tokens, and what they may.

use http::Request;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use keelson_testbed::{Cluster, until};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::time::Duration;

/// The configuration that asks for the right these functions give.
pub(crate) fn tasks_of(namespace: &str) -> String {
    format!("{}    namespace: {namespace}\n", super::program::CONFIG)
}

/// The user a namespace's own account is.
pub(crate) fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:default")
}

/// A new token of a namespace's account; no audiences for the API server's own.
pub(crate) async fn token(client: &kube::Client, namespace: &str, audiences: &[&str]) -> String {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    let spec = json!({ "audiences": audiences, "expirationSeconds": 600 });
    let request: TokenRequest =
        serde_json::from_value(json!({ "metadata": {}, "spec": spec })).expect("a request");
    let params = PostParams::default();
    let made = accounts
        .create_token_request("default", &params, &request)
        .await;
    made.expect("a token").status.expect("a status").token
}

/// A token of the namespace's own account, as a header has it.
pub(crate) async fn bearer(namespace: &str) -> String {
    let client = Cluster::shared().await.client();
    format!("Bearer {}", token(&client, namespace, &[]).await)
}

/// Lets a user do this to the tasks of a namespace, and returns when the API server knows.
pub(crate) async fn permit(namespace: &str, user: &str, verb: &str) {
    let client = Cluster::shared().await.client();
    let params = PostParams::default();
    let role: Role = serde_json::from_value(json!({
        "metadata": { "generateName": "tasks-" },
        "rules": [{ "apiGroups": ["sei.io"], "resources": ["seinodetasks"], "verbs": [verb] }],
    }))
    .expect("a role");
    let roles = Api::<Role>::namespaced(client.clone(), namespace);
    let role = roles.create(&params, &role).await.expect("a role");
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "generateName": "tasks-" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role.metadata.name,
        },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    }))
    .expect("a binding");
    let bindings = Api::<RoleBinding>::namespaced(client.clone(), namespace);
    bindings.create(&params, &binding).await.expect("a binding");
    await_permission(&client, namespace, user, verb).await;
}

/// The authorizer of the API server hears of a new binding a moment later.
async fn await_permission(client: &kube::Client, namespace: &str, user: &str, verb: &str) {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
        "spec": { "user": user, "resourceAttributes": {
            "namespace": namespace, "verb": verb, "group": "sei.io", "resource": "seinodetasks",
        }},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    until("the permission", Duration::from_secs(10), async || {
        let request = Request::post(path).body(review.to_string().into_bytes());
        let answer: Value = client
            .request(request.expect("a request"))
            .await
            .map_err(|error| error.to_string())?;
        match answer["status"]["allowed"] == json!(true) {
            true => Ok(()),
            false => Err(answer["status"].to_string()),
        }
    })
    .await
    .expect("a permission that is known");
}
