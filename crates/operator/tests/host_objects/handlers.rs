//! Handlers as themselves: with the token of a pod on a node, which says so.

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, ServiceAccount};
use keelson_api::{NodeNetworkConfigurationEnactment as Enactment, NodeNetworkState as State};
use keelson_testbed::until;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::install::{SOON, account, client_with, create, object};
use crate::stage::{NAMESPACE, Stage, installed, refused};

const HANDLER: &str = "nmstate-handler";
const CLAIMS: &str = "nmstate-claims";
const OTHERS: &str = "writes what is about that node alone";

/// A handler on a node of its own, whose rights count.
async fn handler(stage: &Stage, node: &str) -> Client {
    let admin = stage.cluster.client();
    create(
        &Api::<Node>::all(admin.clone()),
        object(json!({"metadata": {"name": node}})),
    )
    .await;
    let pods = Api::<Pod>::namespaced(admin.clone(), NAMESPACE);
    let pod = create(
        &pods,
        object(json!({
            "metadata": {"name": format!("handler-on-{node}")},
            "spec": {
                "nodeName": node,
                "serviceAccountName": HANDLER,
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "handler", "image": "handler:1"}],
            },
        })),
    )
    .await;
    let request = TokenRequest {
        spec: TokenRequestSpec {
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                uid: pod.uid(),
            }),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let accounts = Api::<ServiceAccount>::namespaced(admin, NAMESPACE);
    let issued = accounts
        .create_token_request(HANDLER, &PostParams::default(), &request)
        .await;
    let token = issued.expect("a token").status.expect("an answer").token;
    let client = client_with(stage.cluster, token).await;
    ties(&client, node).await;
    client
}

/// Waits until the handler is told that the node of another is not its own.
async fn ties(client: &Client, node: &str) {
    let states = Api::<State>::all(client.clone());
    let try_only = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let other = state(&format!("not-{node}"));
    until("the rule of handlers", SOON, async || {
        refused(OTHERS, states.create(&try_only, &other).await)
    })
    .await
    .expect("the rule in force");
}

fn state(node: &str) -> State {
    object(json!({"metadata": {"name": node}}))
}

fn enactment(name: &str, node: &str, policy: &str) -> Enactment {
    object(json!({"metadata": {
        "name": name,
        "labels": {"nmstate.io/node": node, "nmstate.io/policy": policy},
    }}))
}

fn status() -> Patch<Value> {
    Patch::Merge(json!({"status": {"conditions": []}}))
}

#[tokio::test]
async fn a_handler_writes_the_state_of_its_own_node_and_of_no_other() {
    let stage = installed().await;
    let client = handler(stage, "state-a").await;
    let states = Api::<State>::all(client);
    let how = PatchParams::default();

    create(&states, state("state-a")).await;
    states
        .patch_status("state-a", &how, &status())
        .await
        .expect("its own status");
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    states
        .patch("state-a", &how, &label)
        .await
        .expect("its own label");

    let others = Api::<State>::all(stage.cluster.client());
    create(&others, state("state-b")).await;
    let made = states
        .create(&PostParams::default(), &state("state-c"))
        .await;
    refused(OTHERS, made).expect("a refusal to create");
    let patched = states.patch("state-b", &how, &label).await;
    refused(OTHERS, patched).expect("a refusal to change");
    let patched = states.patch_status("state-b", &how, &status()).await;
    refused("The handler of node state-a", patched).expect("a refusal to report");
    others
        .patch_status("state-b", &how, &status())
        .await
        .expect("an admin's write");
}

#[tokio::test]
async fn a_handler_writes_the_enactments_of_its_own_node_and_of_no_other() {
    let stage = installed().await;
    let client = handler(stage, "enact-a").await;
    let enactments = Api::<Enactment>::all(client);
    let how = PatchParams::default();

    create(&enactments, enactment("enact-a.p.q", "enact-a", "p.q")).await;
    enactments
        .patch_status("enact-a.p.q", &how, &status())
        .await
        .expect("its own status");

    let others = Api::<Enactment>::all(stage.cluster.client());
    create(&others, enactment("enact-b.p", "enact-b", "p")).await;
    // A node whose name begins with this one's and a dot.
    create(&others, enactment("enact-a.b.p", "enact-a.b", "p")).await;
    for (name, node, policy) in [
        ("enact-c.p", "enact-c", "p"),
        ("enact-c.p", "enact-a", "p"),
        ("enact-a.p", "enact-c", "p"),
        ("enact-a.p", "enact-a", "q"),
    ] {
        let wanted = enactment(name, node, policy);
        let made = enactments.create(&PostParams::default(), &wanted).await;
        refused(OTHERS, made).unwrap_or_else(|error| panic!("{name} {node} {policy}: {error}"));
    }
    let to_other = Patch::Merge(json!({"metadata": {"labels": {"nmstate.io/node": "enact-b"}}}));
    let given = enactments.patch("enact-a.p.q", &how, &to_other).await;
    refused(OTHERS, given).expect("a refusal to give away");
    let to_self = Patch::Merge(json!({"metadata": {"labels": {
        "nmstate.io/node": "enact-a", "nmstate.io/policy": "b.p",
    }}}));
    for (name, change) in [("enact-b.p", &to_self), ("enact-a.b.p", &to_self)] {
        let taken = enactments.patch(name, &how, change).await;
        refused(OTHERS, taken).expect("a refusal to take over");
        let patched = enactments.patch_status(name, &how, &status()).await;
        refused(OTHERS, patched).expect("a refusal to report");
        let deleted = enactments.delete(name, &DeleteParams::default()).await;
        refused(OTHERS, deleted).expect("a refusal to delete");
    }
    let deleted = enactments
        .delete("enact-a.p.q", &DeleteParams::default())
        .await;
    deleted.expect("its own goes");
}

#[tokio::test]
async fn a_token_that_is_bound_to_no_pod_writes_nothing() {
    let stage = installed().await;
    // The rule counts once it counts for a handler.
    handler(stage, "bound").await;
    let client = account(stage.cluster, NAMESPACE, HANDLER).await;
    let states = Api::<State>::all(client);
    let made = states.create(&PostParams::default(), &state("bound")).await;
    refused("is bound to none: call with the token", made).expect("a refusal");
}

#[tokio::test]
async fn a_handler_writes_the_claims_of_handlers_and_no_other_configmap() {
    let stage = installed().await;
    let client = handler(stage, "claims-a").await;
    let maps = Api::<ConfigMap>::namespaced(client, NAMESPACE);
    let only = format!("metadata.name={CLAIMS}");
    let how = PatchParams::default();

    let listed = maps.list(&ListParams::default().fields(&only)).await;
    let mut found = listed.expect("its own list").items;
    let mut map = found.pop().expect("the object of claims");
    assert!(map.data.is_none(), "{:?}", map.data);
    map.data = Some([("claims.json".to_owned(), r#"{"claims":[]}"#.to_owned())].into());
    let old = map.clone();
    let written = maps.replace(CLAIMS, &PostParams::default(), &map).await;
    written.expect("its claims");
    let again = maps.replace(CLAIMS, &PostParams::default(), &old).await;
    let conflict = |it: &kube::Error| matches!(it, kube::Error::Api(status) if status.code == 409);
    assert!(again.as_ref().is_err_and(conflict), "{again:?}");
    let watch = WatchParams::default().fields(&only);
    drop(maps.watch(&watch, "0").await.expect("its own watch"));

    let forbidden = "is forbidden";
    let patch = Patch::Merge(json!({"data": {"a": "b"}}));
    let other = maps.patch("nmstate-tls-config", &how, &patch).await;
    refused(forbidden, other).expect("a refusal to change the profile");
    refused(forbidden, maps.get("nmstate-tls-config").await).expect("a refusal to read");
    let made: ConfigMap = object(json!({"metadata": {"name": "another"}}));
    let made = maps.create(&PostParams::default(), &made).await;
    refused(forbidden, made).expect("a refusal to make one");
    let gone = maps.delete(CLAIMS, &DeleteParams::default()).await;
    refused(forbidden, gone).expect("a refusal to delete");
    refused(forbidden, maps.list(&ListParams::default()).await).expect("a refusal to list");
}
