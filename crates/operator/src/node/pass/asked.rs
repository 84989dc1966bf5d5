//! What people ask of a node besides its spec: that it go, that it try again; and what it may not do
//! because of others: take its turn before them, or sign with their key.

use std::time::Duration;

use keelson_api::SeiNode;
use keelson_api::event::NodeEvent;
use keelson_api::names::{Annotation, Finalizer};
use keelson_cluster::Error;
use keelson_plan::{Drift, Plan};
use serde_json::json;

use super::{Known, Pass};
use crate::node::desired::Desired;
use crate::node::sight;
use crate::rights::PROXY;

impl Pass<'_> {
    /// A node that is being deleted: what belongs to it goes with it by its owner references. The
    /// original's finalizer is taken off once the claim is safe.
    pub(super) async fn leave(&mut self) -> Result<Duration, Error> {
        let finalizers = self.node.metadata.finalizers.clone().unwrap_or_default();
        let ours = Finalizer::Node.as_str();
        let again = self.controller.settled(self.key);
        if !finalizers.iter().any(|it| it == ours) {
            return Ok(again);
        }
        let desired = Desired::of(&self.node, &self.controller.settings, Vec::new(), None);
        if let Ok(desired) = desired {
            let eyes = &self.controller.eyes;
            let known = Known {
                sight: eyes.look(self.key, &self.node, &desired).await,
                desired,
            };
            let uid = self.uid();
            self.hands(&known, &uid).settle_claim().await?;
        }
        if self.node.spec.retains_volume() {
            self.say(
                NodeEvent::VolumeRetained,
                "the data volume outlives the node".to_owned(),
            );
        }
        let rest: Vec<&String> = finalizers.iter().filter(|it| *it != ours).collect();
        let patch = json!({ "metadata": {
            "resourceVersion": self.node.metadata.resource_version,
            "finalizers": rest,
        }});
        let calls = &self.controller.calls;
        calls
            .merge::<SeiNode>(&self.key.namespace, &self.key.name, &patch)
            .await?;
        Ok(again)
    }

    /// Sees to it that the proxies of the namespace may ask who calls, or says that a person has to.
    pub(super) async fn bind_proxies(&self) {
        let controller = self.controller;
        let client = controller.calls.client();
        let account = &controller.settings.render.service_account;
        let (bindings, namespace) = (&controller.bindings, &self.key.namespace);
        if let Some(refusal) = bindings.ensure(&client, namespace, account).await {
            let note = format!(
                "the proxies of {namespace} may not ask who calls until ServiceAccount {account} is bound to ClusterRole {PROXY} by hand: {refusal}"
            );
            tracing::warn!(namespace, "{note}");
            self.say(NodeEvent::ProxiesNotBound, note);
        }
    }

    pub(super) fn asked_retry(&self) -> Option<String> {
        let annotations = self.node.metadata.annotations.as_ref();
        annotations.and_then(|it| it.get(Annotation::Retry.as_str()).cloned())
    }

    pub(super) fn is_to_retry(&self) -> bool {
        let asked = self.asked_retry();
        asked.is_some() && asked != self.retried
    }

    /// A person asks for another attempt, by a new value of an annotation.
    pub(super) async fn obey_retry(&mut self, known: &Known) -> Result<(), Error> {
        if !self.is_to_retry() {
            return Ok(());
        }
        self.memory.lift();
        let uid = self.uid();
        self.hands(known, &uid).order_again().await?;
        self.say(
            NodeEvent::RetryRequested,
            "another attempt was asked for".to_owned(),
        );
        self.retried = self.asked_retry();
        Ok(())
    }

    /// Whether a plan may begin: what the platform changed for all goes through one node at a time.
    pub(super) fn is_our_turn(&self, plan: &Plan) -> bool {
        let sidecar = self.node.spec.sidecar.as_ref();
        let asked = sidecar.is_some_and(|sidecar| sidecar.image.is_some());
        let of_platform = plan.causes.iter().all(|cause| match cause {
            Drift::SidecarImage => !asked,
            Drift::ProxyImage => true,
            _ => false,
        });
        !of_platform || self.controller.may_follow_platform(self.key)
    }

    /// Another node that has this one's signing key: one that was there first, or whose pod still
    /// runs with it.
    pub(super) fn holder_of_signing_key(&self) -> Option<String> {
        let validator = self.node.spec.validator.as_ref()?;
        let secret = &validator.signing_key.as_ref()?.secret.secret_name;
        let world = &self.controller.world;
        let of = sight::at(self.key, secret.clone());
        let age = |node: &SeiNode| {
            let created = node.metadata.creation_timestamp.as_ref().map(|it| it.0);
            (created, node.metadata.uid.clone())
        };
        let users = world.users_of_secret(&of).into_iter();
        let older = users.filter(|key| key != self.key).find(|key| {
            world
                .nodes
                .get(key)
                .is_some_and(|other| age(&other) < age(&self.node))
        });
        let running = || {
            let pods = world.pods.all().into_iter();
            pods.filter(|(at, pod)| {
                at.namespace == self.key.namespace
                    && pod.identity.node != self.key.name
                    && pod.made.signing_key.as_ref() == Some(secret)
            })
            .map(|(_, pod)| pod.identity.node.clone())
            .next()
        };
        older.map(|key| key.name).or_else(running)
    }
}
