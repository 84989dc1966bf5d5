//! Tasks of sidecars: submitted once under a name, then looked after until they end.

use jiff::Timestamp;
use keelson_api::plan::PlannedTask;
use keelson_api::task::TaskType;
use keelson_plan::{Entry, Outcome, Plan, Progress, Stage, Task, Waiting};
use keelson_wire::{Object, TaskRequest, TaskResult, TaskStatus};
use uuid::Uuid;

use super::{Act, Done, Problem};
use crate::node::effects::{self, Effect};
use crate::node::seen::SeenPod;
use crate::node::sight::{audience, whom};
use crate::sidecar::{CallError, Spoken, Transport};

impl Act<'_> {
    pub(super) async fn submit(&mut self, plan: &Plan, entry: &Entry) -> Done {
        let step = entry.step;
        let effect = effects::effect(self.node, self.desired, step.stage, step.task)
            .map_err(|error| Problem::fatal(error.to_string()))?;
        let Some(effect) = effect else {
            return Ok(());
        };
        // A Job that is over, well or not, has no sidecar any more that could do anything.
        if step.stage == Stage::Bootstrap && self.bootstrap_is_over()? {
            return Ok(());
        }
        let (pod, over) = self.reach(entry).await?;
        let id = effects::id(&effect, self.uid, &pod.identity.uid, plan, entry);
        let call = Call {
            act: self,
            pod: &pod,
            over: &over,
            id,
        };
        // What may have been submitted before is looked for first: a sidecar does a failed task
        // again when it is asked again.
        let begun = entry.deadline.is_some() || step.task.keeps();
        let mut far = match begun {
            true => call.look(effect.type_).await?,
            false => Far::Unknown,
        };
        if far == Far::Unknown && step.task.keeps() {
            far = call.look_for_another(&effect).await?;
        }
        if far == Far::Unknown {
            call.submit(&effect).await?;
            self.pass(step.task).await;
            if !effect.endless {
                far = call.look(effect.type_).await?;
            }
        }
        match far {
            Far::Done => Ok(()),
            _ if effect.endless => Ok(()),
            Far::Unknown | Far::Running => Err(Waiting::SidecarTask { task: effect.type_ }.into()),
        }
    }

    /// Restarts the process, unless it was not let start yet: then it starts with what is written.
    pub(super) async fn restart_process(&mut self, plan: &Plan, entry: &Entry) -> Done {
        self.reach(entry).await?;
        match self.sight.approved {
            Some(false) => Ok(()),
            _ => self.submit(plan, entry).await,
        }
    }

    /// Ends the upload of snapshots, which goes on under the name it was submitted under.
    pub(super) async fn end_upload(&mut self, plan: &Plan, entry: &Entry) -> Done {
        let effect = Effect::of(keelson_wire::Task::SnapshotUpload);
        let (pod, over) = self.reach(entry).await?;
        let id = effects::id(&effect, self.uid, &pod.identity.uid, plan, entry);
        let call = Call {
            act: self,
            pod: &pod,
            over: &over,
            id,
        };
        call.end().await
    }

    /// Calls off what a plan that no longer serves may have submitted. What its sidecar does not know
    /// was not. A sidecar that cannot be reached holds nobody up: it does one thing at a time.
    ///
    /// What was submitted has the name that was written down for it: the spec of today would give it
    /// another, because the parameters are in it.
    pub async fn call_off(&mut self, plan: &Plan, stored: &[PlannedTask]) -> Result<(), CallError> {
        let open = plan.entries.iter().enumerate();
        let open =
            open.filter(|(_, it)| it.step.task.is_submitted() && it.progress == Progress::Open);
        // Whoever ends an upload has begun none.
        let open =
            open.filter(|(_, it)| it.step.task != Task::SnapshotUpload || plan.target.publishes);
        for (index, entry) in open {
            let step = entry.step;
            let effect = effects::effect(self.node, self.desired, step.stage, step.task);
            let Ok(Some(effect)) = effect else { continue };
            let Ok((pod, over)) = self.reach(entry).await else {
                return Ok(());
            };
            let named = || effects::id(&effect, self.uid, &pod.identity.uid, plan, entry);
            let written = stored
                .get(index)
                .filter(|_| !effects::is_about_pod(step.task));
            let id = written.and_then(|task| task.id.parse().ok());
            let id = id.unwrap_or_else(named);
            let whom = whom(self.key, &pod);
            self.sidecars
                .call_off(&whom, &over, audience(&pod), id)
                .await?;
        }
        Ok(())
    }

    /// What a step waits for whose pod cannot be called yet; nothing where it can.
    pub fn waits_for_pod(&self, stage: Stage) -> Option<Waiting> {
        (!self.sight.can_call(stage)).then(|| Waiting::Sidecar {
            pod: self.pod_name(stage),
            why: "it does not run yet".to_owned(),
        })
    }

    /// The pod a step is about, and how to call it.
    async fn reach(
        &mut self,
        entry: &Entry,
    ) -> Result<(std::sync::Arc<SeenPod>, Transport), Problem> {
        let stage = entry.step.stage;
        let name = self.pod_name(stage);
        let silent = |why: &str| {
            Problem::from(Waiting::Sidecar {
                pod: name.clone(),
                why: why.to_owned(),
            })
        };
        if let Some(waiting) = self.waits_for_pod(stage) {
            return Err(waiting.into());
        }
        let Some(pod) = self.sight.pod_of(stage).cloned() else {
            return Err(silent("there is none"));
        };
        if self.sight.transport.is_none() || self.sight.met.as_ref() != Some(&pod.identity.uid) {
            self.eyes
                .meet_again(self.key, self.node, self.desired, stage, &mut self.sight)
                .await;
        }
        match (&self.sight.transport, &self.sight.spoken) {
            (Some(over), _) => Ok((pod, over.clone())),
            (None, Spoken::Unknown(why) | Spoken::Untrusted(why)) => Err(silent(why)),
            (None, _) => Err(silent(
                "it speaks plaintext where TLS was spoken before, so no token is sent",
            )),
        }
    }
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Far {
    /// The sidecar does not know it.
    Unknown,
    Running,
    Done,
}

/// One task of one sidecar.
struct Call<'a, 'b> {
    act: &'a Act<'b>,
    pod: &'a SeenPod,
    over: &'a Transport,
    id: Uuid,
}

impl Call<'_, '_> {
    async fn submit(&self, effect: &Effect) -> Done {
        let request = TaskRequest {
            id: Some(self.id.to_string()),
            type_: effect.type_,
            params: effect.params.clone(),
        };
        let whom = whom(self.act.key, self.pod);
        let sidecars = &self.act.sidecars;
        sidecars
            .request(&whom, self.over, audience(self.pod), &request)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Has the sidecar end the task and forget it.
    async fn end(&self) -> Done {
        let whom = whom(self.act.key, self.pod);
        let sidecars = &self.act.sidecars;
        sidecars
            .call_off(&whom, self.over, audience(self.pod), self.id)
            .await
            .map_err(|error| self.failed(error))
    }

    /// How far the task is. One that failed is an attempt that is spent.
    async fn look(&self, type_: TaskType) -> Result<Far, Problem> {
        let whom = whom(self.act.key, self.pod);
        let result = self
            .act
            .sidecars
            .task(&whom, self.over, audience(self.pod), self.id)
            .await
            .map_err(|error| self.failed(error))?;
        let Some(result) = result else {
            return Ok(Far::Unknown);
        };
        match result.status {
            TaskStatus::Completed => Ok(Far::Done),
            TaskStatus::Running => Ok(Far::Running),
            TaskStatus::Failed => {
                let why = match result.error.as_str() {
                    "" => "it did not say why",
                    why => why,
                };
                Err(Problem(Outcome::Retry {
                    error: format!("{type_} failed: {why}"),
                    spent: true,
                }))
            }
        }
    }

    /// How far another operator's task for the same effect is, under whatever name: a node that is
    /// taken over has its data from it.
    async fn look_for_another(&self, effect: &Effect) -> Result<Far, Problem> {
        let whom = whom(self.act.key, self.pod);
        let sidecars = &self.act.sidecars;
        let tasks = sidecars
            .tasks(&whom, self.over, audience(self.pod))
            .await
            .map_err(|error| self.failed(error))?;
        let created = self.act.node.metadata.creation_timestamp.as_ref();
        Ok(of_another(&tasks, effect, created.map(|it| it.0)))
    }

    fn failed(&self, error: CallError) -> Problem {
        match error {
            CallError::Unreachable(why) => Waiting::Sidecar {
                pod: self.pod.name.clone(),
                why,
            }
            .into(),
            // Rights are given by people, while we wait.
            CallError::Forbidden(_) => Problem(Outcome::Retry {
                error: error.to_string(),
                spent: false,
            }),
            error if error.passes_by_itself() => Problem(Outcome::Retry {
                error: error.to_string(),
                spent: false,
            }),
            error => Problem::fatal(error.to_string()),
        }
    }
}

/// How far the same effect is by a task of another name. Only the last one of its type counts, since
/// the volume is as that left it, and only if it is younger than the node: a volume that was kept has
/// tasks of a node that is gone.
fn of_another(tasks: &[TaskResult], effect: &Effect, created: Option<Timestamp>) -> Far {
    let of_type = tasks
        .iter()
        .filter(|it| it.type_ == effect.type_.as_str() && Some(it.submitted_at) >= created);
    let Some(last) = of_type.max_by_key(|it| it.submitted_at) else {
        return Far::Unknown;
    };
    let meant =
        |params: &Object| keelson_wire::Task::decode(effect.type_, params).and_then(Result::ok);
    let same = last.params == effect.params
        || meant(&last.params).is_some_and(|it| Some(it) == meant(&effect.params));
    match (same, last.status) {
        (true, TaskStatus::Completed) => Far::Done,
        (true, TaskStatus::Running) => Far::Running,
        _ => Far::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelson_wire::id::Scope;
    use serde_json::json;

    fn restore(height: i64) -> Object {
        Object::from_iter([("targetHeight".to_owned(), json!(height))])
    }

    fn task(at: i64, height: i64, status: TaskStatus) -> TaskResult {
        TaskResult {
            id: at.to_string(),
            type_: TaskType::SnapshotRestore.to_string(),
            status,
            run: 1,
            params: restore(height),
            result: None,
            error: String::new(),
            submitted_by: None,
            submitted_at: Timestamp::from_second(at).expect("a time"),
            completed_at: None,
        }
    }

    #[test]
    fn what_another_operator_restored_last_for_this_node_is_not_restored_again() {
        use TaskStatus::{Completed, Failed, Running};
        let effect = Effect {
            type_: TaskType::SnapshotRestore,
            params: restore(7),
            scope: Scope::Data,
            endless: false,
        };
        let far = |tasks: &[TaskResult]| {
            of_another(
                tasks,
                &effect,
                Some(Timestamp::from_second(10).expect("a time")),
            )
        };
        assert_eq!(far(&[]), Far::Unknown);
        assert_eq!(far(&[task(10, 7, Completed)]), Far::Done);
        assert_eq!(far(&[task(11, 7, Running)]), Far::Running);
        assert_eq!(far(&[task(11, 7, Failed)]), Far::Unknown);
        assert_eq!(
            far(&[task(11, 8, Completed)]),
            Far::Unknown,
            "another height"
        );
        assert_eq!(
            far(&[task(9, 7, Completed)]),
            Far::Unknown,
            "of a node before"
        );
        let last = [task(12, 8, Completed), task(11, 7, Completed)];
        assert_eq!(far(&last), Far::Unknown, "the last one wrote the volume");
    }
}
