//! What a test asks of the players: how slow they are, what fails, and who does not answer.
//!
//! Values only. A node that has no script of its own is played with the defaults.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use keelson_wire::TaskType;

use super::place::Place;

/// How a node's sidecar misbehaves, beneath whatever its proxy would serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Connections are accepted and never answered.
    BlackHole,
    /// Connections are closed before anything is answered.
    Refuse,
    /// Answers come this late.
    Slow(Duration),
    /// Every request is answered with this status and nothing is done.
    Status(u16),
    /// The next request is answered with 401, those after it as they should be.
    UnauthorizedOnce,
    /// Requests are carried out, and the connection ends in the middle of the answer.
    Cut,
}

/// How a task ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Well.
    Completed,
    /// With this error.
    Failed(String),
    /// Not at all.
    Never,
}

/// What becomes of one run of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) after: Duration,
    pub(crate) end: End,
}

/// How tasks of one type go on one node.
#[derive(Clone, Debug, Default)]
struct Course {
    after: Duration,
    hangs: bool,
    failures: u32,
    error: String,
}

/// How one node is played.
#[derive(Clone, Debug)]
pub(crate) struct NodeScript {
    /// How long its pods take from being bound to running.
    pub(crate) start: Duration,
    /// How long its pods take to end.
    pub(crate) stop: Duration,
    /// How long mounted files lag behind what they come from, unless the pod is touched.
    pub(crate) refresh: Duration,
    /// How long a container takes to be replaced.
    pub(crate) restart: Duration,
    /// How long a bootstrap pod replays.
    pub(crate) replay: Duration,
    /// Whether tokens are shown to the API server, with the audiences of the pod's own proxy.
    pub(crate) reviews: bool,
    pub(crate) fault: Option<Fault>,
    /// Whether its pods are left as they are.
    pub(crate) paused: bool,
    courses: BTreeMap<TaskType, Course>,
}

impl Default for NodeScript {
    fn default() -> Self {
        Self {
            start: Duration::ZERO,
            stop: Duration::ZERO,
            refresh: Duration::from_millis(200),
            restart: Duration::from_millis(20),
            replay: Duration::from_millis(20),
            reviews: false,
            fault: None,
            paused: false,
            courses: BTreeMap::new(),
        }
    }
}

/// The whole script.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Whether nothing is played at all.
    pub(crate) paused: bool,
    /// How a node is played that has no script of its own.
    pub(crate) usual: NodeScript,
    nodes: HashMap<Place, NodeScript>,
}

impl Script {
    /// The script of one node, to be written.
    pub(crate) fn node(&mut self, node: &Place) -> &mut NodeScript {
        let usual = || self.usual.clone();
        self.nodes.entry(node.clone()).or_insert_with(usual)
    }

    /// The script of one node, to be read.
    pub(crate) fn of(&self, node: &Place) -> NodeScript {
        self.nodes.get(node).unwrap_or(&self.usual).clone()
    }

    /// What becomes of the next run of a task; a failure that was asked for is used up.
    pub(crate) fn next_run(&mut self, node: &Place, type_: TaskType) -> Run {
        let script = self.nodes.get_mut(node).unwrap_or(&mut self.usual);
        let Some(course) = script.courses.get_mut(&type_) else {
            return Run {
                after: Duration::ZERO,
                end: End::Completed,
            };
        };
        let end = if course.hangs {
            End::Never
        } else if course.failures > 0 {
            course.failures -= 1;
            End::Failed(course.error.clone())
        } else {
            End::Completed
        };
        Run {
            after: course.after,
            end,
        }
    }

    /// The fault of a node's sidecar; one that happens once is used up.
    pub(crate) fn next_fault(&mut self, node: &Place) -> Option<Fault> {
        let script = self.nodes.get_mut(node).unwrap_or(&mut self.usual);
        match script.fault {
            Some(Fault::UnauthorizedOnce) => script.fault.take(),
            fault => fault,
        }
    }
}

impl NodeScript {
    /// Tasks of this type take so long.
    pub(crate) fn takes(&mut self, type_: TaskType, after: Duration) {
        self.courses.entry(type_).or_default().after = after;
    }

    /// The next so many runs of this type fail.
    pub(crate) fn fails(&mut self, type_: TaskType, times: u32, error: &str) {
        let course = self.courses.entry(type_).or_default();
        course.failures = times;
        error.clone_into(&mut course.error);
    }

    /// Tasks of this type, from the next run on, hang or no longer do.
    pub(crate) fn hangs(&mut self, type_: TaskType, hangs: bool) {
        self.courses.entry(type_).or_default().hangs = hangs;
    }
}
