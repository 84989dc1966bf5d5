//! When the certificates of webhook and metrics are replaced, and in which order.
//!
//! The operator has an authority of its own where the platform makes no certificates. One law holds
//! at every moment, whoever is slow, restarted or looked away from: clients trust whatever any
//! replica presents. So a new authority is first trusted beside the old one, then signs, and only
//! when every replica was seen to present what it signed does the old one go. A first authority signs
//! at once: who has not heard of it yet calls nobody. [`next`] is that order as a function of what is
//! seen and of the time; it is asked again after each step. Making keys is for `tls`, the Secrets for
//! [`store`], doing the steps for the controller.

pub mod intervals;
pub mod store;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

pub use intervals::Intervals;

/// How long after a change of what clients trust every one of them has heard of it.
pub const SETTLE: Duration = Duration::from_secs(5);

/// A server whose certificate is ours to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Server {
    /// The webhook.
    Webhook,
    /// The metrics exporter.
    Metrics,
}

impl Server {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Webhook, Self::Metrics];
}

/// An authority, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub made: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// Whether we can sign with it.
    pub signs: bool,
}

/// What clients trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// The names of authorities.
    pub roots: BTreeSet<String>,
    /// Since when they trust all of them, as far as we saw.
    pub since: Timestamp,
    /// Whether they were seen to trust nobody before, because nobody had told them of any webhook.
    pub first: bool,
}

/// A server's certificate, as it is in its Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Whose it is.
    pub server: Server,
    /// Name of the authority that signed it.
    pub by: String,
    /// When it was made.
    pub made: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// Whether it names everything the server is called by, and its key is its own.
    pub fits: bool,
}

/// A replica of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Which one, in words.
    pub name: String,
    /// Who signed what it presents; none where no handshake showed it.
    pub presents: Option<String>,
}

/// Everything that is seen of certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The authorities we keep and those that clients trust already, newest first.
    pub roots: Vec<Root>,
    /// What clients trust; none where they have not been told anything.
    pub trusted: Option<Trusted>,
    /// The certificates there are.
    pub leaves: Vec<Leaf>,
    /// The replicas there are.
    pub replicas: Vec<Replica>,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make a new authority and keep it before the others.
    Found,
    /// Tell clients to trust these authorities and no others.
    Trust(Vec<String>),
    /// Have the newest authority sign a certificate for this server.
    Issue(Server),
    /// Keep these authorities no longer, and tell clients so.
    Forget(Vec<String>),
    /// Something has to happen first, or some time has to pass.
    Wait {
        /// What for.
        why: String,
        /// When to look again.
        until: Timestamp,
    },
    /// Nothing is due before.
    Rest {
        /// When something is.
        until: Timestamp,
    },
}

/// How often replicas are asked again what they present, while that is waited for.
const AGAIN: Duration = Duration::from_secs(5);

/// What is to be done next.
pub fn next(seen: &Seen, intervals: &Intervals, now: Timestamp) -> Step {
    let over: Vec<String> = seen
        .roots
        .iter()
        .skip(1)
        .filter(|root| root.ends <= now)
        .map(name)
        .collect();
    if !over.is_empty() {
        return Step::Forget(over);
    }
    let Some((newest, old)) = seen.roots.split_first() else {
        return Step::Found;
    };
    let usable = newest.signs && newest.ends > now;
    let due = root_due(newest, intervals);
    // One change at a time: the one before has to be through, unless that takes for ever.
    let worn = after(newest.made, intervals.ca_rotate) <= now;
    if !usable || worn || (old.is_empty() && due <= now) {
        return Step::Found;
    }
    let wanted: BTreeSet<String> = seen.roots.iter().map(name).collect();
    let Some(trusted) = seen.trusted.as_ref().filter(|it| it.roots == wanted) else {
        return Step::Trust(seen.roots.iter().map(name).collect());
    };
    let unfit = |server: &Server| {
        let leaf = seen.leaves.iter().find(|leaf| leaf.server == *server);
        leaf.is_none_or(|leaf| !is_good(leaf, newest, intervals, now))
    };
    if let Some(server) = Server::ALL.into_iter().find(|server| unfit(server)) {
        let heard = after(trusted.since, SETTLE);
        return match heard <= now || is_first(seen, trusted, newest) {
            true => Step::Issue(server),
            false => Step::Wait {
                why: "the API server has to hear of the new CA first".to_owned(),
                until: heard,
            },
        };
    }
    if !old.is_empty() {
        return part(seen, newest, old, intervals, now);
    }
    let dues = seen.leaves.iter().map(|leaf| leaf_due(leaf, intervals));
    Step::Rest {
        until: dues.fold(due, Timestamp::min),
    }
}

/// Whether nobody is met by a client that has not heard of the newest authority: clients were told of
/// no webhook before, and no other authority signed a certificate that is there.
fn is_first(seen: &Seen, trusted: &Trusted, newest: &Root) -> bool {
    trusted.first && seen.leaves.iter().all(|leaf| leaf.by == newest.name)
}

/// Replicas that were not seen to present what the newest authority signed, once every certificate
/// there is was signed by it.
pub fn behind(seen: &Seen) -> Vec<&Replica> {
    let Some(newest) = seen.roots.first() else {
        return Vec::new();
    };
    let signed = |server: &Server| {
        let mut of = seen.leaves.iter().filter(|leaf| leaf.server == *server);
        of.any(|leaf| leaf.by == newest.name)
    };
    match Server::ALL.iter().all(signed) {
        true => seen
            .replicas
            .iter()
            .filter(|replica| replica.presents.as_ref() != Some(&newest.name))
            .collect(),
        false => Vec::new(),
    }
}

/// The old authorities go when no replica needs them and their time beside the new one is over.
fn part(seen: &Seen, newest: &Root, old: &[Root], intervals: &Intervals, now: Timestamp) -> Step {
    if let Some(replica) = behind(seen).first() {
        let why = match &replica.presents {
            None => format!("{} was not seen to present a certificate", replica.name),
            Some(by) => format!("{} presents a certificate of the old CA {by}", replica.name),
        };
        return Step::Wait {
            why,
            until: after(now, AGAIN),
        };
    }
    let parting = after(newest.made, intervals.ca_overlap);
    match parting <= now {
        true => Step::Forget(old.iter().map(name).collect()),
        false => Step::Wait {
            why: "the old CA is trusted beside the new one for a while".to_owned(),
            until: parting,
        },
    }
}

/// Whether a certificate needs no replacement.
fn is_good(leaf: &Leaf, newest: &Root, intervals: &Intervals, now: Timestamp) -> bool {
    leaf.fits && leaf.by == newest.name && leaf_due(leaf, intervals) > now
}

fn root_due(root: &Root, intervals: &Intervals) -> Timestamp {
    let used = after(root.made, intervals.ca_rotate);
    before(used.min(root.ends), intervals.ca_overlap)
}

fn leaf_due(leaf: &Leaf, intervals: &Intervals) -> Timestamp {
    let used = after(leaf.made, intervals.cert_rotate);
    before(used.min(leaf.ends), intervals.cert_overlap)
}

fn name(root: &Root) -> String {
    root.name.clone()
}

fn after(at: Timestamp, span: Duration) -> Timestamp {
    at.saturating_add(span).unwrap_or(Timestamp::MAX)
}

fn before(at: Timestamp, span: Duration) -> Timestamp {
    at.saturating_sub(span).unwrap_or(Timestamp::MIN)
}
