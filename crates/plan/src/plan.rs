//! A plan: what it is for, what of it is done, and what comes next.
//!
//! A plan is a value that is written down before its first task runs. It serves one target and is
//! replaced, never patched, when that changes. How it is written into a status is for the operator.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use keelson_api::task::PlanKind;

use crate::asks::steps;
use crate::drift::{Drift, drifts, parts};
use crate::memory::{Failure, Memory, pause};
use crate::observed::Observed;
use crate::target::{Pod, Start, Target};
use crate::task::{Step, Task};
use crate::waiting::{Outcome, Waiting};

/// How often a step may end in failure before the plan does.
const TRIES: u32 = 5;
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// An ordered list of steps, the target they serve, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the plan is for; the metric label.
    pub kind: PlanKind,
    /// What it brings about. It never outlives it.
    pub target: Target,
    /// Generation of the spec it was made for; part of the names of its effects.
    pub generation: i64,
    /// Why it was made.
    pub causes: BTreeSet<Drift>,
    /// Which parts of the pod differed, where [`Drift::Pod`] is a cause.
    pub parts: BTreeSet<String>,
    /// Its steps, in order.
    pub entries: Vec<Entry>,
}

/// One step of a plan, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What is to be done.
    pub step: Step,
    /// The number it is submitted under; part of the name of its effect.
    pub attempt: u32,
    /// How far it is.
    pub progress: Progress,
    /// When it has to be done. `None`: nothing came of it yet.
    pub deadline: Option<Timestamp>,
    /// When it is to be tried again, after it failed.
    pub not_before: Option<Timestamp>,
    /// How often it failed.
    pub failures: u32,
    /// What it waits for.
    pub waiting: Option<Waiting>,
    /// How it failed last.
    pub error: Option<String>,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not done.
    Open,
    /// Done.
    Done,
    /// Called off, because the plan no longer serves the spec.
    Cancelled,
}

/// What became of a plan with an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Active,
    /// It is done; observe again.
    Complete,
    /// It is given up and remembered; observe again, after a pause.
    Failed,
}

impl Plan {
    /// The plan that brings the target about. `None` is the steady state.
    pub fn new(want: &Target, have: &Observed, generation: i64, memory: &Memory) -> Option<Self> {
        let causes = drifts(want, have);
        let entries: Vec<Entry> = steps(&causes, want, have)
            .into_iter()
            .map(|step| Entry::new(step, memory.attempt(step)))
            .collect();
        (!entries.is_empty()).then(|| Self {
            kind: kind(&causes, want),
            target: want.clone(),
            generation,
            parts: parts(want, have),
            causes,
            entries,
        })
    }

    /// Whether the plan brings about what the spec asks for now.
    pub fn serves(&self, want: &Target) -> bool {
        self.target == *want
    }

    /// The step that is next.
    pub fn current(&self) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.progress != Progress::Done)
    }

    /// Whether `replace-pod` has to replace this pod: a cause of the plan rolls, and the pod differs
    /// by something that does.
    pub fn replaces(&self, pod: &Pod) -> bool {
        pod.rolls_to(&self.target.pod) && self.rolls()
    }

    /// Whether a cause of the plan rolls.
    pub fn rolls(&self) -> bool {
        self.causes.iter().any(|cause| cause.rolls())
    }

    /// Whether this pod is as good as gone: it is replaced, and nothing stands before that which
    /// may take its time.
    pub fn is_about_to_replace(&self, pod: &Pod) -> bool {
        let open = self.entries.iter();
        let mut before = open
            .filter(|entry| entry.progress == Progress::Open)
            .map(|entry| entry.step.task)
            .take_while(|task| *task != Task::ReplacePod);
        self.replaces(pod) && before.all(Task::is_written_at_once)
    }

    /// Whether this pod came in place of another, by this plan.
    pub fn has_replaced(&self, pod: &Pod) -> bool {
        let done = |entry: &&Entry| entry.progress == Progress::Done;
        let mut done = self.entries.iter().filter(done);
        let past = done.any(|entry| entry.step.task == Task::ReplacePod);
        past && self.rolls() && !self.replaces(pod)
    }

    /// Whether `patch-pod-images` has to change this pod: it is of other images, and stays.
    pub fn patches(&self, pod: &Pod) -> bool {
        let want = &self.target.pod;
        let differs =
            pod.sidecar_image != want.sidecar_image || pod.proxy_image != want.proxy_image;
        differs && !self.replaces(pod)
    }

    /// Notes that the current step was called off and ended.
    pub fn cancelled(&mut self, memory: &mut Memory) {
        if let Some(entry) = self.current_mut() {
            memory.spend(entry.step, entry.attempt);
            entry.progress = Progress::Cancelled;
        }
    }

    /// Moves the plan by what came of its current step.
    pub fn record(&mut self, memory: &mut Memory, outcome: Outcome, now: Timestamp) -> Verdict {
        let Some(entry) = self.current_mut() else {
            memory.succeeded();
            return Verdict::Complete;
        };
        match entry.record(memory, outcome, now) {
            Ok(()) if self.current().is_some() => Verdict::Active,
            Ok(()) => {
                memory.succeeded();
                Verdict::Complete
            }
            Err((step, error, overdue)) => {
                memory.failed(Failure {
                    kind: self.kind,
                    causes: self.causes.clone(),
                    target: self.target.clone(),
                    step,
                    error,
                    overdue,
                    at: now,
                });
                Verdict::Failed
            }
        }
    }

    fn current_mut(&mut self) -> Option<&mut Entry> {
        self.entries
            .iter_mut()
            .find(|entry| entry.progress != Progress::Done)
    }
}

impl Entry {
    fn new(step: Step, attempt: u32) -> Self {
        Self {
            step,
            attempt,
            progress: Progress::Open,
            deadline: None,
            not_before: None,
            failures: 0,
            waiting: None,
            error: None,
        }
    }

    /// The error says why the plan cannot go on, and whether for lack of time.
    fn record(
        &mut self,
        memory: &mut Memory,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<(), (Step, String, bool)> {
        let deadline = *self.deadline.get_or_insert(now + self.step.task.deadline());
        self.not_before = None;
        let why = match outcome {
            Outcome::Done => {
                self.progress = Progress::Done;
                self.waiting = None;
                self.error = None;
                // What is kept is kept under its name; anything else may be needed again.
                if !self.step.task.keeps() {
                    memory.spend(self.step, self.attempt);
                }
                return Ok(());
            }
            Outcome::Waiting { on } => {
                let why = on.to_string();
                self.waiting = Some(on);
                why
            }
            Outcome::Retry { error, spent } => {
                self.failures += 1;
                self.waiting = None;
                self.error = Some(error.clone());
                if spent {
                    memory.spend(self.step, self.attempt);
                    self.attempt += 1;
                    if self.failures >= TRIES {
                        return Err((self.step, error, false));
                    }
                }
                self.not_before = Some(now + pause(self.failures, FIRST_PAUSE, LONGEST_PAUSE));
                error
            }
            Outcome::Fatal { error } => {
                self.error = Some(error.clone());
                // What is kept may be under way all the same, and is looked for under its name.
                if !self.step.task.keeps() {
                    memory.spend(self.step, self.attempt);
                }
                return Err((self.step, error, false));
            }
        };
        if now < deadline {
            return Ok(());
        }
        // What was submitted may still run: its name is not spent, it is looked for again.
        let allowed = self.step.task.deadline();
        Err((
            self.step,
            format!("{} was not done within {allowed:#}: {why}", self.step),
            true,
        ))
    }
}

/// What a plan of these causes is called.
fn kind(causes: &BTreeSet<Drift>, want: &Target) -> PlanKind {
    let tls = causes.iter().any(|cause| cause.is_tls());
    let update = causes
        .iter()
        .any(|&cause| !cause.is_tls() && cause != Drift::Approval);
    match (&want.start, causes.contains(&Drift::Setup), tls, update) {
        (Start::Base(_), true, ..) => PlanKind::Init,
        (Start::Bootstrap { .. }, true, ..) => PlanKind::Bootstrap,
        (Start::Genesis, true, ..) => PlanKind::Genesis,
        (_, false, true, true) => PlanKind::NodeUpdateTls,
        (_, false, true, false) => PlanKind::TlsToggle,
        (_, false, false, true) => PlanKind::NodeUpdate,
        (_, false, false, false) => PlanKind::MarkReadyReapply,
    }
}

impl Plan {
    /// Whether a task that may be running for this plan is the very one another plan needs.
    pub(crate) fn shares(&self, other: &Self, step: Step) -> bool {
        step.task.keeps()
            && self.target.start == other.target.start
            && other.entries.iter().any(|entry| entry.step == step)
    }

    /// Whether the plan has this task, in any stage.
    pub fn has(&self, task: Task) -> bool {
        self.entries.iter().any(|entry| entry.step.task == task)
    }
}
