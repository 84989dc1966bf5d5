//! Nodes the original operator left are taken over while they run, and are changed afterwards like
//! any other.

use crate::mark::{Mark, Pods};
use crate::original::Original;
use crate::outages::NoOperator;
use crate::tls::serves_another;
use crate::world::{Chain, NEW, PATIENCE, world};
use keelson_api::SeiNode;
use keelson_api::names::Port;
use keelson_testbed::images::{name, peer_name};
use keelson_testbed::{Peer, Product, until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const NODE: &str = "validator";

fn is(node: &SeiNode, condition: &str, status: &str, reason: &str) -> bool {
    let mut all = node.status.iter().flat_map(|it| &it.conditions);
    all.any(|it| it.type_ == condition && it.status == status && it.reason == reason)
}

/// Waits until the operator has nothing to do for a node of the original's.
async fn taken_over(chain: &Chain) {
    chain
        .until(NODE, "taken over", |seen| {
            is(seen, "Reconciling", "False", "Settled")
                && is(seen, "TemplateOutdated", "True", "OperatorUpgraded")
        })
        .await;
}

/// Ends the sidecar, which forgets the approval because the original's pod does not say whose it is,
/// and waits until the operator has approved the start again.
async fn is_approved_again(chain: &Chain) {
    let before = Mark::of(chain, NODE).await;
    let sidecar = chain.container(NODE, "sei-sidecar");
    let killed = chain.world.cluster.signal(&sidecar, Signal::SIGKILL);
    killed.expect("a signal");
    let mut expected = before;
    expected.restarts.insert("sei-sidecar".to_owned(), 1);
    let again = until("another approval", PATIENCE, async || {
        let mark = Mark::of(chain, NODE).await;
        let answer = chain.get(NODE, Port::Api, "/v0/healthz").await;
        match (mark == expected, answer) {
            (true, Ok((200, _))) => Ok(()),
            (_, answer) => Err(format!("{mark:?}, {answer:?}")),
        }
    });
    again.await.expect("a sidecar that is approved again");
    assert!(
        chain
            .log(NODE, "sei-sidecar")
            .contains("the gate is closed")
    );
}

/// Edits the node as a person does.
fn patch(chain: &Chain, spec: &Value) {
    let place = ["--namespace", &chain.name, "patch", "seinode", NODE];
    let patch = json!({ "spec": spec }).to_string();
    let words = [&place[..], &["--type=merge", "--patch", &patch]].concat();
    chain.world.kubectl.run(&words).expect("an edit");
}

/// Waits until an edit is carried out, with one pod cycle and the chain going on.
async fn one_cycle(chain: &Chain, pods: &Pods, what: &str, done: impl Fn(&SeiNode) -> bool) {
    chain
        .until(NODE, what, |seen| {
            let idle = seen.status.as_ref().is_some_and(|it| it.plan.is_none());
            idle && done(seen) && is(seen, "TemplateOutdated", "False", "TemplateCurrent")
        })
        .await;
    chain.makes_blocks(NODE, 2).await;
    let seen = pods.seen();
    assert_eq!(seen.len(), 2, "the original's pod and one after: {seen:?}");
    let restarts = chain.restarts(NODE).await;
    assert!(restarts.values().all(|it| *it == 0), "{restarts:?}");
}

#[tokio::test]
async fn nodes_of_the_original_are_taken_over_as_they_run_and_each_edit_is_one_cycle() {
    let Some(original) = Original::read() else {
        return;
    };
    let world = world().await;
    let mut image = world.chain_alone("original-image").await;
    let tls = world.beside(&image, "original-tls");
    let away = NoOperator::begin(world);
    // One with the proxy the original runs, one with ours in its place.
    let proxies = [peer_name(Peer::KubeRbacProxy), name(Product::Proxy)];
    tokio::join!(
        original.make(&image, &proxies[0]),
        original.make(&tls, &proxies[1])
    );
    let pods = [Pods::watch(&image), Pods::watch(&tls)];
    let before = [Mark::of(&image, NODE).await, Mark::of(&tls, NODE).await];
    drop(away);
    world.installer.ready().expect("an operator");
    image.share();

    for (chain, before) in [&image, &tls].into_iter().zip(&before) {
        taken_over(chain).await;
        chain.makes_blocks(NODE, 2).await;
        assert_eq!(&Mark::of(chain, NODE).await, before, "nothing restarts");
        is_approved_again(chain).await;
        taken_over(chain).await;
    }

    let heights = [image.height(NODE).await, tls.height(NODE).await];
    patch(&image, &json!({ "image": NEW }));
    patch(
        &tls,
        &json!({ "sidecar": { "tls": { "issuerName": "local-ca" } } }),
    );
    one_cycle(&image, &pods[0], "the new image", |seen| {
        let status = seen.status.as_ref();
        status.is_some_and(|it| it.current_image.as_deref() == Some(NEW))
    })
    .await;
    one_cycle(&tls, &pods[1], "TLS", |seen| {
        let status = seen.status.as_ref();
        status.is_some_and(|it| it.current_sidecar_tls.is_some())
    })
    .await;
    serves_another(&tls, &[]).await;
    for (chain, before) in [&image, &tls].into_iter().zip(heights) {
        let height = chain.height(NODE).await.expect("a height");
        assert!(height > before.expect("a height"), "the same chain");
    }
}
