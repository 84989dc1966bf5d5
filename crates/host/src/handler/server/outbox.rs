//! What is to be told to the API server about policies, on a disk of the host, until it is told.
//!
//! For each policy there is one file: the newest report about it, or that its enactment is to go. A
//! report belongs to the uid and the generation of its policy, and none takes the place of one about a
//! newer generation. After a report was told it stays, as a note that it was: an enactment that is not
//! there any more was deleted by somebody, and is not brought back by a report about the same generation.
//!
//! How things are told is for [`enactments`](super::enactments).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use keelson_api::condition::HostCondition;
use keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus as Status;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::line::lock;
use crate::handler::disk::{self, Folder, Refused, Unread};
use crate::handler::journal::Policy;

/// How the names of the files end.
const FILE: &str = ".json";

/// How the names of files end that never got to their place.
const UNFINISHED: &str = ".json.new";

/// The version this program writes, and the newest it reads.
const VERSION: u32 = 1;

/// What became of a policy on this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnactmentReport {
    /// The policy.
    pub policy: Policy,
    /// What its enactment is to say.
    pub status: Status,
}

/// What is known about a policy's enactment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Record {
    /// It is to say this.
    Report {
        report: Box<EnactmentReport>,
        /// It says so.
        told: bool,
        /// It said something about this generation once.
        once: bool,
    },
    /// It is to go.
    #[serde(rename = "withdrawn")]
    Withdrawal { policy: String },
}

impl Record {
    fn policy(&self) -> &str {
        match self {
            Self::Report { report, .. } => &report.policy.name,
            Self::Withdrawal { policy } => policy,
        }
    }

    fn is_due(&self) -> bool {
        !matches!(self, Self::Report { told: true, .. })
    }
}

/// A record, and which of all it was.
struct Slot {
    record: Record,
    number: u64,
}

#[derive(Default)]
struct Kept {
    slots: BTreeMap<String, Slot>,
    count: u64,
}

/// Something that is to be told now.
pub(super) struct Due {
    pub(super) policy: String,
    number: u64,
    pub(super) what: What,
}

pub(super) enum What {
    Report {
        report: Box<EnactmentReport>,
        once: bool,
    },
    Withdrawal,
}

struct Shared {
    folder: Folder,
    kept: Mutex<Kept>,
    added: Notify,
    less: Notify,
    unread: Vec<String>,
}

/// The outbox of a host. Clones share it.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

impl Outbox {
    /// The outbox in a folder, which is made if it is missing. Files that cannot be understood are put
    /// aside, and [named](Self::unread).
    pub fn open(folder: &Path) -> Result<Self, Refused> {
        let folder = Folder::open(folder)?;
        let (mut kept, mut unread) = (Kept::default(), Vec::new());
        for name in folder.names()? {
            if name.ends_with(UNFINISHED) {
                folder.remove(&name)?;
            }
            if !name.ends_with(FILE) {
                continue;
            }
            match read(&folder, &name)? {
                Ok(record) => {
                    kept.put(record);
                }
                Err(why) => {
                    tracing::error!("{why}");
                    unread.push(why);
                }
            }
        }
        let shared = Shared {
            folder,
            kept: Mutex::new(kept),
            added: Notify::new(),
            less: Notify::new(),
            unread,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Takes a report to be told, once it is on disk. One about an older generation than is known of, or
    /// that says nothing new, is passed over. If the disk refuses, it is told all the same, unless we end
    /// before.
    pub fn put(&self, report: EnactmentReport) -> Result<(), Refused> {
        let mut kept = self.kept();
        let name = report.policy.name.clone();
        let mut once = false;
        if let Some(Record::Report {
            report: old,
            once: before,
            ..
        }) = kept.get(&name)
            && old.policy.uid == report.policy.uid
        {
            let (known, new) = (old.policy.generation, report.policy.generation);
            if known > new || (known == new && says_the_same(&old.status, &report.status)) {
                return Ok(());
            }
            once = *before && known == new;
        }
        kept.put(Record::Report {
            report: Box::new(report),
            told: false,
            once,
        });
        self.shared.added.notify_one();
        self.write(&kept, &name)
    }

    /// Notes that the enactment of a policy is to go: the policy is gone, or is not for this host.
    pub fn withdraw(&self, policy: &str) -> Result<(), Refused> {
        let mut kept = self.kept();
        if matches!(kept.get(policy), Some(Record::Withdrawal { .. })) {
            return Ok(());
        }
        kept.put(Record::Withdrawal {
            policy: policy.to_owned(),
        });
        self.shared.added.notify_one();
        self.write(&kept, policy)
    }

    /// Forgets a policy: the next report about it makes an enactment, whatever became of the last one.
    pub fn forget(&self, policy: &str) -> Result<(), Refused> {
        self.kept().slots.remove(policy);
        self.shared.less.notify_waiters();
        self.shared.folder.remove(&file(policy))
    }

    /// The last report about a policy of this name and uid, told or not.
    pub fn last(&self, policy: &str, uid: &str) -> Option<EnactmentReport> {
        match self.kept().get(policy) {
            Some(Record::Report { report, .. }) if report.policy.uid == uid => {
                Some(EnactmentReport::clone(report))
            }
            _ => None,
        }
    }

    /// How much is still to be told.
    pub fn due(&self) -> usize {
        let kept = self.kept();
        let slots = kept.slots.values();
        slots.filter(|it| it.record.is_due()).count()
    }

    /// Waits until nothing is to be told about a policy.
    pub async fn caught_up(&self, policy: &str) {
        loop {
            let less = self.shared.less.notified();
            if !self.kept().get(policy).is_some_and(Record::is_due) {
                return;
            }
            less.await;
        }
    }

    /// Files that could not be understood when the outbox was opened, as sentences.
    pub fn unread(&self) -> &[String] {
        &self.shared.unread
    }

    /// Files that could not be understood, and are kept for a person.
    pub fn aside(&self) -> Result<Vec<PathBuf>, Refused> {
        self.shared.folder.aside("")
    }

    /// Waits until something is added.
    pub(super) async fn added(&self) {
        self.shared.added.notified().await;
    }

    /// All that is to be told now.
    pub(super) fn all_due(&self) -> Vec<Due> {
        let kept = self.kept();
        let due = kept.slots.values().filter(|it| it.record.is_due());
        due.map(|slot| Due {
            policy: slot.record.policy().to_owned(),
            number: slot.number,
            what: match &slot.record {
                Record::Report { report, once, .. } => What::Report {
                    report: report.clone(),
                    once: *once,
                },
                Record::Withdrawal { .. } => What::Withdrawal,
            },
        })
        .collect()
    }

    /// Notes that a report was told. A newer one that came meanwhile is still to be.
    pub(super) fn told(&self, due: &Due) {
        let mut kept = self.kept();
        let What::Report { report: said, .. } = &due.what else {
            return;
        };
        let Some(slot) = kept.slots.get_mut(&due.policy) else {
            return;
        };
        if let Record::Report { report, told, once } = &mut slot.record
            && report.policy == said.policy
        {
            *once = true;
            *told |= slot.number == due.number;
            self.note(self.write(&kept, &due.policy));
            self.shared.less.notify_waiters();
        }
    }

    /// Notes that nothing is to be told any more, unless something came meanwhile.
    pub(super) fn done(&self, due: &Due) {
        let mut kept = self.kept();
        if kept.slots.get(&due.policy).map(|it| it.number) == Some(due.number) {
            kept.slots.remove(&due.policy);
            self.note(self.shared.folder.remove(&file(&due.policy)));
            self.shared.less.notify_waiters();
        }
    }

    /// Forgets what was told about policies other than these, by their uids: they are gone.
    pub(super) fn tidy(&self, known: &BTreeSet<String>) {
        let mut kept = self.kept();
        let gone = |slot: &Slot| match &slot.record {
            Record::Report { report, told, .. } => *told && !known.contains(&report.policy.uid),
            Record::Withdrawal { .. } => false,
        };
        let names: Vec<String> = kept
            .slots
            .iter()
            .filter(|(_, slot)| gone(slot))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            kept.slots.remove(&name);
            self.note(self.shared.folder.remove(&file(&name)));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.shared.kept)
    }

    fn write(&self, kept: &Kept, policy: &str) -> Result<(), Refused> {
        match kept.get(policy) {
            Some(record) => self
                .shared
                .folder
                .write(&file(policy), disk::text(VERSION, record)),
            None => Ok(()),
        }
    }

    fn note(&self, written: Result<(), Refused>) {
        if let Err(error) = written {
            // It may be told once more after a restart, and then finds nothing to change.
            tracing::warn!("the outbox was not written: {error}");
        }
    }
}

impl Kept {
    fn get(&self, policy: &str) -> Option<&Record> {
        self.slots.get(policy).map(|it| &it.record)
    }

    fn put(&mut self, record: Record) {
        self.count += 1;
        let number = self.count;
        let policy = record.policy().to_owned();
        self.slots.insert(policy, Slot { record, number });
    }
}

/// The file of a policy. Names of objects are names of files; what is neither does not lead elsewhere.
fn file(policy: &str) -> String {
    policy.replace(['/', '\0'], "_") + FILE
}

/// A record; or a sentence that says why there is none, and where the file is now.
fn read(folder: &Folder, name: &str) -> Result<Result<Record, String>, Refused> {
    let bytes = folder.read(name)?.unwrap_or_default();
    let unread = match disk::understood(VERSION, &bytes) {
        Ok(record) => return Ok(Ok(record)),
        Err(unread) => unread,
    };
    let (path, aside) = (folder.path(name), folder.put_aside(name)?);
    let why = match unread {
        Unread::Newer(version) => {
            format!("is of version {version}, and this program reads up to {VERSION}")
        }
        Unread::Unreadable(why) => format!("cannot be understood: {why}"),
    };
    Ok(Err(format!(
        "the report {} {why}; it is kept as {}, and what it was to tell is not told: look at the \
         enactment of its policy",
        path.display(),
        aside.display()
    )))
}

/// Whether two statuses differ in nothing but the times of their conditions.
pub(super) fn says_the_same(one: &Status, other: &Status) -> bool {
    let plain = |status: &Status| Status {
        conditions: timeless(&status.conditions),
        ..status.clone()
    };
    plain(one) == plain(other)
}

/// Conditions without their times, in the order of their types.
pub(super) fn timeless(conditions: &[HostCondition]) -> Vec<HostCondition> {
    let timeless = |it: &HostCondition| HostCondition {
        last_heartbeat_time: None,
        last_transition_time: None,
        ..it.clone()
    };
    let mut conditions: Vec<_> = conditions.iter().map(timeless).collect();
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
    conditions
}
