//! Whose turn it is: how many hosts a policy may have under change at once, and which they are.
//!
//! Handlers share one object, written under its resourceVersion: whoever wants to change its host
//! takes a claim there first. Nobody counts up or down, so nothing leaks; what a claim stands for is a
//! function of the claim, the time and what is known of its node.
//!
//! A claim that is not renewed in time is *lost*, and a lost claim still counts: its host may be cut
//! off by the very change others wait to make. It is free again when its node is Ready and its handler
//! has said how the change ended, or when the node is gone, or when a person takes it out of the
//! object. So clocks that differ never let more hosts be cut than may be. A host whose change failed
//! keeps its claim too, until the policy is edited. When as many are lost or failed as may be under
//! change, the rest stop.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::policy::DEFAULT_MAX_UNAVAILABLE;
use serde::{Deserialize, Serialize};

/// A `maxUnavailable` nobody can read; half of the nodes is what counts then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "maxUnavailable {0:?} is neither a number nor a percentage such as 50%: {DEFAULT_MAX_UNAVAILABLE} \
     is used"
)]
pub struct UnreadableLimit(pub String);

/// How many of a policy's nodes may be under change at once, at least one. Percentages are rounded up.
pub fn limit(max_unavailable: &IntOrString, nodes: usize) -> (usize, Result<(), UnreadableLimit>) {
    let share = |percent: i64| {
        let hundredths = percent.saturating_mul(i64::try_from(nodes).unwrap_or(i64::MAX));
        hundredths.saturating_add(99) / 100
    };
    let percent = |text: &str| text.strip_suffix('%').and_then(|it| it.parse::<i32>().ok());
    let half = percent(DEFAULT_MAX_UNAVAILABLE).unwrap_or(50);
    let (wanted, read) = match max_unavailable {
        IntOrString::Int(number) => (i64::from(*number), Ok(())),
        IntOrString::String(text) => match percent(text) {
            Some(percent) => (share(i64::from(percent)), Ok(())),
            None => (share(i64::from(half)), Err(UnreadableLimit(text.clone()))),
        },
    };
    (usize::try_from(wanted).unwrap_or(0).max(1), read)
}

/// What became of a claim, as it was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// Its host is under change.
    Held,
    /// Its host was not heard of in time, and may be cut off.
    Lost,
    /// The change failed on its host and was undone.
    Failed,
}

/// One host's place among those under change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The node.
    pub node: String,
    /// Uid of the policy.
    pub policy: String,
    /// Generation of the policy.
    pub generation: i64,
    /// When the place was taken for this generation.
    pub since: Timestamp,
    /// When it is lost unless it is renewed.
    pub expires: Timestamp,
    /// What became of it.
    pub state: Fate,
}

/// What is known of a node that holds a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// There is no such node any more.
    Gone,
    /// It is not Ready, or not known to be.
    NotReady,
    /// It is Ready; and what its handler says became of the change the claim is for, if it does.
    Ready(Option<Ended>),
}

/// How a change ended, as its handler reported after the claim was taken and for its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The host is as the policy asks, or needed no change.
    Well,
    /// It failed for good.
    Failed,
}

/// Who asks for a place.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The node.
    pub node: &'a str,
    /// Uid of the policy.
    pub policy: &'a str,
    /// Generation of the policy.
    pub generation: i64,
    /// How many may be under change at once; see [`limit`].
    pub limit: usize,
    /// How long a claim holds: longer than checkpoint and probes together.
    pub lifetime: SignedDuration,
    /// Now.
    pub now: Timestamp,
}

/// What comes of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is this host's turn, once these claims are written in place of those that were read.
    Yours(Claims),
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

/// The claims of every policy: the content of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// All of them, in the order they were taken.
    pub claims: Vec<Claim>,
}

impl Claims {
    /// The claims as they stand now: the expired are lost, and those that are free are gone.
    pub fn settled(&self, now: Timestamp, holder: impl Fn(&Claim) -> Holder) -> Self {
        let claims = self.claims.iter().filter_map(|claim| {
            let expired = claim.state != Fate::Failed && claim.expires <= now;
            let state = match (holder(claim), expired) {
                (Holder::Gone, _) | (Holder::Ready(Some(Ended::Well)), true) => return None,
                (Holder::Ready(Some(Ended::Failed)), true) => Fate::Failed,
                (_, true) => Fate::Lost,
                (_, false) => claim.state,
            };
            Some(Claim {
                state,
                ..claim.clone()
            })
        });
        Self {
            claims: claims.collect(),
        }
    }

    /// Whether it is this host's turn. `holder` says what is known of the node of a claim.
    pub fn take(&self, ask: &Ask<'_>, holder: impl Fn(&Claim) -> Holder) -> Answer {
        let mut settled = self.settled(ask.now, holder);
        // Who failed at an earlier generation is in its old state, and an edit is tried everywhere.
        settled.claims.retain(|it| {
            it.policy != ask.policy || it.state != Fate::Failed || it.generation >= ask.generation
        });
        // A claim of our own that nobody is lost behind any more: we are here.
        if let Some(own) = self.of(ask.node, ask.policy)
            && (own.state != Fate::Failed || own.generation < ask.generation)
        {
            return match own.generation > ask.generation {
                // What we know of the policy is old.
                true => Answer::Wait {
                    holders: vec![own.node.clone()],
                },
                false => settled.with(ask),
            };
        }
        let others: Vec<&Claim> = settled
            .claims
            .iter()
            .filter(|it| it.policy == ask.policy)
            .collect();
        if others.len() < ask.limit && !others.iter().any(|it| it.node == ask.node) {
            return settled.with(ask);
        }
        let because: Vec<(String, Fate)> = others
            .iter()
            .filter(|it| it.state != Fate::Held)
            .map(|it| (it.node.clone(), it.state))
            .collect();
        let own = because.iter().any(|(node, _)| node == ask.node);
        match own || because.len() >= ask.limit {
            true => Answer::Stop { because },
            false => Answer::Wait {
                holders: others.iter().map(|it| it.node.clone()).collect(),
            },
        }
    }

    /// The claims with one of this node's own, in its old place if it had one.
    fn with(mut self, ask: &Ask<'_>) -> Answer {
        let mut new = Claim {
            node: ask.node.to_owned(),
            policy: ask.policy.to_owned(),
            generation: ask.generation,
            since: ask.now,
            expires: ask.now + ask.lifetime,
            state: Fate::Held,
        };
        match self.of_mut(ask.node, ask.policy) {
            Some(old) => {
                if old.generation == new.generation {
                    new.since = old.since;
                }
                *old = new;
            }
            None => self.claims.push(new),
        }
        Answer::Yours(self)
    }

    /// Renews a claim. `None` where a person took it away meanwhile: what was begun is finished or
    /// undone, and nothing more is begun.
    pub fn renewed(&self, ask: &Ask<'_>) -> Option<Self> {
        let mut claims = self.clone();
        let own = claims.of_mut(ask.node, ask.policy)?;
        own.expires = ask.now + ask.lifetime;
        own.state = Fate::Held;
        Some(claims)
    }

    /// Gives a claim back, because the host is as the policy asks, or no policy asks any more.
    pub fn released(&self, node: &str, policy: &str) -> Self {
        let others = self.claims.iter();
        let others = others.filter(|it| it.node != node || it.policy != policy);
        Self {
            claims: others.cloned().collect(),
        }
    }

    /// Notes that the change failed for good and was undone; the place stays taken.
    pub fn failed(&self, node: &str, policy: &str) -> Self {
        let mut claims = self.clone();
        if let Some(own) = claims.of_mut(node, policy) {
            own.state = Fate::Failed;
        }
        claims
    }

    /// How many hosts are under change, lost or failed, by the uid of their policy.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for claim in &self.claims {
            *counts.entry(claim.policy.as_str()).or_default() += 1;
        }
        counts
    }

    /// The claim of a node for a policy.
    pub fn of(&self, node: &str, policy: &str) -> Option<&Claim> {
        let mut all = self.claims.iter();
        all.find(|it| it.node == node && it.policy == policy)
    }

    fn of_mut(&mut self, node: &str, policy: &str) -> Option<&mut Claim> {
        let mut all = self.claims.iter_mut();
        all.find(|it| it.node == node && it.policy == policy)
    }
}

/// Why the rest stop, in words.
pub fn stopped(because: &[(String, Fate)]) -> String {
    let each = because.iter().map(|(node, fate)| match fate {
        Fate::Lost => format!("node {node} was not heard of again"),
        Fate::Failed => format!("it failed on node {node}"),
        Fate::Held => format!("node {node} is under change"),
    });
    let each: Vec<String> = each.collect();
    each.join(", ")
}
