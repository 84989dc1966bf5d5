//! Webhook and metrics where their containers end while there is no API server.

use super::wire::{REVIEW, TIMESTAMP};
use super::{Hosts, INTERMEDIATE, MODERN, Replica};
use crate::outages::{Away, NoOperator};
use crate::world::PATIENCE;
use keelson_api::host::{DEFAULT_NAMESPACE, METRICS, WEBHOOK};
use keelson_testbed::{Container, until};
use nix::sys::signal::Signal;
use serde_json::json;
use std::time::Instant;

/// The usual scraper, as the Prometheus operator's own manifests have it.
const SCRAPER: &str = "prometheus-k8s";
const MONITORING: &str = "monitoring";

/// A token of an account in the scraper's namespace.
fn token(hosts: &Hosts, account: &str) -> String {
    let object =
        |kind: &str, metadata| json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata });
    let objects = [
        object("Namespace", json!({ "name": MONITORING })),
        object(
            "ServiceAccount",
            json!({ "name": account, "namespace": MONITORING }),
        ),
    ];
    hosts.world.kubectl.apply(&objects).expect("an account");
    let words = ["--namespace", MONITORING, "create", "token", account];
    let token = hosts.world.kubectl.run(&words).expect("a token");
    format!("Bearer {}", token.trim())
}

/// One of the replicas.
fn the<'a>(replicas: &'a [Replica], workload: &str) -> &'a Replica {
    let found = replicas.iter().find(|it| it.workload == workload);
    found.expect("a replica")
}

/// The container of a replica, which has the name of its workload.
fn container(hosts: &Hosts, replica: &Replica) -> Result<Container, String> {
    let cluster = &hosts.world.cluster;
    let found = cluster.container(DEFAULT_NAMESPACE, &replica.name, replica.workload);
    found.map_err(|error| error.to_string())
}

/// Kills the containers of all replicas and waits until the kubelet has started others.
async fn killed(hosts: &Hosts, replicas: &[Replica]) {
    for replica in replicas {
        let before = container(hosts, replica).expect("a container");
        let killed = hosts.world.cluster.signal(&before, Signal::SIGKILL);
        killed.expect("a signal");
        let again = until("another container", PATIENCE, async || {
            let now = container(hosts, replica)?;
            (now.id != before.id)
                .then_some(())
                .ok_or("the old one".to_owned())
        });
        again.await.expect("another container");
    }
}

#[tokio::test]
async fn killed_with_no_api_server_they_serve_again_and_a_profile_written_meanwhile_arrives_after()
{
    let hosts = Hosts::enter_alone().await;
    let world = hosts.world;
    let replicas = hosts.settled(INTERMEDIATE).await;
    let (webhook, metrics) = (the(&replicas, WEBHOOK), the(&replicas, METRICS));
    assert_eq!(hosts.mutates("outage").await, Ok(true));
    let (scraper, stranger) = (token(&hosts, SCRAPER), token(&hosts, "stranger"));
    let wire = hosts.trusted().await.expect("a bundle");
    let read = |headers: &[(&str, &str)]| wire.ask(metrics, "GET /metrics", headers, "");
    let status = |token: &str| read(&[("Authorization", token)]).map(|it| it.0);
    assert_eq!(read(&[]).map(|it| it.0), Ok(401));
    assert_eq!(status(&stranger), Ok(403));
    // It counts with the rights of its own account.
    until("policies that are counted", PATIENCE, async || {
        let (status, page) = read(&[("Authorization", &scraper)])?;
        let synced = "keelson_host_source_synced{source=\"policies\"} 1";
        match status == 200 && page.contains(synced) {
            true => Ok(()),
            false => Err(format!("{status}: {page}")),
        }
    })
    .await
    .expect("policies that are counted");

    // With nobody there to hand it on: to webhook and metrics it is written during the outage.
    let no_operator = NoOperator::begin(world);
    hosts.profile("Modern");
    let away = Away::stop(&world.cluster, "kube-apiserver").await;
    let ended = Instant::now();
    killed(&hosts, &replicas).await;
    until("a webhook that serves", PATIENCE, async || {
        match wire.ask(webhook, TIMESTAMP, &[], REVIEW)? {
            (200, said) if said.contains("\"patch\"") => Ok(()),
            said => Err(format!("{said:?}")),
        }
    })
    .await
    .expect("a webhook that serves");
    until("metrics that answer", PATIENCE, async || {
        // Who is nobody is told so; whom nobody can vouch for now has to come again.
        match (read(&[])?.0, status(&scraper)?) {
            (401, 503) => Ok(()),
            said => Err(format!("{said:?}")),
        }
    })
    .await
    .expect("metrics that answer");
    println!(
        "both were killed and serve again after {:.1?}",
        ended.elapsed()
    );
    for replica in &replicas {
        assert_eq!(wire.sessions(replica), Ok(INTERMEDIATE), "{}", replica.name);
        let told = hosts.told(replica).expect("a report");
        assert_eq!(told["loaded"], told["stamped"], "{}", replica.name);
    }
    drop(away);
    let back = Instant::now();
    drop(no_operator);

    let replicas = hosts.settled(MODERN).await;
    println!(
        "the profile has arrived {:.1?} after the return",
        back.elapsed()
    );
    assert_eq!(hosts.mutates("outage").await, Ok(true));
    let metrics = the(&replicas, METRICS);
    let token = [("Authorization", scraper.as_str())];
    let wire = hosts.trusted().await.expect("a bundle");
    let read = wire.ask(metrics, "GET /metrics", &token, "");
    assert_eq!(read.map(|it| it.0), Ok(200));
}
