//! What is done and said when something fails, changes or was written by somebody else.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_testbed::faults::{Fault, On};
use keelson_testbed::until;
use keelson_tls::profile::Kind;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::delivered::named;
use crate::stage::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(60);

fn wrote(operator: &Operator, resource: &str) -> bool {
    let writes = operator.faults.writes();
    writes.iter().any(|call| call.resource == resource)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_said_and_keeps_nothing_else_from_being_written() {
    let stage = Stage::enter("refused").await;
    let operator = stage.operator().await;
    let services = On::writes().resource("services");
    let refused = operator.faults.inject(Fault::Forbidden, services);
    stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    until("the certificates to be made", PATIENCE, async || {
        operator.controller.look().await;
        let there = wrote(&operator, "mutatingwebhookconfigurations");
        there.then_some(()).ok_or("not yet".to_owned())
    })
    .await
    .expect("everything else");
    let said = stage
        .says("nmstate", "Degraded", "True", "InternalError")
        .await;
    assert!(
        said.contains("Service") && said.contains("nmstate-webhook"),
        "{said}"
    );
    stage
        .says("nmstate", "Available", "False", "InternalError")
        .await;
    for other in ["deployments", "daemonsets", "networkpolicies"] {
        assert!(wrote(&operator, other), "{other}");
    }
    drop(refused);
    operator.settle().await;
    stage
        .says("nmstate", "Degraded", "False", "Deploying")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_profiles_config_map_no_pod_is_stamped_for_it() {
    let stage = Stage::enter("unwritten").await;
    let operator = stage.operator().await;
    let maps = On::writes().resource("configmaps");
    let refused = operator.faults.inject(Fault::Forbidden, maps);
    stage.nmstate("nmstate", json!({})).await;
    stage.says_after_look(&operator, "nmstate").await;
    until("another object to be made", PATIENCE, async || {
        operator.controller.look().await;
        let there = wrote(&operator, "daemonsets");
        there.then_some(()).ok_or("not yet".to_owned())
    })
    .await
    .expect("everything else");
    assert!(!wrote(&operator, "deployments"));
    drop(refused);
    operator.settle().await;
    assert!(wrote(&operator, "deployments"));
}

impl Stage {
    async fn webhooks(&self) -> Result<(Option<i32>, Option<IntOrString>), String> {
        let name = "nmstate-webhook";
        let webhook = self.namespaced::<Deployment>().get(name).await;
        let budget = self.namespaced::<PodDisruptionBudget>().get(name).await;
        let webhook = webhook.map_err(|error| error.to_string())?;
        let budget = budget.map_err(|error| error.to_string())?;
        let replicas = webhook.spec.and_then(|it| it.replicas);
        Ok((replicas, budget.spec.and_then(|it| it.min_available)))
    }

    /// Waits until there shall be so many webhooks, of which so many may not be taken away.
    async fn has_webhooks(&self, replicas: i32, stay: i32) {
        let wanted = (Some(replicas), Some(IntOrString::Int(stay)));
        until("another number of webhooks", PATIENCE, async || {
            let now = self.webhooks().await?;
            (now == wanted)
                .then_some(())
                .ok_or_else(|| format!("{now:?}"))
        })
        .await
        .expect("webhooks");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_have_two_webhooks_and_one_has_one() {
    let stage = Stage::enter("nodes").await;
    let nodes = stage.nodes();
    let _operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    stage.has_webhooks(1, 0).await;
    let names = ["webhooks-1", "webhooks-2"];
    for name in names {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}},
        }))
        .expect("a Node");
        let made = nodes.create(&PostParams::default(), &node).await;
        made.expect("a Node");
    }
    stage.has_webhooks(2, 1).await;
    for (place, name) in names.into_iter().enumerate() {
        let gone = nodes.delete(name, &DeleteParams::default()).await;
        gone.expect("a Node");
        if place == 0 {
            stage.has_webhooks(1, 0).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_another_wrote_is_taken_over_by_apply() {
    let stage = Stage::enter("status").await;
    stage.nmstate("nmstate", json!({})).await;
    let theirs = json!({"status": {"conditions": [
        {"type": "Available", "status": "True", "reason": "SaidByAnother", "message": "old"},
    ]}});
    let how = PatchParams {
        field_manager: Some("manager".to_owned()),
        ..PatchParams::default()
    };
    let wrote = stage
        .nmstates()
        .patch_status("nmstate", &how, &Patch::Merge(&theirs))
        .await;
    wrote.expect("a status of the original's");
    let operator = stage.operator().await;
    stage.says_after_look(&operator, "nmstate").await;
    stage
        .says("nmstate", "Available", "False", "Deploying")
        .await;
    let nmstate = stage.nmstates().get("nmstate").await.expect("an NMState");
    let all = nmstate.metadata.managed_fields.unwrap_or_default();
    let ours = all
        .iter()
        .find(|it| it.subresource.as_deref() == Some("status"));
    let ours = ours.expect("a writer of the status");
    assert_eq!(ours.manager.as_deref(), Some("nmstate-operator"));
    assert_eq!(ours.operation.as_deref(), Some("Apply"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_reaches_an_nmstate_of_any_name() {
    let stage = Stage::enter("named").await;
    let cluster =
        |name: &str| json!({"tlsSecurityProfile": {"type": name, name.to_lowercase(): {}}});
    stage.cluster_profile(cluster("Old")).await;
    let _operator = stage.running_operator().await;
    stage.nmstate("hosts-of-mine", json!({})).await;
    stage.delivers(&named(Kind::Old)).await;
    stage.cluster_profile(cluster("Modern")).await;
    stage.delivers(&named(Kind::Modern)).await;
}
