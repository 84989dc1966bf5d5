//! Taking a turn: the claims of all handlers, read live and written under their resourceVersion.
//!
//! Whose turn it is, is decided in [`claims`](crate::handler::claims). Here it is found out what became
//! of those that hold a claim: whether their nodes are there and Ready, and what their enactments say
//! since. They are asked about only where that can make a difference, because a policy may have hundreds
//! of holders. The object itself is the operator's to make; one that cannot be understood is left as it
//! is, because it may say who is cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::NodeNetworkConfigurationEnactment;
use keelson_api::condition::HostCondition;
use keelson_api::enactment::{NodeNetworkConfigurationEnactmentStatus as Status, enactment_name};
use keelson_api::host::{CLAIMS_CONFIG_MAP, CLAIMS_KEY};
use keelson_api::names::FieldManager;
use keelson_cluster::DEADLINE;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::follow::is_ready;
use super::line::lock;
use super::{Server, Trouble};
use crate::handler::claims::{Answer, Ask, Claim, Claims, Ended, Fate, Holder, limit};
use crate::handler::enactment;
use crate::handler::journal::Policy;

/// How often claims are read and written again because somebody else wrote first.
const ATTEMPTS: u32 = 5;

/// For how long it is remembered which nodes a policy selects.
const COUNTED: Duration = Duration::from_secs(5);

/// Nodes in a page of a list.
const PAGE: u32 = 100;

/// For what a turn is asked.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The labels of the nodes it selects.
    pub selector: &'a BTreeMap<String, String>,
    /// How many of these may be under change at once.
    pub max_unavailable: &'a IntOrString,
    /// How long a claim holds unless it is renewed: longer than checkpoint and probes together.
    pub lifetime: SignedDuration,
}

/// What comes of asking for a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is this host's turn, and everybody can read so.
    Yours,
    /// Others are under change.
    Wait {
        /// Their nodes.
        holders: Vec<String>,
    },
    /// As many were lost or failed as may be under change: the policy goes no further.
    Stop {
        /// Their nodes, and what became of each.
        because: Vec<(String, Fate)>,
    },
}

/// The nodes that were selected last.
#[derive(Default)]
pub(super) struct Counted(Mutex<Option<Selected>>);

/// Nodes that were selected.
struct Selected {
    by: String,
    at: Instant,
    nodes: Arc<BTreeSet<String>>,
}

/// The claims as they were read.
struct Read {
    claims: Claims,
    version: String,
}

impl Server {
    /// Asks for a turn.
    pub async fn claim(&self, turn: &Turn<'_>) -> Result<Place, Trouble> {
        self.change_claims(async |claims| self.take(claims, turn).await)
            .await
    }

    /// Renews a claim. False where a person took it away meanwhile: what was begun is finished or undone,
    /// and nothing more is begun.
    pub async fn renew(&self, turn: &Turn<'_>) -> Result<bool, Trouble> {
        self.change_claims(async |claims| {
            let renewed = claims.renewed(&self.ask(turn, 1));
            Ok((renewed.is_some(), renewed))
        })
        .await
    }

    /// Gives a claim back, because the host is as the policy asks, or no policy asks any more.
    pub async fn release(&self, policy_uid: &str) -> Result<(), Trouble> {
        let node = &self.inner.settings.node;
        self.change_own(|claims| claims.released(node, policy_uid))
            .await
    }

    /// Notes that the change failed for good and was undone; the place stays taken.
    pub async fn fail(&self, policy_uid: &str) -> Result<(), Trouble> {
        let node = &self.inner.settings.node;
        self.change_own(|claims| claims.failed(node, policy_uid))
            .await
    }

    async fn change_own(&self, change: impl Fn(&Claims) -> Claims) -> Result<(), Trouble> {
        let changed = self.change_claims(async |claims| {
            let changed = change(claims);
            Ok(((), (changed != *claims).then_some(changed)))
        });
        match changed.await {
            // Where no claims are kept, none is ours.
            Err(Trouble::NoClaims { .. }) => Ok(()),
            changed => changed,
        }
    }

    /// Reads, decides and writes, again if somebody else wrote first.
    async fn change_claims<T>(
        &self,
        decide: impl AsyncFn(&Claims) -> Result<(T, Option<Claims>), Trouble>,
    ) -> Result<T, Trouble> {
        for _ in 0..ATTEMPTS {
            let read = self.read_claims().await?;
            let (answer, new) = decide(&read.claims).await?;
            let Some(new) = new else {
                return Ok(answer);
            };
            match self.write_claims(&read.version, &new).await {
                Ok(()) => return Ok(answer),
                Err(trouble) if trouble.is_conflict() => sleep(moment()).await,
                Err(trouble) => return Err(trouble),
            }
        }
        Err(Trouble::Busy)
    }

    async fn take(
        &self,
        claims: &Claims,
        turn: &Turn<'_>,
    ) -> Result<(Place, Option<Claims>), Trouble> {
        let nodes = match turn.max_unavailable {
            IntOrString::Int(_) => 1,
            IntOrString::String(_) => self.selected(turn.selector).await?.len(),
        };
        let (limit, read) = limit(turn.max_unavailable, nodes);
        if let Err(unreadable) = read {
            tracing::warn!(policy = turn.policy.name, "{unreadable}");
        }
        let ask = self.ask(turn, limit);
        // If there is a place even though nobody is freed, nobody has to be asked about.
        if let Answer::Yours(claims) = claims.take(&ask, |_| Holder::NotReady) {
            return Ok((Place::Yours, Some(claims)));
        }
        let holders = self.holders(claims, turn, ask.now).await?;
        let holder = |claim: &Claim| match claim.policy == turn.policy.uid {
            true => holders.get(&claim.node).copied(),
            false => None,
        };
        Ok(
            match claims.take(&ask, |it| holder(it).unwrap_or(Holder::NotReady)) {
                Answer::Yours(claims) => (Place::Yours, Some(claims)),
                Answer::Wait { holders } => (Place::Wait { holders }, None),
                Answer::Stop { because } => (Place::Stop { because }, None),
            },
        )
    }

    fn ask<'a>(&'a self, turn: &Turn<'a>, limit: usize) -> Ask<'a> {
        Ask {
            node: &self.inner.settings.node,
            policy: &turn.policy.uid,
            generation: turn.policy.generation,
            limit,
            lifetime: turn.lifetime,
            now: Timestamp::now(),
        }
    }

    /// What is known of the others that hold a claim for a policy.
    async fn holders(
        &self,
        claims: &Claims,
        turn: &Turn<'_>,
        now: Timestamp,
    ) -> Result<BTreeMap<String, Holder>, Trouble> {
        let selected = self.selected(turn.selector).await?;
        let mut holders = BTreeMap::new();
        let others = claims.claims.iter();
        let others =
            others.filter(|it| it.policy == turn.policy.uid && it.node != self.inner.settings.node);
        for claim in others {
            let expired = claim.state != Fate::Failed && claim.expires <= now;
            let holder = match !expired && selected.contains(&claim.node) {
                // It is there, and its claim holds.
                true => Holder::Ready(None),
                false => self.holder(claim, &turn.policy.name).await?,
            };
            holders.insert(claim.node.clone(), holder);
        }
        Ok(holders)
    }

    async fn holder(&self, claim: &Claim, policy: &str) -> Result<Holder, Trouble> {
        let node = &claim.node;
        let read = async |client| Api::<Node>::all(client).get_opt(node).await;
        let Some(found) = self
            .ask_server(format!("reading Node {node}"), read)
            .await?
        else {
            return Ok(Holder::Gone);
        };
        if !is_ready(&found) {
            return Ok(Holder::NotReady);
        }
        let name = enactment_name(node, policy);
        let doing = format!("reading NodeNetworkConfigurationEnactment {name}");
        let read = async |client| Api::all(client).get_opt(&name).await;
        let enactment: Option<NodeNetworkConfigurationEnactment> =
            self.ask_server(doing, read).await?;
        let status = enactment.and_then(|it| it.status);
        Ok(Holder::Ready(status.and_then(|it| ended(claim, &it))))
    }

    /// The nodes a policy selects, as of a moment ago.
    async fn selected(
        &self,
        selector: &BTreeMap<String, String>,
    ) -> Result<Arc<BTreeSet<String>>, Trouble> {
        let terms: Vec<String> = selector
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let selector = terms.join(",");
        if let Some(last) = &*lock(&self.inner.counted.0)
            && last.by == selector
            && last.at.elapsed() < COUNTED
        {
            return Ok(Arc::clone(&last.nodes));
        }
        let mut how = ListParams::default().labels(&selector).limit(PAGE);
        let mut nodes = BTreeSet::new();
        loop {
            let list = async |client| Api::<Node>::all(client).list_metadata(&how).await;
            let page = self.ask_server("counting Nodes".to_owned(), list).await?;
            nodes.extend(page.items.into_iter().filter_map(|it| it.metadata.name));
            how.continue_token = page.metadata.continue_.filter(|it| !it.is_empty());
            if how.continue_token.is_none() {
                break;
            }
        }
        let nodes = Arc::new(nodes);
        *lock(&self.inner.counted.0) = Some(Selected {
            by: selector,
            at: Instant::now(),
            nodes: Arc::clone(&nodes),
        });
        Ok(nodes)
    }

    async fn read_claims(&self) -> Result<Read, Trouble> {
        let read = async |client| self.maps(client).get_opt(CLAIMS_CONFIG_MAP).await;
        let map = self.ask_server(self.doing("reading"), read).await?;
        let namespace = || self.inner.settings.namespace.clone();
        let map = map.ok_or_else(|| Trouble::NoClaims {
            namespace: namespace(),
        })?;
        let text = map.data.and_then(|mut it| it.remove(CLAIMS_KEY));
        let claims = match text.as_deref().map(str::trim) {
            None | Some("") => Claims::default(),
            Some(text) => {
                serde_json::from_str(text).map_err(|error| Trouble::UnreadableClaims {
                    namespace: namespace(),
                    why: error.to_string(),
                })?
            }
        };
        Ok(Read {
            claims,
            version: map.metadata.resource_version.unwrap_or_default(),
        })
    }

    async fn write_claims(&self, version: &str, claims: &Claims) -> Result<(), Trouble> {
        let patch = json!({
            "metadata": { "resourceVersion": version },
            "data": { CLAIMS_KEY: json!(claims).to_string() },
        });
        let how = PatchParams {
            field_manager: Some(FieldManager::Handler.to_string()),
            ..PatchParams::default()
        };
        let write = async |client| {
            let maps = self.maps(client);
            maps.patch(CLAIMS_CONFIG_MAP, &how, &Patch::Merge(&patch))
                .await
        };
        self.ask_server(self.doing("writing"), write)
            .await
            .map(drop)
    }

    fn maps(&self, client: Client) -> Api<ConfigMap> {
        Api::namespaced(client, &self.inner.settings.namespace)
    }

    fn doing(&self, what: &str) -> String {
        format!(
            "{what} ConfigMap {}/{CLAIMS_CONFIG_MAP}",
            self.inner.settings.namespace
        )
    }

    async fn ask_server<T>(
        &self,
        doing: String,
        call: impl AsyncFnOnce(Client) -> kube::Result<T>,
    ) -> Result<T, Trouble> {
        self.inner.line.call(doing, DEADLINE, call).await
    }
}

/// How the change a claim is for ended, if its enactment says so since the claim was taken.
fn ended(claim: &Claim, status: &Status) -> Option<Ended> {
    if status.policy_generation != Some(claim.generation) {
        return None;
    }
    // Conditions have no fractions of a second. Both times are of the same clock, its host's.
    let said = |it: &HostCondition| it.last_heartbeat_time.as_ref().map(|it| it.0.as_second());
    let said = status.conditions.iter().filter_map(said).max()?;
    if said < claim.since.as_second() || !enactment::is_finished(&status.conditions) {
        return None;
    }
    // What was given up before it began has changed nothing.
    match enactment::is_failing(&status.conditions) {
        true => Some(Ended::Failed),
        false => Some(Ended::Well),
    }
}

/// A moment that differs from host to host.
fn moment() -> Duration {
    let now = SystemTime::UNIX_EPOCH.elapsed();
    let nanos = now.map_or(0, |it| it.subsec_nanos());
    Duration::from_millis(20 + u64::from(nanos / 1000 % 100))
}
