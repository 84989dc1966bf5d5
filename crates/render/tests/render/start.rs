//! The start fingerprint: what it follows, and what it does not.

use keelson_api::SeiNode;
use keelson_render::pod::Kind;
use keelson_render::{Node, bootstrap, fingerprint};
use serde_json::json;

use super::world::{changed, container, node, platform, pod_of, variable};

fn of(object: &SeiNode) -> String {
    fingerprint::start(&Node::read(object).expect("a node"), Kind::Node)
}

#[test]
fn what_must_be_approved_anew_is_in_the_fingerprint() {
    let validator = || node("validator");
    let keys = |signing: &str| {
        json!({
            "signingKey": {"secret": {"secretName": signing}},
            "nodeKey": {"secret": {"secretName": "val-node"}},
        })
    };
    let cases = [
        changed(validator(), "image", json!("registry.example/seid:v6.0.1")),
        changed(validator(), "chainId", json!("pacific-1")),
        changed(validator(), "sidecar", json!({"port": 7000})),
        changed(validator(), "validator", json!({})),
        changed(validator(), "validator", keys("val-signing")),
        changed(validator(), "validator", keys("other")),
        node("fullNode"),
        node("archive"),
    ];
    let mut seen = vec![of(&validator())];
    for case in cases {
        let fingerprint = of(&case);
        assert!(!seen.contains(&fingerprint), "{:?}", case.spec);
        seen.push(fingerprint);
    }
}

#[test]
fn what_any_pod_may_be_made_anew_with_is_not() {
    let validator = || node("validator");
    let sidecar = json!({
        "image": "own:2",
        "resources": {"limits": {"memory": "1Gi"}},
        "tls": {"issuerName": "pacific-ca"},
    });
    for case in [
        changed(validator(), "sidecar", sidecar),
        changed(validator(), "podLabels", json!({"team": "other"})),
        changed(
            validator(),
            "overrides",
            json!({"network.p2p.max_connections": "200"}),
        ),
        changed(validator(), "externalAddress", json!("a.example:26656")),
        changed(validator(), "paused", json!(true)),
    ] {
        assert_eq!(of(&case), of(&validator()), "{:?}", case.spec);
    }
    let mut other = platform();
    other.sidecar.image = "sidecar:2".to_owned();
    other.proxy.program.image = "registry.example/keelson-proxy:2".to_owned();
    other.default.size.memory.0 = "64Gi".to_owned();
    let told = |platform: &keelson_render::Platform| {
        let pod = pod_of(&validator(), platform);
        let sidecar = container(&pod, "sei-sidecar");
        variable(sidecar, "KEELSON_START_FINGERPRINT").map(str::to_owned)
    };
    assert_eq!(told(&other), told(&platform()));
    assert_eq!(told(&other), Some(of(&validator())));
}

#[test]
fn the_two_pods_of_a_node_have_different_fingerprints() {
    let object = node("fullNode");
    let view = Node::read(&object).expect("a node");
    let replay = Kind::Bootstrap(bootstrap::replay(&view).expect("a snapshot"));
    assert_ne!(fingerprint::start(&view, replay), of(&object));
}
