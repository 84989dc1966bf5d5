//! Ten hosts and one policy: how many are under change at once, and what becomes of the rest when some
//! of them fail or are lost.

use crate::common::homes::SOON;
use crate::member::{Member, Told, holds, message};
use crate::states::{bridge, nowhere, way_out_under};
use crate::world::World;
use futures::future::join_all;
use jiff::Timestamp;
use keelson_api::host_condition::EnactmentCondition::{Aborted, Available, Failing, Pending};
use keelson_api::names::Annotation;
use keelson_host::handler::journal::{End, Phase};
use keelson_host::handler::points::{Act, Point};
use keelson_testbed::{Process, until};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const HOSTS: usize = 10;
const AT_ONCE: usize = 2;

/// When a host was under change: from the beginning its journal tells to the last word in it.
fn under_change(host: &Member) -> (Timestamp, Timestamp) {
    let entry = host.journal().expect("a change");
    let files = std::fs::read_dir(host.path("state/journal")).expect("a folder");
    let times = files.filter_map(|it| it.ok()?.metadata().ok()?.modified().ok());
    let last = times.max().expect("a file");
    let last = Timestamp::try_from(last).expect("a time");
    (entry.began, last)
}

/// How many of these times overlap at most.
fn at_once(times: &[(Timestamp, Timestamp)]) -> usize {
    let begins = times.iter().map(|(begin, _)| *begin);
    let at = |moment: Timestamp| {
        let during = times
            .iter()
            .filter(|(begin, end)| *begin <= moment && moment < *end);
        during.count()
    };
    begins.map(at).max().unwrap_or(0)
}

/// Counts hosts with a checkpoint, again and again until it is told to end; gives the most there were.
fn count_checkpoints(
    hosts: &Arc<Vec<Member>>,
    over: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<usize> {
    let (hosts, over) = (Arc::clone(hosts), Arc::clone(over));
    std::thread::spawn(move || {
        let mut most = 0;
        while !over.load(Ordering::Relaxed) {
            // One after the other, so that who is counted first may be done when the last is: more
            // than are at once are never seen.
            let first: Vec<bool> = hosts.iter().map(has_checkpoint).collect();
            let again = hosts
                .iter()
                .zip(first)
                .filter(|(host, had)| *had && has_checkpoint(host));
            most = most.max(again.count());
        }
        most
    })
}

fn has_checkpoint(host: &Member) -> bool {
    host.checkpoints().contains("/Checkpoint/")
}

fn start_all(hosts: &[Member], told: Told) -> Vec<Process> {
    hosts.iter().map(|host| host.start(told)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_hosts_put_their_way_out_under_a_bridge_never_more_than_two_at_once() {
    let world = World::new("ten").await;
    let hosts = Arc::new(world.hosts(HOSTS).await);
    let _handlers = start_all(&hosts, Told::default());
    join_all(hosts.iter().map(|it| it.ready())).await;
    let over = Arc::new(AtomicBool::new(false));
    let counting = count_checkpoints(&hosts, &over);
    let mut spec = way_out_under("br1");
    spec["maxUnavailable"] = json!(AT_ONCE);
    let policy = world.policy_of("ten", spec).await;
    let begun = std::time::Instant::now();
    join_all(hosts.iter().map(|it| it.comes_to(&policy, Available))).await;
    println!(
        "ten hosts, two at once: {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    over.store(true, Ordering::Relaxed);
    let most = counting.join().expect("a count");
    assert!(most <= AT_ONCE, "{most} hosts had a checkpoint at once");
    let times: Vec<_> = hosts.iter().map(under_change).collect();
    assert_eq!(at_once(&times), AT_ONCE, "{times:#?}");
    for host in &*hosts {
        let entry = host.journal().expect("a change");
        assert_eq!((entry.phase, entry.end), (Phase::Closed, Some(End::Kept)));
        let now = host.snapshot();
        assert_eq!(now.addresses, ["br1 @/24", "lo 127.0.0.1/8"]);
    }
    assert_eq!(world.claims().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cuts_every_host_cuts_two_of_ten_and_the_rest_stop() {
    let world = World::new("cut").await;
    let hosts = world.hosts(HOSTS).await;
    let before: Vec<_> = hosts.iter().map(|it| it.snapshot()).collect();
    let _handlers = start_all(
        &hosts,
        Told {
            probes: 3,
            attempts: 2,
            ..Told::default()
        },
    );
    join_all(hosts.iter().map(|it| it.ready())).await;
    let spec = json!({"desiredState": nowhere(), "maxUnavailable": AT_ONCE});
    let policy = world.policy_of("nowhere", spec).await;
    let ended = hosts.iter().map(async |host| {
        let what = format!("the end of {policy} on {}", host.node);
        let over = until(&what, SOON * 2, async || {
            match host.enactment(&policy).await {
                Some(status) if is_over(&status) => Ok(status),
                other => Err(format!("{other:?}")),
            }
        });
        over.await
            .unwrap_or_else(|error| panic!("{error}\n{}", host.log(30)))
    });
    let ended = join_all(ended).await;
    let touched: Vec<&Member> = hosts.iter().filter(|it| it.journal().is_some()).collect();
    assert_eq!(touched.len(), AT_ONCE, "these were touched, and no other");
    for (host, status) in hosts.iter().zip(&ended) {
        match host.journal() {
            Some(entry) => {
                assert_eq!((entry.phase, entry.end), (Phase::Closed, Some(End::Undone)));
                assert!(holds(status, Failing), "{status:#?}");
                assert_eq!(status.retry_count.get("1"), Some(&2));
            }
            None => {
                assert!(holds(status, Aborted), "{status:#?}");
                let why = message(status, Aborted);
                for failed in &touched {
                    assert!(
                        why.contains(&format!("it failed on node {}", failed.node)),
                        "{why}"
                    );
                }
            }
        }
    }
    for (host, before) in hosts.iter().zip(&before) {
        let differences = host.snapshot().differences(before);
        assert!(differences.is_empty(), "{}: {differences:#?}", host.node);
    }
}

fn is_over(status: &keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus) -> bool {
    keelson_host::handler::enactment::is_finished(&status.conditions)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_come_back_keeps_its_place_until_its_node_is_gone() {
    let world = World::new("lost").await;
    // How long a claim lasts is said by who takes it.
    let short = Told {
        checkpoint: 8,
        probes: 2,
        spare: 0,
        ..Told::default()
    };
    let (first, second) = (world.host().await, world.host().await);
    let spec = json!({"desiredState": bridge("br1", "192.0.2.1"), "maxUnavailable": 1});
    let policy = world.policy_of("lost", spec).await;
    let stop = Some(Point::Before(Act::Probe));
    let victim = first.start(Told { stop, ..short });
    until("the middle of a change", SOON, async || {
        match victim.is_frozen() {
            true => Ok(()),
            false => Err(victim.tail(10)),
        }
    })
    .await
    .expect("a change");
    // In the middle of its change it is cut off, and nobody is there to undo it.
    first.host.black_hole().expect("no way");
    victim.kill().await;
    let _handler = second.start(Told::default());
    second.comes_to(&policy, Pending).await;
    let stopped = second.comes_to(&policy, Aborted).await;
    let why = message(&stopped, Aborted);
    assert!(
        why.contains(&format!("node {} was not heard of again", first.node)),
        "{why}"
    );
    assert!(second.journal().is_none(), "nothing was begun");
    // Who takes the host out of the cluster says that nothing is to be waited for.
    world.delete_node(&first.node).await;
    second.comes_to(&policy, Available).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_failed_and_is_selected_no_more_frees_its_place() {
    let world = World::new("freed").await;
    let told = Told {
        probes: 2,
        ..Told::default()
    };
    let (first, second) = (world.host().await, world.host().await);
    let spec = json!({"desiredState": nowhere(), "maxUnavailable": 1});
    let policy = world.policy_of("freed", spec).await;
    let _first = first.start(told);
    first.comes_to(&policy, Failing).await;
    let _second = second.start(told);
    second.comes_to(&policy, Aborted).await;
    assert!(second.journal().is_none(), "nothing was begun");
    let none = json!({"fleet": null});
    world.label(&first.node, none).await;
    first.is_rid_of(&policy).await;
    second.comes_to(&policy, Failing).await;
    assert!(second.journal().is_some(), "it had its turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_go_back_from_a_deleted_policy_one_after_the_other_too() {
    let world = World::new("back").await;
    let hosts = world.hosts(2).await;
    let [first, second] = &hosts[..] else {
        panic!("two hosts");
    };
    let enacting = first.start(Told::default());
    let waiting = second.start(Told::default());
    let spec = json!({"maxUnavailable": 1, "desiredState": bridge("br1", "192.0.2.1")});
    let goes = json!({Annotation::RevertOnDelete.as_str(): "true"});
    let policy = world.annotated("back", spec, goes).await;
    join_all(hosts.iter().map(|it| it.comes_to(&policy, Available))).await;
    enacting.kill().await;
    let leading_back = first.start(Told {
        stop: Some(Point::Before(Act::Probe)),
        ..Told::default()
    });
    first.ready().await;
    // The other one hears of the end of the policy while this one has its turn.
    waiting.freeze();
    world.delete(&policy).await;
    until(
        "a host on its way back",
        SOON,
        async || match leading_back.is_frozen() {
            true => Ok(()),
            false => Err(first.log(10)),
        },
    )
    .await
    .expect("a host on its way back");
    waiting.thaw();
    until("the other to wait", SOON, async || {
        let waits = format!("the way back waits: for {}", first.node);
        match second.log(50).contains(&waits) {
            true => Ok(()),
            false => Err(second.log(10)),
        }
    })
    .await
    .expect("a host that waits");
    assert!(second.links().contains("br1"), "it has not gone back");
    leading_back.thaw();
    join_all(hosts.iter().map(|it| it.is_rid_of(&policy))).await;
    for host in &hosts {
        assert!(!host.links().contains("br1"), "{}", host.node);
    }
}
