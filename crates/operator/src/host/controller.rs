//! The controller of NMStates: one look at everything, again and again.
//!
//! A look is observe, decide, apply, report, and is written in `pass`. There is one
//! NMState that counts, so there is one thing to look at, and one look at a time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use keelson_api::host::{HANDLER, IS_OPENSHIFT_VARIABLE, OPENSHIFT_WEBHOOK_SECRET, WEBHOOK};
use keelson_cluster::{Calls, Key, Needed};
use keelson_render::host::Identity;
use serde::de::DeserializeOwned;

use super::certify::Memory;
use super::pass::Pass;
use super::platform::{self, Platform};
use super::settings::Settings;
use super::world::{World, everything};
use crate::nudge::Nudges;

/// How often everything is looked at where nothing happens.
const SETTLED: Duration = Duration::from_secs(60);

/// The least time between two looks that nothing else asked for: one that comes to nothing, because
/// somebody undoes what it does, must not be one of a thousand a second.
const LEAST: Duration = Duration::from_millis(500);

/// The controller of NMStates.
pub struct Controller {
    /// What it was told.
    pub settings: Settings,
    /// Calls to the API server.
    pub calls: Calls,
    /// What is known.
    pub world: World,
    /// What clients were seen to trust.
    pub(super) memory: Memory,
    /// Kubelets that were asked to bring a new profile.
    pub(super) profiles: Nudges,
    /// Kubelets that were asked to bring a new certificate.
    pub(super) certificates: Nudges,
    platform: Mutex<Platform>,
    /// What an object looks like to its reader once it was applied: digest of what was wanted, and of
    /// what came of it.
    applied: Mutex<HashMap<Identity, (String, String)>>,
    trouble: Mutex<u32>,
}

impl Controller {
    /// A controller that has not looked at anything yet.
    pub fn new(settings: Settings, calls: Calls, world: World) -> Self {
        Self {
            settings,
            calls,
            world,
            memory: Memory::default(),
            profiles: Nudges::default(),
            certificates: Nudges::default(),
            platform: Mutex::default(),
            applied: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    /// Looks after NMStates, for ever. Begin to watch first.
    pub async fn run(&self) {
        self.begin().await;
        let look = self.world.queue.work(1, |_: Key| Box::pin(self.look()));
        join(self.watch_platform(), look).await;
    }

    /// Waits until enough is known for a first look, and takes up what was known before this process.
    pub async fn begin(&self) {
        Needed::known(self.world.needed()).await;
        *lock(&self.platform) =
            Platform::remembered(self.rendered_openshift(), self.rendered_service_ca());
    }

    /// What is held to be true of the cluster.
    pub fn platform(&self) -> Platform {
        lock(&self.platform).clone()
    }

    async fn watch_platform(&self) {
        loop {
            let known = self.look_at_platform().await;
            let again = match known {
                true => platform::AGAIN,
                false => Duration::from_secs(2),
            };
            tokio::time::sleep(again).await;
        }
    }

    /// Asks what the cluster can do; gives whether everything is known.
    pub async fn look_at_platform(&self) -> bool {
        let mut seen = self.platform();
        platform::look(&self.calls.client(), &mut seen, Timestamp::now()).await;
        let known = seen.unknown().is_empty();
        let before = std::mem::replace(&mut *lock(&self.platform), seen.clone());
        if before != seen {
            self.world.queue.add(everything());
        }
        known
    }

    /// Whether the installation that is there was made for OpenShift: what was known before.
    fn rendered_openshift(&self) -> Option<bool> {
        let handler: DaemonSet = self.seen("DaemonSet", HANDLER)?;
        let pod = handler.spec?.template.spec?;
        let mut told = pod.containers.iter().flat_map(|it| it.env.iter().flatten());
        let said = told.find(|it| it.name == IS_OPENSHIFT_VARIABLE)?;
        Some(said.value.as_deref() == Some("true"))
    }

    /// Whether the webhook that is there has its certificate from service-ca.
    fn rendered_service_ca(&self) -> Option<bool> {
        let webhook: Deployment = self.seen("Deployment", WEBHOOK)?;
        let pod = webhook.spec?.template.spec?;
        let volumes = pod.volumes.iter().flatten();
        let mut secrets = volumes.filter_map(|it| it.secret.as_ref()?.secret_name.as_deref());
        Some(secrets.any(|it| it == OPENSHIFT_WEBHOOK_SECRET))
    }

    /// An object of ours that decisions are made from.
    pub(super) fn seen<K: DeserializeOwned>(&self, kind: &str, name: &str) -> Option<K> {
        let mut objects = self.world.objects.iter();
        let (_, mirror) = objects.find(|(it, _)| it.kind == kind)?;
        let seen = mirror.get(&Key {
            namespace: self.settings.namespace.clone(),
            name: name.to_owned(),
        })?;
        seen.as_type()
    }

    /// One look at everything; gives when to look again.
    pub async fn look(&self) -> Option<Duration> {
        match Pass::new(self, Timestamp::now()).run().await {
            Ok(after) => {
                *lock(&self.trouble) = 0;
                Some(after.unwrap_or(SETTLED).clamp(LEAST, SETTLED))
            }
            Err(error) => {
                let mut times = lock(&self.trouble);
                *times = (*times + 1).min(5);
                tracing::warn!("NMStates were not looked after: {error}");
                Some(Duration::from_secs(1 << *times))
            }
        }
    }

    /// Whether an object that looks like `seen` is what `wanted` makes of it.
    pub(super) fn is_so(&self, identity: &Identity, wanted: &str, seen: &str) -> bool {
        let applied = lock(&self.applied);
        seen == wanted
            || applied
                .get(identity)
                .is_some_and(|(was, became)| was == wanted && became == seen)
    }

    /// Notes what became of an object that was applied.
    pub(super) fn became(&self, identity: &Identity, wanted: String, seen: String) {
        lock(&self.applied).insert(identity.clone(), (wanted, seen));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
