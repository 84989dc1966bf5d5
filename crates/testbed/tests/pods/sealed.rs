//! What a container may do to its machine and its own image: nothing.

use crate::world::{Chain, NEW, PATIENCE, SEID, world};
use k8s_openapi::api::core::v1::{Container, Pod};
use keelson_testbed::until;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use std::collections::BTreeMap;

/// Of images people choose: the chain's own program may want to write beside its home.
const CHOSEN: [&str; 2] = ["seid", "seid-init"];

async fn pods(chain: &Chain, namespace: &str) -> Vec<Pod> {
    let pods = Api::<Pod>::namespaced(chain.world.cluster.client(), namespace);
    let listed = pods.list(&ListParams::default()).await;
    listed.expect("pods").items
}

/// What is wrong with how a container is held.
fn loose(pod: &Pod, container: &Container) -> Option<&'static str> {
    let of_pod = pod.spec.as_ref()?.security_context.as_ref();
    let own = container.security_context.as_ref()?;
    let user = own.run_as_user.or(of_pod.and_then(|it| it.run_as_user));
    let not_root = own
        .run_as_non_root
        .or(of_pod.and_then(|it| it.run_as_non_root));
    let dropped = own.capabilities.as_ref().and_then(|it| it.drop.clone());
    let chosen = CHOSEN.contains(&container.name.as_str());
    match own {
        _ if not_root != Some(true) || user.is_none_or(|it| it == 0) => Some("it may be root"),
        own if own.allow_privilege_escalation != Some(false) => Some("it may gain privileges"),
        _ if dropped.as_deref() != Some(&["ALL".to_owned()]) => Some("it has capabilities"),
        own if own.read_only_root_filesystem != Some(true) && !chosen => {
            Some("it may write to its image")
        }
        _ => None,
    }
}

#[tokio::test]
async fn no_container_of_the_install_or_a_node_is_root_or_writes_to_its_image() {
    let chain = world().await.unpublished("sealed").await;
    chain.apply(&chain.validator());
    let made = until("a pod", PATIENCE, async || chain.pod("validator").await);
    made.await.expect("a pod");
    let mut seen = BTreeMap::new();
    for namespace in ["keelson-system", "storage", &chain.name] {
        for pod in pods(&chain, namespace).await {
            let spec = pod.spec.clone().unwrap_or_default();
            let init = spec.init_containers.iter().flatten();
            for container in spec.containers.iter().chain(init) {
                assert!(container.security_context.is_some(), "{container:?}");
                assert_eq!(loose(&pod, container), None, "{container:?}");
                seen.insert(container.name.clone(), container.image.clone());
            }
        }
    }
    for name in [
        "operator",
        "s3",
        "seid",
        "seid-init",
        "sei-sidecar",
        "kube-rbac-proxy",
    ] {
        assert!(seen.contains_key(name), "{name} is not among {seen:?}");
    }
}

#[tokio::test]
async fn the_chains_images_work_on_a_root_they_cannot_write_to() {
    let chain = world().await.unpublished("read-only").await;
    let container = |name: &str, image: &str| {
        let script =
            "mkdir /beside 2>/dev/null && exit 3; seid init x --chain-id x --home $HOME/$0";
        json!({
            "name": name, "image": image, "command": ["/bin/sh", "-c", script, name],
            "env": [{ "name": "HOME", "value": "/home" }],
            "volumeMounts": [{ "name": "home", "mountPath": "/home" }],
            "securityContext": { "readOnlyRootFilesystem": true },
        })
    };
    // Neither says who it runs as: the images do.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "alone", "namespace": chain.name },
        "spec": {
            "restartPolicy": "Never",
            "securityContext": { "runAsNonRoot": true, "fsGroup": 65532 },
            "containers": [container("old", SEID), container("new", NEW)],
            "volumes": [{ "name": "home", "emptyDir": {} }],
        },
    });
    chain.apply(&pod);
    let pods = Api::<Pod>::namespaced(chain.world.cluster.client(), &chain.name);
    let ended = until("a home made by each image", PATIENCE, async || {
        let pod = pods.get("alone").await.map_err(|error| error.to_string())?;
        let status = pod.status.unwrap_or_default();
        match status.phase.as_deref() {
            Some("Succeeded") => Ok(()),
            _ => Err(format!("{:?}", status.container_statuses)),
        }
    });
    ended.await.expect("images that work");
}
