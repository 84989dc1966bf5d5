//! A model of a sidecar: tasks under names, one at a time, each name done at most once.

use std::collections::BTreeMap;

use keelson_plan::{Outcome, Plan, Step, Task, Waiting};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running { ticks: u32 },
    Failed,
    Done,
}

/// What a sidecar was asked, by name, and how far it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sidecar {
    tasks: BTreeMap<String, State>,
    /// Ticks a task takes.
    pub(crate) slowness: u32,
    /// How many of the next tasks fail.
    pub(crate) failing: u32,
    /// Tasks that were submitted while another one ran.
    pub(crate) doubled: Vec<String>,
}

impl Sidecar {
    /// The name of an effect: by the facts that require it.
    pub(crate) fn name(plan: &Plan, step: Step, attempt: u32, pod: &str) -> String {
        let want = &plan.target;
        let stage = step.stage;
        let task = step.task.type_();
        let gate = match step.task {
            Task::MarkReady | Task::RestartProcess => pod,
            _ => "",
        };
        if step.task.keeps() {
            format!("{task}/{:?}/{attempt}", want.start)
        } else {
            let generation = plan.generation;
            format!(
                "{stage:?}/{task}/{}/{attempt}/{generation}/{gate}",
                want.settings
            )
        }
    }

    pub(crate) fn tick(&mut self) {
        for state in self.tasks.values_mut() {
            if let State::Running { ticks } = state {
                *ticks += 1;
            }
        }
    }

    /// Submits the task once, then says how far it is, and whether its effect happens now.
    pub(crate) fn ask(&mut self, name: &str, task: Task) -> (Outcome, bool) {
        let running = |state: &State| matches!(state, State::Running { .. });
        if !self.tasks.contains_key(name) {
            if self.tasks.values().any(running) {
                self.doubled.push(name.to_owned());
            }
            self.tasks
                .insert(name.to_owned(), State::Running { ticks: 0 });
        }
        let failing = self.failing > 0;
        let state = self.tasks.entry(name.to_owned()).or_insert(State::Done);
        match *state {
            State::Done => (Outcome::Done, false),
            State::Running { ticks } if ticks < self.slowness => {
                let on = Waiting::SidecarTask { task: task.type_() };
                (Outcome::Waiting { on }, false)
            }
            State::Running { .. } if failing => {
                self.failing -= 1;
                *state = State::Failed;
                self.ask(name, task)
            }
            State::Running { .. } => {
                *state = State::Done;
                (Outcome::Done, true)
            }
            State::Failed => {
                let error = format!("{} failed", task.type_());
                (Outcome::Retry { error, spent: true }, false)
            }
        }
    }

    /// A pod went: what was about that very pod went with it. The rest goes on in the next.
    pub(crate) fn pod_gone(&mut self, uid: &str) {
        let gone: Vec<String> = self
            .tasks
            .keys()
            .filter(|name| name.ends_with(uid))
            .cloned()
            .collect();
        gone.iter().for_each(|name| self.cancel(name));
    }

    /// Calls a task off, and sees it end.
    pub(crate) fn cancel(&mut self, name: &str) {
        if let Some(state) = self.tasks.get_mut(name)
            && matches!(state, State::Running { .. })
        {
            *state = State::Failed;
        }
    }
}
