//! One look at a node: observe, validate, plan, act, report.
//!
//! A plan is written down before its first step is done, and its first task for a sidecar before that
//! is submitted. Everything else is written once, at the end, and only if it changed; a status that
//! only says how far a task is may wait a little, since every step may be done again.

use std::time::Duration;

use jiff::Timestamp;
use keelson_api::SeiNode;
use keelson_api::event::NodeEvent;
use keelson_api::names::{Annotation, Finalizer};
use keelson_api::node_status::{Applied, PutBack, SeiNodeStatus};
use keelson_cluster::{Error, Key};
use keelson_plan::{
    Drift, Memory, Next, Observed, Outcome, Plan, Progress, Task, Verdict, Waiting, drifts, next,
    outdated,
};
use keelson_tls::certificate::Fingerprint;
use serde_json::json;
use uuid::Uuid;

use super::act::Act;
use super::controller::{Controller, LAZY};
use super::desired::Desired;
use super::difference::difference;
use super::points::Point;
use super::record::{self, Stored, Written};
use super::report::{self, Ended, Findings};
use super::sight::Sight;
use super::validate::{self, Refusal};
use super::{applied, effects, news, observe, peers, put_back};

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
}

/// What is known for the length of a look.
struct Known {
    desired: Desired,
    sight: Sight,
}

impl<'a> Pass<'a> {
    /// A look at this node.
    pub fn new(controller: &'a Controller, key: &'a Key, node: &SeiNode) -> Self {
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
        let known = Known { desired, sight };
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
        self.work(known).await
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
                    let controller = self.controller;
                    let (client, account) = (
                        controller.calls.client(),
                        &controller.settings.render.service_account,
                    );
                    let bindings = &controller.bindings;
                    bindings.ensure(&client, &self.key.namespace, account).await;
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
        let step = entry.step;
        let stored = self.stored_plan();
        if is_first_for_sidecar(&stored, &entry) || is_end_of_bootstrap(&stored, &entry) {
            self.write(known, None, true).await?;
        }
        let points = &self.controller.points;
        points.pass(self.key, Point::BeforeStep(step)).await;
        let outcome = self.act(known, &written.plan, &entry).await;
        points.pass(self.key, Point::AfterStep(step)).await;
        let done = outcome == Outcome::Done;
        let spent = matches!(outcome, Outcome::Retry { spent: true, .. });
        let after = look_again(&outcome, &entry);
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

    /// A renewed certificate that is not served yet: the kubelet is asked to bring it.
    async fn nudge_renewal(&self, known: &mut Known) -> Option<Fingerprint> {
        let uid = self.uid();
        let mut act = self.hands(known, &uid);
        act.nudge_renewal().await
    }

    async fn wait(&mut self, known: Known, after: Duration) -> Result<Duration, Error> {
        let rest = self.write(&known, None, false).await?;
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

    /// A node that is being deleted: what belongs to it goes with it by its owner references. The
    /// original's finalizer is taken off once the claim is safe.
    async fn leave(&mut self) -> Result<Duration, Error> {
        let finalizers = self.node.metadata.finalizers.clone().unwrap_or_default();
        let ours = Finalizer::Node.as_str();
        let again = self.controller.settled(self.key);
        if !finalizers.iter().any(|it| it == ours) {
            return Ok(again);
        }
        let desired = Desired::of(&self.node, &self.controller.settings, Vec::new(), None);
        if let Ok(desired) = desired {
            let eyes = &self.controller.eyes;
            let mut known = Known {
                sight: eyes.look(self.key, &self.node, &desired).await,
                desired,
            };
            let uid = self.uid();
            self.hands(&mut known, &uid).settle_claim().await?;
        }
        if self.node.spec.retains_volume() {
            self.say(
                NodeEvent::VolumeRetained,
                "the data volume outlives the node".to_owned(),
            );
        }
        let rest: Vec<&String> = finalizers.iter().filter(|it| *it != ours).collect();
        let patch = json!({ "metadata": {
            "resourceVersion": self.node.metadata.resource_version,
            "finalizers": rest,
        }});
        let calls = &self.controller.calls;
        calls
            .merge::<SeiNode>(&self.key.namespace, &self.key.name, &patch)
            .await?;
        Ok(again)
    }

    fn asked_retry(&self) -> Option<String> {
        let annotations = self.node.metadata.annotations.as_ref();
        annotations.and_then(|it| it.get(Annotation::Retry.as_str()).cloned())
    }

    fn is_to_retry(&self) -> bool {
        let asked = self.asked_retry();
        asked.is_some() && asked != self.retried
    }

    /// A person asks for another attempt, by a new value of an annotation.
    async fn obey_retry(&mut self, known: &Known) -> Result<(), Error> {
        if !self.is_to_retry() {
            return Ok(());
        }
        self.memory.lift();
        let uid = self.uid();
        self.hands(known, &uid).order_again().await?;
        self.say(
            NodeEvent::RetryRequested,
            "another attempt was asked for".to_owned(),
        );
        self.retried = self.asked_retry();
        Ok(())
    }

    /// Whether a plan may begin: what the platform changed for all goes through one node at a time.
    fn is_our_turn(&self, plan: &Plan) -> bool {
        let sidecar = self.node.spec.sidecar.as_ref();
        let asked = sidecar.is_some_and(|sidecar| sidecar.image.is_some());
        let of_platform = plan.causes.iter().all(|cause| match cause {
            Drift::SidecarImage => !asked,
            Drift::ProxyImage => true,
            _ => false,
        });
        !of_platform || self.controller.may_follow_platform(self.key)
    }

    /// Another node that has this one's signing key: one that was there first, or whose pod still
    /// runs with it.
    fn holder_of_signing_key(&self) -> Option<String> {
        let validator = self.node.spec.validator.as_ref()?;
        let secret = &validator.signing_key.as_ref()?.secret.secret_name;
        let world = &self.controller.world;
        let of = super::sight::at(self.key, secret.clone());
        let age = |node: &SeiNode| {
            let created = node.metadata.creation_timestamp.as_ref().map(|it| it.0);
            (created, node.metadata.uid.clone())
        };
        let users = world.users_of_secret(&of).into_iter();
        let older = users.filter(|key| key != self.key).find(|key| {
            world
                .nodes
                .get(key)
                .is_some_and(|other| age(&other) < age(&self.node))
        });
        let running = || {
            let pods = world.pods.all().into_iter();
            pods.filter(|(at, pod)| {
                at.namespace == self.key.namespace
                    && pod.identity.node != self.key.name
                    && pod.made.signing_key.as_ref() == Some(secret)
            })
            .map(|(_, pod)| pod.identity.node.clone())
            .next()
        };
        older.map(|key| key.name).or_else(running)
    }

    fn stored_plan(&self) -> Option<Written> {
        match record::stored(self.status()) {
            Stored::Plan(written) => Some(*written),
            _ => None,
        }
    }

    fn report(
        &self,
        known: Option<&Known>,
        sight: Option<&Sight>,
        refusal: Option<&Refusal>,
    ) -> SeiNodeStatus {
        let found = Findings {
            node: &self.node,
            desired: known.map(|known| &known.desired),
            sight: sight.or(known.map(|known| &known.sight)),
            applied: &self.applied,
            plan: self.plan.as_ref(),
            ended: self.ended.as_ref(),
            memory: &self.memory,
            refusal,
            outdated: self.outdated,
            put_back: &self.put_back,
            retried: self.retried.clone(),
            now: Timestamp::now(),
        };
        report::status(self.status(), &found, |index, entry| {
            self.id_of(known, index, entry)
        })
    }

    /// The identity of a task's effect. It is worked out once, except for what is about a pod.
    fn id_of(&self, known: Option<&Known>, index: usize, entry: &keelson_plan::Entry) -> String {
        let (Some(known), Some(written)) = (known, &self.plan) else {
            return String::new();
        };
        let type_ = entry.step.task.type_();
        let of_plan = || keelson_wire::id::of_plan(&written.id, type_, index).to_string();
        if !entry.step.task.is_submitted() {
            return of_plan();
        }
        let stored = self.status().plan.as_ref().filter(|it| it.id == written.id);
        let stored = stored.and_then(|plan| plan.tasks.get(index));
        let gate = effects::is_about_pod(entry.step.task);
        if let Some(task) = stored.filter(|it| it.attempt == i32::try_from(entry.attempt).ok())
            && !gate
        {
            return task.id.clone();
        }
        let (stage, task) = (entry.step.stage, entry.step.task);
        match effects::effect(&self.node, &known.desired, stage, task) {
            Ok(Some(effect)) => {
                let pod = known.sight.pod_of(stage);
                let pod = pod.map_or("", |pod| pod.identity.uid.as_str());
                effects::id(&effect, &self.uid(), pod, &written.plan, entry).to_string()
            }
            _ => of_plan(),
        }
    }

    /// Writes the status, if it changed. One that only says how far a task is waits a little, unless
    /// it must be written now; then it says for how long.
    async fn write(
        &mut self,
        known: &Known,
        refusal: Option<&Refusal>,
        now: bool,
    ) -> Result<Option<Duration>, Error> {
        let status = self.report(Some(known), None, refusal);
        if !now && news::is_only_progress(self.status(), &status) {
            let since = self.controller.since_write(self.key);
            if since < LAZY {
                return Ok(Some(LAZY - since));
            }
        }
        self.store(status).await?;
        Ok(None)
    }

    async fn store(&mut self, status: SeiNodeStatus) -> Result<(), Error> {
        let old = serde_json::to_value(self.status()).unwrap_or_default();
        let new = serde_json::to_value(&status).unwrap_or_default();
        let Some(patch) = difference(&old, &new) else {
            return Ok(());
        };
        let controller = self.controller;
        let points = &controller.points;
        points.pass(self.key, Point::BeforeWrite).await;
        let patch = json!({
            "metadata": { "resourceVersion": self.node.metadata.resource_version },
            "status": patch,
        });
        let calls = &controller.calls;
        let (namespace, name) = (&self.key.namespace, &self.key.name);
        let written = calls
            .merge_status::<SeiNode>(namespace, name, &patch)
            .await?;
        points.pass(self.key, Point::AfterWrite).await;
        let Some(mut written) = written else {
            return Ok(());
        };
        written.metadata.managed_fields = None;
        controller.wrote(self.key);
        let version = written
            .metadata
            .resource_version
            .clone()
            .unwrap_or_default();
        let nodes = &controller.world.nodes;
        nodes.note(self.key.clone(), &version, written.clone());
        let ended = self.ended.clone();
        let mut before = std::mem::replace(&mut self.node, written);
        self.count(&before, ended.as_ref());
        let before = before.status.take().unwrap_or_default();
        for (event, note) in news::news(&before, self.status(), ended.as_ref()) {
            self.say(event, note);
        }
        Ok(())
    }

    fn count(&self, before: &SeiNode, ended: Option<&Ended>) {
        let metrics = &self.controller.metrics;
        let old = before.status.as_ref();
        let new = self.status();
        if let Some(phase) = new
            .phase
            .filter(|_| old.and_then(|it| it.phase) != new.phase)
        {
            metrics.phase_changed(before, phase);
        }
        let ends = old.is_some_and(|it| it.plan.is_some()) && new.plan.is_none();
        if let Some(ended) = ended.filter(|_| ends) {
            metrics.plan_ended(self.key, ended);
        }
    }

    fn say(&self, event: NodeEvent, note: String) {
        let about = news::about(&self.node);
        self.controller
            .recorder
            .say(&about, event.severity(), event.as_str(), note);
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

/// Whether a step is the first for a sidecar that may take long, which is written down before it is
/// submitted: a plan that is replaced calls off only what it knows to be its turn.
fn is_first_for_sidecar(stored: &Option<Written>, entry: &keelson_plan::Entry) -> bool {
    let task = entry.step.task;
    if !task.is_submitted() || effects::is_about_pod(task) {
        return false;
    }
    let current = stored.as_ref().and_then(|stored| stored.plan.current());
    current.is_none_or(|current| {
        !current.step.task.is_submitted() || current.progress != Progress::Open
    })
}

/// Whether a step takes away what shows that the step before it is done, which is written down first:
/// once the bootstrap Job is gone, nothing else says that it was complete.
fn is_end_of_bootstrap(stored: &Option<Written>, entry: &keelson_plan::Entry) -> bool {
    let current = stored.as_ref().and_then(|stored| stored.plan.current());
    entry.step.task == Task::TeardownBootstrap
        && current.is_none_or(|current| current.step != entry.step)
}

/// When to look again. What is watched wakes us by itself, and is looked at now and then all the same.
fn look_again(outcome: &Outcome, entry: &keelson_plan::Entry) -> Duration {
    let Outcome::Waiting { on } = outcome else {
        return Duration::from_secs(1);
    };
    match on {
        Waiting::SidecarTask { .. } => {
            // The longer it takes already, the longer it may take still.
            let begun = entry
                .deadline
                .map(|deadline| deadline - entry.step.task.deadline());
            let age = begun.map_or(0, |begun| Timestamp::now().duration_since(begun).as_secs());
            Duration::from_secs(u64::try_from(age / 10).unwrap_or(0).clamp(1, 15))
        }
        Waiting::Sidecar { .. } | Waiting::Proxy { .. } => Duration::from_secs(1),
        _ => Duration::from_secs(20),
    }
}

fn remaining(until: Timestamp, now: Timestamp) -> Duration {
    let rest = until.duration_since(now);
    Duration::try_from(rest).unwrap_or(Duration::ZERO) + Duration::from_millis(10)
}

/// What differs between what is asked for and what is seen, for those who only want to know.
pub fn causes(observed: &Observed, desired: &Desired) -> Vec<&'static str> {
    let causes = drifts(&desired.target, observed);
    causes.into_iter().map(|cause| cause.as_str()).collect()
}
