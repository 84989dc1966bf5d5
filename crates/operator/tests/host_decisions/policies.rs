//! What a policy's status says, by its nodes and their enactments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::condition::HostCondition;
use keelson_api::host_condition::EnactmentCondition::{
    self, Aborted, Available, Failing, Pending, Progressing,
};
use keelson_operator::host::policies::claims::Claims;
use keelson_operator::host::policies::known::Known;
use keelson_operator::host::policies::{Counts, Enactment, Host, Policy, count, status};
use keelson_operator::host::replicas::Place;
use keelson_operator::host::seen::SeenPod;
use serde_json::{Value, json};

const GENERATION: i64 = 3;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn policy() -> Policy {
    Policy {
        name: "policy1".to_owned(),
        uid: "1".to_owned(),
        generation: Some(GENERATION),
        ..Policy::default()
    }
}

fn host(number: usize) -> Host {
    let name = format!("node{number}");
    let node = Place {
        labels: [("kubernetes.io/hostname".to_owned(), name.clone())].into(),
        name,
        ready: true,
        ..Place::default()
    };
    Host {
        node: Arc::new(node),
        handled: true,
    }
}

fn hosts(number: usize) -> Vec<Host> {
    (1..=number).map(host).collect()
}

fn is_not_ready(host: &mut Host) {
    Arc::make_mut(&mut host.node).ready = false;
}

/// An enactment in which these conditions hold, and no other.
fn enactment(number: usize, holds: &[EnactmentCondition]) -> Enactment {
    Enactment {
        node: format!("node{number}"),
        policy: "policy1".to_owned(),
        generation: Some(GENERATION),
        holds: holds.to_vec(),
        ..Enactment::default()
    }
}

fn of_another_policy(enactment: Enactment) -> Enactment {
    Enactment {
        policy: "policy2".to_owned(),
        ..enactment
    }
}

fn of_an_old_generation(enactment: Enactment) -> Enactment {
    Enactment {
        generation: Some(GENERATION - 1),
        ..enactment
    }
}

/// One line for each condition.
fn told(policy: &Policy, hosts: &[Host], enactments: &[Enactment]) -> Vec<String> {
    let status =
        status(policy, hosts, enactments, BTreeMap::new(), at(9)).expect("a status to write");
    let line = |it: &HostCondition| {
        let reason = it.reason.as_deref().unwrap_or("-");
        let message = it.message.as_deref().unwrap_or("-");
        format!("{} {} {reason} {message}", it.type_, it.status)
    };
    status.conditions.iter().map(line).collect()
}

/// The condition that holds, and its message.
fn holds(hosts: &[Host], enactments: &[Enactment]) -> String {
    let all = told(&policy(), hosts, enactments);
    let mut holding = all.iter().filter_map(|it| {
        let mut words = it.splitn(4, ' ');
        let kind = words.next()?;
        let message = (words.next()? == "True").then(|| words.nth(1))??;
        Some(format!("{kind}: {message}"))
    });
    let only = holding.next().expect("a condition that holds");
    assert_eq!(holding.next(), None);
    only
}

#[test]
fn every_standing_says_what_the_original_says() {
    let (well, bad, busy) = ([Available], [Failing], [Progressing]);
    let one = |holds: &[EnactmentCondition]| told(&policy(), &hosts(1), &[enactment(1, holds)]);
    assert_eq!(
        one(&busy),
        [
            "Available Unknown ConfigurationProgressing -",
            "Degraded Unknown ConfigurationProgressing -",
            "Progressing True ConfigurationProgressing Policy is progressing 0/1 nodes finished",
            "Ignored False ConfigurationProgressing -",
        ]
    );
    assert_eq!(
        one(&well),
        [
            "Available True SuccessfullyConfigured 1/1 nodes successfully configured",
            "Degraded False SuccessfullyConfigured -",
            "Progressing False SuccessfullyConfigured -",
            "Ignored False SuccessfullyConfigured -",
        ]
    );
    assert_eq!(
        one(&bad),
        [
            "Available False FailedToConfigure -",
            "Degraded True FailedToConfigure 1/1 nodes failed to configure",
            "Progressing False ConfigurationProgressing -",
            "Ignored False FailedToConfigure -",
        ]
    );
    let mut elsewhere = policy();
    elsewhere.selector = BTreeMap::from([("foo".to_owned(), "bar".to_owned())]);
    assert_eq!(
        told(&elsewhere, &hosts(3), &[]),
        [
            "Available False NoMatchingNode -",
            "Degraded False NoMatchingNode -",
            "Progressing False NoMatchingNode -",
            "Ignored True NoMatchingNode Policy does not match any node",
        ]
    );
}

#[test]
fn the_worst_of_the_nodes_decides() {
    let many = |all: &[&[EnactmentCondition]]| {
        let each = all.iter().enumerate();
        let enactments: Vec<Enactment> = each.map(|(at, it)| enactment(at + 1, it)).collect();
        holds(&hosts(all.len()), &enactments)
    };
    let (well, bad, busy): (&[_], &[_], &[_]) = (&[Available], &[Failing], &[Progressing]);
    let (waits, gave_up): (&[_], &[_]) = (&[Pending], &[Aborted]);
    for (nodes, expected) in [
        (
            vec![busy, busy, busy],
            "Progressing: Policy is progressing 0/3 nodes finished",
        ),
        (
            vec![well, well, well],
            "Available: 3/3 nodes successfully configured",
        ),
        (
            vec![well, busy, well],
            "Progressing: Policy is progressing 2/3 nodes finished",
        ),
        (
            vec![well, busy, bad, well],
            "Degraded: 1/4 nodes failed to configure",
        ),
        (
            vec![bad, bad, well],
            "Degraded: 2/3 nodes failed to configure",
        ),
        (
            vec![bad, bad, bad],
            "Degraded: 3/3 nodes failed to configure",
        ),
        // Who tries again failed.
        (
            vec![well, &[Failing, Progressing]],
            "Degraded: 1/2 nodes failed to configure",
        ),
        (
            vec![bad, gave_up, gave_up],
            "Degraded: 1/3 nodes failed to configure, 2 nodes aborted configuration",
        ),
        (
            vec![well, gave_up],
            "Degraded: 0/2 nodes failed to configure, 1 nodes aborted configuration",
        ),
        (
            vec![&[], &[], well],
            "Progressing: Policy is progressing 1/3 nodes finished",
        ),
        (
            vec![well, well, waits],
            "Progressing: Policy is progressing 2/3 nodes finished",
        ),
        (
            vec![well, well, well, waits],
            "Progressing: Policy is progressing 3/4 nodes finished",
        ),
    ] {
        assert_eq!(many(&nodes), expected);
    }
}

#[test]
fn a_node_without_an_enactment_is_not_finished() {
    let three: Vec<Enactment> = (1..=3).map(|it| enactment(it, &[Available])).collect();
    assert_eq!(
        holds(&hosts(4), &three),
        "Progressing: Policy is progressing 3/4 nodes finished"
    );
}

#[test]
fn enactments_of_other_policies_and_generations_do_not_count() {
    let mut all: Vec<Enactment> = (1..=3).map(|it| enactment(it, &[Available])).collect();
    all.push(of_another_policy(enactment(1, &[Failing])));
    all.push(of_another_policy(enactment(2, &[Progressing])));
    let said = "Available: 3/3 nodes successfully configured";
    assert_eq!(holds(&hosts(3), &all), said);
    all[0] = of_an_old_generation(enactment(1, &[Failing]));
    let said = "Progressing: Policy is progressing 2/3 nodes finished";
    assert_eq!(holds(&hosts(3), &all), said);
}

#[test]
fn a_node_without_a_handler_does_not_count_nor_does_one_that_is_not_selected() {
    let three: Vec<Enactment> = (1..=3).map(|it| enactment(it, &[Available])).collect();
    let mut four = hosts(4);
    four[3].handled = false;
    let said = "Available: 3/3 nodes successfully configured";
    assert_eq!(holds(&four, &three), said);
    // Nor does what is left of it.
    let mut left = three.clone();
    left.push(enactment(4, &[Failing]));
    left.push(enactment(5, &[Failing]));
    assert_eq!(holds(&four, &left), said);
}

#[test]
fn a_node_that_is_not_ready_is_not_waited_for_and_mentioned() {
    let mut four = hosts(4);
    is_not_ready(&mut four[3]);
    let mut all: Vec<Enactment> = (1..=3).map(|it| enactment(it, &[Available])).collect();
    assert_eq!(
        holds(&four, &all),
        "Available: 3/4 nodes successfully configured, 1 nodes ignored due to NotReady state"
    );
    all.push(enactment(4, &[Pending]));
    assert_eq!(
        holds(&four, &all),
        "Progressing: Policy is progressing 3/3 nodes finished, 1 pending, 1 nodes ignored due to NotReady state"
    );
    // It does not stand in for one that is.
    all[2] = enactment(3, &[Progressing]);
    all[3] = enactment(4, &[Available]);
    assert_eq!(
        holds(&four, &all),
        "Progressing: Policy is progressing 2/3 nodes finished, 1 nodes ignored due to NotReady state"
    );
}

#[test]
fn each_condition_is_counted_by_itself() {
    let hosts = hosts(5);
    let all = [
        enactment(1, &[Available]),
        enactment(2, &[Failing, Progressing]),
        enactment(3, &[Pending]),
        enactment(4, &[Aborted]),
        of_an_old_generation(enactment(5, &[Available])),
    ];
    let expected = Counts {
        nodes: 5,
        ready: 5,
        finished: 3,
        available: 1,
        failing: 1,
        progressing: 1,
        pending: 1,
        aborted: 1,
    };
    assert_eq!(count(&policy(), &hosts, &all), expected);
}

#[test]
fn what_was_said_before_the_policy_was_made_is_about_another_of_its_name() {
    let mut policy = policy();
    policy.made = Some(at(10));
    let mut said = enactment(1, &[Available]);
    let progresses = "Policy is progressing 0/1 nodes finished";
    for (written, expected) in [
        (Some(9), progresses),
        (Some(10), "1/1 nodes successfully configured"),
        (None, "1/1 nodes successfully configured"),
    ] {
        said.written = written.map(at);
        let (_, message) = count(&policy, &hosts(1), [&said]).judge();
        assert_eq!(message, expected, "{written:?}");
    }
}

#[test]
fn nothing_is_written_where_only_the_time_differs() {
    let (hosts, all) = (hosts(1), [enactment(1, &[Available])]);
    let mut policy = policy();
    let status = |policy: &Policy, all: &[Enactment], second| {
        status(policy, &hosts, all, BTreeMap::new(), at(second))
    };
    let first = status(&policy, &all, 1).expect("a status");
    assert_eq!(first.observed_generation, Some(GENERATION));
    policy.status = first;
    assert_eq!(status(&policy, &all, 2), None);
    let changed = status(&policy, &[enactment(1, &[Failing])], 4).expect("a status");
    let time = |conditions: &[HostCondition], at: usize| {
        let time = conditions[at].last_transition_time.clone();
        time.expect("a time").0.as_second()
    };
    assert_eq!(time(&changed.conditions, 1), 4, "Degraded turned");
    assert_eq!(time(&changed.conditions, 3), 1, "Ignored did not");
}

#[test]
fn hosts_under_change_are_counted_by_generation_until_all_are_configured() {
    let hosts = hosts(2);
    let claimed = |number| BTreeMap::from([(GENERATION.to_string(), number)]);
    let mut policy = policy();
    // As the original left it.
    policy.status.unavailable_node_count_map = BTreeMap::from([("1".to_owned(), 7)]);
    let one = [enactment(1, &[Available])];
    let busy = status(&policy, &hosts, &one, claimed(1), at(1)).expect("a status");
    assert_eq!(busy.unavailable_node_count_map, claimed(1));
    policy.status = busy;
    assert_eq!(status(&policy, &hosts, &one, claimed(1), at(2)), None);
    let fewer = status(&policy, &hosts, &one, BTreeMap::new(), at(3)).expect("a status");
    assert!(fewer.unavailable_node_count_map.is_empty());
    let both = [1, 2].map(|it| enactment(it, &[Available]));
    let well = status(&policy, &hosts, &both, claimed(1), at(4)).expect("a status");
    assert!(well.unavailable_node_count_map.is_empty());
}

fn claim(node: &str, policy: &str, generation: i64) -> Value {
    json!({
        "node": node, "policy": policy, "generation": generation, "state": "Held",
        "since": "2026-01-02T03:04:05Z", "expires": "2026-01-02T03:14:05Z",
    })
}

fn claims(all: Value) -> Claims {
    let text = json!({"claims": all, "more": 1}).to_string();
    Claims::read(Some(&text)).expect("claims")
}

#[test]
fn claims_of_nodes_and_policies_that_are_gone_are_taken_out_and_the_rest_stays_as_it_is() {
    let odd = json!({"a": "claim", "of": "another version"});
    let all = claims(json!([
        claim("a", "1", 1),
        claim("gone", "1", 1),
        odd,
        claim("a", "2", 1),
        claim("b", "1", 2),
    ]));
    let rest = all.without(|it| it.node == "gone" || it.policy == "2");
    let expected = claims(json!([claim("a", "1", 1), odd, claim("b", "1", 2)]));
    assert_eq!(rest, expected);
    assert_eq!(Claims::read(Some(&rest.text())).expect("claims"), rest);
    assert_eq!(all.without(|it| it.node == "c"), all);
}

#[test]
fn claims_are_counted_for_each_generation_of_a_policy() {
    let all = claims(json!([
        claim("a", "1", 1),
        claim("b", "1", 2),
        claim("c", "1", 2),
        claim("a", "2", 2),
    ]));
    let expected = [("1".to_owned(), 1), ("2".to_owned(), 2)];
    assert_eq!(all.counts("1"), BTreeMap::from(expected));
    let none = Claims::read(None).expect("none");
    assert!(none.counts("1").is_empty());
    assert!(Claims::read(Some("{")).is_err());
}

fn handler(node: &str) -> SeenPod {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"labels": {"component": "kubernetes-nmstate-handler"}},
        "spec": {"nodeName": node, "containers": []},
    }))
    .expect("a pod");
    SeenPod::read(&pod)
}

#[tokio::test(start_paused = true)]
async fn a_node_has_a_handler_for_a_moment_longer_than_the_handler_is_there() {
    let known = Known::default();
    let mut other = handler("node2");
    other.component = "kubernetes-nmstate-webhook".to_owned();
    known.pod_changed(Some(&other), None);
    known.pod_changed(None, Some(&handler("node1")));
    assert!(known.left_lately().0.is_empty());
    known.pod_changed(Some(&handler("node1")), None);
    let (nodes, until) = known.left_lately();
    assert_eq!(nodes, BTreeSet::from(["node1".to_owned()]));
    let until = until.expect("an end");
    assert!(until <= Duration::from_secs(15), "{until:?}");
    tokio::time::advance(until).await;
    assert_eq!(known.left_lately(), (BTreeSet::new(), None));
}
