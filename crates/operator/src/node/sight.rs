//! Looking at one node: its objects, its Secret and its sidecar, once at the top of a reconcile.
//!
//! Objects come from the watches and cost nothing. A handshake is made when something changed that
//! may change its result, and remembered until then; the sidecar is asked for its health over a
//! connection that is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Pod, Secret};
use keelson_api::SeiNode;
use keelson_api::names::Annotation;
use keelson_api::node_status::CurrentSidecarTls;
use keelson_cluster::{Calls, Key};
use keelson_plan::{Stage, Start, Tls};
use keelson_render::names;
use keelson_tls::certificate::Fingerprint;
use kube::ResourceExt;
use serde_json::json;

use super::desired::Desired;
use super::handshakes::{Ground, Handshakes};
use super::seen::{Claim, Ordered, Plain, SeenJob, SeenPod, Set};
use super::unstarted::Unstarted;
use super::world::World;
use crate::certificate::{self, Held, Unfit};
use crate::nudge::Nudges;
use crate::sidecar::{Audience, Sidecars, Spoken, Transport, Whom};

/// What is seen of one node.
#[derive(Clone, Debug)]
pub struct Sight {
    /// Its StatefulSet.
    pub set: Option<Arc<Set>>,
    /// Its Service.
    pub service: Option<Arc<Plain>>,
    /// Its proxy's configuration.
    pub config: Option<Arc<Plain>>,
    /// Its NetworkPolicy.
    pub policy: Option<Arc<Plain>>,
    /// Its Certificate.
    pub certificate: Option<Arc<Ordered>>,
    /// Its claim.
    pub claim: Option<Arc<Claim>>,
    /// Its pod.
    pub pod: Option<Arc<SeenPod>>,
    /// The pod of its bootstrap Job.
    pub bootstrap_pod: Option<Arc<SeenPod>>,
    /// Its bootstrap Job.
    pub job: Option<Arc<SeenJob>>,
    /// What the Secret of its certificate holds; nothing where it asks for none and has none.
    pub secret: Option<Result<Held, Unfit>>,
    /// What the port of its pod speaks.
    pub spoken: Spoken,
    /// How its sidecar can be called; nothing where it must not be.
    pub transport: Option<Transport>,
    /// Whether its sidecar has approved the start of the process.
    pub approved: Option<bool>,
    /// The pod whose port was looked at.
    pub met: Option<String>,
}

impl Sight {
    /// The pod a stage is about.
    pub fn pod_of(&self, stage: Stage) -> Option<&Arc<SeenPod>> {
        match stage {
            Stage::Bootstrap => self.bootstrap_pod.as_ref(),
            _ => self.pod.as_ref(),
        }
    }

    /// Whether the sidecar of a stage's pod can be called.
    pub fn can_call(&self, stage: Stage) -> bool {
        self.pod_of(stage).is_some_and(|pod| pod.can_be_called())
    }
}

/// Secrets by their versions.
type Read = (String, Arc<Option<Secret>>);

/// Looks at nodes, and remembers what need not be looked at again.
pub struct Eyes {
    calls: Calls,
    world: World,
    sidecars: Sidecars,
    handshakes: Handshakes,
    secrets: Mutex<HashMap<Key, Read>>,
    nudges: Nudges,
    unstarted: Unstarted,
}

impl Eyes {
    /// Eyes that have seen nothing yet.
    pub fn new(calls: Calls, world: World, sidecars: Sidecars) -> Self {
        Self {
            calls,
            world,
            sidecars,
            handshakes: Handshakes::default(),
            secrets: Mutex::default(),
            nudges: Nudges::default(),
            unstarted: Unstarted::default(),
        }
    }

    /// Forgets a node that is gone.
    pub fn forget(&self, key: &Key) {
        self.handshakes.forget(key);
        self.nudges.forget(key);
        self.unstarted.forget(key);
        let secret = at(key, names::certificate(&key.name));
        self.read_secrets().remove(&secret);
    }

    /// Looks at a node.
    pub async fn look(&self, key: &Key, node: &SeiNode, desired: &Desired) -> Sight {
        let mut sight = Sight {
            set: None,
            service: None,
            config: None,
            policy: None,
            certificate: None,
            claim: None,
            pod: None,
            job: None,
            bootstrap_pod: None,
            secret: None,
            spoken: Spoken::Unknown("there is no pod to ask".to_owned()),
            transport: None,
            approved: None,
            met: None,
        };
        let pod = self.world.pods.get(&at(key, names::pod(&key.name)));
        self.unstarted.ask(&self.calls, key, pod.as_deref()).await;
        self.refresh(key, desired, &mut sight);
        self.read_secret(key, node, desired, &mut sight).await;
        let stage = match sight.pod {
            Some(_) => Stage::Node,
            None => Stage::Bootstrap,
        };
        self.meet_again(key, node, desired, stage, &mut sight).await;
        sight
    }

    /// Looks at the node's objects again, which costs nothing.
    pub fn refresh(&self, key: &Key, desired: &Desired, sight: &mut Sight) {
        let world = &self.world;
        let claim = desired.demand.made.claim();
        sight.set = world.sets.get(&at(key, names::stateful_set(&key.name)));
        sight.service = world.services.get(&at(key, names::service(&key.name)));
        sight.config = world.configs.get(&at(key, names::proxy_config(&key.name)));
        sight.policy = world
            .policies
            .get(&at(key, names::network_policy(&key.name)));
        sight.certificate = world
            .certificates
            .get(&at(key, names::certificate(&key.name)));
        sight.claim = claim.and_then(|claim| world.claims.get(&at(key, claim)));
        let pod = world.pods.get(&at(key, names::pod(&key.name)));
        sight.pod = pod.map(|pod| self.unstarted.tell(key, pod));
        sight.job = world.jobs.get(&at(key, names::bootstrap_job(&key.name)));
        let bootstraps = matches!(desired.target.start, Start::Bootstrap { .. });
        sight.bootstrap_pod = match bootstraps || sight.job.is_some() {
            true => self.bootstrap_pod(key),
            false => None,
        };
    }

    /// Looks again at what the Secret of the certificate holds.
    pub async fn read_secret(
        &self,
        key: &Key,
        node: &SeiNode,
        desired: &Desired,
        sight: &mut Sight,
    ) {
        sight.secret = self.held(key, node, desired).await;
    }

    /// Looks again at what the pod of a stage speaks, and whether its sidecar is ready.
    pub async fn meet_again(
        &self,
        key: &Key,
        node: &SeiNode,
        desired: &Desired,
        stage: Stage,
        sight: &mut Sight,
    ) {
        (sight.transport, sight.approved, sight.met) = (None, None, None);
        match sight.pod_of(stage).cloned() {
            Some(pod) if pod.can_be_called() => self.meet(key, node, desired, &pod, sight).await,
            _ => sight.spoken = Spoken::Unknown("there is no pod to ask".to_owned()),
        }
    }

    /// Whether it is time to have the kubelet look at a pod.
    pub fn may_nudge(&self, key: &Key) -> bool {
        self.nudges.is_due(key)
    }

    fn bootstrap_pod(&self, key: &Key) -> Option<Arc<SeenPod>> {
        let pods = self.world.pods_beside(key).into_iter();
        // A pod that is going is looked at only if there is no other.
        pods.filter(|pod| pod.identity.bootstrap)
            .min_by_key(|pod| pod.identity.leaving)
    }

    async fn meet(
        &self,
        key: &Key,
        node: &SeiNode,
        desired: &Desired,
        pod: &SeenPod,
        sight: &mut Sight,
    ) {
        let whom = whom(key, pod);
        let held = sight.secret.as_ref().and_then(|it| it.as_ref().ok());
        let names = names::dns(&key.name, &key.namespace);
        let pins = certificate::pins(held, known(node), &names).ok();
        let ground = Ground {
            pod: pod.identity.uid.clone(),
            proxy: pod.proxy.id.clone(),
            config: sight.config.as_ref().map(|it| it.identity.version.clone()),
            secret: held.map(|held| held.fingerprint.to_string()),
            wanted: desired.target.tls.clone(),
        };
        let believed = self.handshakes.believed(key, &ground);
        let spoken = match believed {
            Some(spoken) => spoken,
            None => self.sidecars.speaks(&whom, pins.as_ref()).await,
        };
        let as_wanted = match (&spoken, &desired.target.tls) {
            (Spoken::Plaintext, wanted) => wanted.is_none(),
            (Spoken::Tls(peer), Some(_)) => {
                held.is_some_and(|held| held.fingerprint == peer.leaf.fingerprint)
            }
            _ => false,
        };
        if as_wanted {
            self.handshakes.believe(key, ground, &spoken);
        }
        // A token travels in the clear only while nobody asks for TLS, or none was ever spoken here.
        let clear = desired.target.tls.is_none() || !pod.spoke_tls;
        sight.transport = match (&spoken, pins) {
            (Spoken::Plaintext, _) if clear => Some(Transport::Plaintext),
            (Spoken::Tls(_), Some(pins)) if self.marked(key, desired, pod).await => {
                Some(Transport::Tls(pins))
            }
            _ => None,
        };
        if let Some(over) = &sight.transport {
            sight.approved = self.sidecars.health(&whom, over).await.ok();
            // What was believed of a port that does not answer so is looked at again.
            if sight.approved.is_none() {
                self.handshakes.forget(key);
            }
        }
        sight.spoken = spoken;
        sight.met = Some(pod.identity.uid.clone());
    }

    /// Sees to it that a pod which speaks TLS, as it shall, is marked: from then on it gets no token in
    /// the clear, whoever made it and whatever it speaks later. One that cannot be marked gets none.
    async fn marked(&self, key: &Key, desired: &Desired, pod: &SeenPod) -> bool {
        if desired.target.tls.is_none() || pod.spoke_tls {
            return true;
        }
        let patch = json!({ "metadata": {
            // Another pod of this name is a conflict.
            "uid": pod.identity.uid,
            "annotations": { Annotation::SpokeTls.as_str(): jiff::Timestamp::now().to_string() },
        }});
        match self
            .calls
            .merge::<Pod>(&key.namespace, &pod.name, &patch)
            .await
        {
            Ok(marked) => {
                if let Some(pod) = &marked {
                    let version = pod.resource_version().unwrap_or_default();
                    let pods = &self.world.pods;
                    pods.note(Key::of(pod), &version, SeenPod::read(pod));
                }
                marked.is_some()
            }
            Err(error) => {
                tracing::info!(node = %key, "the pod was not marked: {error}");
                false
            }
        }
    }

    /// What the Secret of the node's certificate holds, if it asks for one or serves one.
    async fn held(
        &self,
        key: &Key,
        node: &SeiNode,
        desired: &Desired,
    ) -> Option<Result<Held, Unfit>> {
        let names = names::dns(&key.name, &key.namespace);
        let own = names::certificate(&key.name);
        let serves = node
            .status
            .as_ref()
            .and_then(|it| it.current_sidecar_tls.as_ref());
        let wanted = match (&desired.target.tls, serves) {
            (Some(tls), _) => tls.clone(),
            (None, Some(current)) => served(current)?,
            (None, None) => return None,
        };
        let name = match &wanted {
            Tls::Secret(name) => name.clone(),
            Tls::Issuer { .. } => own.clone(),
        };
        Some(match self.secret(key, &name).await {
            Ok(secret) => certificate::fits(secret.as_ref().as_ref(), &wanted, &own, &names),
            Err(error) => Err(Unfit::Unavailable(error.to_string())),
        })
    }

    /// A Secret, read again only if its version is another.
    pub async fn secret(
        &self,
        key: &Key,
        name: &str,
    ) -> Result<Arc<Option<Secret>>, keelson_cluster::Error> {
        let at = at(key, name.to_owned());
        let Some(version) = self.world.secrets.get(&at) else {
            return Ok(Arc::new(None));
        };
        if let Some((read, secret)) = self.read_secrets().get(&at)
            && *read == *version
        {
            return Ok(secret.clone());
        }
        let secret = Arc::new(self.calls.get::<Secret>(&key.namespace, name).await?);
        let read = (version.as_ref().clone(), secret.clone());
        // Keys are looked at once and not kept: only what handshakes need again and again is.
        if names::certificate(&key.name) == name {
            self.read_secrets().insert(at, read);
        }
        Ok(secret)
    }

    fn read_secrets(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Read>> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Another object of the same namespace.
pub(crate) fn at(key: &Key, name: String) -> Key {
    Key {
        namespace: key.namespace.clone(),
        name,
    }
}

/// Whom a call to this pod goes to.
pub(crate) fn whom(key: &Key, pod: &SeenPod) -> Whom {
    Whom {
        namespace: key.namespace.clone(),
        node: key.name.clone(),
        pod_uid: pod.identity.uid.clone(),
        ip: pod.ip,
    }
}

/// Whom a token for this pod is for.
pub(crate) fn audience(pod: &SeenPod) -> Audience {
    match pod.made.audience {
        true => Audience::Node,
        false => Audience::ApiServer,
    }
}

/// The leaf that was served last.
fn known(node: &SeiNode) -> Option<Fingerprint> {
    let current = node.status.as_ref()?.current_sidecar_tls.as_ref()?;
    current.fingerprint.as_ref()?.parse().ok()
}

/// Where the certificate that is served comes from, as the status says.
pub(crate) fn served(current: &CurrentSidecarTls) -> Option<Tls> {
    match (
        &current.issuer_name,
        current.issuer_kind,
        &current.secret_name,
    ) {
        (Some(name), kind, _) => Some(Tls::Issuer {
            name: name.clone(),
            kind: kind.unwrap_or(keelson_api::sidecar::IssuerKind::ClusterIssuer),
        }),
        (None, _, Some(name)) => Some(Tls::Secret(name.clone())),
        (None, _, None) => None,
    }
}
