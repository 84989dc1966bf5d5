//! Decoding: specs strictly, statuses tolerantly, plans whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use keelson_api::node_status::NodePhase;
use keelson_api::plan::{PlanPhase, TaskStatus};
use keelson_api::task::TaskType;
use keelson_api::{
    NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, SeiNode, SeiNodeDeployment,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn node(status: Value) -> SeiNode {
    let object = json!({
        "apiVersion": "sei.io/v1alpha1",
        "kind": "SeiNode",
        "metadata": { "name": "n" },
        "spec": { "chainId": "c", "image": "i", "fullNode": {} },
        "status": status,
    });
    serde_json::from_value(object).expect("a status never makes an object unreadable")
}

fn plan(tasks: Value) -> Value {
    json!({ "id": "p", "phase": "Active", "tasks": tasks })
}

#[test]
fn of_a_plan_of_an_unknown_shape_only_the_name_is_known() {
    let readable = plan(json!([{ "id": "t", "type": "mark-ready", "status": "Pending" }]));
    assert!(
        node(json!({ "plan": readable }))
            .status
            .unwrap()
            .plan
            .is_some()
    );

    let odd = [
        json!("a string"),
        json!(["a", "list"]),
        json!({}),
        json!({ "id": "p", "phase": "Active" }),
        json!({ "id": "p", "phase": "Paused", "tasks": [] }),
        json!({ "id": 7, "phase": "Active", "tasks": [] }),
        plan(json!({ "mark-ready": {} })),
        plan(json!([{ "id": "t", "type": "task-of-the-future", "status": "Pending" }])),
        plan(json!([{ "id": "t", "type": "mark-ready", "status": "Skipped" }])),
        plan(json!([{ "id": "t", "status": "Pending" }])),
    ];
    for plan in odd {
        let status = node(json!({ "plan": plan, "currentImage": "seid:1" }))
            .status
            .unwrap();
        let known = status.plan.expect("that there is a plan");
        let name = plan["id"].as_str().unwrap_or("without a name");
        assert_eq!((known.id.as_str(), known.tasks.len()), (name, 0), "{plan}");
        assert_eq!(known.target, None, "nobody takes it for one of ours");
        assert_eq!(
            status.current_image.as_deref(),
            Some("seid:1"),
            "the rest stays: {plan}"
        );
    }
}

#[test]
fn each_odd_part_of_a_status_reads_as_absent_and_no_more() {
    let odd = json!({
        "observedGeneration": "three",
        "phase": "Hibernating",
        "phaseTransitionTime": "yesterday",
        "currentImage": 7,
        "currentSidecarImage": "sidecar:1",
        "currentSidecarTLS": { "issuerName": ["a"], "fingerprint": "ab" },
        "sidecarTLS": "on",
        "lastFailedPlan": { "id": "p", "task": { "type": "gone" }, "kind": "old" },
        "consecutiveFailures": { "count": 3 },
        "resolvedPeers": ["a", 7, "b"],
        "conditions": [
            "Ready",
            { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z" },
            { "type": 5 },
        ],
        "neverHeardOf": { "x": 1 },
    });
    let status = node(odd).status.unwrap();
    assert_eq!(status.observed_generation, None);
    assert_eq!(status.phase, None);
    assert_eq!(status.phase_transition_time, None);
    assert_eq!(status.current_image, None);
    assert_eq!(status.current_sidecar_image.as_deref(), Some("sidecar:1"));
    assert_eq!(status.current_sidecar_tls, None);
    assert_eq!(status.sidecar_tls, None);
    let failed = status.last_failed_plan.unwrap();
    assert_eq!(
        (failed.id.as_str(), failed.kind, failed.task),
        ("p", None, None)
    );
    assert_eq!(status.consecutive_failures, None);
    assert_eq!(status.resolved_peers, ["a", "b"]);
    let types: Vec<_> = status.conditions.iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(types, ["Ready"]);
}

#[test]
fn a_status_of_nulls_is_an_empty_status() {
    let status =
        node(json!({ "phase": null, "plan": null, "conditions": null, "resolvedPeers": null }));
    assert_eq!(status.status.unwrap(), Default::default());
}

#[test]
fn the_tls_fields_of_both_earlier_shapes_are_read() {
    let by_issuer =
        node(json!({ "currentSidecarTLS": { "issuerName": "ca", "issuerKind": "Issuer" } }));
    let tls = by_issuer.status.unwrap().current_sidecar_tls.unwrap();
    assert_eq!(tls.issuer_name.as_deref(), Some("ca"));
    let by_secret =
        node(json!({ "sidecarTLS": { "secretName": "s", "requiredDNSNames": ["a", "b"] } }));
    let required = by_secret.status.unwrap().sidecar_tls.unwrap();
    assert_eq!(required.secret_name.as_deref(), Some("s"));
    assert_eq!(required.required_dns_names, ["a", "b"]);
}

#[test]
fn an_empty_target_phase_of_the_original_is_no_phase() {
    let mut wire = plan(json!([]));
    wire["failedPhase"] = json!("");
    wire["targetPhase"] = json!("Running");
    let plan = node(json!({ "plan": wire })).status.unwrap().plan.unwrap();
    assert_eq!(plan.failed_phase, None);
    assert_eq!(plan.target_phase, Some(NodePhase::Running));
}

#[test]
fn statuses_of_fleets_and_hosts_are_tolerant_too() {
    let fleet: SeiNodeDeployment = serde_json::from_value(json!({
        "metadata": {},
        "spec": {
            "template": { "spec": { "chainId": "c", "image": "i" } },
            "updateStrategy": { "type": "InPlace" },
        },
        "status": {
            "phase": "Sleeping",
            "replicas": "2",
            "nodes": [{ "name": "a", "phase": "Odd" }, "b"],
            "rollout": "soon",
            "endpoints": { "nodes": [{ "name": "a" }, {}] },
        },
    }))
    .unwrap();
    let status = fleet.status.unwrap();
    assert_eq!(
        (status.phase, status.replicas, status.rollout),
        (None, None, None)
    );
    assert_eq!(status.nodes.len(), 1);
    assert_eq!(status.nodes[0].phase, None);
    assert_eq!(status.endpoints.unwrap().nodes.len(), 1);

    let enactment: NodeNetworkConfigurationEnactment = serde_json::from_value(json!({
        "metadata": {},
        "status": { "desiredState": "text", "retryCount": { "1": "x" }, "policyGeneration": 4 },
    }))
    .unwrap();
    let status = enactment.status.unwrap();
    assert_eq!(status.desired_state, None);
    assert_eq!(status.policy_generation, Some(4));

    let policy: NodeNetworkConfigurationPolicy = serde_json::from_value(json!({
        "metadata": {},
        "spec": {},
        "status": { "conditions": [{ "type": "Available", "status": "True", "reason": 4 }] },
    }))
    .unwrap();
    assert_eq!(policy.status.unwrap().conditions[0].reason, None);
}

#[test]
fn a_spec_with_an_unknown_word_is_an_error_that_names_the_words() {
    let spec = json!({ "template": { "spec": { "chainId": "c", "image": "i" } }, "updateStrategy": { "type": "Yolo" } });
    let error = serde_json::from_value::<keelson_api::SeiNodeDeploymentSpec>(spec).unwrap_err();
    assert!(
        error.to_string().contains("\"Yolo\" is not a StrategyType"),
        "{error}"
    );
    assert!(
        error.to_string().contains("InPlace, BlueGreen, HardFork"),
        "{error}"
    );
}

/// The folder of objects the original operator wrote, where it is at hand.
fn fixtures() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/original");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: the original's objects are not beside this workspace");
    None
}

fn items<T: DeserializeOwned + Serialize>(path: &Path) -> Vec<T> {
    let list: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let items = list["items"]
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![list]);
    items.into_iter().map(same).collect()
}

/// Decodes an object and checks that encoding gives it back.
fn same<T: DeserializeOwned + Serialize>(object: Value) -> T {
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), object);
    typed
}

#[test]
fn objects_of_the_original_decode_and_encode_unchanged() {
    let Some(folder) = fixtures() else { return };
    let nodes: Vec<SeiNode> = items(&folder.join("seinodes.yaml"));
    assert_eq!(nodes.len(), 7);
    let plan_of = |name: &str| {
        let node = nodes
            .iter()
            .find(|n| n.metadata.name.as_deref() == Some(name))
            .unwrap();
        node.status.as_ref().unwrap().plan.clone()
    };
    let bootstrap = plan_of("bootstrapping").unwrap();
    assert_eq!(bootstrap.phase, PlanPhase::Active);
    assert_eq!(bootstrap.tasks.len(), 18);
    let current = bootstrap
        .tasks
        .iter()
        .find(|t| t.status != TaskStatus::Complete)
        .unwrap();
    assert_eq!(current.type_, TaskType::AwaitBootstrapComplete);
    assert_eq!(
        plan_of("full-statesync").unwrap().tasks[6].type_,
        TaskType::DiscoverPeers
    );
    assert!(plan_of("archive").is_none());

    let edited: Vec<SeiNode> = items(&folder.join("seinode-after-image-edit.yaml"));
    assert_eq!(
        edited[0]
            .status
            .as_ref()
            .unwrap()
            .plan
            .as_ref()
            .unwrap()
            .phase,
        PlanPhase::Complete
    );
    let fleets: Vec<SeiNodeDeployment> = items(&folder.join("seinodedeployments.yaml"));
    assert_eq!(fleets[0].spec.replicas, 2);
}
