//! What policies reserve for the operator, tried by the owner of a namespace.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use keelson_api::SeiNode;
use keelson_render::names;
use keelson_testbed::until;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::deployed::{OBJECTS, apply};
use crate::install::{
    account, attributes, create, installed, node, object, operator, owner_of, refused, until_may,
};

/// The garbage collector looks for new types every half minute.
const EVENTUALLY: Duration = Duration::from_secs(180);

fn config_map(name: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name}, "data": {"config.yaml": "ours"}}))
}

fn theirs() -> Patch<Value> {
    Patch::Merge(json!({"data": {"config.yaml": "theirs"}}))
}

#[tokio::test]
async fn the_owner_of_a_namespace_cannot_make_change_or_delete_a_proxys_configuration() {
    let cluster = installed().await;
    let namespace = cluster.namespace("proxy-config").await;
    let namespace = namespace.name();
    let ours = Api::<ConfigMap>::namespaced(operator(cluster).await, namespace);
    let owner = owner_of(cluster, namespace, "proxy-config-owner").await;
    let maps = Api::<ConfigMap>::namespaced(owner, namespace);
    let name = names::proxy_config("node-0");
    let name = name.as_str();

    create(&ours, config_map(name)).await;
    create(&maps, config_map("mine")).await;
    let sentence = "ConfigMaps named *-rbac-proxy-config are reserved for the operator, which writes node-0-rbac-proxy-config itself: change the SeiNode instead, or choose another name";
    let (post, patch, delete) = (
        PostParams::default(),
        PatchParams::default(),
        DeleteParams::default(),
    );
    let another = config_map("node-1-rbac-proxy-config");
    let created = maps.create(&post, &another);
    refused("reserved for the operator", created)
        .await
        .expect("create");
    refused(sentence, maps.patch(name, &patch, &theirs()))
        .await
        .expect("patch");
    let mut edited = maps.get(name).await.expect("the configuration");
    edited.data = Some([("config.yaml".to_owned(), "theirs".to_owned())].into());
    refused(sentence, maps.replace(name, &post, &edited))
        .await
        .expect("update");
    let forced = PatchParams::apply("them").force();
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"config.yaml": "theirs"}});
    refused(sentence, maps.patch(name, &forced, &Patch::Apply(applied)))
        .await
        .expect("apply");
    refused(sentence, maps.delete(name, &delete))
        .await
        .expect("delete");
    let every = ListParams::default();
    let all = maps.delete_collection(&delete, &every);
    refused(sentence, all).await.expect("delete all");
    let kept = ours.get(name).await.expect("the configuration");
    assert_eq!(kept.data, config_map(name).data);

    // What is theirs stays theirs, and what is the operator's stays the operator's.
    create(&maps, config_map("rbac-proxy-config-of-mine")).await;
    maps.patch("rbac-proxy-config-of-mine", &patch, &theirs())
        .await
        .expect("their own");
    maps.delete("rbac-proxy-config-of-mine", &delete)
        .await
        .expect("their own");
    ours.patch(name, &patch, &theirs())
        .await
        .expect("the operator's own");
}

fn pair(name: &str, metadata: Value) -> Secret {
    let mut secret = json!({"metadata": metadata, "stringData": {"tls.key": "k", "tls.crt": "c"}});
    secret["metadata"]["name"] = name.into();
    object(secret)
}

#[tokio::test]
async fn a_certificate_of_a_sidecar_is_written_by_cert_manager_and_not_by_the_owner_of_a_namespace()
{
    let cluster = installed().await;
    let namespace = cluster.namespace("certificates").await;
    let namespace = namespace.name();
    let admin = cluster.client();
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cert-manager"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "cert-manager", "namespace": "cert-manager"}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "cert-manager", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": "cert-manager", "namespace": "cert-manager"}],
        }),
    ] {
        apply(&admin, &object).await;
    }
    let issuer = account(cluster, "cert-manager", "cert-manager").await;
    until_may(
        &issuer,
        attributes("", "secrets", "create", Some(namespace)),
    )
    .await;
    let issued = Api::<Secret>::namespaced(issuer, namespace);
    let owner = owner_of(cluster, namespace, "certificates-owner").await;
    let secrets = Api::<Secret>::namespaced(owner, namespace);
    let (post, patch, delete) = (
        PostParams::default(),
        PatchParams::default(),
        DeleteParams::default(),
    );

    let annotated = |name: &str| json!({"annotations": {"cert-manager.io/certificate-name": name}});
    let labelled = json!({"labels": {"sei.io/node": "b"}});
    assert_eq!(names::certificate("a"), "a-sidecar-tls");
    create(&issued, pair("a-sidecar-tls", annotated("a-sidecar-tls"))).await;
    create(&issued, pair("b-sidecar-tls", labelled.clone())).await;
    let renewed = Patch::Merge(json!({"stringData": {"tls.crt": "renewed"}}));
    issued
        .patch("a-sidecar-tls", &patch, &renewed)
        .await
        .expect("a renewal");

    let forged = pair("c-sidecar-tls", annotated("c-sidecar-tls"));
    refused("is reserved", secrets.create(&post, &forged))
        .await
        .expect("create");
    refused(
        "is reserved",
        secrets.create(&post, &pair("c-sidecar-tls", labelled.clone())),
    )
    .await
    .expect("create");
    let unmarked = Patch::Merge(json!({"metadata": {
        "annotations": {"cert-manager.io/certificate-name": null}, "labels": {"sei.io/node": null},
    }}));
    for name in ["a-sidecar-tls", "b-sidecar-tls"] {
        let sentence = format!(
            "Secret {name} holds the certificate the operator ordered for a sidecar and is reserved: change spec.sidecar.tls of the SeiNode instead"
        );
        refused(&sentence, secrets.patch(name, &patch, &renewed))
            .await
            .expect("patch");
        refused(&sentence, secrets.patch(name, &patch, &unmarked))
            .await
            .expect("unmark");
        refused(&sentence, secrets.delete(name, &delete))
            .await
            .expect("delete");
    }

    // A pair of their own under such a name is theirs, until they say it is the operator's.
    create(&secrets, pair("mine-sidecar-tls", annotated("other"))).await;
    secrets
        .patch("mine-sidecar-tls", &patch, &renewed)
        .await
        .expect("their own");
    let marked = Patch::Merge(json!({"metadata": labelled}));
    refused(
        "is reserved",
        secrets.patch("mine-sidecar-tls", &patch, &marked),
    )
    .await
    .expect("mark");
    secrets
        .delete("mine-sidecar-tls", &delete)
        .await
        .expect("their own");
}

#[tokio::test]
async fn the_status_of_a_node_is_written_by_the_operator_alone() {
    let cluster = installed().await;
    let namespace = cluster.namespace("status").await;
    let namespace = namespace.name();
    let owner = owner_of(cluster, namespace, "status-owner").await;
    let nodes = Api::<SeiNode>::namespaced(owner, namespace);
    let ours = Api::<SeiNode>::namespaced(operator(cluster).await, namespace);
    let patch = PatchParams::default();

    create(&nodes, node("node-0")).await;
    let image = Patch::Merge(json!({"spec": {"image": "seid:2"}}));
    nodes
        .patch("node-0", &patch, &image)
        .await
        .expect("the spec is theirs");
    let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
    let sentence = "the status of a SeiNode is written by the operator alone: change its spec, or annotate it with sei.io/retry";
    let tried = nodes.patch_status("node-0", &patch, &status);
    refused(sentence, tried).await.expect("a status");
    ours.patch_status("node-0", &patch, &status)
        .await
        .expect("the status is ours");
}

#[tokio::test]
async fn what_is_reserved_goes_with_its_owner_and_with_its_namespace() {
    let cluster = installed().await;
    let namespace = cluster.namespace("garbage").await;
    let namespace = namespace.name();
    let ours = operator(cluster).await;
    let nodes = Api::<SeiNode>::namespaced(cluster.client(), namespace);
    let maps = Api::<ConfigMap>::namespaced(ours, namespace);

    let owner = create(&nodes, node("node-0")).await;
    let mut owned = config_map("node-0-rbac-proxy-config");
    owned.metadata = object(json!({
        "name": "node-0-rbac-proxy-config",
        "ownerReferences": [{
            "apiVersion": "sei.io/v1alpha1", "kind": "SeiNode", "name": "node-0",
            "uid": owner.metadata.uid, "controller": true, "blockOwnerDeletion": true,
        }],
    }));
    create(&maps, owned).await;
    create(&maps, config_map("node-1-rbac-proxy-config")).await;

    nodes
        .delete("node-0", &DeleteParams::default())
        .await
        .expect("a node");
    until("the garbage collector", EVENTUALLY, async || {
        match maps.get_opt("node-0-rbac-proxy-config").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .expect("what is owned goes with its owner");
    assert!(
        maps.get_opt("node-1-rbac-proxy-config")
            .await
            .expect("an answer")
            .is_some()
    );

    let namespaces = Api::<Namespace>::all(cluster.client());
    namespaces
        .delete(namespace, &DeleteParams::default())
        .await
        .expect("a namespace");
    until(
        "the namespace's end",
        EVENTUALLY,
        async || match namespaces.get_opt(namespace).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await
    .expect("a namespace goes with all that is in it");
}

/// The API server reads policies only when they are asked, and says then what it cannot make of them.
#[tokio::test]
async fn the_api_server_understands_every_expression_of_the_policies() {
    let cluster = installed().await;
    let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client());
    let shipped = OBJECTS
        .iter()
        .filter(|it| it["kind"] == "ValidatingAdmissionPolicy");
    let mut seen = 0;
    for name in shipped.filter_map(|it| it["metadata"]["name"].as_str()) {
        let status = until("the check of a policy", EVENTUALLY, async || {
            let policy = policies
                .get(name)
                .await
                .map_err(|error| error.to_string())?;
            let status = policy.status.unwrap_or_default();
            let checked = status.observed_generation == policy.metadata.generation;
            checked
                .then_some(status)
                .ok_or(format!("{name} is not checked"))
        })
        .await
        .expect("a policy that was checked");
        let warnings = status.type_checking.and_then(|it| it.expression_warnings);
        assert_eq!(warnings.unwrap_or_default(), [], "{name}");
        seen += 1;
    }
    assert_eq!(seen, 4);
}
