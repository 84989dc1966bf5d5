//! The webhook's authority replaced again and again, while policies are written without a pause.

use super::wire::{REVIEW, TIMESTAMP};
use super::{Hosts, INTERMEDIATE, Replica, is_soak};
use crate::world::PATIENCE;
use keelson_api::host::{CA_SECRET, DEFAULT_NAMESPACE, WEBHOOK};
use keelson_testbed::until;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const ROTATIONS: usize = 5;
const WRITERS: usize = 3;
/// Counts calls that were given up and admitted as they were.
const FAILED_OPEN: &str = "apiserver_admission_webhook_fail_open_count";

/// How often the API server has gone on without the webhook.
fn failed_open(hosts: &Hosts) -> f64 {
    let page = hosts.world.kubectl.run(&["get", "--raw", "/metrics"]);
    let page = page.expect("the API server's own metrics");
    let counts = page.lines().filter(|line| line.starts_with(FAILED_OPEN));
    let values = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

/// Writes policies until it is told to stop; each carries the mutation, and beside each a review is
/// had from every webhook on a new connection, by who trusts what the API server trusts at that moment.
async fn write(hosts: Arc<Hosts>, webhooks: Vec<Replica>, stop: Arc<AtomicBool>) -> usize {
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let wire = hosts.trusted().await.expect("a bundle");
        assert_eq!(
            hosts.mutates("rotation").await,
            Ok(true),
            "policy {written}"
        );
        for webhook in &webhooks {
            let said = wire.ask(webhook, TIMESTAMP, &[], REVIEW);
            let (status, said) = said.expect("whoever is trusted answers");
            assert!(
                status == 200 && said.contains("\"patch\""),
                "{status}: {said}"
            );
        }
        written += 1;
    }
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn through_five_rotations_under_load_every_policy_is_mutated_and_no_call_fails_open() {
    if !is_soak("five rotations of the webhook's authority") {
        return;
    }
    let hosts = Arc::new(Hosts::enter().await);
    hosts.nmstate(json!({ "selfSignConfiguration": { "caOverlapInterval": "1s" } }));
    let replicas = hosts.replicas().await.expect("replicas");
    let mut webhooks = replicas.clone();
    webhooks.retain(|it| it.workload == WEBHOOK);
    let before = failed_open(&hosts);
    let stop = Arc::new(AtomicBool::default());
    let writers = (0..WRITERS).map(|_| {
        let (hosts, webhooks, stop) = (hosts.clone(), webhooks.clone(), stop.clone());
        tokio::spawn(write(hosts, webhooks, stop))
    });
    let writers: Vec<_> = writers.collect();

    for rotation in 1..=ROTATIONS {
        let began = Instant::now();
        let old = hosts.trusted().await.expect("a bundle");
        let place = ["--namespace", DEFAULT_NAMESPACE, "delete", "secret"];
        let lost = hosts
            .world
            .kubectl
            .run(&[&place[..], &[CA_SECRET]].concat());
        lost.expect("an authority that is lost");
        let alone = until("another authority, alone", PATIENCE, async || {
            let now = hosts.trusted().await?;
            let roots = now.roots();
            match roots.len() == 1 && roots != old.roots() {
                true => Ok(now),
                false => Err(format!("{} roots", roots.len())),
            }
        });
        let alone = alone.await.expect("another authority");
        for replica in &replicas {
            let sessions = alone.sessions(replica);
            assert_eq!(sessions, Ok(INTERMEDIATE), "rotation {rotation}");
        }
        println!("rotation {rotation}: {:.1?}", began.elapsed());
        assert!(
            writers.iter().all(|it| !it.is_finished()),
            "somebody stopped to write"
        );
    }
    stop.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.expect("a writer");
    }
    println!("{written} policies, each mutated");
    assert_eq!(failed_open(&hosts), before, "calls that failed open");
    let now = hosts.replicas().await.expect("replicas");
    let uids = |of: &[Replica]| of.iter().map(|it| it.uid.clone()).collect::<Vec<_>>();
    assert_eq!(uids(&now), uids(&replicas), "a certificate restarts nobody");
    let all = [
        "delete",
        "nodenetworkconfigurationpolicies",
        "--all",
        "--wait=false",
    ];
    hosts.world.kubectl.run(&all).expect("no policies");
}
