//! What a policy's status says, by its nodes and their enactments.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::enactment::{NodeNetworkConfigurationEnactmentStatus, enactment_name};
use keelson_api::host_condition::EnactmentCondition::{
    self, Aborted, Available, Failing, Pending, Progressing,
};
use keelson_api::names::Label;
use keelson_api::{NodeNetworkConfigurationEnactment as Enactment, NodeNetworkConfigurationPolicy};
use keelson_operator::host::policies::{Counts, Host, count, status};

const GENERATION: i64 = 3;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn policy() -> NodeNetworkConfigurationPolicy {
    let mut policy = NodeNetworkConfigurationPolicy::default();
    policy.metadata.name = Some("policy1".to_owned());
    policy.metadata.generation = Some(GENERATION);
    policy
}

fn host(number: usize) -> Host {
    let name = format!("node{number}");
    Host {
        labels: [("kubernetes.io/hostname".to_owned(), name.clone())].into(),
        name,
        ready: true,
        handled: true,
    }
}

fn hosts(number: usize) -> Vec<Host> {
    (1..=number).map(host).collect()
}

/// An enactment in which these conditions hold, and no other.
fn enactment(number: usize, holds: &[EnactmentCondition]) -> Enactment {
    let node = format!("node{number}");
    let condition = |kind: &EnactmentCondition| {
        let truth = match holds.contains(kind) {
            true => Truth::True,
            false => Truth::False,
        };
        HostCondition::new(*kind, truth, None, None, Time(at(0)))
    };
    let mut enactment = Enactment::default();
    enactment.metadata.name = Some(enactment_name(&node, "policy1"));
    let labels = [
        (Label::Policy.as_str().to_owned(), "policy1".to_owned()),
        (Label::PolicyNode.as_str().to_owned(), node),
    ];
    enactment.metadata.labels = Some(labels.into());
    enactment.status = Some(NodeNetworkConfigurationEnactmentStatus {
        policy_generation: Some(GENERATION),
        conditions: EnactmentCondition::ALL.iter().map(condition).collect(),
        ..Default::default()
    });
    enactment
}

fn of_another_policy(mut enactment: Enactment) -> Enactment {
    let labels = enactment.metadata.labels.as_mut().expect("labels");
    labels.insert(Label::Policy.as_str().to_owned(), "policy2".to_owned());
    enactment
}

fn of_an_old_generation(mut enactment: Enactment) -> Enactment {
    let status = enactment.status.as_mut().expect("a status");
    status.policy_generation = Some(GENERATION - 1);
    enactment
}

/// One line for each condition.
fn told(
    policy: &NodeNetworkConfigurationPolicy,
    hosts: &[Host],
    enactments: &[Enactment],
) -> Vec<String> {
    let status = status(policy, hosts, enactments, at(9)).expect("a status to write");
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
    elsewhere.spec.node_selector = BTreeMap::from([("foo".to_owned(), "bar".to_owned())]);
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
    four[3].ready = false;
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
    let mut bare = Enactment::default();
    bare.metadata.name = Some("node1.policy1".to_owned());
    assert_eq!(count(&policy(), &hosts, &[bare]).available, 0);
}

#[test]
fn nothing_is_written_where_only_the_time_differs() {
    let (hosts, all) = (hosts(1), [enactment(1, &[Available])]);
    let mut policy = policy();
    let first = status(&policy, &hosts, &all, at(1)).expect("a status");
    assert_eq!(first.observed_generation, Some(GENERATION));
    policy.status = Some(first.clone());
    assert_eq!(status(&policy, &hosts, &all, at(2)), None);
    // A count the original left goes once every node is configured.
    let mut counted = first.clone();
    counted.unavailable_node_count_map.insert("3".to_owned(), 1);
    policy.status = Some(counted);
    let after = status(&policy, &hosts, &all, at(3)).expect("a status");
    assert!(after.unavailable_node_count_map.is_empty());
    let changed = status(&policy, &hosts, &[enactment(1, &[Failing])], at(4)).expect("a status");
    let time = |conditions: &[HostCondition], at: usize| {
        let time = conditions[at].last_transition_time.clone();
        time.expect("a time").0.as_second()
    };
    assert_eq!(time(&changed.conditions, 1), 4, "Degraded turned");
    assert_eq!(time(&changed.conditions, 3), 1, "Ignored did not");
}
