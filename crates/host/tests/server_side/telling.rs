//! Telling what became of policies, through outages, kills and deletions.

use crate::common::program::SOON;
use crate::world::{World, report, unique};
use keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus as Status;
use keelson_host::handler::enactment::{Failure, Standing, is_available, is_progressing};
use keelson_testbed::faults::{Fault, On, Verb};
use keelson_testbed::until;
use kube::api::PostParams;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::timeout;

const ENACTMENTS: &str = "nodenetworkconfigurationenactments";

/// Told within this of the server's return.
const TOLD: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_report_makes_an_enactment_that_belongs_to_the_node_and_the_same_again_is_not_written() {
    let world = World::new("told").await;
    let host = world.host().await;
    let policy = world.policy(&unique("policy")).await;
    host.put(&policy, &Standing::Configured);
    host.all_told().await;
    let made = world.enactments().get(&host.enactment(&policy)).await;
    let made = made.expect("an enactment");
    let labels = made.metadata.labels.expect("labels");
    let label = |key: &str| labels.get(key).map(String::as_str);
    assert_eq!(label("nmstate.io/policy"), Some(policy.name.as_str()));
    assert_eq!(label("nmstate.io/node"), Some(host.node.as_str()));
    assert_eq!(label("app.kubernetes.io/part-of"), Some("a-test"));
    let owners = made.metadata.owner_references.expect("owners");
    let node = host.server.this_node().expect("a node");
    let owner = (owners[0].kind.as_str(), &owners[0].name, &owners[0].uid);
    assert_eq!(owner, ("Node", &host.node, &node.uid));
    let status = made.status.expect("a status");
    assert_eq!(status.policy_generation, Some(policy.generation));
    assert!(is_available(&status.conditions), "{status:?}");

    assert_eq!(world.writes(ENACTMENTS).len(), 2, "it and its status");
    // The same again, by us and by who comes after us.
    host.put(&policy, &Standing::Configured);
    let node = host.node.clone();
    let folder = host.kill().await;
    std::fs::remove_dir_all(folder.path("outbox")).expect("a folder");
    let host = world.host_in(&node, folder);
    host.put(&policy, &Standing::Configured);
    host.all_told().await;
    assert_eq!(
        world.writes(ENACTMENTS).len(),
        2,
        "{:?}",
        world.faults.writes()
    );
}

#[tokio::test]
async fn what_was_reported_in_an_outage_is_told_once_soon_after_it_by_who_starts_next() {
    let world = World::new("outage").await;
    let host = world.host().await;
    host.connected().await;
    let policy = world.policy(&unique("policy")).await;
    let outage = world.faults.refuse();
    host.put(&policy, &Standing::Progressing);
    host.put(&policy, &Standing::Configured);
    let node = host.node.clone();
    let folder = host.kill().await;
    let host = world.host_in(&node, folder);
    assert_eq!(host.server.outbox().due(), 1);
    assert!(host.server.policies().is_none(), "nothing is known yet");
    host.comes_to("a named trouble", |it| it.trouble().is_some())
        .await;
    outage.clear();
    let back = Instant::now();
    host.all_told().await;
    let took = back.elapsed();
    println!("told {took:?} after the server's return");
    assert!(took <= TOLD, "{took:?}");
    let status = host.says(&world, &policy).await.expect("an enactment");
    assert!(is_available(&status.conditions), "{status:?}");
    let writes = world.writes(ENACTMENTS);
    assert_eq!(writes.len(), 2, "{writes:?}");
    assert_eq!(host.server.trouble(), None);
}

#[tokio::test]
async fn who_waits_for_what_is_told_of_a_policy_waits_until_the_server_has_it() {
    let world = World::new("caught").await;
    let host = world.host().await;
    host.connected().await;
    let policy = world.policy(&unique("policy")).await;
    let outbox = host.server.outbox();
    outbox.caught_up(&policy.name).await;
    let outage = world.faults.refuse();
    host.put(&policy, &Standing::Configured);
    let short = Duration::from_millis(300);
    let early = timeout(short, outbox.caught_up(&policy.name)).await;
    assert!(early.is_err(), "nobody was told");
    timeout(short, outbox.caught_up("another"))
        .await
        .expect("no wait for another policy");
    outage.clear();
    timeout(SOON, outbox.caught_up(&policy.name))
        .await
        .expect("a report that is told");
    assert!(host.says(&world, &policy).await.is_some());
}

#[tokio::test]
async fn a_connected_handler_tells_soon_after_a_black_hole() {
    let world = World::new("hole").await;
    let host = world.host().await;
    host.connected().await;
    let policy = world.policy(&unique("policy")).await;
    let outage = world.faults.black_hole();
    host.put(&policy, &Standing::Configured);
    host.comes_to("a named trouble", |it| it.trouble().is_some())
        .await;
    outage.clear();
    let back = Instant::now();
    host.all_told().await;
    let took = back.elapsed();
    println!("told {took:?} after a black hole");
    assert!(took <= TOLD, "{took:?}");
    assert!(host.says(&world, &policy).await.is_some());
}

/// Nothing says that they do: no end, no reset.
#[tokio::test]
async fn a_report_finds_its_way_past_connections_that_lead_nowhere() {
    let world = World::new("past").await;
    let host = world.host().await;
    let policy = world.policy(&unique("policy")).await;
    host.put(&policy, &Standing::Progressing);
    host.all_told().await;
    // Calls at once have connections each.
    let call = async || host.server.release("nobody's").await.expect("an answer");
    tokio::join!(call(), call(), call());
    let _frozen = world.faults.freeze();
    let began = Instant::now();
    host.put(&policy, &Standing::Configured);
    host.all_told().await;
    let took = began.elapsed();
    println!("told {took:?} after the connections froze");
    assert!(took <= TOLD, "{took:?}");
}

#[tokio::test]
async fn a_deleted_enactment_comes_back_only_with_another_generation_or_when_it_is_asked_for() {
    let world = World::new("deleted").await;
    let host = world.host().await;
    let policy = world.policy(&unique("policy")).await;
    host.put(&policy, &Standing::Progressing);
    host.all_told().await;
    world.delete_enactment(&host.enactment(&policy)).await;
    host.put(&policy, &Standing::Configured);
    host.all_told().await;
    assert_eq!(host.says(&world, &policy).await, None);

    // Not after a restart either.
    let node = host.node.clone();
    let folder = host.kill().await;
    let host = world.host_in(&node, folder);
    let failure = Standing::Failed(Failure::Refused("no".to_owned()));
    host.put(&policy, &failure);
    host.all_told().await;
    assert_eq!(host.says(&world, &policy).await, None);

    host.server.outbox().forget(&policy.name).expect("a disk");
    host.put(&policy, &failure);
    host.all_told().await;
    assert!(host.says(&world, &policy).await.is_some());

    world.delete_enactment(&host.enactment(&policy)).await;
    let edit = json!({"spec": {"desiredState": {"dns-resolver": {}}}});
    let edited = world.edit(&policy.name, edit).await;
    assert!(edited.generation > policy.generation);
    host.put(&edited, &Standing::Progressing);
    host.all_told().await;
    let status = host.says(&world, &policy).await.expect("an enactment");
    assert!(is_progressing(&status.conditions), "{status:?}");
}

#[tokio::test]
async fn a_report_about_a_policy_that_is_gone_or_was_made_anew_is_dropped() {
    let world = World::new("anew").await;
    let host = world.host().await;
    host.connected().await;
    let (gone, anew) = (unique("policy"), unique("policy"));
    let gone = world.policy(&gone).await;
    let before = world.policy(&anew).await;
    let outage = world.faults.refuse();
    host.put(&gone, &Standing::Configured);
    host.put(&before, &Standing::Configured);
    world.delete_policy(&gone.name).await;
    world.delete_policy(&anew).await;
    let after = world.policy(&anew).await;
    assert_ne!(before.uid, after.uid);
    outage.clear();
    host.all_told().await;
    assert_eq!(host.says(&world, &gone).await, None);
    assert_eq!(host.says(&world, &before).await, None);
    assert_eq!(world.writes(ENACTMENTS), []);
    let forgotten = host.server.outbox();
    assert_eq!(forgotten.last(&gone.name, &gone.uid), None);

    // What the new policy's enactment says is its own, whatever generation the old one had got to.
    host.put(&after, &Standing::Progressing);
    host.all_told().await;
    assert!(host.says(&world, &after).await.is_some());
}

#[tokio::test]
async fn an_old_report_is_not_told_over_a_newer_generation() {
    let world = World::new("older").await;
    let host = world.host().await;
    let first = world.policy(&unique("policy")).await;
    let edit = json!({"spec": {"desiredState": {"dns-resolver": {}}}});
    let second = world.edit(&first.name, edit).await;
    host.put(&second, &Standing::Configured);
    host.put(&first, &Standing::Progressing);
    host.all_told().await;
    // Nor by one that has forgotten.
    let node = host.node.clone();
    let folder = host.kill().await;
    std::fs::remove_dir_all(folder.path("outbox")).expect("a folder");
    let host = world.host_in(&node, folder);
    host.put(&first, &Standing::Progressing);
    host.all_told().await;
    let status = host.says(&world, &first).await.expect("an enactment");
    assert_eq!(status.policy_generation, Some(second.generation));
    assert!(is_available(&status.conditions), "{status:?}");
}

#[tokio::test]
async fn a_new_status_takes_the_place_of_the_whole_old_one_and_keeps_its_times_of_transition() {
    let world = World::new("whole").await;
    let host = world.host().await;
    let policy = world.policy(&unique("policy")).await;
    let name = host.enactment(&policy);
    // What the original's handler left.
    let left = json!({"apiVersion": "nmstate.io/v1beta1", "kind": "NodeNetworkConfigurationEnactment",
        "metadata": {"name": name, "labels": {"nmstate.io/node": host.node}}});
    let left = serde_json::from_value(left).expect("an enactment");
    let how = PostParams::default();
    let mut left = world
        .enactments()
        .create(&how, &left)
        .await
        .expect("an enactment");
    let old = "2020-01-01T00:00:00Z";
    let status = json!({
        "policyGeneration": policy.generation,
        "desiredState": {"interfaces": [], "routes": {"config": []}},
        "retryCount": {"7": 3},
        "conditions": [
            {"type": "Available", "status": "True", "lastTransitionTime": old, "lastHeartbeatTime": old},
            {"type": "Failing", "status": "True", "lastTransitionTime": old, "lastHeartbeatTime": old},
        ],
    });
    left.status = serde_json::from_value(status).expect("a status");
    let enactments = world.enactments();
    let written = enactments.replace_status(&name, &how, &left);
    written.await.expect("a status");

    let mut report = report(&policy, &Standing::Configured);
    let desired = json!({"interfaces": [{"name": "eth0"}]});
    report.status.desired_state = desired.as_object().cloned();
    host.server.outbox().put(report.clone()).expect("a disk");
    host.all_told().await;
    let status = host.says(&world, &policy).await.expect("an enactment");
    let since = |status: &Status, kind: &str| {
        let mut all = status.conditions.iter();
        let found = all.find(|it| it.type_ == kind).expect("a condition");
        found
            .last_transition_time
            .as_ref()
            .expect("a time")
            .0
            .to_string()
    };
    assert_eq!(since(&status, "Available"), old);
    assert_ne!(since(&status, "Failing"), old);
    assert_eq!(status.desired_state, report.status.desired_state);
    assert!(status.retry_count.is_empty(), "{status:?}");
}

#[tokio::test]
async fn a_withdrawn_enactment_is_deleted_even_after_a_restart_and_one_that_is_not_there_costs_nothing()
 {
    let world = World::new("withdrawn").await;
    let host = world.host().await;
    let policy = world.policy(&unique("policy")).await;
    host.put(&policy, &Standing::Configured);
    host.all_told().await;
    let outage = world.faults.refuse();
    host.server.withdraw(&policy.name).expect("a disk");
    let node = host.node.clone();
    let folder = host.kill().await;
    let host = world.host_in(&node, folder);
    world.faults.forget();
    outage.clear();
    host.all_told().await;
    assert_eq!(host.says(&world, &policy).await, None);
    host.server.withdraw(&policy.name).expect("a disk");
    host.all_told().await;
    let writes = world.writes(ENACTMENTS);
    assert_eq!(writes.len(), 1, "{writes:?}");
    // The policy selects the host again.
    host.put(&policy, &Standing::Progressing);
    host.all_told().await;
    assert!(host.says(&world, &policy).await.is_some());
}

#[tokio::test]
async fn whatever_answer_is_lost_and_whoever_writes_first_it_is_told_in_the_end() {
    let world = World::new("lost").await;
    let host = world.host().await;
    host.connected().await;
    let all = |verb| On::verb(verb).resource(ENACTMENTS);
    let spoilt = [
        world
            .faults
            .inject(Fault::LostAnswer, all(Verb::Create).next(1)),
        world
            .faults
            .inject(Fault::Conflict, all(Verb::Update).nth(1)),
        world
            .faults
            .inject(Fault::LostAnswer, all(Verb::Update).nth(2)),
        world
            .faults
            .inject(Fault::Unavailable, all(Verb::Get).nth(2)),
    ];
    let policy = world.policy(&unique("policy")).await;
    host.put(&policy, &Standing::Configured);
    host.all_told().await;
    for rule in spoilt {
        assert_eq!(rule.hits(), 1);
    }
    let status = host.says(&world, &policy).await.expect("an enactment");
    assert!(is_available(&status.conditions), "{status:?}");
    assert_eq!(host.server.trouble(), None);
}

#[tokio::test]
async fn without_its_node_nothing_is_made_and_that_is_said() {
    let world = World::new("no-node").await;
    let node = unique("node");
    let host = world.host_named(&node);
    let policy = world.policy(&unique("policy")).await;
    host.put(&policy, &Standing::Configured);
    let named = format!("Node {node} is not there yet");
    host.comes_to("a named trouble", |it| {
        it.trouble().is_some_and(|it| it.contains(&named))
    })
    .await;
    assert_eq!(world.writes(ENACTMENTS), []);
    world.node(&node, json!({}), true).await;
    host.all_told().await;
    assert!(host.says(&world, &policy).await.is_some());
}

#[tokio::test]
async fn what_was_told_of_a_policy_is_forgotten_once_the_policy_is_gone() {
    let world = World::new("forgotten").await;
    let host = world.host().await;
    let (gone, stays) = (unique("policy"), unique("policy"));
    let (gone, stays) = (world.policy(&gone).await, world.policy(&stays).await);
    host.put(&gone, &Standing::Configured);
    host.all_told().await;
    world.delete_policy(&gone.name).await;
    host.comes_to("a policy less", |it| {
        let policies = it.policies().unwrap_or_default();
        !policies
            .iter()
            .any(|it| it.object.metadata.uid.as_ref() == Some(&gone.uid))
    })
    .await;
    host.put(&stays, &Standing::Configured);
    let outbox = host.server.outbox();
    until("it is forgotten", SOON, async || {
        match outbox.last(&gone.name, &gone.uid) {
            None => Ok(()),
            Some(last) => Err(format!("{last:?}")),
        }
    })
    .await
    .expect("it is forgotten");
    assert!(outbox.last(&stays.name, &stays.uid).is_some());
}
