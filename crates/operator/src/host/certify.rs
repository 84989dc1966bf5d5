//! The steps of certificates, done: Secrets read and written, replicas looked at.
//!
//! What is done next is decided in [`certificates`](super::certificates); here it is done, as far as
//! it can be at once. Telling the API server whom to trust is not done here: the bundle is part of
//! what is rendered, and every look applies that.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use keelson_api::host::{CA_SECRET, METRICS_SECRET, METRICS_SERVICE, WEBHOOK, WEBHOOK_SECRET};
use keelson_api::names::{HostWorkload, Label};
use keelson_cluster::{Calls, Key};
use keelson_tls::{Pins, observe};

use super::certificates::store::{self, Authorities, Data};
use super::certificates::{Intervals, Replica, Seen, Server, Step, Trusted, behind, next};
use super::refresh::refresh;
use super::world::{World, data};
use crate::nudge::Nudges;

/// How long a handshake with a replica may take.
const HANDSHAKE: Duration = Duration::from_secs(3);

/// No rotation takes more steps at once than this.
const STEPS: usize = 8;

/// What clients were last seen to trust.
#[derive(Default)]
pub struct Memory(Mutex<Told>);

/// What clients were told.
#[derive(Default)]
enum Told {
    /// It was not looked at yet.
    #[default]
    Unknown,
    /// Nothing, as far back as this process knows: there was no configuration.
    Nothing,
    /// Whom to trust.
    These(Trusted),
}

impl Memory {
    /// Notes that there is no configuration. Where there was one, who has not heard of its end yet
    /// still trusts what it said.
    fn nothing(&self) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*told, Told::Unknown) {
            *told = Told::Nothing;
        }
    }

    /// What is known of clients that trust exactly these.
    fn trust(&self, roots: BTreeSet<String>, now: Timestamp) -> Trusted {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*told {
            Told::These(known) if known.roots == roots => known.clone(),
            before => {
                let trusted = Trusted {
                    roots,
                    since: now,
                    first: matches!(before, Told::Nothing),
                };
                *told = Told::These(trusted.clone());
                trusted
            }
        }
    }
}

/// How certificates stand after everything that could be done at once.
pub struct Standing {
    /// What clients shall trust, PEM.
    pub bundle: String,
    /// When to look again.
    pub until: Timestamp,
    /// What is waited for.
    pub waits: Option<String>,
}

/// What the steps need.
pub struct Certify<'a> {
    /// Calls to the API server.
    pub calls: &'a Calls,
    /// What is known.
    pub world: &'a World,
    /// What clients were seen to trust.
    pub memory: &'a Memory,
    /// Kubelets that were asked to bring a new certificate.
    pub nudges: &'a Nudges,
    /// Namespace of the host components.
    pub namespace: &'a str,
    /// The NMState, which the Secrets go with.
    pub owner: OwnerReference,
    /// How long things are used.
    pub intervals: Intervals,
    /// Port of the metrics endpoint.
    pub metrics_port: u16,
}

impl Certify<'_> {
    /// Does what can be done now.
    pub async fn run(&self, now: Timestamp) -> Result<Standing, String> {
        let trusted = self.trusted();
        let kept = self.secret(CA_SECRET).await?;
        let known = trusted.clone().unwrap_or_default();
        let mut authorities = Authorities::read(kept.as_ref(), &known);
        let mut replicas = None;
        for _ in 0..STEPS {
            let seen = Seen {
                roots: authorities.roots(),
                trusted: trusted
                    .as_deref()
                    .map(|bundle| self.memory.trust(Authorities::names(bundle), now)),
                leaves: self.leaves().await?,
                replicas: match authorities.roots().len() {
                    0 | 1 => Vec::new(),
                    _ => self.replicas(&authorities, &mut replicas).await,
                },
            };
            self.refresh(&behind(&seen)).await;
            let step = next(&seen, &self.intervals, now);
            tracing::debug!(?step, "certificates");
            match step {
                Step::Found => {
                    authorities
                        .found(&self.intervals, now)
                        .map_err(|error| error.to_string())?;
                    self.keep(CA_SECRET, "Opaque", authorities.data()).await?;
                }
                Step::Issue(server) => self.issue(&authorities, server, now).await?,
                Step::Forget(names) => {
                    authorities.forget(&names);
                    self.keep(CA_SECRET, "Opaque", authorities.data()).await?;
                    // What clients trust is narrowed by what is applied next, and is looked at again.
                    return Ok(standing(&authorities, now, None));
                }
                Step::Trust(_) => return Ok(standing(&authorities, now, None)),
                Step::Wait { why, until } => return Ok(standing(&authorities, until, Some(why))),
                Step::Rest { until } => return Ok(standing(&authorities, until, None)),
            }
        }
        Ok(standing(&authorities, now, None))
    }

    /// What every webhook of the configuration trusts; none where there is no configuration.
    fn trusted(&self) -> Option<Vec<u8>> {
        let configurations = self
            .world
            .objects
            .iter()
            .find(|(kind, _)| kind.kind == "MutatingWebhookConfiguration");
        let key = Key {
            namespace: String::new(),
            name: keelson_api::host::WEBHOOK_CONFIGURATION.to_owned(),
        };
        let Some(seen) = configurations.and_then(|(_, mirror)| mirror.get(&key)) else {
            self.memory.nothing();
            return None;
        };
        let configuration: MutatingWebhookConfiguration = seen.as_type()?;
        let webhooks = configuration.webhooks.unwrap_or_default();
        let bundles: Vec<Vec<u8>> = webhooks
            .into_iter()
            .map(|it| {
                it.client_config
                    .ca_bundle
                    .map(|it| it.0)
                    .unwrap_or_default()
            })
            .collect();
        // One that trusts something else than the others is mended by what is applied next.
        let first = bundles.first().cloned()?;
        bundles.iter().all(|it| *it == first).then_some(first)
    }

    async fn leaves(&self) -> Result<Vec<super::certificates::Leaf>, String> {
        let mut leaves = Vec::new();
        for server in Server::ALL {
            let kept = self.secret(secret_of(server)).await?.unwrap_or_default();
            leaves.extend(store::leaf(server, &kept, &self.names(server)));
        }
        Ok(leaves)
    }

    /// What every replica presents, asked once in a look.
    async fn replicas(
        &self,
        authorities: &Authorities,
        asked: &mut Option<Vec<Replica>>,
    ) -> Vec<Replica> {
        if let Some(known) = asked {
            return known.clone();
        }
        let bundle = authorities.bundle();
        let pods = self.world.pods.all();
        let ours = pods.into_iter().filter_map(|(key, pod)| {
            let server = match pod.component.as_str() {
                it if it == HostWorkload::Webhook.as_str() => Server::Webhook,
                it if it == HostWorkload::Metrics.as_str() => Server::Metrics,
                _ => return None,
            };
            (!pod.ended).then_some((key, pod, server))
        });
        let bundle = &bundle;
        let looks = ours.map(|(key, pod, server)| async move {
            let port = match server {
                Server::Webhook => keelson_api::host::WEBHOOK_PORT,
                Server::Metrics => self.metrics_port,
            };
            let pins = Pins::authorities(bundle, &self.names(server)).ok();
            let presents = match (pod.address, pins) {
                (Some(address), Some(pins)) => {
                    let peer = observe(SocketAddr::from((address, port)), &pins, HANDSHAKE).await;
                    peer.ok().map(|peer| store::name(&peer.leaf))
                }
                _ => None,
            };
            Replica {
                name: called(&key),
                presents,
            }
        });
        let seen = join_all(looks).await;
        *asked = Some(seen.clone());
        seen
    }

    /// Has the kubelets of these bring what the Secrets hold now.
    async fn refresh(&self, behind: &[&Replica]) {
        let is_behind = |key: &Key| behind.iter().any(|it| it.name == called(key));
        let pods = self.world.pods.all().into_iter();
        let theirs: Vec<_> = pods
            .filter(|(key, pod)| pod.running && is_behind(key))
            .collect();
        refresh(self.calls, self.nudges, &theirs).await;
    }

    async fn issue(
        &self,
        authorities: &Authorities,
        server: Server,
        now: Timestamp,
    ) -> Result<(), String> {
        let issued = authorities.issue(&self.names(server), &self.intervals, now);
        let issued = issued.map_err(|error| error.to_string())?;
        let kept = store::leaf_data(&issued, &authorities.bundle());
        self.keep(secret_of(server), "kubernetes.io/tls", kept)
            .await
    }

    fn names(&self, server: Server) -> Vec<String> {
        let service = match server {
            Server::Webhook => WEBHOOK,
            Server::Metrics => METRICS_SERVICE,
        };
        let namespace = self.namespace;
        vec![
            service.to_owned(),
            format!("{service}.{namespace}"),
            format!("{service}.{namespace}.svc"),
        ]
    }

    /// A Secret: from the watch, or, where it is none of ours yet, as it is.
    async fn secret(&self, name: &str) -> Result<Option<Data>, String> {
        let key = self.key(name);
        if let Some(known) = self.world.secrets.get(&key) {
            return Ok(Some(known.as_ref().clone()));
        }
        let found: Option<Secret> = self
            .calls
            .get(self.namespace, name)
            .await
            .map_err(|error| error.to_string())?;
        Ok(found.map(data))
    }

    async fn keep(&self, name: &str, type_: &str, kept: Data) -> Result<(), String> {
        let labels = [(Label::App.to_string(), "kubernetes-nmstate".to_owned())];
        let bytes = kept.clone().into_iter();
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.to_owned()),
                labels: Some(labels.into()),
                owner_references: Some(vec![self.owner.clone()]),
                ..ObjectMeta::default()
            },
            data: Some(bytes.map(|(key, bytes)| (key, ByteString(bytes))).collect()),
            type_: Some(type_.to_owned()),
            ..Secret::default()
        };
        let applied = self
            .calls
            .apply(&secret)
            .await
            .map_err(|error| error.to_string())?;
        let version = applied.metadata.resource_version.unwrap_or_default();
        self.world.secrets.note(self.key(name), &version, kept);
        Ok(())
    }

    fn key(&self, name: &str) -> Key {
        Key {
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// How a replica is called.
fn called(pod: &Key) -> String {
    format!("pod {}", pod.name)
}

fn secret_of(server: Server) -> &'static str {
    match server {
        Server::Webhook => WEBHOOK_SECRET,
        Server::Metrics => METRICS_SECRET,
    }
}

fn standing(authorities: &Authorities, until: Timestamp, waits: Option<String>) -> Standing {
    Standing {
        bundle: String::from_utf8_lossy(&authorities.bundle()).into_owned(),
        until,
        waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a moment")
    }

    fn roots(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn a_bundle_is_the_first_only_where_none_was_seen_before_it() {
        let found = Memory::default();
        assert!(!found.trust(roots(&["a"]), at(1)).first, "made by another");

        let memory = Memory::default();
        memory.nothing();
        let first = memory.trust(roots(&["a"]), at(1));
        assert!(first.first);
        assert_eq!(memory.trust(roots(&["a"]), at(9)), first);
        memory.nothing();
        let other = memory.trust(roots(&["b"]), at(10));
        assert_eq!((other.since, other.first), (at(10), false));
    }
}
