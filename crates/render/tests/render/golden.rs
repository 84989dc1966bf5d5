//! All objects of nodes in each mode and TLS state, whole, as a person would read them.
//!
//! After a change that is meant, `KEELSON_BLESS=1 cargo test -p keelson-render golden` writes them
//! again; the difference is for the reviewer.

use keelson_api::SeiNode;
use keelson_render::{
    Node, Platform, bootstrap, certificate, claim, network_policy, proxy_config, service,
    stateful_set,
};
use serde::Serialize;

use super::committed::compare;
use super::world::{MODES, changed, node, original_proxy, platform, tls_states, with};

fn document(object: impl Serialize) -> String {
    let value = serde_json::to_value(object).expect("a value");
    let text = serde_saphyr::to_string(&value).expect("YAML");
    format!("---\n{text}")
}

fn objects(node: &SeiNode, platform: &Platform) -> String {
    let node = Node::read(node).expect("a node");
    let documents = [
        certificate::certificate(&node).map(document),
        claim::claim(&node, platform).map(document),
        Some(document(proxy_config::config_map(&node, platform))),
        network_policy::network_policy(&node, platform).map(document),
        Some(document(service::service(&node))),
        Some(document(
            stateful_set::stateful_set(&node, platform).expect("a StatefulSet"),
        )),
    ];
    documents.into_iter().flatten().collect()
}

fn bootstrap_objects(node: &SeiNode, platform: &Platform) -> String {
    let node = Node::read(node).expect("a node");
    let job = bootstrap::job(&node, platform).expect("a Job");
    document(service::bootstrap(&node)) + &document(job)
}

#[test]
fn golden_objects_are_what_is_rendered() {
    let (ours, original) = (platform(), original_proxy());
    let mut stale = Vec::new();
    for mode in MODES {
        stale.extend(compare(
            &format!("mode/{mode}.yaml"),
            &objects(&node(mode), &ours),
        ));
    }
    for (state, sidecar) in tls_states() {
        let node = with("sidecar", sidecar);
        let name = format!("tls/{state}.yaml");
        stale.extend(compare(&name, &objects(&node, &ours)));
        let name = format!("kube-rbac-proxy/{state}.yaml");
        stale.extend(compare(&name, &objects(&node, &original)));
    }
    let imports = serde_json::json!({"import": {"pvcName": "old-data"}});
    let bootstrapping = changed(node("validator"), "dataVolume", imports);
    stale.extend(compare(
        "bootstrap.yaml",
        &bootstrap_objects(&bootstrapping, &ours),
    ));
    assert!(stale.is_empty(), "\n{}", stale.join("\n"));
}

#[test]
fn nothing_is_written_as_null() {
    for mode in MODES {
        let text = objects(&node(mode), &platform());
        let nulls: Vec<_> = text.lines().filter(|line| line.ends_with("null")).collect();
        assert!(nulls.is_empty(), "{mode}: {nulls:?}");
    }
}
