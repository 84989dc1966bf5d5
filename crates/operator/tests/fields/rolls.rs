//! Fields that are a pod's from its birth: one edit, one other pod, whose process starts once.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Container, Pod};
use keelson_wire::TaskType::MarkReady;
use serde_json::{Value, json};

use crate::covered::Covered;
use crate::mark::{Change, Mark, opened, pod_of, running};
use crate::stage::waiting::is_settled;
use crate::stage::{Scene, objects};
use crate::story::{Story, follow, tell};

pub(crate) const COVERED: Covered = &[
    (another_image_is_rolled_out_once, &["image"]),
    (
        labels_of_the_pod_are_added_changed_and_removed_with_one_cycle_each,
        &["podLabels"],
    ),
    (the_port_of_the_sidecar_is_a_new_pods, &["sidecar.port"]),
    (
        resources_of_the_sidecar_are_set_changed_and_taken_back_with_one_cycle_each,
        &["sidecar.resources.limits", "sidecar.resources.requests"],
    ),
    (
        keys_given_to_a_validator_that_had_none_roll_its_pod_once,
        &[
            "validator.signingKey.secret.secretName",
            "validator.nodeKey.secret.secretName",
        ],
    ),
    (
        a_keyring_and_then_its_passphrase_given_to_a_validator_roll_its_pod_once_each,
        &[
            "validator.operatorKeyring.secret.secretName",
            "validator.operatorKeyring.secret.passphraseSecretRef.secretName",
        ],
    ),
    (
        another_entry_of_the_passphrase_is_a_new_pods,
        &["validator.operatorKeyring.secret.passphraseSecretRef.key"],
    ),
];

fn sidecar(pod: &Pod) -> Container {
    let spec = pod.spec.as_ref().expect("a spec");
    let mut all = spec.init_containers.iter().flatten();
    let found = all.find(|it| it.name == "sei-sidecar");
    found.expect("a sidecar").clone()
}

/// Edits a node, and sees it get one other pod by one plan that says which parts of the pod differed.
async fn roll_for(scene: &Scene, edit: Value, parts: &[&str]) {
    let mark = Mark::of(scene, "node").await;
    let story = tell(scene, "node", edit).await;
    assert_eq!(mark.since(scene).await, Change::rolled(&[MarkReady]));
    names(&story, parts);
}

/// Whether a story is of one plan, which says which parts of the pod differed.
fn names(story: &Story, parts: &[&str]) {
    let [plan] = story.plans.as_slice() else {
        panic!("{:?}", story.plans);
    };
    // Labels are those of other objects too.
    let causes = plan.causes.iter().filter_map(|it| it.strip_prefix("pod/"));
    assert_eq!(causes.collect::<Vec<_>>(), parts);
    let [(_, message)] = story.reasons.as_slice() else {
        panic!("{:?}", story.reasons);
    };
    for part in parts {
        let said = format!("{part} drift: it is brought in line with the spec");
        assert!(message.contains(&said), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_image_is_rolled_out_once() {
    let (scene, _operator) = running("image", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let change = mark
        .edit(&scene, json!({ "image": "registry.example/seid:v6.1.0" }))
        .await;
    assert_eq!(change, Change::rolled(&[MarkReady]));
    let node = scene.settled("node").await;
    let status = node.status.expect("a status");
    let image = "registry.example/seid:v6.1.0";
    assert_eq!(status.current_image.as_deref(), Some(image));
    let pod = pod_of(&scene, "node").await;
    let process = &pod.spec.expect("a spec").containers[0];
    assert_eq!(process.image.as_deref(), Some(image));
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_the_pod_are_added_changed_and_removed_with_one_cycle_each() {
    let (scene, _operator) = running("labels", json!({})).await;
    for (edit, wanted) in [
        (json!({ "team": "a" }), Some("a")),
        (json!({ "team": "b" }), Some("b")),
        (json!({ "team": null }), None),
    ] {
        roll_for(&scene, json!({ "podLabels": edit }), &["podLabels"]).await;
        let labels = pod_of(&scene, "node").await.metadata.labels;
        let label = labels.expect("labels").get("team").cloned();
        assert_eq!(label.as_deref(), wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_port_of_the_sidecar_is_a_new_pods() {
    let (scene, _operator) = running("port", json!({})).await;
    let edit = json!({ "sidecar": { "port": 7878 } });
    roll_for(&scene, edit, &["sidecar.port"]).await;
    let sidecar = sidecar(&pod_of(&scene, "node").await);
    assert_eq!(sidecar.ports.expect("ports")[0].container_port, 7878);
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_the_sidecar_are_set_changed_and_taken_back_with_one_cycle_each() {
    let (scene, _operator) = running("resources", json!({})).await;
    let usual = sidecar(&pod_of(&scene, "node").await).resources;
    let asked = |memory: &str| json!({ "limits": { "memory": memory } });
    let requested = |memory: &str| json!({ "requests": { "memory": memory } });
    for (edit, wanted) in [
        (asked("128Mi"), Some(["128Mi", "128Mi"])),
        (asked("256Mi"), Some(["256Mi", "256Mi"])),
        (requested("96Mi"), Some(["256Mi", "96Mi"])),
        (json!(null), None),
    ] {
        let edit = json!({ "sidecar": { "resources": edit } });
        roll_for(&scene, edit, &["sidecar.resources"]).await;
        let resources = sidecar(&pod_of(&scene, "node").await).resources;
        match wanted {
            Some([limit, request]) => {
                let resources = resources.expect("resources");
                assert_eq!(resources.limits.expect("limits")["memory"].0, limit);
                // The API server asks for what is limited, where nothing else is asked for.
                assert_eq!(resources.requests.expect("requests")["memory"].0, request);
            }
            None => assert_eq!(resources, usual),
        }
    }
    // A quantity that is written in another way is the same one.
    scene
        .edit("node", json!({ "sidecar": { "resources": asked("1Gi") } }))
        .await;
    scene.settled("node").await;
    let mark = Mark::of(&scene, "node").await;
    let change = mark
        .edit(
            &scene,
            json!({ "sidecar": { "resources": asked("1024Mi") } }),
        )
        .await;
    assert_eq!(change, Change::hot(&[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_given_to_a_validator_that_had_none_roll_its_pod_once() {
    let (scene, _operator) = opened("keys").await;
    scene.node("node", "validator", json!({}), json!({})).await;
    scene.settled("node").await;
    let key = r#"{"address":"00","pub_key":{"type":"tendermint/PubKeyEd25519","value":"AA=="},"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;
    let signing = objects::secret("signing", &[("priv_validator_key.json", key)]);
    let key = r#"{"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;
    let node = objects::secret("node-key", &[("node_key.json", key)]);
    let mark = Mark::of(&scene, "node").await;
    let keys = json!({ "validator": {
        "signingKey": { "secret": { "secretName": "signing" } },
        "nodeKey": { "secret": { "secretName": "node-key" } },
    }});
    let before = scene.seen("node");
    let edited = scene.edit("node", keys).await;
    // Nothing is cycled before the keys are there.
    let waits = |it: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        it.type_ == "SigningKeyReady" && it.status == "False" && it.reason == "SigningKeyNotReady"
    };
    scene
        .until_status("waiting for the key", "node", |_, status| {
            status.conditions.iter().any(waits)
        })
        .await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
    scene.secret(&node).await;
    scene.secret(&signing).await;
    let story = follow(&scene, &edited, before, is_settled).await;
    assert_eq!(mark.since(&scene).await, Change::rolled(&[MarkReady]));
    names(&story, &["validator.nodeKey", "validator.signingKey"]);
    let sets = scene.api::<StatefulSet>();
    let set = sets.get("node").await.expect("a StatefulSet");
    let template = set.spec.expect("a spec").template.spec.expect("a pod");
    let volumes = template.volumes.into_iter().flatten();
    let keys = volumes.filter_map(|it| it.secret?.secret_name);
    let keys: Vec<_> = keys
        .filter(|it| it == "signing" || it == "node-key")
        .collect();
    assert_eq!(keys, ["signing", "node-key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyring_and_then_its_passphrase_given_to_a_validator_roll_its_pod_once_each() {
    let (scene, _operator) = opened("keyring-given").await;
    let keyring = [("node_admin.info", "AA=="), ("00ff.address", "AA==")];
    scene.secret(&objects::secret("keyring", &keyring)).await;
    let words = objects::secret("passphrase", &[("a", "one")]);
    scene.secret(&words).await;
    scene.node("node", "validator", json!({}), json!({})).await;
    scene.settled("node").await;
    let at = json!({ "secretName": "passphrase", "key": "a" });
    for (secret, part) in [
        (
            json!({ "secretName": "keyring" }),
            "validator.operatorKeyring",
        ),
        (
            json!({ "passphraseSecretRef": at }),
            "validator.operatorKeyring.passphrase",
        ),
    ] {
        let edit = json!({ "validator": { "operatorKeyring": { "secret": secret } } });
        roll_for(&scene, edit, &[part]).await;
    }
    let pod = pod_of(&scene, "node").await;
    let volumes = pod.spec.clone().and_then(|it| it.volumes);
    let mut volumes = volumes.into_iter().flatten();
    let is_keyring = |name: Option<String>| name.as_deref() == Some("keyring");
    assert!(volumes.any(|it| is_keyring(it.secret.and_then(|it| it.secret_name))));
    let mut words = sidecar(&pod).env.into_iter().flatten();
    let from = |it: k8s_openapi::api::core::v1::EnvVar| it.value_from?.secret_key_ref;
    assert!(words.any(|it| from(it).is_some_and(|it| it.name == "passphrase" && it.key == "a")));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_entry_of_the_passphrase_is_a_new_pods() {
    let (scene, _operator) = opened("passphrase").await;
    let keyring = [("node_admin.info", "AA=="), ("00ff.address", "AA==")];
    scene.secret(&objects::secret("keyring", &keyring)).await;
    let entries = [("a", "one"), ("b", "two")];
    scene.secret(&objects::secret("passphrase", &entries)).await;
    let keyring = |key: &str| {
        let at = json!({ "secretName": "passphrase", "key": key });
        json!({ "operatorKeyring": { "secret": { "secretName": "keyring", "passphraseSecretRef": at } } })
    };
    scene
        .node("node", "validator", keyring("a"), json!({}))
        .await;
    scene.settled("node").await;
    let edit = json!({ "validator": keyring("b") });
    roll_for(&scene, edit, &["validator.operatorKeyring.passphrase"]).await;
}
