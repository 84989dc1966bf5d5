//! What a policy for hosts may say, as the API server judges it with no webhook running.

use keelson_api::NodeNetworkConfigurationPolicy;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::install::object;
use crate::stage::{installed, refused};

fn policies(client: Client) -> Api<NodeNetworkConfigurationPolicy> {
    Api::all(client)
}

fn policy(name: &str, spec: Value) -> NodeNetworkConfigurationPolicy {
    object(json!({"metadata": {"name": name}, "spec": spec}))
}

fn with_interfaces(interfaces: Value) -> Value {
    json!({"desiredState": {"interfaces": interfaces}})
}

#[tokio::test]
async fn policies_the_original_took_are_taken() {
    let api = policies(installed().await.cluster.client());
    let dispatched = json!([{"name": "dispatch", "type": "ethernet", "state": "up"}]);
    let good = [
        ("empty", json!({})),
        ("with.dots-and-dashes", json!({"desiredState": {}})),
        (
            "no-interfaces",
            json!({"desiredState": {"dns-resolver": {"config": {}}}}),
        ),
        ("interface-named-so", with_interfaces(dispatched)),
        (
            "selected",
            json!({"nodeSelector": {"kubernetes.io/hostname": "a", "empty": ""}}),
        ),
        (
            "templated",
            json!({
                "capture": {"default-gw": "routes.running.destination==\"0.0.0.0/0\""},
                "desiredState": {"interfaces": "{{ capture.default-gw.interfaces }}"},
            }),
        ),
        (
            "templated-one",
            with_interfaces(json!(["{{ capture.base.interfaces.0 }}"])),
        ),
    ];
    for (name, spec) in good {
        let made = api
            .create(&PostParams::default(), &policy(name, spec))
            .await;
        made.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let longest = "n".repeat(63);
    let made = api
        .create(&PostParams::default(), &policy(&longest, json!({})))
        .await;
    made.expect("a name of 63 letters");
}

#[tokio::test]
async fn policies_that_break_a_rule_are_refused_with_a_sentence() {
    let api = policies(installed().await.cluster.client());
    let long = "n".repeat(64);
    let script = json!([{"name": "eth0", "dispatch": {"post-activation": "echo"}}]);
    let second = json!([{"name": "eth0"}, {"name": "eth1", "dispatch": null}]);
    let bad = [
        (
            long.as_str(),
            json!({}),
            "is to be the value of a label on enactments",
        ),
        (
            "bad-key",
            json!({"nodeSelector": {"not a label": "x"}}),
            "A key of nodeSelector of policy bad-key is not the name of a label",
        ),
        (
            "bad-value",
            json!({"nodeSelector": {"good": "ok", "pool": "not a value"}}),
            "A value of nodeSelector of policy bad-value is not the value of a label",
        ),
        (
            "script",
            with_interfaces(script),
            "as policy script has one, run as root on hosts and are refused: remove it, or set dispatchScripts: Allowed",
        ),
        (
            "script-second",
            with_interfaces(second),
            "as policy script-second has one",
        ),
        (
            "script-captured",
            json!({"capture": {"a": "interfaces.name==\"eth0\" | interfaces.dispatch := \"x\""}}),
            "as a capture of policy script-captured may write one",
        ),
    ];
    let mut wrong = Vec::new();
    for (name, spec, sentence) in bad {
        let made = api
            .create(&PostParams::default(), &policy(name, spec))
            .await;
        wrong.extend(refused(sentence, made).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_policy_written_as_the_deprecated_version_is_judged_alike() {
    let client = installed().await.cluster.client();
    let resource = ApiResource {
        version: "v1beta1".to_owned(),
        api_version: "nmstate.io/v1beta1".to_owned(),
        ..ApiResource::erase::<NodeNetworkConfigurationPolicy>(&())
    };
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let script = json!({
        "apiVersion": "nmstate.io/v1beta1",
        "kind": "NodeNetworkConfigurationPolicy",
        "metadata": {"name": "old-script"},
        "spec": with_interfaces(json!([{"dispatch": {}}])),
    });
    let made = api.create(&PostParams::default(), &object(script)).await;
    refused("as policy old-script has one", made).expect("a refusal");
}

#[tokio::test]
async fn a_capture_cannot_be_changed_and_everything_else_can_even_while_hosts_are_at_work() {
    let api = policies(installed().await.cluster.client());
    let name = "edited";
    let spec = json!({"capture": {"a": "interfaces.name==\"eth0\""}, "desiredState": {"a": 1}});
    let made = api
        .create(&PostParams::default(), &policy(name, spec))
        .await;
    made.expect("a policy");
    let how = PatchParams::default();
    // The original refused any edit from here on.
    let progressing = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "True", "reason": "ConfigurationProgressing"},
        {"type": "Available", "status": "Unknown", "reason": "ConfigurationProgressing"},
    ]}});
    let patched = api
        .patch_status(name, &how, &Patch::Merge(&progressing))
        .await;
    patched.expect("a status");

    for capture in [json!({"a": "other"}), json!({"b": "more"}), json!(null)] {
        let edit = Patch::Merge(json!({"spec": {"capture": capture}}));
        let sentence = "The capture of policy edited cannot be changed";
        refused(sentence, api.patch(name, &how, &edit).await).expect("a refusal");
    }
    let edit = Patch::Merge(json!({"spec": {
        "desiredState": {"a": 2}, "maxUnavailable": 1, "nodeSelector": {"pool": "b"},
    }}));
    api.patch(name, &how, &edit).await.expect("an edit");
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    api.patch(name, &how, &label).await.expect("a label");
    let edit = Patch::Merge(json!({"spec": with_interfaces(json!([{"dispatch": {}}]))}));
    refused(
        "as policy edited has one",
        api.patch(name, &how, &edit).await,
    )
    .expect("a refusal");
}
