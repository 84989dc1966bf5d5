//! Policies as people bring them: each is enacted by a handler on a host that has the NICs it needs, and
//! the host goes back when it is deleted.

use crate::cables::furnish;
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

/// How many hosts are busy at once: what is done on one is mostly waiting.
const AT_ONCE: usize = 6;

/// Every how many policies one is tried, where not all of them are: `examples` has all of them applied
/// without a handler.
const EVERY: usize = 3;

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
    let some = iter(all.into_iter().step_by(every));
    let tried = some.map(|example| tried(&world, example));
    let tried: Vec<Vec<String>> = tried.buffer_unordered(AT_ONCE).collect().await;
    let wrong = tried.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What went wrong with a policy.
async fn tried(world: &World, example: Example) -> Vec<String> {
    let earlier = example.earlier();
    let mut labels = json!({});
    for policy in earlier.iter().chain([&example]) {
        for (key, value) in policy.policy().spec.node_selector {
            labels[key] = json!(value);
        }
    }
    let host = world.host_with(labels).await;
    let _servers = furnish(&host.host, &example);
    let _handler = host.start(Told::default());
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
    wrong
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
