//! Nodes, handlers and what handlers say, played by the test.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use keelson_api::NodeNetworkConfigurationPolicy as Policy;
use keelson_api::enactment::enactment_name;
use keelson_testbed::until;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::stage::{PLAYED, Stage};

const PATIENCE: Duration = Duration::from_secs(60);

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object")
}

impl Stage {
    /// A node, Ready or not.
    pub(crate) async fn node(&self, name: &str, ready: bool) {
        let node = object(json!({"metadata": {"name": name, "labels": {PLAYED: name}}}));
        let made = self.nodes().create(&PostParams::default(), &node).await;
        made.expect("a Node");
        self.is_ready(name, ready).await;
    }

    pub(crate) async fn is_ready(&self, node: &str, ready: bool) {
        let now = Timestamp::now().to_string();
        let status = Patch::Strategic(json!({"status": {"conditions": [{
            "type": "Ready", "status": if ready { "True" } else { "False" },
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }]}}));
        let how = PatchParams::default();
        let told = self.nodes().patch_status(node, &how, &status).await;
        told.expect("a status of a Node");
    }

    /// A handler's pod on a node.
    pub(crate) async fn handler(&self, node: &str, name: &str) {
        let pod: Pod = object(json!({
            "metadata": {"name": name, "labels": {
                "app": "kubernetes-nmstate", "component": "kubernetes-nmstate-handler",
            }},
            "spec": {"nodeName": node, "containers": [{"name": "a", "image": "registry.example/a:1"}]},
        }));
        // A namespace has its account some moments after it is made.
        until("a pod that may be made", PATIENCE, async || {
            let made = self.namespaced().create(&PostParams::default(), &pod).await;
            made.map(drop).map_err(|error| error.to_string())
        })
        .await
        .expect("a pod");
    }

    pub(crate) async fn no_handler(&self, name: &str) {
        let how = DeleteParams::default().grace_period(0);
        let gone = self.namespaced::<Pod>().delete(name, &how).await;
        gone.expect("no pod");
    }

    /// Nodes that are Ready, with a handler each.
    pub(crate) async fn hosts(&self, names: &[&str]) {
        for name in names {
            self.node(name, true).await;
            self.handler(name, &format!("handler-{name}")).await;
        }
    }

    /// A policy for the nodes with these labels; gives its uid.
    pub(crate) async fn policy(&self, name: &str, selector: Value) -> String {
        let policy = object(json!({
            "metadata": {"name": name},
            "spec": {"nodeSelector": selector, "desiredState": {"interfaces": []}},
        }));
        let made = self
            .policies()
            .create(&PostParams::default(), &policy)
            .await;
        made.expect("a policy").metadata.uid.expect("a uid")
    }

    /// What the handler of a node says of a policy: the conditions that hold.
    pub(crate) async fn enacts(&self, node: &str, policy: &str, generation: i64, holds: &[&str]) {
        let name = enactment_name(node, policy);
        let all = ["Available", "Failing", "Progressing", "Pending", "Aborted"];
        let now = Timestamp::now().to_string();
        let conditions = all.map(|it| {
            let status = if holds.contains(&it) { "True" } else { "False" };
            json!({"type": it, "status": status, "lastHeartbeatTime": now})
        });
        let made = object(json!({"metadata": {"name": name, "labels": {
            "nmstate.io/node": node, "nmstate.io/policy": policy,
        }}}));
        let made = self
            .enactments()
            .create(&PostParams::default(), &made)
            .await;
        let known = |it: &kube::Error| matches!(it, kube::Error::Api(it) if it.is_already_exists());
        assert!(made.as_ref().err().is_none_or(known), "{made:?}");
        let status = json!({"status": {"policyGeneration": generation, "conditions": conditions}});
        let (how, status) = (PatchParams::default(), Patch::Merge(&status));
        let told = self.enactments().patch_status(&name, &how, &status).await;
        told.expect("a status of an enactment");
    }

    /// Names of all enactments.
    pub(crate) async fn enacted(&self) -> Vec<String> {
        let all = self.enactments().list(&ListParams::default()).await;
        let all = all.expect("a list").items.into_iter();
        all.filter_map(|it| it.metadata.name).collect()
    }

    /// Handlers' claims: node, uid of the policy, generation.
    pub(crate) async fn claims(&self, all: &[(&str, &str, i64)]) {
        let claim = |(node, policy, generation): &(&str, &str, i64)| {
            json!({
                "node": node, "policy": policy, "generation": generation, "state": "Held",
                "since": "2026-01-02T03:04:05Z", "expires": "2036-01-02T03:04:05Z",
            })
        };
        let claims: Vec<_> = all.iter().map(claim).collect();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nmstate-claims"},
            "data": {"claims.json": json!({"claims": claims}).to_string()},
        });
        let how = PatchParams::apply("handler").force();
        let maps = self.namespaced::<ConfigMap>();
        let written = maps
            .patch("nmstate-claims", &how, &Patch::Apply(&map))
            .await;
        written.expect("claims");
    }

    /// The nodes that have a claim.
    pub(crate) async fn claimants(&self) -> Vec<String> {
        let map = self.namespaced::<ConfigMap>().get("nmstate-claims").await;
        let data = map.expect("the claims").data.expect("data");
        let claims: Value = serde_json::from_str(&data["claims.json"]).expect("JSON");
        let all = claims["claims"].as_array().expect("a list").iter();
        all.filter_map(|it| it["node"].as_str().map(str::to_owned))
            .collect()
    }

    /// Waits until the one condition of a policy that holds says this.
    pub(crate) async fn stands(&self, policy: &str, condition: &str, message: &str) -> Policy {
        let what = format!("{policy} to be {condition}: {message}");
        until(&what, PATIENCE, async || {
            let found = self.policies().get(policy).await;
            let found = found.map_err(|error| error.to_string())?;
            let status = found.status.clone().unwrap_or_default();
            let mut holds = status.conditions.iter().filter(|it| it.status == "True");
            let is_so = holds
                .next()
                .is_some_and(|it| it.type_ == condition && it.message.as_deref() == Some(message));
            let current = status.observed_generation == found.metadata.generation;
            match is_so && current && holds.next().is_none() {
                true => Ok(found),
                false => Err(format!("{status:?}")),
            }
        })
        .await
        .expect("the standing")
    }
}
