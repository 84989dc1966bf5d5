//! What a spec means where it says nothing.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::fleet::{DeletionPolicy, StrategyType, UpdateStrategy};
use keelson_api::names::Role;
use keelson_api::nmstate::MetricsAuth;
use keelson_api::node::Mode;
use keelson_api::sidecar::{IssuerKind, SidecarTls};
use keelson_api::tls::ProfileSource;
use keelson_api::{NMStateSpec, SeiNodeDeploymentSpec, SeiNodeSpec};
use serde_json::{Value, json};

fn node(extra: Value) -> SeiNodeSpec {
    let mut spec = json!({ "chainId": "atlantic-2", "image": "seid:1" });
    spec.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

#[test]
fn an_issuer_without_a_kind_is_a_cluster_issuer() {
    let tls = |value| serde_json::from_value::<SidecarTls>(value).unwrap();
    let named = tls(json!({ "issuerName": "ca" }));
    assert_eq!(named.issuer(), Some(("ca", IssuerKind::ClusterIssuer)));
    let local = tls(json!({ "issuerName": "ca", "issuerKind": "Issuer" }));
    assert_eq!(local.issuer(), Some(("ca", IssuerKind::Issuer)));
    assert_eq!(tls(json!({ "secretName": "mine" })).issuer(), None);
}

#[test]
fn a_volume_is_retained_unless_the_spec_says_no() {
    assert!(node(json!({})).retains_volume());
    assert!(node(json!({ "dataVolume": {} })).retains_volume());
    assert!(!node(json!({ "dataVolume": { "retainOnDelete": false } })).retains_volume());
    let imported =
        json!({ "dataVolume": { "retainOnDelete": false, "import": { "pvcName": "old" } } });
    assert!(
        node(imported.clone()).retains_volume(),
        "an imported volume is not ours to delete"
    );
    assert_eq!(node(imported).imported_claim(), Some("old"));
}

#[test]
fn the_mode_is_the_one_block_that_is_there() {
    assert_eq!(node(json!({ "fullNode": {} })).mode(), Some(Mode::FullNode));
    assert_eq!(
        node(json!({ "validator": {} })).mode(),
        Some(Mode::Validator)
    );
    assert_eq!(node(json!({})).mode(), None);
    assert_eq!(node(json!({ "fullNode": {}, "archive": {} })).mode(), None);
    assert_eq!(Mode::Replayer.config_name(), "full");
    assert_eq!(Mode::FullNode.role(), Role::Node);
}

#[test]
fn the_snapshot_is_found_whatever_the_mode() {
    let snapshot = json!({ "s3": { "targetHeight": 5 } });
    for mode in ["fullNode", "replayer", "validator"] {
        let spec = node(json!({ mode: { "snapshot": snapshot } }));
        assert_eq!(
            spec.snapshot().unwrap().s3.as_ref().unwrap().target_height,
            5,
            "{mode}"
        );
    }
    assert!(node(json!({ "archive": {} })).snapshot().is_none());
}

#[test]
fn a_fleet_of_nothing_but_a_template_is_one_node_that_is_kept() {
    let spec: SeiNodeDeploymentSpec = serde_json::from_value(json!({
        "template": { "spec": { "chainId": "c", "image": "i", "fullNode": {} } },
        "updateStrategy": { "type": "InPlace" },
    }))
    .unwrap();
    assert_eq!(spec.replicas, 1);
    assert_eq!(spec.deletion_policy, DeletionPolicy::Retain);
    assert_eq!(spec.update_strategy.max_unavailable(), IntOrString::Int(1));
    assert_eq!(
        UpdateStrategy::new(StrategyType::InPlace).progress_deadline_seconds(),
        1800
    );
}

#[test]
fn an_empty_nmstate_takes_the_cluster_profile_and_guards_its_metrics() {
    let spec: NMStateSpec = serde_json::from_value(json!({})).unwrap();
    assert_eq!(spec.tls().source, ProfileSource::Auto);
    assert_eq!(spec.metrics_auth(), MetricsAuth::TokenReview);
}

#[test]
fn an_empty_nmstate_probes_for_two_minutes_and_is_undone_after_four() {
    let probes = NMStateSpec::default().probes();
    assert_eq!(
        probes,
        serde_json::from_value(json!({})).expect("a configuration")
    );
    assert_eq!(
        (probes.timeout_seconds, probes.checkpoint_seconds),
        (120, 240)
    );
    assert_eq!(probes.dns.unwrap_or_default().host, "root-servers.net");
}

#[test]
fn the_keys_of_a_validator_are_named_by_their_fields() {
    let spec = node(json!({ "validator": {
        "signingKey": { "secret": { "secretName": "s" } },
        "nodeKey": { "secret": { "secretName": "n" } },
        "operatorKeyring": { "secret": {
            "secretName": "k", "passphraseSecretRef": { "secretName": "p", "key": "passphrase" },
        } },
    } }));
    let validator = spec.validator.unwrap();
    let secrets = validator.key_secrets();
    assert_eq!(secrets["signingKey"], "s");
    assert_eq!(secrets["passphraseSecretRef"], "p");
    assert_eq!(secrets.len(), 4);
    assert_eq!(
        validator.operator_keyring.unwrap().secret.key_name,
        "node_admin"
    );
}
