//! Validators: keys that come late, and a keyring.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::task::PlanKind;
use serde_json::{Value, json};

use crate::diary::{Diary, configured, runs_by};
use crate::operator::Operator;
use crate::stage::objects::secret;
use crate::stage::{Scene, Stage, platform};

const SIGNING: &str = r#"{"address":"00","pub_key":{"type":"tendermint/PubKeyEd25519","value":"AA=="},"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;
const NODE: &str = r#"{"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;

/// The keys of a validator, of Secrets that do not have to be there.
fn keys() -> Value {
    json!({
        "signingKey": { "secret": { "secretName": "signing" } },
        "nodeKey": { "secret": { "secretName": "peer" } },
    })
}

/// Waits until a node says of a key what is missing, and by then has no workload.
async fn waits_for_key(scene: &Scene, condition: NodeCondition, reason: NodeReason, name: &str) {
    let what = format!("{condition} for want of {name}");
    scene
        .until_status(&what, "node", |_, status| {
            status.conditions.iter().any(|it| {
                it.type_ == condition.as_str()
                    && it.status == "False"
                    && it.reason == reason.as_str()
                    && it.message.contains(&format!(" {name} "))
            })
        })
        .await;
    let set = scene.api::<StatefulSet>().get_opt("node").await;
    assert!(set.expect("an answer").is_none(), "a pod before its keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validator_waits_for_each_of_its_keys_and_says_which() {
    let scene = Stage::shared().await.scene("keys").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "node");
    scene.node("node", "validator", keys(), json!({})).await;
    let late = NodeReason::SigningKeyNotReady;
    waits_for_key(&scene, NodeCondition::SigningKeyReady, late, "signing").await;
    scene
        .secret(&secret("signing", &[("priv_validator_key.json", SIGNING)]))
        .await;
    let late = NodeReason::NodeKeyNotReady;
    waits_for_key(&scene, NodeCondition::NodeKeyReady, late, "peer").await;
    scene
        .secret(&secret("peer", &[("node_key.json", NODE)]))
        .await;
    let plan = "ensure-data-pvc validate-signing-key validate-node-key apply-rbac-proxy-config \
                apply-network-policy apply-statefulset apply-service observe-image \
                configure-genesis config-apply config-validate mark-ready";
    let asked = configured("validator");
    let status = runs_by(&scene, &diary, "node", (PlanKind::Init, plan), &asked).await;
    for (condition, reason) in [
        ("SigningKeyReady", "SigningKeyValidated"),
        ("NodeKeyReady", "NodeKeyValidated"),
        ("OperatorKeyringReady", "NotApplicable"),
    ] {
        let found = status.conditions.iter().find(|it| it.type_ == condition);
        assert_eq!(found.map(|it| it.reason.as_str()), Some(reason));
    }
    // What it signs with is mounted where it is read, and nowhere else.
    let pod = scene.api::<Pod>().get("node-0").await.expect("a pod");
    let spec = pod.spec.expect("a spec");
    let mounting = |name: &str| -> Vec<String> {
        let init = spec.init_containers.iter().flatten();
        let all = spec.containers.iter().chain(init);
        let mounts = |it: &&k8s_openapi::api::core::v1::Container| {
            let mut mounts = it.volume_mounts.iter().flatten();
            mounts.any(|mount| mount.name == name)
        };
        all.filter(mounts).map(|it| it.name.clone()).collect()
    };
    assert_eq!(mounting("signing-key"), ["seid"]);
    assert_eq!(mounting("node-key"), ["seid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_no_key_fails_the_set_up_and_a_good_one_with_a_retry_mends_it() {
    let scene = Stage::shared().await.scene("badkey").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene
        .secret(&secret("signing", &[("priv_validator_key.json", "{}")]))
        .await;
    scene
        .secret(&secret("peer", &[("node_key.json", NODE)]))
        .await;
    scene.node("node", "validator", keys(), json!({})).await;
    let bad = NodeReason::SigningKeyInvalid;
    scene
        .until_condition("node", NodeCondition::SigningKeyReady, false, bad)
        .await;
    scene
        .until_condition("node", NodeCondition::Stalled, true, NodeReason::PlanFailed)
        .await;
    scene
        .secret(&secret("signing", &[("priv_validator_key.json", SIGNING)]))
        .await;
    scene.retry("node", "1").await;
    scene.settled("node").await;
    assert_eq!(scene.seen("node").created.len(), 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyring_reaches_the_sidecar_and_no_other_container() {
    let scene = Stage::shared().await.scene("keyring").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "node");
    let keyring = json!({ "operatorKeyring": { "secret": {
        "secretName": "ring",
        "keyName": "admin",
        "passphraseSecretRef": { "secretName": "phrase", "key": "word" },
    }}});
    scene.node("node", "validator", keyring, json!({})).await;
    let late = NodeReason::OperatorKeyringNotReady;
    waits_for_key(&scene, NodeCondition::OperatorKeyringReady, late, "ring").await;
    scene
        .secret(&secret(
            "ring",
            &[("admin.info", "x"), ("00ff.address", "x")],
        ))
        .await;
    waits_for_key(&scene, NodeCondition::OperatorKeyringReady, late, "phrase").await;
    scene.secret(&secret("phrase", &[("word", "open")])).await;
    let plan = "ensure-data-pvc validate-operator-keyring apply-rbac-proxy-config \
                apply-network-policy apply-statefulset apply-service observe-image \
                configure-genesis config-apply config-validate mark-ready";
    let asked = configured("validator");
    let status = runs_by(&scene, &diary, "node", (PlanKind::Init, plan), &asked).await;
    let ready = status
        .conditions
        .iter()
        .find(|it| it.type_ == "OperatorKeyringReady");
    assert_eq!(
        ready.map(|it| it.reason.as_str()),
        Some("OperatorKeyringValidated")
    );
    let pod = scene.api::<Pod>().get("node-0").await.expect("a pod");
    let spec = pod.spec.expect("a spec");
    let init = spec.init_containers.iter().flatten();
    let with: Vec<_> = spec
        .containers
        .iter()
        .chain(init)
        .filter(|it| {
            let text = serde_json::to_string(it).unwrap_or_default();
            text.contains("\"phrase\"") || text.contains("\"operator-keyring\"")
        })
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(with, ["sei-sidecar"]);
}
