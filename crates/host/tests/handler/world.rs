//! A small model of a host: NetworkManager with its checkpoints, the network, the connection profiles
//! and the disk, and everything that can befall them between any two steps of the handler.

use keelson_api::policy::State;
use keelson_host::handler::decide::{Likeness, Seen, Verdict};
use keelson_host::handler::disk::Outlives;
use keelson_host::handler::journal::{Checkpoint, Entry, Phase, Policy};
use keelson_host::handler::probe::{Baseline, Origin};

/// How long a checkpoint lasts.
const LIFETIME_MS: u64 = 20_000;

/// What befalls the host right before a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Fine,
    HandlerDies,
    ManagerDies,
    BothDie,
    Reboot,
    /// So much time passes that NetworkManager rolls back.
    Late,
    /// Somebody else makes a checkpoint.
    Foreign,
    /// Somebody else makes one although ours is there.
    Overlapping,
    /// Somebody else commits theirs.
    ForeignCommits,
    DiskFull,
    DiskFree,
    ApiAway,
    ApiBack,
}

/// What kills something.
pub(crate) const KILLS: [Fate; 4] = [
    Fate::HandlerDies,
    Fate::ManagerDies,
    Fate::BothDie,
    Fate::Reboot,
];

/// The handler is no more.
#[derive(Debug)]
pub(crate) struct Died;

/// The network as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Net {
    Before,
    Partly,
    After,
}

/// The connection profiles on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    Before,
    /// Those of before, less what neither checkpoint nor revert brings back.
    Fewer,
    Mixed,
    After,
}

impl Files {
    /// What a checkpoint of these brings back.
    fn brought_back(self) -> Self {
        match self {
            Self::Before => Self::Fewer,
            other => other,
        }
    }
}

#[derive(Clone, Debug)]
struct Held {
    checkpoint: Checkpoint,
    foreign: bool,
    net: Net,
    files: Files,
}

/// A host.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The journal, as whoever reads it finds it.
    pub(crate) disk: Option<Entry>,
    /// What of it outlives the host.
    on_disk: Option<Entry>,
    full: bool,
    boot: u32,
    clock_ms: u64,
    /// How often NetworkManager was started; what is called meanwhile fails.
    manager: u32,
    held: Vec<Held>,
    made: u32,
    pub(crate) net: Net,
    pub(crate) files: Files,
    /// Whether the host is reachable in the new state.
    good: bool,
    api: bool,
    /// Whether nmstate finds that the new state did not come about.
    unfit: bool,
    /// The probes passed in the new state.
    pub(crate) verified: bool,
    /// What was done that must never be.
    pub(crate) wrong: Vec<String>,
    fates: std::vec::IntoIter<Fate>,
    /// Steps so far.
    pub(crate) steps: usize,
}

impl World {
    pub(crate) fn new(good: bool, unfit: bool, fates: Vec<Fate>) -> Self {
        Self {
            disk: None,
            on_disk: None,
            full: false,
            boot: 1,
            clock_ms: 0,
            manager: 1,
            held: Vec::new(),
            made: 0,
            net: Net::Before,
            files: Files::Before,
            good,
            api: true,
            unfit,
            verified: false,
            wrong: Vec::new(),
            fates: fates.into_iter(),
            steps: 0,
        }
    }

    /// An entry about a change of this host, now.
    pub(crate) fn entry(&self) -> Entry {
        Entry {
            phase: Phase::Prepared,
            end: None,
            why: None,
            began: jiff::Timestamp::UNIX_EPOCH,
            boot: self.boot.to_string(),
            policy: Policy {
                uid: String::new(),
                name: String::new(),
                generation: 1,
            },
            desired: State::new(),
            before: State::new(),
            revert: State::new(),
            profiles: Vec::new(),
            baseline: Baseline {
                origin: Origin::ApiServer,
                passed: [].into(),
            },
            checkpoint: None,
        }
    }

    /// Whether something is still to befall the host.
    pub(crate) fn has_fates(&self) -> bool {
        !self.fates.as_slice().is_empty()
    }

    /// What befalls the host before the next step.
    pub(crate) fn step(&mut self) -> Result<(), Died> {
        self.steps += 1;
        self.clock_ms += 100;
        // Nobody can close a journal on a disk that stays full.
        match self.fates.next().unwrap_or(Fate::DiskFree) {
            Fate::Fine => {}
            Fate::HandlerDies => return Err(Died),
            Fate::ManagerDies => self.restart_manager(),
            Fate::BothDie => {
                self.restart_manager();
                return Err(Died);
            }
            Fate::Reboot => {
                self.reboot();
                return Err(Died);
            }
            Fate::Late => self.wait(),
            Fate::Foreign if self.held.is_empty() => self.hold(true),
            Fate::Overlapping => self.hold(true),
            Fate::ForeignCommits => self.held.retain(|it| !it.foreign),
            Fate::Foreign => {}
            Fate::DiskFull => self.full = true,
            Fate::DiskFree => self.full = false,
            Fate::ApiAway => self.api = false,
            Fate::ApiBack => self.api = true,
        }
        self.expire();
        Ok(())
    }

    fn restart_manager(&mut self) {
        self.manager += 1;
        self.made = 0;
        self.held.clear();
    }

    fn reboot(&mut self) {
        self.restart_manager();
        self.disk.clone_from(&self.on_disk);
        self.boot += 1;
        self.clock_ms = 0;
        self.net = match self.files {
            Files::Before | Files::Fewer => Net::Before,
            Files::Mixed => Net::Partly,
            Files::After => Net::After,
        };
    }

    /// Time passes until no checkpoint is left.
    pub(crate) fn wait(&mut self) {
        self.clock_ms += LIFETIME_MS;
        self.expire();
    }

    /// NetworkManager rolls back by itself what nobody committed.
    fn expire(&mut self) {
        let due = |it: &Held| it.checkpoint.deadline_ms <= Some(self.clock_ms);
        if let Some(place) = self.held.iter().position(due) {
            self.go_back_to(place);
            self.expire();
        }
    }

    /// What was made since goes with it.
    fn go_back_to(&mut self, place: usize) {
        let held = &self.held[place];
        // What others lose is not ours to answer for.
        let files = match held.foreign {
            true => held.files,
            false => held.files.brought_back(),
        };
        (self.net, self.files) = (held.net, files);
        self.held.truncate(place);
    }

    fn hold(&mut self, foreign: bool) {
        self.made += 1;
        let checkpoint = Checkpoint {
            path: format!("/Checkpoint/{}", self.made),
            created_ms: self.clock_ms,
            deadline_ms: Some(self.clock_ms + LIFETIME_MS),
        };
        self.held.push(Held {
            checkpoint,
            foreign,
            net: self.net,
            files: self.files,
        });
    }

    fn is_foreign_pending(&self) -> bool {
        self.held.iter().any(|it| it.foreign)
    }

    pub(crate) fn is_anything_pending(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether an entry was written down, and is found after whatever it is to outlive.
    pub(crate) fn write(&mut self, entry: &Entry, outlives: Outlives) -> bool {
        if self.full {
            return false;
        }
        let last = self.disk.as_ref().filter(|it| it.phase != Phase::Closed);
        let follows = match last {
            Some(last) => last.phase.may_become(entry.phase),
            None => entry.phase == Phase::Prepared,
        };
        if !follows {
            let last = last.map(|it| it.phase);
            self.never(&format!("{:?} follows {last:?}", entry.phase));
        }
        self.disk = Some(entry.clone());
        if outlives == Outlives::Host {
            self.on_disk.clone_from(&self.disk);
        }
        true
    }

    /// Every change has its journal.
    fn change(&mut self, allowed: &[Phase]) {
        let phase = self.on_disk.as_ref().map(|it| it.phase);
        if !phase.is_some_and(|phase| allowed.contains(&phase)) {
            self.never(&format!("a change while the journal says {phase:?}"));
        }
    }

    /// nmstate applies a state: under a checkpoint of its own, profiles first. Says which checkpoint it
    /// left.
    fn apply(&mut self, to: (Net, Files), allowed: &[Phase]) -> Result<Option<Checkpoint>, Died> {
        self.step()?;
        if self.is_anything_pending() {
            return Ok(None);
        }
        self.change(allowed);
        self.hold(false);
        let manager = self.manager;
        let made = self.held[0].checkpoint.clone();
        for (net, files) in [
            (None, Files::Mixed),
            (Some(Net::Partly), to.1),
            (Some(to.0), to.1),
        ] {
            self.step()?;
            if self.manager != manager || !self.held.iter().any(|it| it.checkpoint.is(&made)) {
                return Ok(None);
            }
            self.files = files;
            self.net = net.unwrap_or(self.net);
        }
        self.step()?;
        let there = self.held.iter().any(|it| it.checkpoint.is(&made));
        Ok((self.manager == manager && there).then_some(made))
    }

    /// Applies the new state; an error leaves whatever it leaves.
    pub(crate) fn apply_new(&mut self) -> Result<Option<Checkpoint>, Died> {
        let made = self.apply((Net::After, Files::After), &[Phase::Applying])?;
        match made {
            Some(made) if self.unfit => {
                self.roll_back(&made, self.manager)?;
                Ok(None)
            }
            other => Ok(other),
        }
    }

    /// Applies the state that leads back, and lets nmstate commit it.
    pub(crate) fn revert(&mut self) -> Result<(), Died> {
        let undoing = [
            Phase::Applying,
            Phase::Applied,
            Phase::Verified,
            Phase::RollingBack,
        ];
        if let Some(made) = self.apply((Net::Before, Files::Fewer), &undoing)? {
            self.held.retain(|it| !it.checkpoint.is(&made));
        }
        Ok(())
    }

    /// Makes the profiles those from before, one by one.
    pub(crate) fn restore_profiles(&mut self) -> Result<(), Died> {
        self.change(&[
            Phase::Applying,
            Phase::Applied,
            Phase::Verified,
            Phase::RollingBack,
        ]);
        self.files = Files::Mixed;
        let manager = self.manager;
        self.step()?;
        if self.manager == manager {
            self.files = Files::Before;
        }
        Ok(())
    }

    /// Has NetworkManager forget a checkpoint.
    pub(crate) fn commit(&mut self, checkpoint: &Checkpoint, manager: u32) {
        let on_disk = self.on_disk.as_ref().map(|it| it.phase);
        if on_disk != Some(Phase::Verified) {
            self.never("a commit of what is not verified on disk");
        }
        if let Some(place) = self.pending(checkpoint, manager) {
            self.held.remove(place);
        }
    }

    /// Has NetworkManager go back to a checkpoint.
    pub(crate) fn roll_back(&mut self, checkpoint: &Checkpoint, manager: u32) -> Result<(), Died> {
        let Some(place) = self.pending(checkpoint, manager) else {
            return Ok(());
        };
        let held = self.held[place].clone();
        self.held.truncate(place);
        (self.net, self.files) = (Net::Partly, Files::Mixed);
        let manager = self.manager;
        self.step()?;
        if self.manager == manager {
            (self.net, self.files) = (held.net, held.files.brought_back());
        }
        Ok(())
    }

    /// Who calls names a NetworkManager and a path, and nothing else.
    fn pending(&mut self, checkpoint: &Checkpoint, manager: u32) -> Option<usize> {
        let mut held = self.held.iter().filter(|_| manager == self.manager);
        let place = held.position(|it| it.checkpoint.path == checkpoint.path)?;
        if self.held[place].foreign {
            self.never("a foreign checkpoint is touched");
        }
        Some(place)
    }

    pub(crate) fn probe(&mut self) -> Verdict {
        let reachable = match self.net {
            Net::Before => true,
            Net::Partly => false,
            Net::After => self.good,
        };
        if !reachable || !self.api {
            return Verdict::Failed;
        }
        self.verified |= self.net == Net::After;
        Verdict::Passed
    }

    /// Which NetworkManager is there to be called, and whether what it holds is only ours.
    pub(crate) fn manager(&self) -> (u32, bool) {
        (self.manager, !self.is_foreign_pending())
    }

    /// Says that something was done that must never be.
    pub(crate) fn never(&mut self, what: &str) {
        self.wrong.push(what.to_owned());
    }

    /// What the handler sees.
    pub(crate) fn seen(&self, probes: Option<Verdict>) -> Seen {
        Seen {
            boot: self.boot.to_string(),
            checkpoints: self.held.iter().map(|it| it.checkpoint.clone()).collect(),
            state: match self.net {
                Net::Before => Likeness::Before,
                Net::Partly => Likeness::Neither,
                Net::After => Likeness::After,
            },
            profiles_as_before: self.files == Files::Before,
            probes,
        }
    }
}
