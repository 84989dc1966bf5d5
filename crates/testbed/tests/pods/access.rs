//! Who may command a sidecar, asked of the real API server by the real proxy.

use crate::world::{Chain, world};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use keelson_api::names::Port;
use kube::Api;
use serde_json::{Value, json};

const NODE: &str = "validator";

/// A ServiceAccount, with the role of those who may command sidecars or without.
pub(crate) fn account(chain: &Chain, name: &str, may: bool) {
    let metadata = |name: &str| json!({ "name": name, "namespace": chain.name });
    let mut objects = vec![json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name),
    })];
    if may {
        objects.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": metadata(name),
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "keelson-sidecar-client",
            },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": chain.name }],
        }));
    }
    chain.world.kubectl.apply(&objects).expect("an account");
}

pub(crate) fn token(chain: &Chain, account: &str, audience: &str) -> String {
    let place = ["--namespace", &chain.name, "create", "token", account];
    let words = [&place[..], &["--audience", audience]].concat();
    let token = chain.world.kubectl.run(&words).expect("a token");
    token.trim().to_owned()
}

/// Submits a task that changes nothing; says how that was answered.
async fn submit(chain: &Chain, headers: &[(&str, &str)]) -> (u16, Value) {
    let address = chain.address(NODE, Port::Api).await.expect("an address");
    let task = json!({ "type": "config-validate" }).to_string();
    let cluster = &chain.world.cluster;
    let answer = cluster.ask(address, "POST /v0/tasks", headers, &task);
    let (status, body) = answer.expect("an answer");
    (
        status,
        serde_json::from_str(&body).unwrap_or(Value::String(body)),
    )
}

#[tokio::test]
async fn a_sidecar_is_commanded_by_those_who_may_and_told_who_they_are() {
    let chain = world().await.chain("access").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    account(&chain, "stranger", false);
    account(&chain, "friend", true);
    let own = format!("keelson-sidecar/{}/{NODE}", chain.name);
    let bearer =
        |account: &str, audience: &str| format!("Bearer {}", token(&chain, account, audience));

    assert_eq!(submit(&chain, &[]).await.0, 401);
    let forged = [
        ("X-Remote-User", "system:admin"),
        ("X-Remote-Groups", "system:masters"),
    ];
    assert_eq!(submit(&chain, &forged).await.0, 401);
    let stranger = bearer("stranger", &own);
    assert_eq!(submit(&chain, &[("Authorization", &stranger)]).await.0, 403);
    let elsewhere = bearer("friend", &format!("keelson-sidecar/{}/other", chain.name));
    assert_eq!(
        submit(&chain, &[("Authorization", &elsewhere)]).await.0,
        401
    );
    let friend = bearer("friend", &own);
    let headers = [&forged[..], &[("Authorization", &friend)]].concat();
    let (status, submitted) = submit(&chain, &headers).await;
    assert_eq!(status, 201, "{submitted}");

    let id = submitted["id"].as_str().expect("an id");
    let address = chain.address(NODE, Port::Api).await.expect("an address");
    let line = format!("GET /v0/tasks/{id}");
    let asked = chain
        .world
        .cluster
        .ask(address, &line, &[("Authorization", &friend)], "");
    let task: Value = serde_json::from_str(&asked.expect("an answer").1).expect("a task");
    let who = format!("system:serviceaccount:{}:friend", chain.name);
    assert_eq!(task["submittedBy"], json!(who), "{task}");

    let policies = Api::<NetworkPolicy>::namespaced(chain.world.cluster.client(), &chain.name);
    let policy = policies.get(&format!("{NODE}-sidecar")).await;
    policy.expect("a NetworkPolicy");
    chain.makes_blocks(NODE, 2).await;
}
