//! Every policy of `examples/policies` as people bring them: the API server accepts it, nmstate
//! understands it, and a host it is applied to has what it says, can be reached, and finds back.
//!
//! A policy is applied by nmstate itself here; `fleet` has handlers do it.

mod cables;
mod course;
mod files;
mod place;
mod steps;

use crate::files::Example;
use crate::place::Place;
use keelson_testbed::{Cluster, Network};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use nmstate::NetworkState;
use serde_json::json;
use std::collections::BTreeSet;

/// How many hosts are busy at once: what is done on one is mostly waiting.
const AT_ONCE: usize = 6;

/// How many policies this kernel is to be tried with at least.
const ENOUGH: usize = 25;

#[tokio::test(flavor = "multi_thread")]
async fn every_policy_is_accepted_by_the_api_server() {
    let cluster = Cluster::shared().await;
    cluster.install_crds().await.expect("types");
    for example in files::all() {
        let version = example.object["apiVersion"].as_str().expect("a version");
        let version = version.trim_start_matches("nmstate.io/");
        let kind = GroupVersionKind::gvk("nmstate.io", version, "NodeNetworkConfigurationPolicy");
        let resource = ApiResource::from_gvk_with_plural(&kind, "nodenetworkconfigurationpolicies");
        let api: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
        let how = PatchParams::apply("a-person").validation_strict().dry_run();
        let patch = Patch::Apply(&example.object);
        let answer = api.patch(&example.name(), &how, &patch).await;
        answer.unwrap_or_else(|error| panic!("{}: {error}", example.file));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_applied_is_there_leaves_the_host_reachable_and_can_be_taken_back() {
    let all = files::all().into_iter();
    let here: Vec<Example> = all.filter(Example::is_for_this_kernel).collect();
    assert!(here.len() >= ENOUGH, "only {} policies", here.len());
    let wrong = course::through(here, AT_ONCE).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_from_a_host_behind_a_policys_back_is_missed() {
    let network = Network::bare().expect("a switch");
    let example = files::named("everything-at-once.yaml");
    for loss in [
        "ip addr del 198.51.100.151/24 dev eth2",
        "ip route del 203.0.113.0/24",
        "ip rule del priority 1500",
    ] {
        let place = Place::raise(&network, &example).await.expect("a host");
        place.step("apply", &example).await.expect("an apply");
        place.step("look", &example).await.expect("nothing is lost");
        place.run(loss);
        let missed = place.step("look", &example).await;
        missed.expect_err(loss);
    }
}

#[test]
fn nmstate_understands_what_the_policies_for_the_other_kernel_ask_for() {
    // A host as they may find it, with two free NICs.
    let nic = |name: &str| json!({ "name": name, "type": "ethernet", "state": "up" });
    let way_out = json!([{ "destination": "0.0.0.0/0", "next-hop-interface": "eth0",
        "next-hop-address": "192.0.2.1", "table-id": 254 }]);
    let mut uplink = nic("eth0");
    uplink["mac-address"] = json!("02:00:5E:10:00:50");
    uplink["ipv4"] = json!({ "enabled": true, "dhcp": true });
    let current = json!({ "interfaces": [uplink, nic("eth1"), nic("eth2")],
        "routes": { "running": way_out, "config": way_out } });
    let current: NetworkState = serde_json::from_value(current).expect("a state");
    let others = files::all()
        .into_iter()
        .filter(|it| !it.is_for_this_kernel());
    let kinds: BTreeSet<String> = others
        .flat_map(|example| {
            let asked = steps::asked(&example.policy(), &current);
            let asked = asked.unwrap_or_else(|error| panic!("{}: {error}", example.file));
            let known = asked.gen_diff(&current);
            known.unwrap_or_else(|error| panic!("{}: {error}", example.file));
            let interfaces = asked.interfaces.to_vec();
            let kinds = interfaces.iter().map(|it| it.iface_type().to_string());
            kinds.collect::<Vec<_>>()
        })
        .collect();
    for kind in ["bond", "vlan", "dummy", "vrf", "linux-bridge"] {
        assert!(kinds.contains(kind), "no policy has a {kind}: {kinds:?}");
    }
}

#[test]
fn every_policy_says_what_it_is_for_and_where_it_is_tried() {
    let all = files::all();
    let names: BTreeSet<String> = all.iter().map(Example::name).collect();
    assert_eq!(names.len(), all.len(), "two policies have one name");
    for example in &all {
        let comment = example.text.lines().take_while(|it| it.starts_with('#'));
        let words = comment.flat_map(str::split_whitespace).count();
        assert!(words > 5, "{} does not say what it is for", example.file);
        // A file that is not there or not a policy fails here.
        let _ = (example.is_for_this_kernel(), example.earlier());
    }
}
