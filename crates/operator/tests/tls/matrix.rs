//! Every change of TLS from every state to every other, alone and together with an image, with both
//! kinds of proxy: the one plan there is, and the pods it costs.
//!
//! The table in `docs/operator-tls.md` is written from what was counted here:
//! `KEELSON_WRITE_DOCS=1 cargo test -p keelson-operator --test tls matrix`.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::node_status::{CurrentSidecarTls, NodePhase};
use keelson_api::plan::PlanPhase;
use keelson_api::sidecar::IssuerKind;
use keelson_testbed::{Authority, passage};
use keelson_tls::{Leaf, Pair};
use serde_json::json;

use crate::change::{Change, Proxy, STATES, State};
use crate::covered::Covered;
use crate::manager;
use crate::operator::Operator;
use crate::stage::{Scene, Stage};
use crate::story::{Cost, Story, tasks, tell};

const BEFORE: &str = "registry.example/seid:v6.0.0";
const AFTER: &str = "registry.example/seid:v6.1.0";

/// How many nodes go at once, with each kind of proxy.
const AT_ONCE: usize = 8;

pub(crate) const COVERED: Covered = &[(
    every_change_of_tls_is_one_plan_and_costs_a_pod_only_where_the_pod_has_to_differ,
    &["sidecar.tls.issuerName", "sidecar.tls.secretName"],
)];

/// What came of a change.
#[derive(Clone)]
struct Outcome {
    change: Change,
    cost: Cost,
    wrong: Vec<String>,
}

/// Makes the change, and says what came of it.
async fn make(change: Change, scene: &Scene, node: &str) -> Outcome {
    let (before, violations) = (scene.seen(node), violations(scene, node));
    let story = tell(scene, node, change.edit(node)).await;
    let mut wrong = judge(&change, &story);
    wrong.extend(compare(scene, node, change.to, &story).await);
    if (before.created == scene.seen(node).created) == change.rolls() {
        wrong.push("the pod is another one, or is not, as it should not be".to_owned());
    }
    wrong.extend(self::violations(scene, node).split_off(violations.len()));
    Outcome {
        change,
        cost: story.cost,
        wrong,
    }
}

/// A node that goes from one state to another and back.
#[derive(Clone, Copy, Debug)]
struct Journey {
    proxy: Proxy,
    between: [State; 2],
    image: bool,
}

impl Journey {
    /// Every pair of states once, alone and with an image. Plaintext comes first: a pod that had
    /// somebody's Secret keeps it mounted.
    fn all(proxy: Proxy) -> Vec<Self> {
        let pairs = STATES.iter().enumerate();
        let pairs = pairs.flat_map(|(at, from)| STATES[at + 1..].iter().map(|to| [*from, *to]));
        let both = pairs.flat_map(|between| [false, true].map(|image| (between, image)));
        both.map(|(between, image)| Self {
            proxy,
            between,
            image,
        })
        .collect()
    }

    fn node(&self) -> String {
        let [from, to] = self.between;
        let image = if self.image { "-image" } else { "" };
        let name = format!("{from}-{to}{image}");
        name.replace(' ', "-").to_lowercase()
    }

    async fn go(&self, scene: &Scene, authorities: &[(&str, Authority)]) -> Vec<Outcome> {
        let node = self.node();
        for (name, authority) in authorities {
            let secret = format!("{node}-{name}");
            scene.tls_secret(&secret, &node, authority).await;
        }
        let [from, to] = self.between;
        let sidecar = match from {
            State::None => json!({}),
            from => json!({ "sidecar": { "tls": from.spec(&node) } }),
        };
        scene.full_node(&node, sidecar).await;
        scene.settled(&node).await;
        let mut outcomes = Vec::new();
        for ([from, to], images) in [([from, to], [BEFORE, AFTER]), ([to, from], [AFTER, BEFORE])] {
            let change = Change {
                proxy: self.proxy,
                from,
                to,
                images: self.image.then_some(images),
            };
            outcomes.push(make(change, scene, &node).await);
        }
        outcomes
    }
}

/// All changes with one kind of proxy, some at once.
async fn with(proxy: Proxy) -> Vec<Outcome> {
    let name = format!("matrix-{proxy:?}").to_lowercase();
    let scene = Stage::shared().await.scene(&name).await;
    let _operator = Operator::start(&scene, proxy.platform()).await;
    for issuer in ["x", "y"] {
        scene.issuer(issuer).await;
    }
    let authorities = ["a", "b"].map(|name| (name, Authority::new(name).expect("an authority")));
    let journeys = Journey::all(proxy);
    let journeys = journeys.iter().map(|it| it.go(&scene, &authorities));
    stream::iter(journeys).buffered(AT_ONCE).concat().await
}

/// What must never happen and did to a node.
fn violations(scene: &Scene, node: &str) -> Vec<String> {
    let of_node = format!("{}: ", scene.place(node));
    let all = scene.violations().into_iter();
    all.filter(|it| it.starts_with(&of_node)).collect()
}

/// Whether there was the one plan there should be.
fn judge(change: &Change, story: &Story) -> Vec<String> {
    let mut wrong = Vec::new();
    let [plan] = story.plans.as_slice() else {
        let plans: Vec<_> = story
            .plans
            .iter()
            .map(|it| (&it.causes, tasks(it)))
            .collect();
        return vec![format!("there were {} plans: {plans:?}", plans.len())];
    };
    if tasks(plan) != change.tasks() {
        wrong.push(format!("the plan was {:?}", tasks(plan)));
    }
    if plan.kind.map(|it| it.as_str()) != Some(change.kind()) {
        wrong.push(format!("the kind was {:?}", plan.kind));
    }
    let ids: BTreeSet<&str> = plan.tasks.iter().map(|it| it.id.as_str()).collect();
    if ids.len() != plan.tasks.len() {
        wrong.push("two tasks had one id".to_owned());
    }
    let phases = (plan.phase, plan.target_phase, plan.failed_phase);
    if phases != (PlanPhase::Active, Some(NodePhase::Running), None) {
        wrong.push(format!("the plan's phases were {phases:?}"));
    }
    match story.reasons.as_slice() {
        [(reason, message)] => {
            let tls = message.contains("sidecar.tls drift: wanted=");
            let image = change.images.is_none_or(|[before, after]| {
                message.contains(&format!("image drift: wanted={after} current={before}"))
            });
            if reason != change.reason() || !tls || !image {
                wrong.push(format!("the condition was {reason}: {message}"));
            }
        }
        other => wrong.push(format!("the condition was {other:?}")),
    }
    let expected = match change.rolls() {
        true => Cost::ONE_POD,
        false => Cost::NOTHING,
    };
    if story.cost != expected {
        wrong.push(format!("it cost {:?}", story.cost));
    }
    wrong
}

/// Whether the node, its proxy and its objects are at the end what the spec asks for.
async fn compare(scene: &Scene, node: &str, to: State, story: &Story) -> Vec<String> {
    let mut wrong = Vec::new();
    let status = story.node.status.clone().expect("a status");
    let secrets = scene.api::<Secret>();
    let get = async |name: &str| secrets.get_opt(name).await.expect("an answer");
    let leaf = match to.secret(node) {
        Some(name) => get(&name).await.map(|secret| leaf(&secret)),
        None => None,
    };
    let current = leaf.as_ref().map(|leaf| CurrentSidecarTls {
        issuer_name: match to {
            State::Issuer(name) => Some(name.to_owned()),
            _ => None,
        },
        issuer_kind: to.is_issuer().then_some(IssuerKind::Issuer),
        secret_name: to.secret(node),
        fingerprint: Some(leaf.fingerprint.to_string()),
        not_after: Some(Time(leaf.not_after)),
    });
    if status.current_sidecar_tls != current {
        wrong.push(format!("the status says {:?}", status.current_sidecar_tls));
    }
    let (mode, scheme) = match to {
        State::None => ("off", "http"),
        _ => ("required", "https"),
    };
    let serving = scene.serving(node);
    if serving != Some((mode, leaf.map(|leaf| leaf.fingerprint.to_string()))) {
        wrong.push(format!("the proxy serves {serving:?}"));
    }
    let namespace = scene.namespace();
    let url = format!("{scheme}://{node}-0.{node}.{namespace}.svc.cluster.local:8443");
    if status.sidecar_url.as_ref() != Some(&url) {
        wrong.push(format!("the address is {:?}", status.sidecar_url));
    }
    let own = format!("{node}-sidecar-tls");
    if get(&own).await.is_some() != to.is_issuer() {
        wrong.push(format!("Secret {own} is there or not, as it should not be"));
    }
    if manager::certificate(scene, &own).await.is_some() != to.is_issuer() {
        wrong.push(format!(
            "Certificate {own} is there or not, as it should not be"
        ));
    }
    wrong
}

fn leaf(secret: &Secret) -> Leaf {
    let data = secret.data.as_ref().expect("data");
    let pair = Pair::from_pem(&data["tls.crt"].0, &data["tls.key"].0);
    pair.expect("a key pair").leaf().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_tls_is_one_plan_and_costs_a_pod_only_where_the_pod_has_to_differ() {
    let (ours, original) = tokio::join!(with(Proxy::Ours), with(Proxy::Original));
    let outcomes = [ours, original].concat();
    let wrong = outcomes.iter().flat_map(|outcome| {
        let change = outcome.change;
        let wrong = outcome.wrong.iter();
        wrong.map(move |wrong| format!("{change:?}: {wrong}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(outcomes.len(), 80);
    passage("docs/operator-tls.md", "pods by change", &table(&outcomes));
}

/// Pods by change, as people read it.
fn table(outcomes: &[Outcome]) -> String {
    let mut table = "| From | To | `keelson-proxy` | with an image | `kube-rbac-proxy` | with an image |\n|---|---|---|---|---|---|\n".to_owned();
    for from in STATES {
        for to in STATES.into_iter().filter(|to| *to != from) {
            let pods = |proxy: Proxy, image: bool| {
                let found = outcomes.iter().find(|it| {
                    let change = it.change;
                    (change.from, change.to) == (from, to)
                        && (change.proxy, change.images.is_some()) == (proxy, image)
                });
                found.map_or("?".to_owned(), |it| it.cost.pods.to_string())
            };
            let [ours, with, original, original_with] = [
                pods(Proxy::Ours, false),
                pods(Proxy::Ours, true),
                pods(Proxy::Original, false),
                pods(Proxy::Original, true),
            ];
            table +=
                &format!("| {from} | {to} | {ours} | {with} | {original} | {original_with} |\n");
        }
    }
    table
}
