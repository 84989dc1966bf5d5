//! The install of `deploy/operator` on the shared control plane, and the people who act on it.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use keelson_api::SeiNode;
use keelson_operator::rights::{Ask, NAMESPACE, OPERATOR};
use keelson_testbed::{Cluster, until};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::deployed::{OBJECTS, apply, token};

/// How long what is eventual may take on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// The control plane with the install in force.
pub(crate) async fn installed() -> &'static Cluster {
    static DONE: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await;
    DONE.get_or_init(|| async {
        cluster.install_crds().await.expect("the types");
        for object in OBJECTS.iter() {
            apply(&cluster.client(), object).await;
        }
        in_force(cluster).await;
    })
    .await;
    cluster
}

/// Policies count some moments after they are written. Each is tried, without effect, until it does.
async fn in_force(cluster: &Cluster) {
    let admin = cluster.client();
    let namespace = cluster.namespace("probe").await;
    let namespace = namespace.name();
    let person = owner_of(cluster, namespace, "prober").await;
    let operator = operator(cluster).await;
    let pods = Api::<Pod>::namespaced(admin.clone(), namespace);
    create(&pods, pod("probe", json!({}))).await;
    let nodes = Api::<SeiNode>::namespaced(admin, namespace);
    create(&nodes, node("probe")).await;
    let try_only = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let patch = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };

    let maps = Api::<ConfigMap>::namespaced(person.clone(), namespace);
    let map = object(json!({"metadata": {"name": "probe-rbac-proxy-config"}}));
    let secrets = Api::<Secret>::namespaced(person.clone(), namespace);
    let labels = json!({"sei.io/node": "probe"});
    let secret = object(json!({"metadata": {"name": "probe-sidecar-tls", "labels": labels}}));
    let nodes = Api::<SeiNode>::namespaced(person, namespace);
    let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
    let pods = Api::<Pod>::namespaced(operator, namespace);
    let note = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    until("the policies", SOON, async || {
        refused("reserved", maps.create(&try_only, &map)).await?;
        refused("reserved", secrets.create(&try_only, &secret)).await?;
        refused("alone", nodes.patch_status("probe", &patch, &status)).await?;
        refused("only", pods.patch("probe", &patch, &note)).await
    })
    .await
    .expect("policies in force");
}

/// Whether an attempt is refused with a sentence of ours.
pub(crate) async fn refused<T>(
    sentence: &str,
    attempt: impl Future<Output = kube::Result<T>>,
) -> Result<(), String> {
    match attempt.await {
        Ok(_) => Err(format!("nobody said {sentence:?}: it was done")),
        Err(kube::Error::Api(status))
            if status.code == 403 && status.message.contains(sentence) =>
        {
            Ok(())
        }
        Err(error) => Err(format!("nobody said {sentence:?}: {error}")),
    }
}

/// The operator, with a token of its account.
pub(crate) async fn operator(cluster: &Cluster) -> Client {
    account(cluster, NAMESPACE, OPERATOR).await
}

/// An account, with a token of its own.
pub(crate) async fn account(cluster: &Cluster, namespace: &str, name: &str) -> Client {
    let token = token(&cluster.client(), namespace, name).await;
    client_with(cluster, token).await
}

/// Whoever a token is of.
pub(crate) async fn client_with(cluster: &Cluster, token: String) -> Client {
    let mut config = config(cluster).await;
    config.auth_info.token = Some(token.into());
    Client::try_from(config).expect("a client")
}

/// A person who was bound to nothing yet.
pub(crate) async fn person(cluster: &Cluster, name: &str) -> Client {
    let mut config = config(cluster).await;
    config.auth_info.impersonate = Some(name.to_owned());
    config.auth_info.impersonate_groups = Some(vec!["system:authenticated".to_owned()]);
    Client::try_from(config).expect("a client")
}

async fn config(cluster: &Cluster) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a configuration");
    config.default_retry = false;
    config
}

/// A person who owns a namespace: Kubernetes' own role for that, and all of `sei.io`.
pub(crate) async fn owner_of(cluster: &Cluster, namespace: &str, name: &str) -> Client {
    let admin = cluster.client();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "nodes", "namespace": namespace},
        "rules": [{"apiGroups": ["sei.io"], "resources": ["*"], "verbs": ["*"]}],
    });
    apply(&admin, &role).await;
    for (kind, role) in [("ClusterRole", "admin"), ("Role", "nodes")] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": format!("{name}-{role}"), "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        });
        apply(&admin, &binding).await;
    }
    let person = person(cluster, name).await;
    for (group, resource) in [("", "configmaps"), ("sei.io", "seinodes")] {
        until("rights of the namespace", SOON, async || {
            let may = may(
                &person,
                attributes(group, resource, "delete", Some(namespace)),
            )
            .await;
            may.then_some(()).ok_or("not yet".to_owned())
        })
        .await
        .expect("rights of the namespace");
    }
    person
}

/// What is asked, in the words of the API server.
pub(crate) fn attributes(
    group: &str,
    resource: &str,
    verb: &str,
    namespace: Option<&str>,
) -> ResourceAttributes {
    let parts = resource.split_once('/');
    ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(parts.map_or(resource, |(resource, _)| resource).to_owned()),
        subresource: parts.map(|(_, subresource)| subresource.to_owned()),
        verb: Some(verb.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    }
}

/// The same for a row of the table.
pub(crate) fn of(ask: &Ask) -> ResourceAttributes {
    ResourceAttributes {
        name: ask.name.clone(),
        subresource: ask.subresource.map(str::to_owned),
        ..attributes(ask.group, ask.resource, ask.verb, ask.namespace.as_deref())
    }
}

/// Whether a client may.
pub(crate) async fn may(client: &Client, attributes: ResourceAttributes) -> bool {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api = Api::<SelfSubjectAccessReview>::all(client.clone());
    let review = api.create(&PostParams::default(), &review).await;
    review
        .expect("an answer")
        .status
        .expect("an answer")
        .allowed
}

/// Waits until a client may.
pub(crate) async fn until_may(client: &Client, attributes: ResourceAttributes) {
    until("a right", SOON, async || {
        let may = may(client, attributes.clone()).await;
        may.then_some(()).ok_or("not yet".to_owned())
    })
    .await
    .expect("a right");
}

/// An object written as JSON.
pub(crate) fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object")
}

/// A pod that no machine runs.
pub(crate) fn pod(name: &str, labels: Value) -> Pod {
    object(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "seid", "image": "seid:1"}]},
    }))
}

/// A node.
pub(crate) fn node(name: &str) -> SeiNode {
    object(json!({
        "apiVersion": "sei.io/v1alpha1",
        "kind": "SeiNode",
        "metadata": {"name": name},
        "spec": {"chainId": "atlantic-2", "image": "seid:1", "fullNode": {}},
    }))
}

/// Creates an object that is needed.
pub(crate) async fn create<K>(api: &Api<K>, object: K) -> K
where
    K: kube::Resource + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("an object that may be made")
}
