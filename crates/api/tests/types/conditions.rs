//! How conditions are made and set.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::condition::{HostCondition, Truth, condition, set, truth};
use keelson_api::host_condition::{PolicyCondition, PolicyReason};
use keelson_api::node_condition::{NodeCondition, NodeReason};

fn at(second: u8) -> Time {
    serde_json::from_value(format!("2026-01-02T03:04:{second:02}Z").into()).unwrap()
}

#[test]
fn the_transition_time_moves_only_with_the_status() {
    let ready = |truth, reason, second| {
        condition(
            NodeCondition::Ready,
            truth,
            reason,
            "why",
            Some(7),
            at(second),
        )
    };
    let mut conditions = Vec::new();
    set(
        &mut conditions,
        ready(Truth::False, NodeReason::Initializing, 1),
    );
    set(
        &mut conditions,
        ready(Truth::False, NodeReason::PodNotReady, 2),
    );
    assert_eq!(conditions.len(), 1);
    assert_eq!(conditions[0].last_transition_time, at(1));
    assert_eq!(conditions[0].reason, "PodNotReady");

    set(
        &mut conditions,
        ready(Truth::True, NodeReason::NodeReady, 3),
    );
    assert_eq!(conditions[0].last_transition_time, at(3));
    assert_eq!(conditions[0].observed_generation, Some(7));
}

#[test]
fn a_condition_nobody_set_is_unknown() {
    let conditions = vec![condition(
        NodeCondition::Paused,
        Truth::True,
        NodeReason::PausedBySpec,
        "",
        None,
        at(0),
    )];
    assert_eq!(truth(&conditions, NodeCondition::Paused), Truth::True);
    assert_eq!(truth(&conditions, NodeCondition::Stalled), Truth::Unknown);
}

#[test]
fn the_heartbeat_of_a_host_condition_moves_always() {
    let available = |truth, second| {
        HostCondition::new(
            PolicyCondition::Available,
            truth,
            Some(PolicyReason::SuccessfullyConfigured),
            None,
            at(second),
        )
    };
    let mut conditions = Vec::new();
    available(Truth::True, 1).set(&mut conditions);
    available(Truth::True, 2).set(&mut conditions);
    assert_eq!(conditions.len(), 1);
    assert_eq!(conditions[0].last_heartbeat_time, Some(at(2)));
    assert_eq!(conditions[0].last_transition_time, Some(at(1)));

    available(Truth::False, 3).set(&mut conditions);
    assert_eq!(conditions[0].last_transition_time, Some(at(3)));
}
