//! Changes of the host's network: begun with a journal, and always brought to an end.
//!
//! [`Changes::make`] writes down everything it takes to go back, applies the state under a checkpoint
//! of NetworkManager's, and hands over to [`Changes::conclude`], which asks [`decide`](super::decide)
//! what to do next until nothing is left. A handler that starts concludes what it finds in the
//! journal, by the same rules and with the same code. Which change to make, and what its end means
//! for a policy, is for others.

mod conclude;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use keelson_api::policy::State;
use nix::time::{ClockId, clock_gettime};
use tokio_util::sync::CancellationToken;

use super::journal::{self, Checkpoint, End, Entry, Journal, Phase, Policy};
use super::network_manager::{self, NetworkManager};
use super::points::{Act, around};
use super::probe::{Baseline, Origin, Probe, Unanswered};
use super::probing::Probes;
use super::worker::{self, Worker};

/// How long probes have before a change: who does not answer by then does not count after it.
const BASELINE: Duration = Duration::from_secs(4);

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
    NetworkManager(#[from] network_manager::Trouble),
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
        let (entry, since) = tokio::select! {
            prepared = self.prepare(wanted) => prepared?,
            () = leaving.cancelled() => return Err(NotBegun::Leaving),
        };
        around(Act::NotePrepared, async { self.journal.write(&entry) }).await?;
        let applying = entry.at(Phase::Applying);
        around(Act::NoteApplying, async { self.journal.write(&applying) }).await?;
        let entry = self.apply(applying, since).await;
        Ok(self.conclude(entry, Witness::Here).await)
    }

    /// What passes before the change.
    async fn baseline(&self, origin: Origin) -> Result<Baseline, NotBegun> {
        let all: BTreeSet<Probe> = ALL.into();
        let within = BASELINE.min(self.times.probes);
        let answers = self.probes.ask(&all, within, || self.seen()).await;
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
    async fn free(&self) -> Result<u64, NotBegun> {
        let until = tokio::time::Instant::now() + self.times.checkpoint;
        loop {
            let manager = NetworkManager::meet_started().await?;
            let pending = manager.checkpoints().await?;
            let Some(foreign) = pending.first() else {
                return Ok(since_boot());
            };
            if tokio::time::Instant::now() > until {
                return Err(NotBegun::Foreign(foreign.path.clone()));
            }
            self.waits_for(foreign);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Everything that is written down before a change, and the time on the clock of checkpoints.
    async fn prepare(&self, wanted: Wanted) -> Result<(Entry, u64), NotBegun> {
        if let Some(aside) = self.journal.aside()?.into_iter().next() {
            return Err(NotBegun::Aside(aside));
        }
        let baseline = self.baseline(wanted.origin).await?;
        let since = self.free().await?;
        let profiles = async { NetworkManager::meet_started().await?.profiles().await };
        let before = self.worker.before(wanted.desired.clone());
        let (before, profiles) = tokio::join!(before, profiles);
        let before = before?;
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
            profiles: profiles?,
            baseline,
            checkpoint: None,
        };
        Ok((entry, since))
    }

    /// Applies the state. Whatever goes wrong is found in the entry: it is undone.
    async fn apply(&self, entry: Entry, since: u64) -> Entry {
        self.says(format!("applying policy {}", entry.policy.name));
        let state = entry.desired.clone();
        let applied = around(Act::Apply, self.worker.apply(state, self.times.checkpoint)).await;
        tracing::debug!("state applied");
        self.moved();
        if let Err(trouble) = applied {
            return entry.because(trouble.to_string());
        }
        let checkpoint = match own(since).await {
            Ok(checkpoint) => checkpoint,
            Err(why) => return entry.because(why),
        };
        let applied = entry.applied(checkpoint);
        let noted = around(Act::NoteApplied, async { self.journal.write(&applied) }).await;
        match noted {
            Ok(()) => applied,
            // What is known of the checkpoint is used for going back.
            Err(trouble) => Entry {
                phase: Phase::Applying,
                ..applied.because(trouble.to_string())
            },
        }
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
                let left = deadline.saturating_sub(since_boot()) / 1000;
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
async fn own(since: u64) -> Result<Checkpoint, String> {
    let pending = async { NetworkManager::meet().await?.checkpoints().await };
    let pending = pending.await.map_err(|trouble| trouble.to_string())?;
    let mut made = pending.into_iter().filter(|it| it.created_ms >= since);
    made.next()
        .ok_or_else(|| "NetworkManager has lost the checkpoint of this change".to_owned())
}

/// Milliseconds since the host booted, sleep included: the clock of checkpoints.
fn since_boot() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
    let milliseconds = now.unwrap_or_default().as_millis();
    u64::try_from(milliseconds).unwrap_or(u64::MAX)
}
