//! The Service, the claim and the Certificate.

use keelson_render::{Node, certificate, claim, names, service};
use serde_json::json;

use super::world::{MODES, bootstrap_pod_of, node, platform, pod_of, with};

#[test]
fn the_service_has_eight_ports_and_finds_pods_that_are_not_ready() {
    let object = node("fullNode");
    let service = service::service(&Node::read(&object).expect("a node"));
    let spec = service.spec.expect("a spec");
    let ports: Vec<_> = spec.ports.iter().flatten().collect();
    let found: Vec<_> = ports
        .iter()
        .map(|it| (it.name.as_deref().expect("a name"), it.port))
        .collect();
    assert_eq!(
        found,
        [
            ("evm-rpc", 8545),
            ("evm-ws", 8546),
            ("grpc", 9090),
            ("rest", 1317),
            ("p2p", 26656),
            ("rpc", 26657),
            ("metrics", 26660),
            ("api", 8443)
        ]
    );
    let h2c: Vec<_> = ports
        .iter()
        .filter(|it| it.app_protocol.is_some())
        .collect();
    assert_eq!(h2c.len(), 1);
    assert_eq!(h2c[0].port, 9090);
    assert_eq!(spec.publish_not_ready_addresses, Some(true));
    assert_eq!(spec.cluster_ip.as_deref(), Some("None"));
}

#[test]
fn both_pods_of_a_node_that_imports_a_volume_use_that_volume() {
    let imports = with("dataVolume", json!({"import": {"pvcName": "old-data"}}));
    for pod in [
        pod_of(&imports, &platform()),
        bootstrap_pod_of(&imports, &platform()),
    ] {
        let volumes = pod.volumes.expect("volumes");
        let claim = volumes[0].persistent_volume_claim.as_ref();
        assert_eq!(claim.expect("a claim").claim_name, "old-data");
    }
    let node = Node::read(&imports).expect("a node");
    assert_eq!(claim::claim(&node, &platform()), None);
}

#[test]
fn an_import_without_a_name_is_none() {
    let object = with("dataVolume", json!({"import": {"pvcName": ""}}));
    let node = Node::read(&object).expect("a node");
    assert_eq!(names::claim(&node), "data-node-0");
    assert!(claim::claim(&node, &platform()).is_some());
}

#[test]
fn a_claim_goes_with_its_node_only_where_that_is_asked_for() {
    for (wish, goes) in [(json!({}), false), (json!({"retainOnDelete": false}), true)] {
        let object = with("dataVolume", wish);
        let node = Node::read(&object).expect("a node");
        let claim = claim::claim(&node, &platform()).expect("a claim");
        assert_eq!(claim.metadata.owner_references.is_some(), goes);
    }
}

#[test]
fn class_and_size_of_a_claim_are_the_platforms_for_its_role() {
    for mode in MODES {
        let object = node(mode);
        let node = Node::read(&object).expect("a node");
        let claim = claim::claim(&node, &platform()).expect("a claim");
        let spec = claim.spec.expect("a spec");
        let size = spec
            .resources
            .expect("resources")
            .requests
            .expect("requests");
        let found = (
            spec.storage_class_name.expect("a class"),
            size["storage"].0.clone(),
        );
        let expected = match mode {
            "archive" => ("gp3-archive", "40Ti"),
            _ => ("gp3-10k-750", "2000Gi"),
        };
        assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{mode}");
    }
}

#[test]
fn a_certificate_is_ordered_from_an_issuer_for_both_names_and_no_common_name() {
    let object = with(
        "sidecar",
        json!({"tls": {"issuerName": "pacific-ca", "issuerKind": "Issuer"}}),
    );
    let node = Node::read(&object).expect("a node");
    let certificate = certificate::certificate(&node).expect("a Certificate");
    let spec = serde_json::to_value(&certificate.spec).expect("a value");
    assert_eq!(
        spec["dnsNames"],
        json!([
            "node-0.chain.svc.cluster.local",
            "node-0-0.node-0.chain.svc.cluster.local"
        ])
    );
    assert_eq!(
        spec["issuerRef"],
        json!({"group": "cert-manager.io", "kind": "Issuer", "name": "pacific-ca"})
    );
    assert_eq!(spec["secretName"], "node-0-sidecar-tls");
    assert_eq!(spec.get("commonName"), None);
}

#[test]
fn no_certificate_is_ordered_where_someone_else_provides_it() {
    for sidecar in [json!({}), json!({"tls": {"secretName": "my-tls"}})] {
        let object = with("sidecar", sidecar);
        let node = Node::read(&object).expect("a node");
        assert_eq!(certificate::certificate(&node), None);
    }
}
