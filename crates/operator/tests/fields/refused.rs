//! Fields that are fixed when a node is created: refused at admission, with a sentence.

use keelson_api::SeiNode;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::covered::Covered;
use crate::mark::{Change, Mark, look_again, running};
use crate::stage::{Scene, Stage};

pub(crate) const COVERED: Covered = &[
    (
        what_is_fixed_at_creation_is_refused_with_what_to_do_instead,
        &[
            "chainId",
            "fullNode",
            "archive",
            "replayer",
            "validator",
            "dataVolume.import.pvcName",
            "validator.signingKey.secret.secretName",
            "validator.nodeKey.secret.secretName",
            "validator.operatorKeyring.secret.secretName",
            "validator.operatorKeyring.secret.passphraseSecretRef.secretName",
        ],
    ),
    (
        a_resource_claim_is_refused_because_no_pod_of_a_node_has_one,
        &[
            "sidecar.resources.claims[].name",
            "sidecar.resources.claims[].request",
        ],
    ),
];

/// What the API server says to an edit it refuses.
async fn refusal(scene: &Scene, node: &str, spec: Value) -> String {
    let patch = Patch::Merge(json!({ "spec": spec }));
    let nodes = scene.api::<SeiNode>();
    let answer = nodes.patch(node, &PatchParams::default(), &patch).await;
    answer.expect_err("a refusal").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_fixed_at_creation_is_refused_with_what_to_do_instead() {
    let scene = Stage::shared().await.scene("refused").await;
    scene.full_node("full", json!({})).await;
    let import = json!({ "dataVolume": { "import": { "pvcName": "mine" } } });
    scene.full_node("imports", import.clone()).await;
    let key = |name: &str| json!({ "secret": { "secretName": name } });
    let keyring = |passphrase: &str| {
        let at = json!({ "secretName": passphrase, "key": "a" });
        json!({ "secret": { "secretName": "keyring", "passphraseSecretRef": at } })
    };
    let keys = json!({
        "signingKey": key("signing"), "nodeKey": key("node"), "operatorKeyring": keyring("words"),
    });
    scene.node("validates", "validator", keys, json!({})).await;
    scene.archive("archives", json!({})).await;
    scene.replayer("replays", 7).await;
    let other = |field: &str| json!({ "validator": { field: key("other") } });
    for (node, edit, said) in [
        (
            "full",
            json!({ "chainId": "atlantic-2" }),
            "The chain of a node cannot be changed",
        ),
        (
            "full",
            json!({ "fullNode": null, "archive": {} }),
            "The mode of a node cannot be changed",
        ),
        (
            "archives",
            json!({ "archive": null, "fullNode": {} }),
            "The mode of a node cannot be changed",
        ),
        (
            "replays",
            json!({ "replayer": null, "validator": {} }),
            "The mode of a node cannot be changed",
        ),
        (
            "validates",
            json!({ "validator": null, "fullNode": {} }),
            "The mode of a node cannot be changed",
        ),
        ("full", import, "can be neither added nor removed"),
        (
            "imports",
            json!({ "dataVolume": null }),
            "can be neither added nor removed",
        ),
        (
            "imports",
            json!({ "dataVolume": { "import": { "pvcName": "other" } } }),
            "dataVolume.import.pvcName is fixed",
        ),
        (
            "validates",
            other("signingKey"),
            "The Secret of signingKey cannot be changed",
        ),
        (
            "validates",
            other("nodeKey"),
            "The Secret of nodeKey cannot be changed",
        ),
        (
            "validates",
            other("operatorKeyring"),
            "The Secret of operatorKeyring cannot be changed",
        ),
        (
            "validates",
            json!({ "validator": { "operatorKeyring": keyring("others") } }),
            "The Secret of the keyring's passphrase cannot be changed",
        ),
        (
            "validates",
            json!({ "validator": { "signingKey": null, "nodeKey": null } }),
            "The Secret of signingKey cannot",
        ),
    ] {
        let answer = refusal(&scene, node, edit.clone()).await;
        assert!(answer.contains(said), "{edit}: {answer}");
        assert!(answer.contains("create a new SeiNode"), "{edit}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_claim_is_refused_because_no_pod_of_a_node_has_one() {
    let (scene, _operator) = running("claims", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    for claim in [
        json!({ "name": "gpu" }),
        json!({ "name": "gpu", "request": "one" }),
    ] {
        let resources = json!({ "sidecar": { "resources": { "claims": [claim] } } });
        let answer = refusal(&scene, "node", resources).await;
        assert!(
            answer.contains("a node's pod has none: remove it"),
            "{answer}"
        );
    }
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
}
