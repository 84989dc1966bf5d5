//! What an NMState gets, and that it keeps it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use keelson_operator::host::world::resource;
use keelson_render::host::Identity;
use keelson_testbed::until;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

fn names(all: &std::collections::BTreeSet<Identity>, kind: &str) -> Vec<String> {
    let of = all.iter().filter(|it| it.kind.kind == kind);
    of.map(|it| it.name.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nmstate_gets_everything_and_a_second_look_writes_nothing() {
    let stage = Stage::enter("all").await;
    let operator = stage.operator().await;
    stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    operator.settle().await;
    let all = stage.installed().await;
    assert_eq!(
        names(&all, "Deployment"),
        ["nmstate-metrics", "nmstate-webhook"]
    );
    assert_eq!(names(&all, "DaemonSet"), ["nmstate-handler"]);
    assert_eq!(names(&all, "MutatingWebhookConfiguration"), ["nmstate"]);
    assert!(names(&all, "ConfigMap").contains(&"nmstate-tls-config".to_owned()));
    for kind in [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Service",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ] {
        assert!(!names(&all, kind).is_empty(), "{kind} in {all:?}");
    }
    let writes = operator.faults.writes().len();
    operator.controller.look().await;
    assert_eq!(operator.faults.writes().len(), writes);
    let said = stage
        .says("nmstate", "Progressing", "True", "Deploying")
        .await;
    assert!(said.contains("Deployment nmstate-webhook"), "{said}");
    stage
        .says(
            "nmstate",
            "TLSProfileUnusable",
            "False",
            "TLSProfileHonored",
        )
        .await;
}

impl Stage {
    fn objects(&self, identity: &Identity) -> Api<DynamicObject> {
        let resource = resource(&identity.kind);
        match &identity.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn spec(&self, identity: &Identity) -> Option<Value> {
        let mut object = self
            .objects(identity)
            .get_opt(&identity.name)
            .await
            .expect("an answer")?;
        object.metadata = kube::api::ObjectMeta {
            labels: object.metadata.labels,
            ..Default::default()
        };
        let mut value = serde_json::to_value(object).expect("JSON");
        value
            .as_object_mut()
            .expect("an object")
            .shift_remove("status");
        // A Service that is made anew has another address.
        if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
            spec.shift_remove("clusterIP");
            spec.shift_remove("clusterIPs");
        }
        Some(value)
    }
}

/// What somebody does to an object of a kind.
fn damage(identity: &Identity) -> Value {
    match identity.kind.kind {
        "ConfigMap" if identity.name == "nmstate-tls-config" => {
            json!({"data": {"profile.json": "{}"}})
        }
        "ConfigMap" if identity.name == "nmstate-ca-bundle" => {
            json!({"data": {"ca.crt": "another"}})
        }
        "ClusterRole" | "Role" => json!({"rules": []}),
        "ClusterRoleBinding" | "RoleBinding" => json!({"subjects": []}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {"matchLabels": {"app": "nothing"}}}}),
        "Service" => json!({"spec": {"selector": {"name": "nothing"}}}),
        "PodDisruptionBudget" => json!({"spec": {"minAvailable": 7}}),
        "DaemonSet" | "Deployment" => {
            json!({"spec": {"template": {"spec": {"priorityClassName": "system-node-critical", "serviceAccountName": "default"}}}})
        }
        "ValidatingAdmissionPolicy" => {
            json!({"spec": {"failurePolicy": "Ignore", "validations": [{"expression": "true"}]}})
        }
        "ValidatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "another"}}),
        "MutatingWebhookConfiguration" => json!({"webhooks": []}),
        _ => json!({"metadata": {"labels": {"app": "another"}}}),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changes_or_deletes_of_any_kind_is_put_back() {
    let stage = Stage::enter("drift").await;
    let operator = stage.operator().await;
    stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    operator.settle().await;
    let mut all = stage.installed().await;
    all.retain(|it| it.kind.kind != "Namespace");
    assert!(all.len() > 20, "{all:?}");
    let mut before = Vec::new();
    for identity in &all {
        before.push((identity, stage.spec(identity).await.expect("an object")));
    }
    let running = stage.running_operator().await;
    for (identity, _) in &before {
        let damage = damage(identity);
        let how = PatchParams::default();
        let changed = stage
            .objects(identity)
            .patch(&identity.name, &how, &Patch::Merge(&damage))
            .await;
        changed.unwrap_or_else(|error| panic!("{identity}: {error}"));
    }
    all_as(&stage, &before).await;
    for (identity, _) in &before {
        let how = DeleteParams::background();
        stage
            .objects(identity)
            .delete(&identity.name, &how)
            .await
            .expect("deleted");
    }
    all_as(&stage, &before).await;
    drop(running);
}

async fn all_as(stage: &Stage, before: &[(&Identity, Value)]) {
    for (identity, before) in before {
        until(
            &format!("{identity} as it was"),
            PATIENCE,
            async || match stage.spec(identity).await {
                Some(now) if now == *before => Ok(()),
                now => Err(format!("{before}\nis now\n{}", now.unwrap_or_default())),
            },
        )
        .await
        .expect("the object");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_handlers_claim_is_theirs_and_is_never_put_back() {
    let stage = Stage::enter("claims").await;
    let operator = stage.operator().await;
    stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    operator.settle().await;
    let world = &operator.controller.world;
    let is_it = |it: &&Identity| it.name == "nmstate-claims";
    let identity = stage.installed().await.iter().find(is_it).cloned();
    let identity = identity.expect("the object of claims");
    let before = world.object(&identity).expect("it is known");
    operator.faults.forget();
    let claims = [("claims-a", "1", 1), ("claims-b", "1", 1)];
    stage.claims(&claims).await;
    let heard = until("the claims to be heard of", PATIENCE, async || {
        let now = world.object(&identity).expect("it is known");
        let heard = !Arc::ptr_eq(&before, &now);
        heard.then_some(now).ok_or("not yet".to_owned())
    });
    let heard = heard.await.expect("claims");
    assert_eq!(
        heard, before,
        "nothing that NMStates are looked at again for"
    );
    operator.settle().await;
    assert_eq!(operator.faults.writes(), []);
    assert_eq!(stage.claimants().await, ["claims-a", "claims-b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_rendered_is_taken_away_and_what_is_anothers_stays() {
    let stage = Stage::enter("prune").await;
    let operator = stage.operator().await;
    let nmstate = stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    operator.settle().await;
    let deployments: Api<Deployment> = stage.namespaced();
    let left = |name: &str, owned: bool| {
        let mut made: Deployment = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "kubernetes-nmstate"}},
            "spec": {
                "selector": {"matchLabels": {"name": name}},
                "template": {
                    "metadata": {"labels": {"name": name}},
                    "spec": {"containers": [{"name": "a", "image": "registry.example/a:1"}]},
                },
            },
        }))
        .expect("a Deployment");
        made.metadata.owner_references = owned.then(|| {
            let owner = json!([{
                "apiVersion": "nmstate.io/v1", "kind": "NMState", "name": "nmstate",
                "uid": nmstate.metadata.uid, "controller": true,
            }]);
            serde_json::from_value(owner).expect("an owner")
        });
        made
    };
    let how = PostParams::default();
    deployments
        .create(&how, &left("nmstate-cert-manager", true))
        .await
        .expect("made");
    deployments
        .create(&how, &left("somebody-elses", false))
        .await
        .expect("made");
    let _running = stage.running_operator().await;
    until(
        "the original's Deployment to go",
        PATIENCE,
        async || match deployments.get_opt("nmstate-cert-manager").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        },
    )
    .await
    .expect("gone");
    assert!(
        deployments
            .get_opt("somebody-elses")
            .await
            .expect("an answer")
            .is_some()
    );
    assert!(
        deployments
            .get_opt("nmstate-webhook")
            .await
            .expect("an answer")
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_nmstate_counts_and_a_younger_one_is_told_and_not_deleted() {
    let stage = Stage::enter("younger").await;
    let first = stage.nmstate("zulu", json!({})).await;
    // Times of creation are in seconds.
    until("another second", PATIENCE, async || {
        let made = first
            .metadata
            .creation_timestamp
            .as_ref()
            .expect("a time")
            .0;
        let passed = jiff::Timestamp::now().as_second() - made.as_second();
        (passed > 1)
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    })
    .await
    .expect("a second");
    stage.nmstate("alpha", json!({})).await;
    let _operator = stage.running_operator().await;
    let said = stage
        .says("alpha", "Degraded", "True", "NotTheOldest")
        .await;
    assert!(said.contains("NMState zulu is older"), "{said}");
    stage.says("zulu", "Progressing", "True", "Deploying").await;
    stage
        .nmstates()
        .delete("zulu", &DeleteParams::background())
        .await
        .expect("deleted");
    stage
        .says("alpha", "Progressing", "True", "Deploying")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_original_operator_runs_nothing_is_written_but_that_it_does() {
    let stage = Stage::enter("original").await;
    let deployments: Api<Deployment> = stage.namespaced();
    let original: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "nmstate-operator", "labels": {"app": "kubernetes-nmstate-operator"}},
        "spec": {
            "selector": {"matchLabels": {"name": "it"}},
            "template": {
                "metadata": {"labels": {"name": "it"}},
                "spec": {"containers": [{"name": "a", "image": "registry.example/a:1"}]},
            },
        },
    }))
    .expect("a Deployment");
    deployments
        .create(&PostParams::default(), &original)
        .await
        .expect("made");
    stage.hosts(&["original-a"]).await;
    stage.policy("original", json!({})).await;
    let operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    let said = stage
        .says(
            "nmstate",
            "ForeignOperatorPresent",
            "True",
            "ForeignOperatorFound",
        )
        .await;
    assert!(
        said.contains(&format!("{}/nmstate-operator", stage.namespace)),
        "{said}"
    );
    let writes = operator.faults.writes();
    assert!(
        writes
            .iter()
            .all(|call| format!("{call:?}").contains("nmstates")),
        "{writes:?}"
    );
    deployments
        .delete("nmstate-operator", &DeleteParams::background())
        .await
        .expect("deleted");
    stage
        .says(
            "nmstate",
            "ForeignOperatorPresent",
            "False",
            "ForeignOperatorAbsent",
        )
        .await;
    stage
        .says("nmstate", "Progressing", "True", "Deploying")
        .await;
    let progresses = "Policy is progressing 0/1 nodes finished";
    stage.stands("original", "Progressing", progresses).await;
}
