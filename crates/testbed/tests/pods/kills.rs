//! The operator's process killed at random moments, while all nodes of a chain roll.

use crate::mark::Pods;
use crate::world::{Chain, NEW, PATIENCE, SEID, world};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::names::Lease as LeaseName;
use keelson_testbed::{Container, until};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const NODES: [&str; 3] = ["validator", "full-0", "full-1"];
/// How often the operator is killed during each roll, 20 times in all.
const KILLS: [usize; 3] = [7, 7, 6];
/// Some die while they start, most while they work.
const LIVES: Duration = Duration::from_millis(2500);
const PLACE: &str = "keelson-system";

/// The next of a row of numbers that look random.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The operator's container, once another than the last one runs.
async fn operator(chain: &Chain, last: Option<&Container>) -> Container {
    let cluster = &chain.world.cluster;
    let pods = Api::<Pod>::namespaced(cluster.client(), PLACE);
    let started = until("an operator that runs", PATIENCE, async || {
        let listed = pods.list(&ListParams::default()).await;
        let listed = listed.map_err(|error| error.to_string())?;
        let names = listed.items.into_iter().filter_map(|it| it.metadata.name);
        let found = names.map(|pod| cluster.container(PLACE, &pod, "operator"));
        let running = found.filter_map(Result::ok).next().ok_or("there is none")?;
        match last.is_some_and(|last| last.id == running.id) {
            true => Err("the old one".to_owned()),
            false => Ok(running),
        }
    });
    started.await.expect("an operator")
}

/// The lease of whoever was killed would be waited for; that it is, is tested elsewhere.
async fn forget_lease(chain: &Chain) {
    let leases = Api::<Lease>::namespaced(chain.world.cluster.client(), PLACE);
    let name = LeaseName::Sei.to_string();
    // One that was killed early has none.
    let _ = leases.delete(&name, &DeleteParams::default()).await;
}

/// Kills operators, one after the other, each after it has lived for a while.
async fn kill(chain: &Chain, times: usize, random: &mut u64) {
    let mut last = None;
    for _ in 0..times {
        let running = operator(chain, last.as_ref()).await;
        let life = Duration::from_millis(draw(random) % LIVES.as_millis() as u64);
        tokio::time::sleep(life).await;
        let killed = chain.world.cluster.signal(&running, Signal::SIGKILL);
        killed.expect("a signal");
        forget_lease(chain).await;
        println!("operator {} killed after {life:.1?}", running.process.pid);
        last = Some(running);
    }
}

/// All nodes of the chain with this image, applied together.
fn roll(chain: &Chain, image: &str) {
    let full = |name: &str| chain.node(name, json!({ "fullNode": {} }));
    let mut nodes = [chain.validator(), full("full-0"), full("full-1")];
    for node in &mut nodes {
        node["spec"]["image"] = Value::from(image);
    }
    chain.world.kubectl.apply(&nodes).expect("nodes");
}

async fn settled(chain: &Chain, image: &str) {
    for node in NODES {
        let what = format!("{image}, with nothing left to do");
        let seen = chain.until(node, &what, |seen| {
            let status = seen.status.as_ref();
            status.is_some_and(|it| it.current_image.as_deref() == Some(image) && it.plan.is_none())
        });
        seen.await;
    }
}

#[tokio::test]
async fn an_operator_that_is_killed_at_random_moments_cycles_every_pod_once_per_roll() {
    let chain = world().await.chain_alone("kills").await;
    roll(&chain, SEID);
    for node in NODES {
        chain.running(node).await;
    }
    let seed = u64::from(std::process::id()) << 20 | 0x9e37;
    println!("seed {seed}");
    let mut random = seed;
    let pods = Pods::watch(&chain);
    let mut expected = NODES.len();
    let watched = until("the pods there are", PATIENCE, async || {
        let seen = pods.seen().len();
        (seen == expected).then_some(()).ok_or(seen.to_string())
    });
    watched.await.expect("a watch");
    for (kills, image) in KILLS.into_iter().zip([NEW, SEID, NEW]) {
        let begun = Instant::now();
        let before = chain.height("validator").await.expect("a height");
        roll(&chain, image);
        kill(&chain, kills, &mut random).await;
        settled(&chain, image).await;
        expected += NODES.len();
        let seen = pods.seen();
        assert_eq!(seen.len(), expected, "{image}: {seen:?}");
        for node in NODES {
            let height = chain.makes_blocks(node, 2).await;
            assert!(height > before, "{node}: {height} after {before}");
        }
        println!("all three have {image} after {:.1?}", begun.elapsed());
    }
}
