//! What the operator's account may do and what it may not, tried as that account.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use keelson_api::names::{Annotation, Label};
use keelson_operator::platform::read;
use keelson_operator::rights::{NAMESPACE, OPERATOR, SIDECAR_CLIENT, proxy_binding};
use keelson_testbed::until;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::deployed::apply;
use crate::install::{
    SOON, account, attributes, create, installed, may, object, operator, person, pod, refused,
    until_may,
};
use crate::settings::shipped;

const LABELLED_ONLY: &str = "the operator may change and delete pods with the label sei.io/node only, and change those of the host's webhook and metrics";

#[tokio::test]
async fn the_operator_touches_pods_of_nodes_and_no_others() {
    let cluster = installed().await;
    let namespace = cluster.namespace("pods").await;
    let namespace = namespace.name();
    let all = Api::<Pod>::namespaced(cluster.client(), namespace);
    let ours = Api::<Pod>::namespaced(operator(cluster).await, namespace);
    let (patch, delete) = (PatchParams::default(), DeleteParams::default());
    create(&all, pod("node-0-0", json!({"sei.io/node": "node-0"}))).await;
    create(&all, pod("other", json!({"app": "other"}))).await;
    create(
        &all,
        object(json!({
            "metadata": {"name": "bare"},
            "spec": {"containers": [{"name": "a", "image": "a"}]},
        })),
    )
    .await;

    let image =
        Patch::Strategic(json!({"spec": {"containers": [{"name": "seid", "image": "seid:2"}]}}));
    let label = |value| Patch::Merge(json!({"metadata": {"labels": {"sei.io/node": value}}}));
    ours.patch("node-0-0", &patch, &image)
        .await
        .expect("a pod of a node");
    refused(LABELLED_ONLY, ours.patch("other", &patch, &image))
        .await
        .expect("another pod");
    refused(
        LABELLED_ONLY,
        ours.patch("other", &patch, &label(Some("node-0"))),
    )
    .await
    .expect("claiming a pod");
    refused(
        LABELLED_ONLY,
        ours.patch("bare", &patch, &label(Some("node-0"))),
    )
    .await
    .expect("claiming a bare pod");
    refused(LABELLED_ONLY, ours.patch("node-0-0", &patch, &label(None)))
        .await
        .expect("letting go of a pod");
    refused(LABELLED_ONLY, ours.delete("other", &delete))
        .await
        .expect("deleting another pod");
    refused(LABELLED_ONLY, ours.delete("bare", &delete))
        .await
        .expect("deleting a bare pod");
    ours.delete("node-0-0", &delete)
        .await
        .expect("deleting a pod of a node");
    // Others are not held to it.
    all.delete("other", &delete)
        .await
        .expect("an administrator");
}

#[tokio::test]
async fn the_operator_changes_pods_of_the_hosts_webhook_and_metrics_and_deletes_none() {
    let cluster = installed().await;
    let namespace = cluster.namespace("host-pods").await;
    let namespace = namespace.name();
    let all = Api::<Pod>::namespaced(cluster.client(), namespace);
    let ours = Api::<Pod>::namespaced(operator(cluster).await, namespace);
    let (patch, delete) = (PatchParams::default(), DeleteParams::default());
    let labels = |app: &str, part: &str| json!({"app": app, "component": format!("kubernetes-nmstate-{part}")});
    let touch = Patch::Merge(json!({"metadata": {"annotations": {
        Annotation::HostRefresh.as_str(): "now",
    }}}));
    for part in ["webhook", "metrics"] {
        create(&all, pod(part, labels("kubernetes-nmstate", part))).await;
        ours.patch(part, &patch, &touch).await.expect(part);
        refused(LABELLED_ONLY, ours.delete(part, &delete))
            .await
            .expect(part);
        let other = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
        refused(LABELLED_ONLY, ours.patch(part, &patch, &other))
            .await
            .expect(part);
    }
    for (name, app, part) in [
        ("handler", "kubernetes-nmstate", "handler"),
        ("other", "other", "webhook"),
    ] {
        create(&all, pod(name, labels(app, part))).await;
        refused(LABELLED_ONLY, ours.patch(name, &patch, &touch))
            .await
            .expect(name);
    }
}

#[tokio::test]
async fn the_operator_deletes_secrets_of_its_certificates_and_no_others() {
    let cluster = installed().await;
    let namespace = cluster.namespace("secrets").await;
    let namespace = namespace.name();
    let all = Api::<Secret>::namespaced(cluster.client(), namespace);
    let ours = Api::<Secret>::namespaced(operator(cluster).await, namespace);
    let delete = DeleteParams::default();
    let secret = |name: &str, certificate: &str| {
        let annotations = json!({"cert-manager.io/certificate-name": certificate});
        object::<Secret>(json!({"metadata": {"name": name, "annotations": annotations}}))
    };
    create(&all, secret("node-0-sidecar-tls", "node-0-sidecar-tls")).await;
    create(&all, secret("node-1-sidecar-tls", "other")).await;
    create(&all, secret("web-tls", "web-tls")).await;
    create(&all, object(json!({"metadata": {"name": "val-signing"}}))).await;

    let sentence = "the operator may delete Secrets only that cert-manager wrote for a Certificate named *-sidecar-tls";
    for name in ["node-1-sidecar-tls", "web-tls", "val-signing"] {
        refused(sentence, ours.delete(name, &delete))
            .await
            .expect(name);
    }
    ours.delete("node-0-sidecar-tls", &delete)
        .await
        .expect("its own");
    let (post, patch, new) = (
        PostParams::default(),
        PatchParams::default(),
        secret("x", "x"),
    );
    let made = ours.create(&post, &new);
    refused("cannot create resource \"secrets\"", made)
        .await
        .expect("making a Secret");
    let changed = Patch::Merge(json!({"stringData": {"a": "b"}}));
    let changed = ours.patch("web-tls", &patch, &changed);
    refused("cannot patch resource \"secrets\"", changed)
        .await
        .expect("changing a Secret");
}

#[tokio::test]
async fn the_operator_gets_tokens_of_the_account_for_sidecars_and_of_no_other() {
    let cluster = installed().await;
    let ours = operator(cluster).await;
    let accounts = Api::<ServiceAccount>::namespaced(ours.clone(), NAMESPACE);
    let post = PostParams::default();
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: vec!["keelson-sidecar/chain/node-0".to_owned()],
            expiration_seconds: Some(600),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let token = accounts
        .create_token_request(SIDECAR_CLIENT, &post, &request)
        .await;
    assert!(
        !token
            .expect("a token")
            .status
            .expect("a token")
            .token
            .is_empty()
    );
    for name in [OPERATOR, "default"] {
        let tried = accounts.create_token_request(name, &post, &request);
        refused("cannot create resource \"serviceaccounts/token\"", tried)
            .await
            .expect(name);
    }
    let elsewhere = Api::<ServiceAccount>::namespaced(ours, "default");
    let tried = elsewhere.create_token_request(SIDECAR_CLIENT, &post, &request);
    refused("cannot create resource \"serviceaccounts/token\"", tried)
        .await
        .expect("elsewhere");
}

#[tokio::test]
async fn the_operator_gives_proxies_their_reviews_and_nobody_anything_else() {
    let cluster = installed().await;
    let namespace = cluster.namespace("proxies").await;
    let namespace = namespace.name();
    let ours = Api::<ClusterRoleBinding>::all(operator(cluster).await);
    let (post, patch) = (PostParams::default(), PatchParams::default());
    let delete = DeleteParams::default();
    let review = || attributes("authentication.k8s.io", "tokenreviews", "create", None);
    let pods = account(cluster, namespace, "default").await;
    assert!(!may(&pods, review()).await, "a right from the beginning");

    let binding = proxy_binding(namespace, "default");
    create(&ours, binding.clone()).await;
    until_may(&pods, review()).await;
    until_may(
        &pods,
        attributes(
            "authorization.k8s.io",
            "subjectaccessreviews",
            "create",
            None,
        ),
    )
    .await;
    assert!(!may(&pods, attributes("", "secrets", "get", Some(namespace))).await);
    let name = binding.metadata.name.clone().expect("a name");
    let more = Patch::Merge(json!({"subjects": [
        {"kind": "ServiceAccount", "name": "default", "namespace": namespace},
        {"kind": "ServiceAccount", "name": "seid-node", "namespace": namespace},
    ]}));
    ours.patch(&name, &patch, &more)
        .await
        .expect("its own binding");

    let mut greedy = proxy_binding(&format!("{namespace}-greedy"), "default");
    greedy.role_ref.name = "cluster-admin".to_owned();
    refused(
        "attempting to grant RBAC permissions",
        ours.create(&post, &greedy),
    )
    .await
    .expect("another role");
    let tried = ours.patch("cluster-admin", &patch, &more);
    refused("attempting to grant RBAC permissions", tried)
        .await
        .expect("another binding");
    let tried = ours.delete(&name, &delete);
    refused("cannot delete resource", tried)
        .await
        .expect("deleting a binding");
}

/// Why the binding is one of the whole cluster.
#[tokio::test]
async fn a_binding_inside_a_namespace_gives_proxies_nothing() {
    let cluster = installed().await;
    let namespace = cluster.namespace("inside").await;
    let namespace = namespace.name();
    let subject =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "inside"});
    for (name, role) in [("proxy", "sei-rbac-proxy"), ("view", "view")] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        });
        apply(&cluster.client(), &binding).await;
    }
    let person = person(cluster, "inside").await;
    // The second binding was made after the first: where it counts, so does the first.
    until_may(&person, attributes("", "pods", "get", Some(namespace))).await;
    let review = attributes("authentication.k8s.io", "tokenreviews", "create", None);
    assert!(!may(&person, review).await);
}

#[tokio::test]
async fn the_operators_own_pod_is_admitted_to_its_namespace() {
    let cluster = installed().await;
    let pods = Api::<Pod>::namespaced(cluster.client(), NAMESPACE);
    let label = format!("{}={OPERATOR}", Label::AppName);
    let pod = until("the operator's pod", SOON, async || {
        let found = pods.list(&ListParams::default().labels(&label)).await;
        let found = found.map_err(|error| error.to_string())?;
        found.items.into_iter().next().ok_or("no pod".to_owned())
    })
    .await
    .expect("a pod of the Deployment");

    let spec = pod.spec.expect("a spec");
    assert_eq!(spec.service_account_name.as_deref(), Some(OPERATOR));
    // What lets it reach the proxies is what the settings say of it.
    let settings = read(&shipped(), None).expect("settings");
    let access = settings.render.access.expect("a network policy");
    let labels = pod.metadata.labels.expect("labels");
    for (key, value) in access.operator.labels {
        assert_eq!(labels.get(&key), Some(&value), "{key}");
    }
}
