//! Bringing a change to its end, from whatever point it is found at.
//!
//! Look, decide, write down, act, and again, until the journal is closed. Nothing here gives up: a
//! NetworkManager that is away is waited for, a disk that is full too, and a way back that fails is
//! taken again.

use std::time::Duration;

use tokio::time::sleep;

use super::{Changes, Ended, Met, SinceBoot, Witness, pending};
use crate::handler::decide::{Likeness, Seen, Step, Verdict, next};
use crate::handler::journal::{Checkpoint, End, Entry, Phase};
use crate::handler::network_manager::{NetworkManager, Trouble};
use crate::handler::points::{Act, around};
use crate::handler::profiles::differing;

/// The longest pause between two attempts at a step that fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What probes leave of a checkpoint's time, so that we roll back before NetworkManager does.
const RESERVE: Duration = Duration::from_secs(3);

/// How often profiles are restored. NetworkManager may write a profile in other words than it was told;
/// bringing devices up again and again for that would be worse.
const RESTORES: u32 = 3;

/// What was tried so far.
#[derive(Default)]
struct Efforts {
    /// Failures in a row.
    failures: u32,
    /// How often profiles were restored.
    restores: u32,
    /// How often the way back was applied.
    reverts: u32,
    /// What the probes said.
    probed: Option<Verdict>,
}

/// A look, and whom it was seen at.
struct Look {
    seen: Seen,
    manager: Option<NetworkManager>,
}

impl Changes {
    /// Brings a change to its end, with the NetworkManager it was made with as long as that answers. Ends
    /// at once where it has come to it already.
    pub async fn conclude(
        &self,
        mut entry: Entry,
        mut met: Option<Met>,
        witness: Witness,
    ) -> Ended {
        let mut efforts = Efforts::default();
        while entry.phase != Phase::Closed {
            let mut look = match self.look(&entry, met.take(), &efforts, witness).await {
                Ok(look) => look,
                Err(why) => {
                    self.pause(&mut efforts, &why).await;
                    continue;
                }
            };
            // More than one step can follow from one look, where what the first did is known.
            loop {
                let step = next(&entry, &look.seen);
                // NetworkManager may have undone all of it by itself.
                if step.is_undoing() || step == Step::Close(End::Undone) {
                    entry = entry.because(unexplained(entry.phase));
                }
                if let Err(why) = self.note(&mut entry, &step).await {
                    self.pause(&mut efforts, &why).await;
                    // Undoing goes on whether or not it can be written down.
                    if !step.is_undoing() {
                        break;
                    }
                }
                match self.act(&mut entry, &step, &mut look, &mut efforts).await {
                    Ok(After::Known) => efforts.failures = 0,
                    Ok(After::Unknown) => {
                        efforts.failures = 0;
                        efforts.probed = look.seen.probes;
                        break;
                    }
                    Err(why) => {
                        self.pause(&mut efforts, &why).await;
                        break;
                    }
                }
                if entry.phase == Phase::Closed {
                    break;
                }
            }
            met = look.manager.map(Met::from);
        }
        self.says("resting".to_owned());
        Ended {
            began: entry.began,
            policy: entry.policy,
            end: entry.end.unwrap_or(End::Undone),
            why: entry.why,
            desired: entry.desired,
            revert: entry.revert,
        }
    }

    async fn look(
        &self,
        entry: &Entry,
        met: Option<Met>,
        efforts: &Efforts,
        witness: Witness,
    ) -> Result<Look, String> {
        // What does not depend on the host does not wait for NetworkManager.
        if matches!(entry.phase, Phase::Prepared | Phase::Committed) {
            let seen = Seen {
                boot: self.boot.clone(),
                checkpoints: Vec::new(),
                state: Likeness::Neither,
                profiles_as_before: false,
                probes: None,
            };
            return Ok(Look {
                seen,
                manager: None,
            });
        }
        let told = |trouble: Trouble| trouble.to_string();
        let started = NetworkManager::meet_started;
        let (manager, checkpoints) = pending(met, started).await.map_err(told)?;
        let pending = entry.checkpoint.as_ref();
        let pending = pending.is_some_and(|ours| checkpoints.iter().any(|it| it.is(ours)));
        let seen_applied = witness == Witness::Here && entry.phase == Phase::Applied;
        let state = match seen_applied && pending {
            true => Likeness::After,
            false => {
                let state = self.worker.likeness(entry).await;
                state.map_err(|trouble| trouble.to_string())?
            }
        };
        // Profiles matter where the change is to be undone.
        let kept = state == Likeness::After && entry.phase != Phase::RollingBack;
        let profiles_as_before = match kept {
            false => {
                let differing =
                    differing(&entry.profiles, &manager.profiles().await.map_err(told)?);
                let given_up = efforts.restores >= RESTORES;
                if given_up && !differing.is_empty() {
                    tracing::warn!(?differing, "profiles are not written as they were");
                }
                given_up || differing.is_empty()
            }
            true => false,
        };
        Ok(Look {
            seen: Seen {
                boot: self.boot.clone(),
                checkpoints,
                state,
                profiles_as_before,
                probes: efforts.probed,
            },
            manager: Some(manager),
        })
    }

    /// Writes down what is about to be done, if that is news.
    async fn note(&self, entry: &mut Entry, step: &Step) -> Result<(), String> {
        let Some(phase) = step.phase().filter(|phase| *phase != entry.phase) else {
            return Ok(());
        };
        let (act, noted) = match (phase, step) {
            (_, Step::Close(end)) => (Act::NoteClosed, entry.closed(*end)),
            (Phase::Verified, _) => (Act::NoteVerified, entry.at(phase)),
            (Phase::Committed, _) => (Act::NoteCommitted, entry.at(phase)),
            (_, _) => (Act::NoteRollingBack, entry.at(phase)),
        };
        let written = around(act, async { self.journal.note(&noted) }).await;
        if written.is_ok() || step.is_undoing() {
            *entry = noted;
        }
        written.map_err(|trouble| trouble.to_string())
    }

    async fn act(
        &self,
        entry: &mut Entry,
        step: &Step,
        look: &mut Look,
        efforts: &mut Efforts,
    ) -> Result<After, String> {
        let told = |trouble: Trouble| trouble.to_string();
        let away = || "NetworkManager was not asked".to_owned();
        let manager = look.manager.as_ref().ok_or_else(away);
        match step {
            Step::Probe => {
                look.seen.probes = Some(self.probe(entry, &look.seen).await);
                Ok(After::Unknown)
            }
            Step::Commit(checkpoint) => {
                let committed = around(Act::Commit, manager?.commit(checkpoint)).await;
                committed.map_err(told)?;
                look.seen.checkpoints.retain(|it| !it.is(checkpoint));
                Ok(After::Known)
            }
            Step::RollBack(checkpoint) => {
                self.says(format!("undoing policy {}", entry.policy.name));
                let back = around(Act::RollBack, manager?.roll_back(checkpoint)).await;
                self.moved();
                back.map_err(told)?;
                Ok(After::Unknown)
            }
            Step::Revert => {
                self.says(format!("undoing policy {}", entry.policy.name));
                // A host that cannot be verified is brought back all the same, and looked at again.
                let verified = efforts.reverts.is_multiple_of(2);
                if efforts.reverts > 0 {
                    sleep(growing(efforts.reverts)).await;
                }
                efforts.reverts = efforts.reverts.saturating_add(1);
                let state = entry.revert.clone();
                let revert = self.worker.revert(state, self.times.checkpoint, verified);
                let reverted = around(Act::Revert, revert).await;
                self.moved();
                reverted.map_err(|trouble| trouble.to_string())?;
                Ok(After::Unknown)
            }
            Step::RestoreProfiles => {
                efforts.restores = efforts.restores.saturating_add(1);
                let restore = manager?.restore(&entry.profiles);
                let restored = around(Act::RestoreProfiles, restore).await;
                self.moved();
                restored.map_err(told)?;
                Ok(After::Unknown)
            }
            Step::Wait(foreign) => {
                self.waits_for(foreign);
                sleep(Duration::from_secs(1)).await;
                Ok(After::Unknown)
            }
            Step::Keep | Step::Close(_) | Step::Rest => Ok(After::Known),
        }
    }

    /// Asks what passed before whether it still does.
    async fn probe(&self, entry: &mut Entry, seen: &Seen) -> Verdict {
        let within =
            left(entry, seen).map_or(self.times.probes, |left| left.min(self.times.probes));
        self.says(format!(
            "probing the host after policy {}",
            entry.policy.name
        ));
        let asked = entry.baseline.required();
        let ask = self.probes.ask(&asked, within, || self.seen());
        let answers = around(Act::Probe, ask).await;
        tracing::debug!("probes asked");
        match entry.baseline.judge(&answers.passed) {
            Ok(()) => Verdict::Passed,
            Err(unanswered) => {
                let why = answers.why();
                *entry = entry.because(format!("{unanswered} after the change: {why}"));
                Verdict::Failed
            }
        }
    }

    async fn pause(&self, efforts: &mut Efforts, why: &str) {
        efforts.failures = efforts.failures.saturating_add(1);
        tracing::warn!(attempt = efforts.failures, "{why}");
        self.doing.send_replace(format!("trying again: {why}"));
        sleep(growing(efforts.failures)).await;
    }
}

/// A pause that is longer each time.
fn growing(times: u32) -> Duration {
    let pause = Duration::from_millis(100).saturating_mul(1 << times.min(8));
    pause.min(LONGEST_PAUSE)
}

/// What is known after a step.
enum After {
    /// Everything that was known before it, and what it did.
    Known,
    /// Nothing: look again.
    Unknown,
}

/// How much of our checkpoint's time is left for probes.
fn left(entry: &Entry, seen: &Seen) -> Option<Duration> {
    let known = entry.checkpoint.as_ref()?;
    let pending: &Checkpoint = seen.checkpoints.iter().find(|it| it.is(known))?;
    let left = pending.deadline_ms?.saturating_sub(SinceBoot::now().0);
    Some(Duration::from_millis(left).saturating_sub(RESERVE))
}

/// Why a change is undone that nobody gave a reason for.
fn unexplained(phase: Phase) -> String {
    match phase {
        Phase::Applying => "the handler or NetworkManager ended while the state was applied",
        Phase::Applied => {
            "the handler or NetworkManager ended before the host was seen to be reachable"
        }
        _ => "NetworkManager did not keep the change",
    }
    .to_owned()
}
