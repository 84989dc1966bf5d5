//! The handler's dealings with the API server: what is asked of this host, whose turn it is, and what is
//! said of it.
//!
//! Nothing here is needed to be healthy, and nothing that fails here ends the process: whatever is not
//! answered is tried again, for ever. What is followed is known as of the last word that came;
//! what must be told is kept on disk until it is ([`Outbox`]). After a change of the host's network every
//! connection may lead nowhere, so all are dropped and made anew: [`Server::reconnect`]. Types are
//! compiled in, and nothing is discovered. What to do about any of it is for the main loop.

mod claims;
mod enactments;
mod events;
mod follow;
mod line;
mod outbox;
mod states;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keelson_api::host::{CLAIMS_CONFIG_MAP, CLAIMS_KEY};

use super::disk::Refused;
pub use claims::{Place, Turn};
pub use follow::{Enactment, NodeSeen, Policy};
pub use outbox::{EnactmentReport, Outbox};
pub use states::StateReport;

use claims::Counted;
use events::Sayings;
use follow::{SILENCE, Watched, key};
use line::{Line, is_unanswered, lock};
use states::Reported;

/// What is wrong between a handler and the API server.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The files that say where it is and who we are cannot be read.
    #[error("there is no way to the API server yet: {0}")]
    NoWay(String),
    /// A call was not answered, or not as it should be.
    #[error(transparent)]
    Call(#[from] keelson_cluster::Error),
    /// The node of this host is not there, and what belongs to it would go at once.
    #[error("Node {0} is not there yet, and what is reported of it belongs to it")]
    NoNode(String),
    /// There is no object for claims.
    #[error("ConfigMap {namespace}/{CLAIMS_CONFIG_MAP} is not there yet: the operator makes it")]
    NoClaims {
        /// Its namespace.
        namespace: String,
    },
    /// The object for claims is not one.
    #[error(
        "{CLAIMS_KEY} of ConfigMap {namespace}/{CLAIMS_CONFIG_MAP} cannot be understood: {why}; it is \
         left as it is: see which nodes are cut off, then put it right or empty it"
    )]
    UnreadableClaims {
        /// Its namespace.
        namespace: String,
        /// What is wrong with it, and where.
        why: String,
    },
    /// Others wrote first, again and again.
    #[error("too many hosts take their turn at once: ask again soon")]
    Busy,
}

impl Trouble {
    /// Whether somebody else wrote first: look again.
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_conflict())
    }

    /// Whether the server was not reached, so that the next call fares no better.
    fn is_outage(&self) -> bool {
        match self {
            Self::NoWay(_) => true,
            Self::Call(error) => is_unanswered(error),
            _ => false,
        }
    }
}

/// Who this handler is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node of this host.
    pub node: String,
    /// The namespace of the host components.
    pub namespace: String,
    /// Where the API server is said to be; none: as it is told to every pod.
    pub kubeconfig: Option<PathBuf>,
    /// Labels of everything that is created, besides those that say what it is about.
    pub labels: BTreeMap<String, String>,
}

struct Inner {
    settings: Settings,
    line: Line,
    watched: Watched,
    outbox: Outbox,
    not_told: Mutex<Option<String>>,
    reported: Reported,
    sayings: Sayings,
    counted: Counted,
}

/// The API server, as a handler sees it. Clones share it.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

impl Server {
    /// The server, not connected to.
    pub fn new(settings: Settings, outbox: Outbox) -> Self {
        let line = Line::new(settings.kubeconfig.clone());
        let inner = Inner {
            settings,
            line,
            watched: Watched::new(),
            outbox,
            not_told: Mutex::new(None),
            reported: Reported::default(),
            sayings: Sayings::default(),
            counted: Counted::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Follows the server, and tells it what there is to tell, for ever. Run it once.
    pub async fn run(&self) {
        let Inner {
            line,
            watched,
            settings,
            ..
        } = &*self.inner;
        loop {
            let client = line.open().await;
            let work = async {
                tokio::join!(
                    watched.follow(client.clone(), &settings.node),
                    self.record(client.clone()),
                    self.deliver(),
                    self.keep_state(),
                );
            };
            tokio::select! {
                () = work => {}
                () = line.renewed() => tracing::debug!("every connection is made anew"),
                () = watched.silence() => tracing::debug!("nothing is heard: who we are is read anew"),
            }
        }
    }

    /// Drops every connection, and makes them anew at once.
    pub fn reconnect(&self) {
        self.inner.line.renew();
    }

    /// Waits for the next change of what is followed: of a policy, of the node, of which enactments there
    /// are, or of the label that asks for a report. One that came since the last time is not lost. For one
    /// to wait at a time.
    pub async fn changed(&self) {
        self.inner.watched.relevant.notified().await;
    }

    /// Every policy, for this host or not; none before they were listed once.
    pub fn policies(&self) -> Option<Vec<Arc<Policy>>> {
        known(&self.inner.watched.policies)
    }

    /// What policies said last, by uid, that are gone and not among these any more. Said once.
    pub fn last_words(&self, listed: impl Fn(&str) -> bool) -> BTreeMap<String, Policy> {
        let mut gone = lock(&self.inner.watched.gone);
        let all = std::mem::take(&mut *gone).into_iter();
        let (later, now) = all.partition(|(uid, _)| listed(uid));
        *gone = later;
        now
    }

    /// The node of this host, once it is known.
    pub fn this_node(&self) -> Option<Arc<NodeSeen>> {
        let nodes = &self.inner.watched.nodes;
        nodes.get(&key(&self.inner.settings.node))
    }

    /// The enactments of this host; none before they were listed once.
    pub fn enactments(&self) -> Option<Vec<Arc<Enactment>>> {
        known(&self.inner.watched.enactments)
    }

    /// What is to be told about policies.
    pub fn outbox(&self) -> &Outbox {
        &self.inner.outbox
    }

    /// Takes back the enactment of a policy: the policy is gone, or is not for this host.
    pub fn withdraw(&self, policy: &str) -> Result<(), Refused> {
        self.inner.outbox.withdraw(policy)
    }

    /// Whether the server answers, on the connections there are now.
    pub fn is_connected(&self) -> bool {
        let policies = &self.inner.watched.policies;
        policies.is_in_order() && policies.last_event() <= SILENCE
    }

    /// How long ago anything was heard of the server; before the first time, of us.
    pub fn last_heard(&self) -> Duration {
        self.inner.watched.last_heard()
    }

    /// What is wrong, as a sentence, if anything is.
    pub fn trouble(&self) -> Option<String> {
        let Inner {
            line,
            watched,
            not_told,
            outbox,
            ..
        } = &*self.inner;
        line.trouble()
            .or_else(|| watched.trouble())
            .or_else(|| lock(not_told).clone())
            .or_else(|| outbox.unread().first().cloned())
    }

    /// Notes that a report is not told yet.
    fn not_told(&self, policy: &str, trouble: &Trouble) {
        if trouble.is_conflict() {
            return;
        }
        let said = trouble.to_string();
        let mut not_told = lock(&self.inner.not_told);
        if not_told.as_ref() != Some(&said) {
            tracing::warn!(policy, "a report is not told yet: {said}");
        }
        *not_told = Some(said);
    }

    fn all_told(&self) {
        *lock(&self.inner.not_told) = None;
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

/// Everything that is known, sorted by name; none before everything was listed once.
fn known<V: Send + Sync + 'static>(mirror: &keelson_cluster::Mirror<V>) -> Option<Vec<Arc<V>>> {
    if !mirror.is_synced() {
        return None;
    }
    let mut all = mirror.all();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Some(all.into_iter().map(|(_, value)| value).collect())
}
