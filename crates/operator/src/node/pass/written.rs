//! What a look writes: the status, once at the end if it changed, and the events that follow from it.

use std::time::Duration;

use jiff::Timestamp;
use keelson_api::SeiNode;
use keelson_api::event::NodeEvent;
use keelson_api::node_status::SeiNodeStatus;
use keelson_cluster::Error;
use keelson_plan::Entry;
use serde_json::json;

use super::{Known, Pass};
use crate::node::difference::difference;
use crate::node::points::Point;
use crate::node::record::{self, Stored, Written};
use crate::node::report::{self, Ended, Findings};
use crate::node::sight::Sight;
use crate::node::validate::Refusal;
use crate::node::{effects, news};

impl Pass<'_> {
    pub(super) fn stored_plan(&self) -> Option<Written> {
        match record::stored(self.status()) {
            Stored::Plan(written) => Some(*written),
            _ => None,
        }
    }

    pub(super) fn report(
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
    pub(super) fn id_of(&self, known: Option<&Known>, index: usize, entry: &Entry) -> String {
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
    pub(super) async fn write(
        &mut self,
        known: &Known,
        refusal: Option<&Refusal>,
        now: bool,
    ) -> Result<Option<Duration>, Error> {
        let status = self.report(Some(known), None, refusal);
        if !now
            && news::is_only_progress(self.status(), &status)
            && let Some(rest) = self.controller.under_way.rest(self.key)
        {
            return Ok(Some(rest));
        }
        self.store(status).await?;
        Ok(None)
    }

    pub(super) async fn store(&mut self, status: SeiNodeStatus) -> Result<(), Error> {
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
        let planned = written.status.as_ref().is_some_and(|it| it.plan.is_some());
        controller.under_way.wrote(self.key, planned);
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

    pub(super) fn count(&self, before: &SeiNode, ended: Option<&Ended>) {
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

    pub(super) fn say(&self, event: NodeEvent, note: String) {
        let about = news::about(&self.node);
        self.controller
            .recorder
            .say(&about, event.severity(), event.as_str(), note);
    }
}
