//! A change of the cluster's TLS profile on the wire of every replica: by swap alone, and by rollout
//! alone.

use super::{Hosts, INTERMEDIATE, MODERN, PROMISED, Replica};
use keelson_api::host::{DEFAULT_NAMESPACE, METRICS, WEBHOOK};
use keelson_testbed::until;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Runs kubectl on both workloads.
fn on_both(hosts: &Hosts, words: &[&str], more: &[&str]) {
    for workload in [WEBHOOK, METRICS] {
        let workload = format!("deployment/{workload}");
        let place = ["--namespace", DEFAULT_NAMESPACE];
        let words = [&place[..], words, &[&workload], more].concat();
        hosts.world.kubectl.run(&words).expect("a change by hand");
    }
}

/// Rollouts that are paused, and go on however the test ends.
struct Paused<'a>(&'a Hosts);

impl<'a> Paused<'a> {
    fn begin(hosts: &'a Hosts) -> Self {
        on_both(hosts, &["rollout", "pause"], &[]);
        Self(hosts)
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        on_both(self.0, &["rollout", "resume"], &[]);
    }
}

/// Pods that read their files once, until the test ends.
struct Rigid<'a>(&'a Hosts);

impl<'a> Rigid<'a> {
    fn begin(hosts: &'a Hosts) -> Self {
        on_both(hosts, &["set", "env"], &["TLS_RELOAD_SECONDS=0"]);
        Self(hosts)
    }
}

impl Drop for Rigid<'_> {
    fn drop(&mut self) {
        on_both(self.0, &["set", "env"], &["TLS_RELOAD_SECONDS-"]);
    }
}

fn uids(replicas: &[Replica]) -> BTreeSet<&str> {
    replicas.iter().map(|it| it.uid.as_str()).collect()
}

/// Changes the profile, and waits until every replica serves it; says how long that took.
async fn changes(hosts: &Hosts) -> (Vec<Replica>, Duration) {
    hosts.profile("Modern");
    let began = Instant::now();
    let arrived = until("Modern on every wire", PROMISED, async || {
        hosts.serves(MODERN).await
    });
    (arrived.await.expect("Modern in time"), began.elapsed())
}

#[tokio::test]
async fn a_profile_is_on_every_wire_in_time_by_swap_alone() {
    let hosts = Hosts::enter().await;
    let before = hosts.replicas().await.expect("replicas");
    let paused = Paused::begin(&hosts);
    let (after, took) = changes(&hosts).await;
    println!("by swap alone: on every wire after {took:.1?}");
    assert_eq!(uids(&after), uids(&before), "the same pods");
    for replica in &after {
        let told = hosts.told(replica).expect("a report");
        assert_ne!(
            told["loaded"], told["stamped"],
            "made for the profile before"
        );
    }
    drop(paused);
    hosts.settled(MODERN).await;
}

#[tokio::test]
async fn a_profile_is_on_every_wire_in_time_by_rollout_alone() {
    let hosts = Hosts::enter().await;
    let _rigid = Rigid::begin(&hosts);
    let before = hosts.settled(INTERMEDIATE).await;
    let (after, took) = changes(&hosts).await;
    println!("by rollout alone: on every wire after {took:.1?}");
    let (before, after) = (uids(&before), uids(&after));
    assert!(before.is_disjoint(&after), "{before:?}, then {after:?}");
}
