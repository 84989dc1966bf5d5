//! Policies as people bring them: each is enacted by a handler on a host that has the NICs it needs, and
//! the host goes back when it is deleted.

use crate::cables::furnish;
use crate::common::parts::Parts;
use crate::common::program::shipped;
use crate::files::{self, Example};
use crate::member::{Member, Told};
use crate::world::{World, unique};
use futures::StreamExt;
use futures::stream::iter;
use keelson_api::host_condition::EnactmentCondition::Available;
use keelson_api::names::Annotation;
use keelson_host::handler::journal::End;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};
use std::ops::Add;

/// How many hosts are busy at once: what is done on one is mostly waiting.
const AT_ONCE: usize = 6;

/// Every how many policies one is tried, where not all of them are: `examples` has all of them applied
/// without a handler.
const EVERY: usize = 3;

/// What it takes to go back may add to an apply, as a share of it, over all policies.
const ADDED: f64 = 0.1;

/// And to the apply of a way back.
const ADDED_BACK: f64 = 0.5;

/// More lines than a handler writes in a test.
const LOG: usize = 5_000;

/// How many policies there are to be at least.
const ENOUGH: usize = 25;

#[tokio::test(flavor = "multi_thread")]
async fn what_people_bring_is_enacted_as_it_is_and_a_host_goes_back_when_it_is_deleted() {
    let world = World::new("brought").await;
    let all = files::all().into_iter().filter(Example::is_for_this_kernel);
    let all: Vec<Example> = all.collect();
    assert!(all.len() >= ENOUGH, "only {} policies", all.len());
    let every = match std::env::var_os("KEELSON_SOAK") {
        Some(_) => 1,
        None => EVERY,
    };
    let at_once = match shipped() {
        Some(_) => 1,
        None => AT_ONCE,
    };
    let some = iter(all.into_iter().step_by(every));
    let tried = some.map(|example| tried(&world, example));
    let tried: Vec<Tried> = tried.buffer_unordered(at_once).collect().await;
    let wrong: Vec<&str> = tried
        .iter()
        .flat_map(|it| &it.wrong)
        .map(String::as_str)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if shipped().is_some() {
        costs_little(&tried);
    }
}

/// What it takes to go back adds little to the applies of policies. A way back is looked for when it is
/// taken, so that has one more look beside it.
fn costs_little(tried: &[Tried]) {
    let split = tried.iter().filter_map(|it| it.parts.split_last());
    let (back, there): (Vec<Parts>, Vec<&[Parts]>) =
        split.map(|(last, rest)| (*last, rest)).unzip();
    let there = added("policies", there.concat());
    let back = added("ways back", back);
    assert!(there <= ADDED && back <= ADDED_BACK, "{there} {back}");
}

/// The share that changes of a kind have beside their applies, printed.
fn added(what: &str, mut parts: Vec<Parts>) -> f64 {
    let sum = parts.iter().copied().fold(Parts::default(), Parts::add);
    parts.sort_by(|one, other| one.share().total_cmp(&other.share()));
    let middle = parts[parts.len() / 2];
    println!(
        "| {} {what}: nmstate applies for {:?} | beside it {:?} | added {:.1} %, in the middle {:.1} % |",
        parts.len(),
        sum.apply,
        sum.beside(),
        sum.share() * 100.0,
        middle.share() * 100.0
    );
    sum.share()
}

/// How it went with a policy.
struct Tried {
    wrong: Vec<String>,
    /// Of each change made for it, where that is measured.
    parts: Vec<Parts>,
}

async fn tried(world: &World, example: Example) -> Tried {
    let earlier = example.earlier();
    let mut labels = json!({});
    for policy in earlier.iter().chain([&example]) {
        for (key, value) in policy.policy().spec.node_selector {
            labels[key] = json!(value);
        }
    }
    let host = world.host_with(labels).await;
    let _servers = furnish(&host.host, &example);
    let handler = host.start(Told {
        debug: shipped().is_some(),
        ..Told::default()
    });
    for policy in earlier {
        let name = bring(world, &host, &policy, "false").await;
        enacted(&host, &policy, &name).await;
        // Two policies for one interface would be in each other's way.
        world.delete(&name).await;
        host.is_rid_of(&name).await;
    }
    let before = host.snapshot();
    let name = bring(world, &host, &example, "true").await;
    enacted(&host, &example, &name).await;
    let made = host.journal().expect("a change");
    let mut wrong = Vec::new();
    if made.policy.name != name || made.end != Some(End::Kept) {
        wrong.push(format!(
            "{}: {:?} {:?}",
            example.file, made.policy, made.end
        ));
    }
    world.delete(&name).await;
    host.is_rid_of(&name).await;
    let left = host.snapshot().differences(&before);
    // A profile may be written in nmstate's words; and once it had something to do with the loopback,
    // NetworkManager goes on giving that its route.
    let ours = |it: &&String| !it.contains(" profile ") && !it.contains(" dev lo ");
    let left = left.iter().filter(ours);
    wrong.extend(left.map(|it| format!("{}: {it}", example.file)));
    Tried {
        wrong,
        parts: Parts::of(&handler.tail(LOG)),
    }
}

/// Makes the policy of a file for one host alone, because others are tried meanwhile. It goes back when
/// the policy is deleted, or does not.
async fn bring(world: &World, host: &Member, example: &Example, goes_back: &str) -> String {
    let name = unique(&example.name());
    let mut object: Value = example.object.clone();
    object["metadata"]["name"] = json!(name);
    object["metadata"]["annotations"][Annotation::RevertOnDelete.as_str()] = json!(goes_back);
    let (label, value) = host.own_label();
    object["spec"]["nodeSelector"][label] = json!(value);
    let version = object["apiVersion"].as_str().expect("a version");
    let version = version.trim_start_matches("nmstate.io/");
    let kind = GroupVersionKind::gvk("nmstate.io", version, "NodeNetworkConfigurationPolicy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "nodenetworkconfigurationpolicies");
    let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
    let object = serde_json::from_value(object).expect("an object");
    let made = api.create(&PostParams::default(), &object).await;
    made.unwrap_or_else(|error| panic!("{}: {error}", example.file));
    name
}

/// Waits until a policy is enacted, with the leases it asks for.
async fn enacted(host: &Member, example: &Example, name: &str) {
    host.comes_to(name, Available).await;
    for device in example.leased() {
        let leased = host.host.connected(device).await;
        leased.unwrap_or_else(|error| panic!("{}: {error}", example.file));
    }
}
