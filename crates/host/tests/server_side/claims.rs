//! Turns: taken by many at once, and freed by what became of those that held them.

use crate::common::program::SOON;
use crate::world::{Host, World, report, unique};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::host::{CLAIMS_CONFIG_MAP, CLAIMS_KEY};
use keelson_host::handler::claims::{Claim, Claims, Fate};
use keelson_host::handler::enactment::{Failure, Standing};
use keelson_host::handler::journal::Policy;
use keelson_host::handler::server::{Place, Trouble, Turn};
use keelson_testbed::faults::{Fault, On, Verb};
use keelson_testbed::until;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const LIFETIME: SignedDuration = SignedDuration::from_secs(60);

/// What a test asks for, in full.
struct Asked {
    policy: Policy,
    selector: BTreeMap<String, String>,
    max_unavailable: IntOrString,
}

impl Asked {
    fn of(policy: &Policy, max_unavailable: IntOrString) -> Self {
        Self {
            policy: policy.clone(),
            selector: BTreeMap::new(),
            max_unavailable,
        }
    }

    fn turn(&self) -> Turn<'_> {
        Turn {
            policy: &self.policy,
            selector: &self.selector,
            max_unavailable: &self.max_unavailable,
            lifetime: LIFETIME,
        }
    }
}

/// A policy nobody made: claims are about uids.
fn policy(generation: i64) -> Policy {
    let name = unique("policy");
    Policy {
        uid: format!("uid-of-{name}"),
        name,
        generation,
    }
}

/// A claim that was to end so many seconds from now.
fn claim(node: &str, policy: &Policy, ends_in: i64) -> Claim {
    let now = Timestamp::now();
    Claim {
        node: node.to_owned(),
        policy: policy.uid.clone(),
        generation: policy.generation,
        since: now - SignedDuration::from_secs(120),
        expires: now + SignedDuration::from_secs(ends_in),
        state: Fate::Held,
    }
}

impl World {
    async fn held(&self, claims: &[Claim]) {
        let claims = Claims {
            claims: claims.to_vec(),
        };
        self.claims_are(&json!(claims).to_string()).await;
    }

    async fn read(&self) -> Claims {
        serde_json::from_str(&self.claims().await).expect("claims")
    }
}

impl Host {
    async fn claim(&self, asked: &Asked) -> Place {
        let asked = self.server.claim(&asked.turn()).await;
        asked.expect("an answer")
    }
}

fn stop(node: &str, fate: Fate) -> Place {
    Place::Stop {
        because: vec![(node.to_owned(), fate)],
    }
}

/// The most claims that any version of the object had, until none are left after some were.
async fn most(world: &World, version: String) -> usize {
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), &world.namespace);
    let how = WatchParams::default().fields(&format!("metadata.name={CLAIMS_CONFIG_MAP}"));
    let events = maps.watch(&how, &version).await.expect("a watch");
    let mut events = std::pin::pin!(events);
    let mut most = 0;
    while let Some(event) = futures::StreamExt::next(&mut events).await {
        let Ok(WatchEvent::Modified(map)) = event else {
            panic!("{event:?}");
        };
        let text = map.data.unwrap_or_default()[CLAIMS_KEY].clone();
        let claims: Claims = serde_json::from_str(&text).expect("claims");
        most = most.max(claims.claims.len());
        if claims.claims.iter().any(|it| it.node == "the-last") {
            return most;
        }
    }
    panic!("the watch ended");
}

#[tokio::test]
async fn of_ten_that_ask_at_once_never_more_than_two_have_their_turn() {
    let world = World::new("ten").await;
    world.claims_are("").await;
    let maps = Api::<ConfigMap>::namespaced(world.client.clone(), &world.namespace);
    let map = maps.get(CLAIMS_CONFIG_MAP).await.expect("a ConfigMap");
    let version = map.metadata.resource_version.expect("a version");
    let policy = policy(1);
    let names: Vec<String> = (0..10).map(|_| unique("node")).collect();
    for name in &names {
        world.node(name, json!({}), true).await;
    }
    let hosts: Vec<Host> = names.iter().map(|it| world.host_named(it)).collect();
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let asked = Asked::of(&policy, IntOrString::Int(2));
    let take = async |host: &Host| {
        loop {
            match host.server.claim(&asked.turn()).await {
                Ok(Place::Yours) => break,
                Ok(Place::Wait { holders }) => assert!(holders.len() <= 2, "{holders:?}"),
                Err(Trouble::Busy) => {}
                other => panic!("{other:?}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // The change itself.
        sleep(Duration::from_millis(100)).await;
        now.fetch_sub(1, Ordering::SeqCst);
        until("a claim given back", SOON, async || {
            let released = host.server.release(&policy.uid).await;
            released.map_err(|it| it.to_string())
        })
        .await
        .expect("a claim given back");
    };
    let everybody = async {
        timeout(SOON, join_all(hosts.iter().map(take)))
            .await
            .expect("in time");
        assert_eq!(world.read().await, Claims::default());
        world.held(&[claim("the-last", &policy, 60)]).await;
    };
    let (most, ()) = tokio::join!(most(&world, version), everybody);
    assert_eq!(peak.into_inner(), 2);
    assert_eq!(most, 2, "as others read it");
}

#[tokio::test]
async fn a_share_is_one_of_the_nodes_that_the_policy_selects() {
    let world = World::new("share").await;
    world.claims_are("").await;
    let policy = policy(1);
    let rack = unique("rack");
    let names: Vec<String> = (0..3).map(|_| unique("node")).collect();
    for name in &names {
        world.node(name, json!({"rack": rack}), true).await;
    }
    let mut asked = Asked::of(&policy, IntOrString::String("50%".to_owned()));
    asked.selector = [("rack".to_owned(), rack)].into();
    let hosts: Vec<Host> = names.iter().map(|it| world.host_named(it)).collect();
    assert_eq!(hosts[0].claim(&asked).await, Place::Yours);
    assert_eq!(
        hosts[1].claim(&asked).await,
        Place::Yours,
        "half of three is two"
    );
    let Place::Wait { holders } = hosts[2].claim(&asked).await else {
        panic!("a third one");
    };
    assert_eq!(holders, names[..2]);
    // Asked again, it is still theirs.
    assert_eq!(hosts[1].claim(&asked).await, Place::Yours);
    hosts[0]
        .server
        .release(&policy.uid)
        .await
        .expect("an answer");
    assert_eq!(hosts[2].claim(&asked).await, Place::Yours);
}

#[tokio::test]
async fn a_lost_claim_counts_until_its_node_is_gone_or_is_ready_and_has_said_how_it_ended() {
    let world = World::new("holders").await;
    let (own, other) = (world.host().await, world.host().await);
    let policy = world.policy(&unique("policy")).await;
    let asked = Asked::of(&policy, IntOrString::Int(1));
    let other_says = async |standing: &Standing| {
        other.server.outbox().forget(&policy.name).expect("a disk");
        other.put(&policy, standing);
        other.all_told().await;
    };

    // In time: it is waited for.
    world.held(&[claim(&other.node, &policy, 60)]).await;
    let holders = vec![other.node.clone()];
    assert_eq!(own.claim(&asked).await, Place::Wait { holders });

    // Not in time, and nothing said, or nothing that ends it, or about another generation.
    let lost = claim(&other.node, &policy, -1);
    world.held(std::slice::from_ref(&lost)).await;
    let stopped = stop(&other.node, Fate::Lost);
    assert_eq!(own.claim(&asked).await, stopped);
    other_says(&Standing::Progressing).await;
    assert_eq!(own.claim(&asked).await, stopped);
    let newer = Claim {
        generation: policy.generation + 1,
        ..lost.clone()
    };
    other_says(&Standing::Configured).await;
    world.held(&[newer]).await;
    assert_eq!(own.claim(&asked).await, stopped);

    // Said before the claim was taken.
    let later = Claim {
        since: Timestamp::now() + SignedDuration::from_secs(5),
        ..lost.clone()
    };
    world.held(&[later]).await;
    assert_eq!(own.claim(&asked).await, stopped);

    // It said that all is well, but is not Ready.
    world.held(std::slice::from_ref(&lost)).await;
    world.node(&other.node, json!({}), false).await;
    assert_eq!(own.claim(&asked).await, stopped);
    world.node(&other.node, json!({}), true).await;
    assert_eq!(own.claim(&asked).await, Place::Yours);
    assert_eq!(world.read().await.claims.len(), 1, "the other's is gone");

    // It failed.
    let failure = Failure::Refused("no".to_owned());
    other_says(&Standing::Failed(failure)).await;
    world.held(&[lost]).await;
    assert_eq!(own.claim(&asked).await, stop(&other.node, Fate::Failed));

    // Its node is gone, whatever became of the change.
    world.delete_node(&other.node).await;
    world.held(&[claim(&other.node, &policy, 60)]).await;
    until("a place", SOON, async || match own.claim(&asked).await {
        Place::Yours => Ok(()),
        place => Err(format!("{place:?}")),
    })
    .await
    .expect("a place");
}

#[tokio::test]
async fn a_failed_change_keeps_its_place_until_the_policy_is_edited() {
    let world = World::new("failed").await;
    world.claims_are("").await;
    let (one, other) = (world.host().await, world.host().await);
    let first = policy(1);
    let asked = Asked::of(&first, IntOrString::Int(1));
    assert_eq!(one.claim(&asked).await, Place::Yours);
    one.server.fail(&first.uid).await.expect("an answer");
    let stopped = stop(&one.node, Fate::Failed);
    assert_eq!(other.claim(&asked).await, stopped);
    assert_eq!(one.claim(&asked).await, stopped);
    let edited = Policy {
        generation: 2,
        ..first.clone()
    };
    let asked = Asked::of(&edited, IntOrString::Int(1));
    assert_eq!(other.claim(&asked).await, Place::Yours);
}

#[tokio::test]
async fn a_claim_is_renewed_unless_a_person_took_it_away() {
    let world = World::new("renewed").await;
    let host = world.host().await;
    let policy = policy(1);
    world.held(&[claim(&host.node, &policy, -1)]).await;
    let asked = Asked::of(&policy, IntOrString::Int(1));
    assert!(host.server.renew(&asked.turn()).await.expect("an answer"));
    let renewed = &world.read().await.claims[0];
    assert!(renewed.expires > Timestamp::now() + LIFETIME - SignedDuration::from_secs(10));
    world.claims_are("{\"claims\": []}").await;
    assert!(!host.server.renew(&asked.turn()).await.expect("an answer"));
    // What is not there is given back, and noted as failed, without a write.
    let before = world.writes("configmaps").len();
    host.server.release(&policy.uid).await.expect("an answer");
    host.server.fail(&policy.uid).await.expect("an answer");
    assert_eq!(world.writes("configmaps").len(), before);
}

#[tokio::test]
async fn claims_that_are_missing_are_waited_for_and_claims_that_cannot_be_read_are_left_alone() {
    let world = World::new("missing").await;
    let host = world.host().await;
    let policy = policy(1);
    let asked = Asked::of(&policy, IntOrString::Int(1));
    let missing = host.server.claim(&asked.turn()).await;
    let missing = missing.expect_err("no ConfigMap").to_string();
    assert!(
        missing.contains("nmstate-claims is not there yet: the operator makes it"),
        "{missing}"
    );
    host.server
        .release(&policy.uid)
        .await
        .expect("nothing to give back");

    let broken = "{\"claims\": [{\"node\": 7}]}";
    world.claims_are(broken).await;
    for said in [
        host.server.claim(&asked.turn()).await.map(drop),
        host.server.renew(&asked.turn()).await.map(drop),
        host.server.release(&policy.uid).await,
        host.server.fail(&policy.uid).await,
    ] {
        let said = said.expect_err("no claims").to_string();
        assert!(said.contains("claims.json of ConfigMap"), "{said}");
        assert!(
            said.contains("cannot be understood: invalid type: integer `7`"),
            "{said}"
        );
    }
    assert_eq!(world.claims().await, broken);
}

#[tokio::test]
async fn who_is_always_too_late_is_told_to_ask_again_and_a_lost_answer_takes_no_second_place() {
    let world = World::new("busy").await;
    world.claims_are("").await;
    let host = world.host().await;
    let policy = policy(1);
    let asked = Asked::of(&policy, IntOrString::Int(1));
    let writes = || On::verb(Verb::Patch).resource("configmaps");
    let conflicts = world.faults.inject(Fault::Conflict, writes());
    let busy = host.server.claim(&asked.turn()).await;
    assert!(matches!(busy, Err(Trouble::Busy)), "{busy:?}");
    assert_eq!(conflicts.clear(), 5);
    let lost = world.faults.inject(Fault::LostAnswer, writes().next(1));
    let unanswered = host.server.claim(&asked.turn()).await;
    assert!(
        matches!(unanswered, Err(Trouble::Call(_))),
        "{unanswered:?}"
    );
    assert_eq!(lost.clear(), 1);
    assert_eq!(host.claim(&asked).await, Place::Yours);
    assert_eq!(world.read().await.claims.len(), 1);
}

#[tokio::test]
async fn without_a_way_to_the_server_a_turn_is_an_error_at_once() {
    let world = World::new("no-way").await;
    let host = world.host_named(&unique("node"));
    let policy = policy(1);
    let asked = Asked::of(&policy, IntOrString::Int(1));
    let _outage = world.faults.refuse();
    let refused = host.server.claim(&asked.turn()).await;
    let refused = refused.expect_err("no server").to_string();
    assert!(refused.starts_with("reading ConfigMap"), "{refused}");
    let report = report(&policy, &Standing::Pending);
    host.server.outbox().put(report).expect("a disk");
}
