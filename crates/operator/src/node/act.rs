//! Doing one step of a plan: look, then act.
//!
//! Every task looks at what is there and does nothing where that is right, so each may be done again
//! after a crash. In which order tasks come is for `plan`; what came of one is said in the four ways
//! of [`Outcome`], and only there.

mod bootstrap;
mod certificate;
mod keys;
mod pod;
mod sidecar;
mod volume;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use keelson_api::SeiNode;
use keelson_cluster::{Calls, Error, Key};
use keelson_plan::{Entry, Outcome, Plan, Stage, Task, Waiting};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};

use super::desired::{Desired, Wanted};
use super::points::{Point, Points};
use super::seen::{Identity, Plain, Set};
use super::sight::{Eyes, Sight};
use super::world::World;
use crate::platform::Settings;
use crate::sidecar::Sidecars;

/// Everything a step needs.
pub struct Act<'a> {
    /// The node's name.
    pub key: &'a Key,
    /// The node.
    pub node: &'a SeiNode,
    /// Its uid.
    pub uid: &'a str,
    /// What it asks for.
    pub desired: &'a Desired,
    /// What is seen of it.
    pub sight: Sight,
    /// The platform.
    pub settings: &'a Settings,
    /// Calls to the API server.
    pub calls: &'a Calls,
    /// What is known of everything.
    pub world: &'a World,
    /// For what has to be looked at again.
    pub eyes: &'a Eyes,
    /// Calls to sidecars.
    pub sidecars: &'a Sidecars,
    /// Where tests may stop it.
    pub points: &'a Points,
}

/// What went wrong with a call, as an outcome.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        // What the server refuses it refuses again, but rights and quotas are given by people while
        // we wait; only an object that is not valid stays so.
        Self(Outcome::Retry {
            error: error.to_string(),
            spent: false,
        })
    }
}

/// An outcome that ends a task early.
pub struct Problem(Outcome);

impl From<Waiting> for Problem {
    fn from(on: Waiting) -> Self {
        Self(Outcome::Waiting { on })
    }
}

impl Problem {
    fn fatal(error: impl Into<String>) -> Self {
        Self(Outcome::Fatal {
            error: error.into(),
        })
    }
}

type Done = Result<(), Problem>;

impl Act<'_> {
    /// Does one step, and says what came of it.
    pub async fn perform(&mut self, plan: &Plan, entry: &Entry) -> Outcome {
        self.eyes.refresh(self.key, self.desired, &mut self.sight);
        let done = match entry.step.task {
            Task::EnsureVolume => self.ensure_volume().await,
            Task::ValidateSigningKey => self.validate_signing_key().await,
            Task::ValidateNodeKey => self.validate_node_key().await,
            Task::ValidateOperatorKeyring => self.validate_keyring().await,
            Task::OrderCertificate => self.order_certificate().await,
            Task::AwaitSecret => self.await_secret().await,
            Task::ApplyProxyConfig => {
                let wanted = &self.desired.config.wanted;
                let seen = self.sight.config.clone();
                self.apply::<ConfigMap>(&self.world.configs, wanted, seen.as_deref())
                    .await
            }
            Task::ApplyNetworkPolicy => self.apply_network_policy().await,
            Task::DeployBootstrapService => self.deploy_bootstrap_service().await,
            Task::DeployBootstrapJob => self.deploy_bootstrap_job().await,
            Task::ApplyStatefulSet => self.apply_stateful_set().await,
            Task::ApplyService => {
                let wanted = &self.desired.service;
                let seen = self.sight.service.clone();
                self.apply::<Service>(&self.world.services, wanted, seen.as_deref())
                    .await
            }
            Task::PatchImages => self.patch_images(plan).await,
            Task::ReplacePod => self.replace_pod(plan).await,
            Task::ObserveImage => self.observe_image(plan, entry).await,
            Task::ObserveTls => self.observe_tls(entry.step.stage).await,
            Task::DeleteCertificate => self.delete_certificate().await,
            Task::AwaitBootstrap => self.await_bootstrap(),
            Task::TeardownBootstrap => self.teardown_bootstrap().await,
            Task::RestartProcess => self.restart_process(plan, entry).await,
            Task::SnapshotUpload if !plan.target.publishes => self.end_upload(plan, entry).await,
            _ => self.submit(plan, entry).await,
        };
        match done {
            Ok(()) => Outcome::Done,
            Err(Problem(outcome)) => outcome,
        }
    }

    /// Applies an object, unless it is as it should be.
    async fn apply<K>(
        &self,
        mirror: &keelson_cluster::Mirror<Plain>,
        wanted: &Wanted,
        seen: Option<&Plain>,
    ) -> Done
    where
        K: kube::Resource<DynamicType = ()>,
    {
        if let Some(seen) = seen {
            self.check_owner(&K::kind(&()), &wanted.object, &seen.identity)?;
            if seen.digest == wanted.digest {
                return Ok(());
            }
        }
        let resource = ApiResource::erase::<K>(&());
        let object = self.calls.apply_as(&resource, &wanted.object).await?;
        note(mirror, &object, Plain::read(&object));
        Ok(())
    }

    async fn apply_network_policy(&self) -> Done {
        let Some(wanted) = &self.desired.network_policy else {
            return Ok(());
        };
        let seen = self.sight.policy.clone();
        self.apply::<NetworkPolicy>(&self.world.policies, wanted, seen.as_deref())
            .await
    }

    async fn apply_stateful_set(&self) -> Done {
        if let Some(set) = &self.sight.set {
            let object = &self.desired.stateful_set;
            self.check_owner("StatefulSet", object, &set.identity)?;
            if set.made == self.desired.demand.made && set.keeps_one_pod {
                return Ok(());
            }
        }
        let resource = ApiResource::erase::<StatefulSet>(&());
        let applied = self
            .calls
            .apply_as(&resource, &self.desired.stateful_set)
            .await?;
        if let Ok(set) = applied.clone().try_parse::<StatefulSet>() {
            note(&self.world.sets, &applied, Set::read(&set));
        }
        Ok(())
    }

    /// An object that belongs to someone else is waited for, not taken.
    fn check_owner(&self, kind: &str, object: &serde_json::Value, seen: &Identity) -> Done {
        if seen.is_of_another(self.uid) || seen.leaving {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return Err(Waiting::Owner {
                object: format!("{kind} {name}"),
            }
            .into());
        }
        Ok(())
    }

    /// Between two effects of one task.
    async fn pass(&self, task: Task) {
        self.points.pass(self.key, Point::Within(task)).await;
    }

    /// Name of the pod a stage is about.
    fn pod_name(&self, stage: Stage) -> String {
        match self.sight.pod_of(stage) {
            Some(pod) => pod.name.clone(),
            None => keelson_render::names::pod(&self.key.name),
        }
    }
}

/// Remembers the answer to a write, so that the next look sees it.
fn note<V: Send + Sync + 'static>(
    mirror: &keelson_cluster::Mirror<V>,
    object: &DynamicObject,
    value: V,
) {
    let version = object.resource_version().unwrap_or_default();
    mirror.note(Key::of(object), &version, value);
}
