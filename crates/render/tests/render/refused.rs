//! Nodes no objects can be made of, and the sentence that says why.

use keelson_api::SeiNode;
use keelson_render::{Node, bootstrap};
use serde_json::json;

use super::world::{node, platform, with};

fn refusal(node: &SeiNode) -> String {
    Node::read(node).expect_err("a refusal").to_string()
}

#[test]
fn an_object_no_api_server_has_seen_is_refused() {
    for field in ["name", "namespace", "uid"] {
        let mut object = node("fullNode");
        let metadata = &mut object.metadata;
        match field {
            "name" => metadata.name = None,
            "namespace" => metadata.namespace = Some(String::new()),
            _ => metadata.uid = None,
        }
        assert_eq!(
            refusal(&object),
            format!("metadata.{field} is empty: render a SeiNode that was read from an API server")
        );
    }
}

#[test]
fn a_node_with_two_modes_is_refused() {
    let sentence =
        "the spec has no single mode: set exactly one of fullNode, archive, replayer and validator";
    assert_eq!(refusal(&with("archive", json!({}))), sentence);
}

#[test]
fn a_sidecar_port_that_is_none_or_taken_is_refused() {
    for port in [0, -1, 65536] {
        let sentence =
            format!("spec.sidecar.port is {port}, which is no port: use a number from 1 to 65535");
        assert_eq!(refusal(&with("sidecar", json!({"port": port}))), sentence);
    }
    assert_eq!(
        refusal(&with("sidecar", json!({"port": 8443}))),
        "spec.sidecar.port is 8443, which is the pod's port api: use another, for example 7777"
    );
}

#[test]
fn a_node_without_a_snapshot_of_the_bucket_has_no_bootstrap_job() {
    let state_sync = with("fullNode", json!({"snapshot": {"stateSync": {}}}));
    for object in [node("archive"), state_sync] {
        let view = Node::read(&object).expect("a node");
        let refused = bootstrap::job(&view, &platform()).expect_err("a refusal");
        assert_eq!(
            refused.to_string(),
            "there is nothing to replay: set s3.targetHeight in the snapshot of the node's mode"
        );
    }
}
