//! Other programs before the sidecars of a platform: a new release of the proxy, and kube-rbac-proxy.
//!
//! Which one it is, is a setting of the operator and so of all nodes: these tests have the cluster to
//! themselves.

use crate::edits::stalled;
use crate::mark::{Mark, Pods};
use crate::tls::{REFUSED, plain, serves_another, with_tls};
use crate::world::{Chain, PATIENCE, World, world};
use keelson_api::SeiNode;
use keelson_api::names::Port;
use keelson_testbed::{Peer, Product, images, until};
use serde_json::json;
use std::collections::BTreeMap;

const NODE: &str = "validator";

/// The operator with another image of the proxy in its settings; with its own ones after the test.
struct OtherProxy<'a>(&'a World);

impl OtherProxy<'_> {
    fn set(&self, image: &str) {
        let variable = "SEI_KUBE_RBAC_PROXY_IMAGE".to_owned();
        self.apply(&[(variable, image.to_owned())].into());
    }

    /// As a person changes settings: they are applied, and the operator is started anew.
    fn apply(&self, changes: &BTreeMap<String, String>) {
        let Self(world) = self;
        world.installer.operator(changes).expect("settings");
        let place = ["--namespace", "keelson-system", "rollout", "restart"];
        let words = [&place[..], &["deployment/keelson-operator"]].concat();
        world.kubectl.run(&words).expect("a restart");
        world.installer.ready().expect("an operator");
    }
}

impl Drop for OtherProxy<'_> {
    fn drop(&mut self) {
        self.apply(&BTreeMap::new());
    }
}

/// How a port answers someone without a token.
async fn stranger(chain: &Chain) -> Result<u16, String> {
    let tasks = chain.get(NODE, Port::Api, "/v0/tasks").await;
    tasks.map(|(status, _)| status)
}

#[tokio::test]
async fn a_new_image_of_the_proxy_restarts_the_proxy_alone_and_a_bad_one_is_put_back() {
    let world = world().await;
    let chain = world.chain_alone("release").await;
    let next = "localhost/keelson-proxy:next";
    world.bring(Product::Proxy, next);
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    let mut expected = Mark::of(&chain, NODE).await;

    let other = OtherProxy(world);
    other.set(next);
    chain
        .until(NODE, "the new proxy", |seen| {
            seen.status.as_ref().is_some_and(|it| {
                it.current_proxy_image.as_deref() == Some(next) && it.plan.is_none()
            })
        })
        .await;
    expected.restarts.insert("kube-rbac-proxy".to_owned(), 1);
    assert_eq!(Mark::of(&chain, NODE).await, expected);
    assert_eq!(plain(&chain).await, Ok(200));
    assert_eq!(stranger(&chain).await, Ok(401));
    chain.makes_blocks(NODE, 2).await;

    let missing = "localhost/keelson-proxy:missing";
    other.set(missing);
    let seen = chain
        .until(NODE, "that it is stalled, and as before", |seen| {
            let status = seen.status.as_ref();
            stalled(seen).is_some()
                && status.is_some_and(|it| !it.put_back.is_empty() && it.plan.is_none())
        })
        .await;
    let why = stalled(&seen).expect("a reason");
    assert!(why.contains(missing) && why.contains(next), "{why}");
    println!("Stalled: {why}");
    expected.restarts.insert("kube-rbac-proxy".to_owned(), 2);
    let again = until("the proxy of before", PATIENCE, async || {
        let (mark, answer) = (Mark::of(&chain, NODE).await, plain(&chain).await);
        match (mark == expected, &answer) {
            (true, Ok(200)) => Ok(()),
            _ => Err(format!("{mark:?}, {answer:?}")),
        }
    });
    again.await.expect("the proxy again, and nothing else");
    assert_eq!(stranger(&chain).await, Ok(401));
    chain.makes_blocks(NODE, 2).await;
}

#[tokio::test]
async fn kube_rbac_proxy_serves_plaintext_and_each_toggle_of_tls_is_one_pod_cycle() {
    let world = world().await;
    let chain = world.chain_alone("original").await;
    let image = images::peer_name(Peer::KubeRbacProxy);
    let other = OtherProxy(world);
    other.set(&image);
    chain.apply(&chain.validator());
    let seen = chain.running(NODE).await;
    let proxy = seen.status.and_then(|it| it.current_proxy_image);
    assert_eq!(proxy.as_ref(), Some(&image));
    assert_eq!(plain(&chain).await, Ok(200));
    assert_eq!(stranger(&chain).await, Ok(401));
    chain.makes_blocks(NODE, 2).await;

    let pods = Pods::watch(&chain);
    let first = until("the pod", PATIENCE, async || match pods.seen().len() {
        1 => Ok(()),
        other => Err(format!("{other} pods")),
    });
    first.await.expect("a pod");
    chain.apply(&with_tls(&chain, json!({ "issuerName": "local-ca" })));
    let served = |seen: &SeiNode, tls: bool| {
        let status = seen.status.as_ref();
        status.is_some_and(|it| it.current_sidecar_tls.is_some() == tls && it.plan.is_none())
    };
    chain
        .until(NODE, "TLS, and nothing left to do", |seen| {
            served(seen, true)
        })
        .await;
    serves_another(&chain, &[]).await;
    assert_eq!(plain(&chain).await, REFUSED);
    chain.makes_blocks(NODE, 2).await;
    let seen = pods.seen();
    assert_eq!(seen.len(), 2, "the pod before and the pod after: {seen:?}");

    chain.apply(&chain.validator());
    chain
        .until(NODE, "plaintext, and nothing left to do", |seen| {
            served(seen, false)
        })
        .await;
    assert_eq!(plain(&chain).await, Ok(200));
    assert_eq!(stranger(&chain).await, Ok(401));
    chain.makes_blocks(NODE, 2).await;
    let seen = pods.seen();
    assert_eq!(seen.len(), 3, "and one more: {seen:?}");
}
