//! What a host knows of its policies, on its own disk: what they ask for, what came of it, and the way
//! back.
//!
//! One file a policy, by uid. So a handler that starts without an API server knows what was enacted
//! and repairs that, and no failure is forgotten with the process. What to do next is decided in
//! [`turn`](super::turn).

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus as Status;
use keelson_api::names::Annotation;
use keelson_api::policy::{NodeNetworkConfigurationPolicySpec as Spec, State};
use serde::{Deserialize, Serialize};

use super::disk::{self, Folder, Refused};
use super::state::touch::{Touched, touched};
use super::{journal, server};

/// The version this program writes, and the newest it reads.
const VERSION: u32 = 1;

/// How the names of the files end.
const ENDING: &str = ".json";

/// A policy as this host knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// Its generation.
    pub generation: i64,
    /// When it was made; of two that disagree the older one counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Whether the host goes back when the policy is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revert_on_delete: bool,
    /// Why what it asks for cannot be read, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// What it asks for.
    pub spec: Spec,
}

impl Policy {
    /// Which policy it is.
    pub fn named(&self) -> journal::Policy {
        journal::Policy {
            uid: self.uid.clone(),
            name: self.name.clone(),
            generation: self.generation,
        }
    }
}

impl From<&server::Policy> for Policy {
    fn from(seen: &server::Policy) -> Self {
        let metadata = &seen.object.metadata;
        let annotations = metadata.annotations.as_ref();
        let revert = annotations.and_then(|it| it.get(Annotation::RevertOnDelete.as_str()));
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|it| it.0),
            revert_on_delete: revert.is_some_and(|it| it == "true"),
            unreadable: seen.unreadable.clone(),
            spec: seen.object.spec.clone(),
        }
    }
}

/// What was brought about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enacted {
    /// Of which generation.
    pub generation: i64,
    /// The state, captures filled in.
    pub desired: State,
    /// When.
    pub at: Timestamp,
}

/// A policy and what came of it here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The policy.
    pub policy: Policy,
    /// What is told of it.
    #[serde(default)]
    pub status: Status,
    /// What was brought about last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enacted: Option<Enacted>,
    /// The state that leads back to before the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<State>,
    /// Why the last change was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Timestamp>,
    /// The last change whose end is noted here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounted: Option<Timestamp>,
}

impl Record {
    /// A policy of which nothing came yet.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            status: Status::default(),
            enacted: None,
            undo: None,
            why: None,
            again: None,
            accounted: None,
        }
    }

    /// Whether this generation was brought about here.
    pub fn is_enacted(&self) -> bool {
        let enacted = self.enacted.as_ref().map(|it| it.generation);
        enacted == Some(self.policy.generation)
    }

    /// The policy as far as it was brought about here: what is repaired while nobody can be asked. An
    /// edit that was not is left out of it.
    pub fn as_enacted(&self) -> Option<Policy> {
        let enacted = self.enacted.as_ref()?;
        if self.is_enacted() {
            return Some(self.policy.clone());
        }
        let spec = Spec {
            desired_state: Some(enacted.desired.clone()),
            capture: BTreeMap::new(),
            ..self.policy.spec.clone()
        };
        Some(Policy {
            generation: enacted.generation,
            unreadable: None,
            spec,
            ..self.policy.clone()
        })
    }

    /// The interfaces it has to do with.
    pub fn touched(&self) -> Touched {
        let resolved = match self.status.policy_generation == Some(self.policy.generation) {
            true => self.status.desired_state.as_ref(),
            false => None,
        };
        let said = resolved.or(self.policy.spec.desired_state.as_ref());
        said.map(touched).unwrap_or_default()
    }

    /// Whether it counts before another where the two disagree: the older one does.
    pub fn is_before(&self, other: &Self) -> bool {
        let age = |it: &Self| (it.policy.created, it.policy.name.clone());
        age(self) < age(other)
    }

    /// Notes the way back from a change. What leads back to before the policy is what was noted first.
    pub fn keep_undo(&mut self, revert: &State) {
        self.undo = Some(match self.undo.take() {
            None => revert.clone(),
            Some(first) => merged(first, revert),
        });
    }
}

/// The way back to before both of two changes, of which the first came first.
fn merged(mut first: State, then: &State) -> State {
    let names = |state: &State| -> Vec<String> {
        let described = touched(state).described.into_iter();
        described.collect()
    };
    let known = names(&first);
    for (part, value) in then {
        match (part.as_str(), first.get_mut(part)) {
            ("interfaces", Some(serde_json::Value::Array(mine))) => {
                let theirs = value.as_array().into_iter().flatten();
                let new = theirs.filter(|it| {
                    let name = it.get("name").and_then(|name| name.as_str());
                    !name.is_some_and(|name| known.iter().any(|it| it == name))
                });
                mine.extend(new.cloned());
            }
            (_, Some(_)) => {}
            (_, None) => {
                first.insert(part.clone(), value.clone());
            }
        }
    }
    first
}

/// The file of the node's labels.
const LABELS: &str = "labels";

/// All records of this host.
#[derive(Debug)]
pub struct Records {
    folder: Folder,
    known: BTreeMap<String, Record>,
    labels: BTreeMap<String, String>,
}

impl Records {
    /// The records in a folder. One that cannot be understood is put aside, and named in the log: the
    /// API server tells it again.
    pub fn open(path: &Path) -> Result<Self, Refused> {
        let folder = Folder::open(path)?;
        let mut known = BTreeMap::new();
        for name in folder.names()? {
            let Some(uid) = name.strip_suffix(ENDING) else {
                continue;
            };
            let Some(bytes) = folder.read(&name)? else {
                continue;
            };
            match disk::understood::<Record>(VERSION, &bytes) {
                Ok(record) => {
                    known.insert(uid.to_owned(), record);
                }
                Err(why) => {
                    let aside = folder.put_aside(&name)?;
                    tracing::warn!(?why, aside = %aside.display(), "a record cannot be understood");
                }
            }
        }
        let labels = folder.read(LABELS)?;
        let labels = labels.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Self {
            folder,
            known,
            labels: labels.unwrap_or_default(),
        })
    }

    /// The labels of this host's node, as they were last heard of.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Notes the labels of this host's node.
    pub fn remember(&mut self, labels: BTreeMap<String, String>) {
        if self.labels == labels {
            return;
        }
        if let Err(refused) = self.folder.write(LABELS, serde_json::to_vec(&labels)) {
            tracing::error!("{refused}");
        }
        self.labels = labels;
    }

    /// Everything that is known, in the order of names.
    pub fn all(&self) -> Vec<&Record> {
        let mut all: Vec<&Record> = self.known.values().collect();
        all.sort_by(|one, other| one.policy.name.cmp(&other.policy.name));
        all
    }

    /// What is known of a policy.
    pub fn get(&self, uid: &str) -> Option<&Record> {
        self.known.get(uid)
    }

    /// Notes what is known of a policy. It counts at once; on a full disk it is not found again after a
    /// crash, which the log says.
    pub fn put(&mut self, record: Record) {
        let uid = record.policy.uid.clone();
        if self.known.get(&uid) == Some(&record) {
            return;
        }
        let text = disk::text(VERSION, &record);
        if let Err(refused) = self.folder.write(&format!("{uid}{ENDING}"), text) {
            tracing::error!("{refused}");
        }
        self.known.insert(uid, record);
    }

    /// Forgets a policy.
    pub fn remove(&mut self, uid: &str) {
        if let Err(refused) = self.folder.remove(&format!("{uid}{ENDING}")) {
            tracing::error!("{refused}");
        }
        self.known.remove(uid);
    }
}
