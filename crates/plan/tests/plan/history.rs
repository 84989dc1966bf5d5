//! Random histories: edits, crashes, conflicts, broken images, slow certificates, damage.
//!
//! [`Operator`] is the smallest operator there can be: it asks [`next`], does what it is told, and
//! writes the result down, unless the history says that it dies before it does.

use jiff::{SignedDuration, Timestamp};
use keelson_plan::{
    Memory, Next, Observed, Outcome, Plan, Stage, Start, Step, Target, Tls, Verdict, lint, next,
};
use proptest::prelude::*;

use crate::sidecar::Sidecar;
use crate::targets::{baked, issuer, rest, s3, target};
use crate::world::{BROKEN, BY_HAND, World};

/// How long after one reconcile the next comes.
const TICK: SignedDuration = SignedDuration::from_secs(30);

/// The same while a plan that failed is not tried again: a pause is seen to the second.
const TICK_OF_A_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// Pauses after one failure, after two, and so on.
const PAUSES: [i64; 7] = [10, 20, 40, 80, 160, 320, 600];

/// What becomes of one reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes through.
    Fine,
    /// The effect happens and the status is not written: a crash, or a conflict.
    Lost,
    /// The API server refuses the effect with a conflict.
    Conflict,
}

/// What a person edits at once.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) image: &'static str,
    pub(crate) sidecar: &'static str,
    pub(crate) tls: Option<Tls>,
    pub(crate) settings: &'static str,
    pub(crate) peers: &'static str,
    pub(crate) rest: &'static str,
    pub(crate) made_by: &'static str,
}

/// One event of a history.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Edit(Edit),
    Reconcile(Vec<Fate>),
    TakeService,
    TakeConfig,
    TakePod,
    Revoke,
    SettingsByHand,
    SidecarFails(u32),
    SlowCertificate(u32),
    SlowSidecar(u32),
}

pub(crate) fn edit(images: Vec<&'static str>) -> impl Strategy<Value = Edit> {
    let word = || prop::sample::select(vec!["1", "2"]);
    let tls = prop::sample::select(vec![
        None,
        Some(issuer("x")),
        Some(issuer("y")),
        Some(Tls::Secret("s".to_owned())),
    ]);
    let image = || prop::sample::select(images.clone());
    (image(), image(), tls, word(), word(), word(), word()).prop_map(
        |(image, sidecar, tls, settings, peers, rest, made_by)| Edit {
            image,
            sidecar,
            tls,
            settings,
            peers,
            rest,
            made_by,
        },
    )
}

pub(crate) fn good_edit() -> impl Strategy<Value = Edit> {
    edit(vec!["a", "b"])
}

pub(crate) fn start() -> impl Strategy<Value = Start> {
    use keelson_plan::Source;
    prop::sample::select(vec![
        s3(),
        Start::Base(Source::StateSync),
        Start::Base(Source::Genesis),
        Start::Bootstrap {
            from: "bucket".to_owned(),
        },
        Start::Genesis,
    ])
}

pub(crate) fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Fine),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Conflict),
    ];
    prop::collection::vec(fate, 1..50)
}

pub(crate) fn history() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => edit(vec!["a", "b", BROKEN]).prop_map(Event::Edit),
        6 => fates().prop_map(Event::Reconcile),
        1 => Just(Event::TakeService),
        1 => Just(Event::TakeConfig),
        1 => Just(Event::TakePod),
        1 => Just(Event::Revoke),
        1 => Just(Event::SettingsByHand),
        1 => (1u32..12).prop_map(Event::SidecarFails),
        1 => (0u32..20).prop_map(Event::SlowCertificate),
        1 => (0u32..4).prop_map(Event::SlowSidecar),
    ];
    prop::collection::vec(event, 0..14)
}

/// The smallest operator there can be, and the spec it works for.
pub(crate) struct Operator {
    pub(crate) want: Target,
    pub(crate) generation: i64,
    /// Whether the proxy takes TLS from its configuration, or from its flags.
    pub(crate) reloads: bool,
    pub(crate) world: World,
    pub(crate) plan: Option<Plan>,
    pub(crate) memory: Memory,
    /// Plans that failed since one succeeded, counted without the help of memory.
    failed: usize,
    pub(crate) now: Timestamp,
    /// Plans begun, in order.
    pub(crate) begun: Vec<Plan>,
    /// What the operator did that it must not.
    pub(crate) wrong: Vec<String>,
    /// Steps that were done once more, and changed nothing.
    pub(crate) repeated: u32,
}

impl Operator {
    pub(crate) fn new(start: Start, reloads: bool) -> Self {
        let mut want = target(start);
        if !reloads {
            want.pod.tls = baked(None);
        }
        Self {
            want,
            generation: 1,
            reloads,
            world: World::default(),
            plan: None,
            memory: Memory::default(),
            failed: 0,
            now: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24),
            begun: Vec::new(),
            wrong: Vec::new(),
            repeated: 0,
        }
    }

    pub(crate) fn edit(&mut self, edit: &Edit) {
        let pod = &mut self.want.pod;
        pod.image = edit.image.to_owned();
        pod.sidecar_image = edit.sidecar.to_owned();
        pod.rest = rest(edit.rest);
        pod.made_by = edit.made_by.to_owned();
        pod.tls = match (&edit.tls, self.reloads) {
            (tls, false) => baked(tls.as_ref()),
            // The volume has another source, whoever the proxy is.
            (tls @ Some(Tls::Secret(_)), true) => baked(tls.as_ref()),
            (_, true) => String::new(),
        };
        self.want.tls = edit.tls.clone();
        self.want.settings = edit.settings.to_owned();
        self.want.peers = Some(edit.peers.to_owned());
        self.generation += 1;
    }

    pub(crate) fn live(&mut self, history: &[Event]) {
        for event in history {
            match event {
                Event::Edit(edit) => self.edit(edit),
                Event::Reconcile(fates) => fates.iter().for_each(|&fate| {
                    self.reconcile(fate);
                }),
                Event::TakeService => self.world.service = false,
                Event::TakeConfig => self.world.take_config(),
                Event::TakePod => self.world.take_pod(),
                Event::Revoke => self.world.approved = false,
                Event::SettingsByHand => {
                    self.world.settings = self.world.settings.take().map(|_| BY_HAND.to_owned());
                }
                Event::SidecarFails(times) => self.world.sidecar.failing = *times,
                Event::SlowCertificate(ticks) => self.world.issuance = *ticks,
                Event::SlowSidecar(ticks) => self.world.sidecar.slowness = *ticks,
            }
        }
    }

    /// Reconciles until nothing is left to do. Says whether it came to that.
    pub(crate) fn settle(&mut self) -> bool {
        (0..1_500).any(|_| self.reconcile(Fate::Fine))
    }

    /// One reconcile. Says whether there was nothing to do.
    pub(crate) fn reconcile(&mut self, fate: Fate) -> bool {
        self.now += match self.plan {
            None if self.failed > 0 => TICK_OF_A_PAUSE,
            _ => TICK,
        };
        self.world.tick();
        let have = self.world.observe();
        let want = (&self.want, self.generation);
        match next(self.plan.as_ref(), &self.memory, want, &have, self.now) {
            Next::Settled => {
                self.plan = None;
                return true;
            }
            Next::Begin(plan) => self.begin(*plan, &have, fate),
            Next::Run { step, attempt } => {
                let Some(mut plan) = self.plan.clone() else {
                    self.wrong
                        .push(format!("{step} runs before its plan was written down"));
                    return false;
                };
                if plan.target != self.want {
                    self.wrong
                        .push(format!("{step} of a plan that outlived its target"));
                }
                let outcome = match fate {
                    Fate::Conflict => Outcome::Retry {
                        error: "conflict".to_owned(),
                        spent: false,
                    },
                    Fate::Fine | Fate::Lost => self.world.perform(&plan, step, attempt),
                };
                if outcome == Outcome::Done {
                    self.repeat(&plan, step, attempt);
                }
                let mut memory = self.memory.clone();
                let verdict = plan.record(&mut memory, outcome, self.now);
                if fate != Fate::Lost {
                    self.plan = (verdict == Verdict::Active).then_some(plan);
                    self.memory = memory;
                    match verdict {
                        Verdict::Active => {}
                        Verdict::Complete => self.failed = 0,
                        Verdict::Failed => self.failed += 1,
                    }
                }
            }
            Next::Cancel { step, attempt } => {
                if let Some(plan) = &mut self.plan {
                    let pod = match step.stage {
                        Stage::Bootstrap => "job",
                        _ => have
                            .running
                            .as_ref()
                            .map_or("", |running| running.uid.as_str()),
                    };
                    self.world
                        .sidecar
                        .cancel(&Sidecar::name(plan, step, attempt, pod));
                    if fate != Fate::Lost {
                        plan.cancelled(&mut self.memory);
                    }
                }
            }
            Next::Wait { until, .. } => self.now = self.now.max(until - TICK),
            Next::Pause { until, failure } => {
                let (nth, pause) = (self.failed, until.duration_since(failure.at));
                if pause != pause_after(nth) {
                    let what = format!("a pause of {pause:#} after failure {nth}");
                    self.wrong.push(what);
                }
                self.now = self.now.max(until - TICK_OF_A_PAUSE);
            }
        }
        false
    }

    /// Does what is done once more, in a world that has moved on meanwhile: nothing comes of it.
    fn repeat(&mut self, plan: &Plan, step: Step, attempt: u32) {
        let mut later = self.world.clone();
        (0..2).for_each(|_| later.tick());
        let mut twice = later.clone();
        let outcome = twice.perform(plan, step, attempt);
        if outcome != Outcome::Done || twice != later {
            let change = format!("{later:?} became {twice:?}");
            let what = format!("{step}, done once more, came to {outcome:?}: {change}");
            self.wrong.push(what);
        }
        self.repeated += 1;
    }

    fn begin(&mut self, plan: Plan, have: &Observed, fate: Fate) {
        self.wrong.extend(lint(&plan, have));
        self.check_pause();
        if fate == Fate::Fine {
            self.begun.push(plan.clone());
            self.plan = Some(plan);
        }
    }

    /// A failure is remembered until a plan succeeds, and a plan for a target that failed begins no
    /// sooner than the failures so far allow.
    fn check_pause(&mut self) {
        let nth = self.failed;
        let Some(failure) = &self.memory.failure else {
            if nth > 0 {
                self.wrong.push(format!("failure {nth} was forgotten"));
            }
            return;
        };
        if failure.target == self.want && self.now < failure.at + pause_after(nth) {
            self.wrong
                .push(format!("plan after failure {nth} without its pause"));
        }
    }
}

/// How long nothing is begun after so many failures in a row.
fn pause_after(failures: usize) -> SignedDuration {
    SignedDuration::from_secs(PAUSES[failures.clamp(1, PAUSES.len()) - 1])
}
