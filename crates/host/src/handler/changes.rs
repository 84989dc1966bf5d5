//! Changes of the host's network: begun with a journal, and always brought to an end.
//!
//! [`Changes::make`] writes down everything it takes to go back, applies the state under a checkpoint
//! of NetworkManager's, and hands over to [`Changes::conclude`], which asks [`decide`](super::decide)
//! what to do next until nothing is left. A handler that starts concludes what it finds in the
//! journal, by the same rules and with the same code. Which change to make, and what its end means
//! for a policy, is for others.

mod conclude;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use keelson_api::policy::State;
use tokio_util::sync::CancellationToken;

use super::clock::SinceBoot;
use super::journal::{self, Checkpoint, End, Entry, Journal, Phase, Policy};
use super::network_manager::{NetworkManager, Trouble};
use super::points::{Act, around};
use super::probe::{Baseline, Origin, Probe, Unanswered};
use super::probing::Probes;
use super::worker::{self, Before, Worker};

/// How long probes have before a change: who does not answer by then does not count after it.
const BASELINE: Duration = Duration::from_secs(4);

/// How long ago the host may have been looked at for that to be its state before a change. A look takes as
/// long as a small change, and somebody else may come between any look and what follows it.
const FRESH: Duration = Duration::from_secs(1);

/// Why a change is undone whose checkpoint is gone as soon as it was made.
const LOST: &str = "NetworkManager has lost the checkpoint of this change";

/// Every probe there is.
const ALL: [Probe; 4] = [
    Probe::Gateway,
    Probe::Dns,
    Probe::ApiServer,
    Probe::NodeReady,
];

/// How long the parts of a change may take.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// After this NetworkManager undoes by itself what nobody verified.
    pub checkpoint: Duration,
    /// All probes after a change together.
    pub probes: Duration,
}

/// A change to be made.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The policy it is for.
    pub policy: Policy,
    /// Where that came from.
    pub origin: Origin,
    /// The state, captures filled in.
    pub desired: State,
    /// The host as it was when that was compared with it, if it was.
    pub before: Option<Before>,
}

/// Why nothing was begun. The host is as it was.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// The handler is about to end.
    #[error("nothing was changed, because this handler was told to end")]
    Leaving,
    /// A probe that has to pass afterwards does not pass before.
    #[error("nothing was changed, because {0} before the change: {1}")]
    Unreachable(Unanswered, String),
    /// A change may be half done that nobody can undo any more.
    #[error(
        "nothing was changed, because a journal that could not be understood is kept as {}: compare \
         the host with it, and remove it", .0.display()
    )]
    Aside(PathBuf),
    /// Somebody else is changing the network.
    #[error(
        "nothing was changed, because checkpoint {0} of another program is pending; it has to be \
         committed or rolled back by whoever made it"
    )]
    Foreign(String),
    /// There is no journal, so there is no change.
    #[error("nothing was changed: {0}")]
    Journal(#[from] journal::Trouble),
    /// The network cannot be read, or the state not be understood.
    #[error("nothing was changed: {0}")]
    Nmstate(#[from] worker::Trouble),
    /// NetworkManager is away.
    #[error("nothing was changed: {0}")]
    NetworkManager(#[from] Trouble),
}

/// Who saw the state applied and verified by nmstate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// This process: as long as the checkpoint is pending, nothing was lost since.
    Here,
    /// Nobody that lives.
    Nobody,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Which one it was.
    pub began: Timestamp,
    /// For which policy.
    pub policy: Policy,
    /// How.
    pub end: End,
    /// Why it was undone.
    pub why: Option<String>,
    /// The state it was to bring about.
    pub desired: State,
    /// The state that leads back.
    pub revert: State,
}

/// The NetworkManager of a change, and the checkpoints it named a moment ago, if it did.
pub struct Met {
    manager: NetworkManager,
    pending: Option<Vec<Checkpoint>>,
}

impl From<NetworkManager> for Met {
    fn from(manager: NetworkManager) -> Self {
        Self {
            manager,
            pending: None,
        }
    }
}

/// A change that is about to be made.
struct Prepared {
    entry: Entry,
    /// The NetworkManager it was prepared with.
    manager: NetworkManager,
    /// Checkpoints from here on are ours.
    since: SinceBoot,
}

/// Everything a change takes.
#[derive(Debug)]
pub struct Changes {
    /// What is being done.
    pub journal: Journal,
    /// nmstate.
    pub worker: Worker,
    /// Whether the host is reachable.
    pub probes: Probes,
    /// How long things may take.
    pub times: Times,
    /// This boot.
    pub boot: String,
    /// Told when a state was applied: connections made before may lead nowhere.
    pub applied: tokio::sync::watch::Sender<u64>,
    /// What is being done, for whoever asks.
    pub doing: tokio::sync::watch::Sender<String>,
}

impl Changes {
    /// Makes a change and brings it to its end. Told to end before anything is touched, it is not begun.
    pub async fn make(
        &self,
        wanted: Wanted,
        leaving: &CancellationToken,
    ) -> Result<Ended, NotBegun> {
        self.says(format!(
            "preparing a change for policy {}",
            wanted.policy.name
        ));
        let Prepared {
            entry,
            manager,
            since,
        } = tokio::select! {
            prepared = self.prepare(wanted) => prepared?,
            () = leaving.cancelled() => return Err(NotBegun::Leaving),
        };
        around(Act::NotePrepared, async { self.journal.begin(&entry) }).await?;
        let applying = entry.at(Phase::Applying);
        around(Act::NoteApplying, async { self.journal.note(&applying) }).await?;
        let (entry, met) = self.apply(applying, manager, since).await;
        Ok(self.conclude(entry, met, Witness::Here).await)
    }

    /// What passes before the change. At first it is asked whom the state of before names.
    async fn baseline(&self, origin: Origin, before: &State) -> Result<Baseline, NotBegun> {
        let all: BTreeSet<Probe> = ALL.into();
        let within = BASELINE.min(self.times.probes);
        let known = Cell::new(Some(before));
        let look = async || match known.take() {
            Some(state) => Ok(state.clone()),
            None => self.seen().await,
        };
        let answers = self.probes.ask(&all, within, look).await;
        tracing::debug!("baseline asked");
        let baseline = Baseline {
            origin,
            passed: answers.passed.clone(),
        };
        match baseline.may_begin() {
            Ok(()) => Ok(baseline),
            Err(unanswered) => Err(NotBegun::Unreachable(unanswered, answers.why())),
        }
    }

    /// Waits until nobody else's checkpoint is pending, as long as one of ours would be. Gives the time
    /// on the clock of checkpoints.
    async fn free(&self, manager: &NetworkManager) -> Result<SinceBoot, NotBegun> {
        let until = tokio::time::Instant::now() + self.times.checkpoint;
        loop {
            let pending = manager.checkpoints().await?;
            let Some(foreign) = pending.first() else {
                return Ok(SinceBoot::now());
            };
            if tokio::time::Instant::now() > until {
                return Err(NotBegun::Foreign(foreign.path.clone()));
            }
            self.waits_for(foreign);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// The host before a change: as it was looked at last, unless that is too long ago.
    async fn before(&self, known: Option<Before>, desired: &State) -> Result<Before, NotBegun> {
        match known.filter(|it| it.looked.ago() <= FRESH) {
            Some(before) => Ok(before),
            None => Ok(self.worker.before(desired.clone()).await?),
        }
    }

    /// Everything that is written down before a change.
    async fn prepare(&self, wanted: Wanted) -> Result<Prepared, NotBegun> {
        if let Some(aside) = self.journal.aside()?.into_iter().next() {
            return Err(NotBegun::Aside(aside));
        }
        let mut before = self.before(wanted.before, &wanted.desired).await?;
        tracing::debug!("network read");
        let profiles = async {
            let manager = NetworkManager::meet_started().await?;
            let profiles = manager.profiles().await?;
            Ok::<_, NotBegun>((manager, profiles))
        };
        let baseline = self.baseline(wanted.origin, &before.state);
        let (baseline, profiles) = tokio::join!(baseline, profiles);
        let (baseline, (manager, mut profiles)) = (baseline?, profiles?);
        let since = self.free(&manager).await?;
        if before.looked.ago() > FRESH {
            before = self.before(None, &wanted.desired).await?;
            profiles = manager.profiles().await?;
        }
        let entry = Entry {
            phase: Phase::Prepared,
            end: None,
            why: None,
            began: Timestamp::now(),
            boot: self.boot.clone(),
            policy: wanted.policy,
            desired: wanted.desired,
            before: before.state,
            revert: before.revert,
            profiles,
            baseline,
            checkpoint: None,
        };
        Ok(Prepared {
            entry,
            manager,
            since,
        })
    }

    /// Applies the state, and says which checkpoints are pending then. Whatever goes wrong is found in the
    /// entry: it is undone.
    async fn apply(
        &self,
        entry: Entry,
        manager: NetworkManager,
        since: SinceBoot,
    ) -> (Entry, Option<Met>) {
        self.says(format!("applying policy {}", entry.policy.name));
        let state = entry.desired.clone();
        let applied = around(Act::Apply, self.worker.apply(state, self.times.checkpoint)).await;
        tracing::debug!("state applied");
        self.moved();
        let met = Met::from(manager);
        if let Err(trouble) = applied {
            return (entry.because(trouble.to_string()), Some(met));
        }
        let (manager, pending) = match pending(Some(met), NetworkManager::meet).await {
            Ok(found) => found,
            Err(trouble) => return (entry.because(trouble.to_string()), None),
        };
        let own = own(&pending, since).cloned();
        let met = Met {
            manager,
            pending: Some(pending),
        };
        let Some(own) = own else {
            return (entry.because(LOST.to_owned()), Some(met));
        };
        let applied = entry.applied(own);
        let noted = around(Act::NoteApplied, async { self.journal.note(&applied) }).await;
        let entry = match noted {
            Ok(()) => applied,
            // What is known of the checkpoint is used for going back.
            Err(trouble) => Entry {
                phase: Phase::Applying,
                ..applied.because(trouble.to_string())
            },
        };
        (entry, Some(met))
    }

    /// The network as it is. Name servers are NetworkManager's to tell, because the file in a container
    /// is a copy from when it started; while it is away, what the kernel says has to do.
    async fn seen(&self) -> Result<State, String> {
        if let Ok(state) = self.worker.state().await {
            return Ok(state);
        }
        let state = self.worker.kernel().await;
        state.map_err(|trouble| trouble.to_string())
    }

    /// The network is another one: connections made before may lead nowhere.
    fn moved(&self) {
        self.applied.send_modify(|count| *count += 1);
    }

    fn says(&self, what: String) {
        tracing::info!("{what}");
        self.doing.send_replace(what);
    }

    fn waits_for(&self, foreign: &Checkpoint) {
        let left = match foreign.deadline_ms {
            Some(deadline) => {
                let left = deadline.saturating_sub(SinceBoot::now().0) / 1000;
                format!("NetworkManager rolls it back in {left} s")
            }
            None => "it has no deadline: commit it or roll it back".to_owned(),
        };
        let what = format!(
            "waiting for checkpoint {} of another program; {left}",
            foreign.path
        );
        if *self.doing.borrow() != what {
            self.doing.send_replace(what);
        }
    }
}

/// The checkpoint nmstate has just made. NetworkManager lets no second one be made beside it without
/// being told to, so ours is the first.
fn own(pending: &[Checkpoint], since: SinceBoot) -> Option<&Checkpoint> {
    pending.iter().find(|it| it.created_ms >= since.0)
}

/// The checkpoints of the NetworkManager that was met, or, where it does not answer, of another one.
async fn pending(
    met: Option<Met>,
    another: impl AsyncFnOnce() -> Result<NetworkManager, Trouble>,
) -> Result<(NetworkManager, Vec<Checkpoint>), Trouble> {
    if let Some(Met { manager, pending }) = met {
        let pending = match pending {
            Some(pending) => Ok(pending),
            None => manager.checkpoints().await,
        };
        if let Ok(pending) = pending {
            return Ok((manager, pending));
        }
    }
    let manager = another().await?;
    let pending = manager.checkpoints().await?;
    Ok((manager, pending))
}
