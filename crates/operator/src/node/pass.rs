//! One look at a node: observe, validate, plan, act, report.
//!
//! A plan is written down before its first step is done, and its first task for a sidecar before that
//! is submitted. Everything else is written once, at the end, and only if it changed; a status that
//! only says how far a task is may wait a little, since every step may be done again.

mod asked;
mod one_pod;
mod pace;
mod written;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keelson_api::SeiNode;
use keelson_api::event::NodeEvent;
use keelson_api::node_status::{Applied, PutBack, SeiNodeStatus};
use keelson_cluster::{Error, Key};
use keelson_plan::{
    Memory, Next, Observed, Outcome, Plan, Stage, Verdict, Waiting, next, outdated,
};
use keelson_tls::certificate::Fingerprint;
use uuid::Uuid;

use super::act::Act;
use super::controller::Controller;
use super::desired::Desired;
use super::points::Point;
use super::record::{self, Stored, Written};
use super::report::Ended;
use super::rest::{Ask, Ground};
use super::sight::Sight;
use super::validate::{self, Refusal};
use super::{applied, observe, peers, put_back};
use pace::{is_end_of_bootstrap, is_first_for_sidecar, look_again, remaining};

/// How many steps of one plan a look goes through before it lets others have a turn.
const STEPS: usize = 64;

/// One look at a node.
pub struct Pass<'a> {
    controller: &'a Controller,
    key: &'a Key,
    /// The node as it was written last.
    node: SeiNode,
    plan: Option<Written>,
    memory: Memory,
    applied: Applied,
    ended: Option<Ended>,
    retried: Option<String>,
    put_back: Vec<PutBack>,
    /// Whether an image is put back, which begins with another look.
    puts_back: bool,
    outdated: bool,
    /// What is known when the look begins.
    ground: Option<Ground>,
}

/// What is known for the length of a look.
struct Known {
    desired: Desired,
    sight: Sight,
}

impl<'a> Pass<'a> {
    /// A look at this node, on this ground.
    pub fn new(
        controller: &'a Controller,
        key: &'a Key,
        node: &SeiNode,
        ground: Option<Ground>,
    ) -> Self {
        let status = node.status.clone().unwrap_or_default();
        Self {
            controller,
            key,
            memory: record::memory(&status),
            retried: status.retried,
            node: node.clone(),
            plan: None,
            applied: status.applied.unwrap_or_default(),
            ended: None,
            put_back: status.put_back,
            puts_back: false,
            outdated: false,
            ground,
        }
    }

    /// Looks, and says when to look again.
    pub async fn run(mut self) -> Result<Duration, Error> {
        if self.node.metadata.deletion_timestamp.is_some() {
            return self.leave().await;
        }
        match record::stored(self.status()) {
            Stored::None => {}
            Stored::Plan(written) => self.plan = Some(*written),
            Stored::Unreadable(id) => self.say(
                NodeEvent::PlanDropped,
                format!("the stored plan {id} is of another version; the node is looked at anew"),
            ),
        }
        let applied = self.status().applied.clone();
        let settings = &self.controller.settings;
        self.put_back = match self.is_to_retry() {
            true => Vec::new(),
            false => put_back::standing(&self.put_back, &self.node, settings),
        };
        let (node, settings) = put_back::instead(&self.put_back, &self.node, settings);
        let peers = self.resolve_peers();
        let desired = Desired::of(&node, &settings, peers, applied.as_ref());
        let desired = match desired {
            Ok(desired) => desired,
            Err(error) => return self.refuse(Refusal::invalid(error.to_string()), None).await,
        };
        let eyes = &self.controller.eyes;
        let sight = eyes.look(self.key, &self.node, &desired).await;
        if sight.pod.is_some() {
            self.controller.metrics.probed(self.key, sight.approved);
        }
        self.applied = applied::recall(&self.node, &desired.target, &sight);
        let mut known = Known { desired, sight };
        if !self.node.spec.paused {
            self.keep_one_pod(&mut known).await?;
        }
        let holder = self.holder_of_signing_key();
        let settings = &self.controller.settings;
        let refusal = validate::validate(&self.node, &known.desired, settings, holder.as_deref());
        if let Some(refusal) = refusal {
            return self.refuse(refusal, Some(known)).await;
        }
        if self.node.spec.paused {
            self.controller.step_aside(self.key);
            self.outdated = outdated(&known.desired.target, &self.observe(&known));
            self.write(&known, None, true).await?;
            return Ok(self.controller.settled(self.key));
        }
        self.obey_retry(&known).await?;
        Box::pin(self.work(known)).await
    }

    fn status(&self) -> &SeiNodeStatus {
        static NONE: std::sync::LazyLock<SeiNodeStatus> =
            std::sync::LazyLock::new(SeiNodeStatus::default);
        self.node.status.as_ref().unwrap_or(&NONE)
    }

    fn uid(&self) -> String {
        self.node.metadata.uid.clone().unwrap_or_default()
    }

    fn resolve_peers(&self) -> Vec<String> {
        if peers::labels(&self.node).next().is_none() {
            return Vec::new();
        }
        let nodes = self.controller.world.nodes.all();
        peers::resolve(&self.node, nodes.iter().map(|(_, node)| node.as_ref()))
    }

    fn observe(&self, known: &Known) -> Observed {
        observe::observed(&self.node, &known.desired, &known.sight, &self.applied)
    }

    /// Goes through the plan as far as it goes now.
    async fn work(&mut self, mut known: Known) -> Result<Duration, Error> {
        let mut observed = self.observe(&known);
        let generation = self.node.metadata.generation.unwrap_or_default();
        let mut begun = false;
        for _ in 0..STEPS {
            if self.is_outlived() {
                return Ok(Duration::ZERO);
            }
            let now = Timestamp::now();
            self.outdated = outdated(&known.desired.target, &observed);
            let plan = self.plan.as_ref().map(|written| &written.plan);
            let want = (&known.desired.target, generation);
            match next(plan, &self.memory, want, &observed, now) {
                Next::Settled => {
                    self.plan = None;
                    return self.settle(known).await;
                }
                Next::Begin(_) if begun => break,
                Next::Begin(plan) => {
                    if !self.is_our_turn(&plan) {
                        self.write(&known, None, true).await?;
                        return Ok(Duration::from_secs(2));
                    }
                    begun = true;
                    self.begin(*plan, now);
                    self.write(&known, None, true).await?;
                }
                Next::Run { .. } => match self.step(&mut known).await? {
                    Went::On if self.puts_back => {
                        self.write(&known, None, true).await?;
                        return Ok(Duration::ZERO);
                    }
                    Went::On => {}
                    Went::Through => {
                        let eyes = &self.controller.eyes;
                        known.sight = eyes.look(self.key, &self.node, &known.desired).await;
                        observed = self.observe(&known);
                    }
                    Went::Waiting(after) => return self.wait(known, after).await,
                },
                Next::Wait { until, .. } => {
                    return self.wait(known, remaining(until, now)).await;
                }
                Next::Cancel { .. } => self.call_off(&mut known).await,
                Next::Pause { until, .. } => {
                    self.plan = None;
                    self.write(&known, None, true).await?;
                    let until = remaining(until, now).min(self.controller.settled(self.key));
                    return Ok(until);
                }
            }
        }
        self.write(&known, None, true).await?;
        Ok(Duration::from_secs(1))
    }

    /// Whether the spec was edited since this look began. What was done and not written down is done
    /// again, or found to be done.
    fn is_outlived(&self) -> bool {
        let latest = self.controller.world.nodes.get(self.key);
        latest.is_some_and(|node| node.metadata.generation > self.node.metadata.generation)
    }

    fn begin(&mut self, plan: Plan, now: Timestamp) {
        if let Some(old) = &self.plan {
            let note = format!(
                "{} is dropped, because the spec asks for something else",
                record::called(old.plan.kind)
            );
            self.say(NodeEvent::PlanSuperseded, note);
        }
        self.ended = None;
        self.plan = Some(Written {
            id: Uuid::new_v4().to_string(),
            started_at: now,
            plan,
        });
    }

    /// Does the step that is next.
    async fn step(&mut self, known: &mut Known) -> Result<Went, Error> {
        let Some(mut written) = self.plan.clone() else {
            return Ok(Went::On);
        };
        let Some(entry) = written.plan.current().cloned() else {
            self.plan = None;
            return Ok(Went::Through);
        };
        self.bind_proxies().await;
        let step = entry.step;
        let stored = self.stored_plan();
        let first = is_first_for_sidecar(&stored, &entry);
        // What nobody can be given yet is not about to be submitted.
        let waits = match first && step.stage == Stage::Node {
            true => self.waits_for_pod(known, step.stage),
            false => None,
        };
        if waits.is_none() && first || is_end_of_bootstrap(&stored, &entry) {
            self.write(known, None, true).await?;
        }
        let points = &self.controller.points;
        points.pass(self.key, Point::BeforeStep(step)).await;
        let outcome = match waits {
            Some(on) => Outcome::Waiting { on },
            None => self.act(known, &written.plan, &entry).await,
        };
        points.pass(self.key, Point::AfterStep(step)).await;
        let done = outcome == Outcome::Done;
        let spent = matches!(outcome, Outcome::Retry { spent: true, .. });
        let after = look_again(&outcome, &entry, known.sight.can_call(step.stage));
        if done {
            let target = &written.plan.target;
            applied::after(&mut self.applied, step, &self.node, target, &known.sight);
        }
        let now = Timestamp::now();
        let verdict = written.plan.record(&mut self.memory, outcome, now);
        match verdict {
            Verdict::Active => {
                self.plan = Some(written);
                if spent {
                    self.write(known, None, true).await?;
                }
                Ok(if done { Went::On } else { Went::Waiting(after) })
            }
            Verdict::Complete => {
                self.ended = Some(Ended::Complete(Box::new(written)));
                self.plan = None;
                Ok(Went::Through)
            }
            Verdict::Failed => {
                self.put_back(known, &written.plan);
                self.ended = Some(Ended::Failed(Box::new(written)));
                self.plan = None;
                Ok(Went::On)
            }
        }
    }

    /// Remembers an image that did not start, so that the next look asks for the one before.
    fn put_back(&mut self, known: &Known, plan: &Plan) {
        let pod = known.sight.pod.as_ref();
        let stuck = pod.and_then(|pod| put_back::stuck(plan, pod, self.status()));
        self.puts_back = stuck.is_some();
        self.put_back.extend(stuck);
    }

    async fn act(&self, known: &mut Known, plan: &Plan, entry: &keelson_plan::Entry) -> Outcome {
        let uid = self.uid();
        let mut act = self.hands(known, &uid);
        let outcome = act.perform(plan, entry).await;
        known.sight = act.sight;
        outcome
    }

    fn waits_for_pod(&self, known: &Known, stage: Stage) -> Option<Waiting> {
        let uid = self.uid();
        self.hands(known, &uid).waits_for_pod(stage)
    }

    fn hands<'b>(&'b self, known: &'b Known, uid: &'b str) -> Act<'b> {
        Act {
            key: self.key,
            node: &self.node,
            uid,
            desired: &known.desired,
            sight: known.sight.clone(),
            settings: &self.controller.settings,
            calls: &self.controller.calls,
            world: &self.controller.world,
            eyes: &self.controller.eyes,
            sidecars: &self.controller.sidecars,
            points: &self.controller.points,
        }
    }

    /// Calls off what the plan that no longer serves may have begun.
    async fn call_off(&mut self, known: &mut Known) {
        let Some(mut written) = self.plan.take() else {
            return;
        };
        let uid = self.uid();
        let mut act = self.hands(known, &uid);
        let stored = self.status().plan.as_ref();
        let stored = stored.filter(|it| it.id == written.id);
        let stored = stored.map(|it| it.tasks.as_slice()).unwrap_or_default();
        if let Err(error) = act.call_off(&written.plan, stored).await {
            tracing::info!(node = %self.key, "a task was not called off: {error}");
        }
        written.plan.cancelled(&mut self.memory);
        self.plan = Some(written);
    }

    async fn settle(&mut self, mut known: Known) -> Result<Duration, Error> {
        let not_loaded = self.nudge_renewal(&mut known).await;
        self.write(&known, None, true).await?;
        self.controller.is_through(self.key);
        let loading = &self.controller.loading;
        let Some(leaf) = not_loaded else {
            loading.over(self.key);
            self.rest(&known.sight);
            return Ok(self.controller.settled(self.key));
        };
        if loading.waits(self.key, leaf) {
            let note = format!(
                "the certificate {leaf} was renewed and is not served after five minutes: look at the proxy of the pod"
            );
            self.say(NodeEvent::CertificateNotLoaded, note);
        }
        Ok(Duration::from_secs(5))
    }

    /// Has the node rest, if its sidecar can be asked how it is and says that it is well.
    fn rest(&mut self, sight: &Sight) {
        let (Some(pod), Some(over)) = (&sight.pod, &sight.transport) else {
            return;
        };
        let well = sight.approved == Some(true) && self.put_back.is_empty();
        if let Some(ground) = self.ground.take_if(|_| well) {
            let ask = Ask {
                pod: pod.clone(),
                over: Arc::new(over.clone()),
            };
            self.controller.rests.begin(self.key, ground, ask);
        }
    }

    /// A renewed certificate that is not served yet: the kubelet is asked to bring it.
    async fn nudge_renewal(&self, known: &mut Known) -> Option<Fingerprint> {
        let uid = self.uid();
        let mut act = self.hands(known, &uid);
        act.nudge_renewal().await
    }

    async fn wait(&mut self, known: Known, after: Duration) -> Result<Duration, Error> {
        // The next look at one that hangs may be long in coming.
        let at_once = self.controller.hangs(self.key);
        let rest = self.write(&known, None, at_once).await?;
        Ok(rest.map_or(after, |rest| rest.min(after)))
    }

    async fn refuse(&mut self, refusal: Refusal, known: Option<Known>) -> Result<Duration, Error> {
        self.plan = None;
        self.controller.step_aside(self.key);
        match known {
            Some(known) => {
                self.outdated = outdated(&known.desired.target, &self.observe(&known));
                self.write(&known, Some(&refusal), true).await?;
            }
            None => {
                let status = self.report(None, None, Some(&refusal));
                self.store(status).await?;
            }
        }
        Ok(self.controller.settled(self.key))
    }
}

/// Where a step took us.
enum Went {
    /// To the next one.
    On,
    /// To the end of the plan: look again.
    Through,
    /// Nowhere yet: look again after this.
    Waiting(Duration),
}
