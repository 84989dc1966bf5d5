//! Which policy is looked at, and what stands between it and the host: functions of the records and the
//! time.
//!
//! A policy is looked at once after every start and after every edit, and again where it was told to
//! wait. It is not looked at again and again: whoever changes a host by hand is not fought over it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::records::Record;
use super::state::touch::Conflict;

/// What was seen of policies since this handler started, so that nothing is looked at twice.
#[derive(Clone, Debug, Default)]
pub struct Settled {
    /// The generation of each policy that nothing more becomes of by itself, and what it depended on.
    known: BTreeMap<String, (i64, BTreeSet<String>)>,
}

impl Settled {
    /// Whether a policy is to be looked at now.
    pub fn is_due(&self, record: &Record, others: &BTreeSet<String>, now: Timestamp) -> bool {
        let waits = record.again.is_some_and(|again| again > now);
        let settled = self.known.get(&record.policy.uid);
        let over = settled.is_some_and(|(generation, among)| {
            *generation == record.policy.generation && (among.is_empty() || among == others)
        });
        !waits && !over
    }

    /// Nothing more becomes of this generation by itself.
    pub fn settle(&mut self, record: &Record) {
        self.insert(record, BTreeSet::new());
    }

    /// Nothing more becomes of this generation while the other policies are these.
    pub fn settle_among(&mut self, record: &Record, others: &BTreeSet<String>) {
        self.insert(record, others.clone());
    }

    fn insert(&mut self, record: &Record, among: BTreeSet<String>) {
        let (uid, generation) = (record.policy.uid.clone(), record.policy.generation);
        self.known.insert(uid, (generation, among));
    }

    /// Forgets a policy.
    pub fn forget(&mut self, uid: &str) {
        self.known.remove(uid);
    }
}

/// The policies there are, each with its generation: what a conflict depends on.
pub fn among(records: &[&Record]) -> BTreeSet<String> {
    let each = records.iter();
    each.map(|it| format!("{}/{}", it.policy.uid, it.policy.generation))
        .collect()
}

/// The policy a policy gives way to, and what they disagree about. The older one of two stays.
pub fn rival<'a>(record: &Record, others: &[&'a Record]) -> Option<(&'a str, Conflict)> {
    let touched = record.touched();
    others.iter().find_map(|other| {
        let older = other.policy.uid != record.policy.uid && other.is_before(record);
        let conflicts = match older {
            true => touched.conflicts(&other.touched()),
            false => Vec::new(),
        };
        let first = conflicts.into_iter().next()?;
        Some((other.policy.name.as_str(), first))
    })
}

/// Policies enacted after this one that have to do with an interface of its own: going back would undo
/// them.
pub fn in_the_way<'a>(record: &Record, others: &[&'a Record]) -> Vec<&'a str> {
    let Some(enacted) = &record.enacted else {
        return Vec::new();
    };
    let touched = record.touched();
    let later = others.iter().filter(|other| {
        let after = other.enacted.as_ref().is_some_and(|it| it.at > enacted.at);
        let another = other.policy.uid != record.policy.uid;
        another && after && !touched.shared(&other.touched()).is_empty()
    });
    later.map(|it| it.policy.name.as_str()).collect()
}

/// When the next policy is to be looked at, if one waits. Whatever was due when all were last looked at
/// was looked at then, or is not for this host now.
pub fn next_due(records: &[&Record], looked: Timestamp) -> Option<Timestamp> {
    let waiting = records.iter().filter_map(|it| it.again);
    waiting.filter(|again| *again > looked).min()
}

/// The pause before a policy asks for its turn again: longer each time, so that a thousand hosts do not
/// all ask every second.
pub fn pause(asked: u32, first: SignedDuration, longest: SignedDuration) -> SignedDuration {
    let doublings = asked.min(16);
    let pause = first.checked_mul(1 << doublings);
    pause.map_or(longest, |pause| pause.min(longest))
}
