//! The containers of a played pod: in which order they come up, and how a kubelet tells of them.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs once, before what comes after it.
    Init,
    /// Starts before what comes after it and stays.
    Sidecar,
    /// Runs when all of those do.
    Main,
}

/// Where a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for those before it.
    Waiting,
    /// Waits for an image that cannot be had.
    BackOff,
    Running,
    Ended,
}

/// A container that is played.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The image it was last started with, or tried to.
    pub(crate) image: String,
    pub(crate) state: State,
    /// How often it has started.
    pub(crate) starts: u32,
    /// Whether its replacement is on the way.
    pub(crate) restarting: bool,
    since: String,
    until: String,
}

/// An image of this kind cannot be pulled.
pub(crate) fn is_broken(image: &str) -> bool {
    image.contains("broken")
}

/// The containers of a pod, in the order they start.
pub(crate) fn of(spec: &PodSpec) -> Vec<Played> {
    let init = spec.init_containers.iter().flatten().map(|it| {
        let stays = it.restart_policy.as_deref() == Some("Always");
        Played::new(it, if stays { Role::Sidecar } else { Role::Init })
    });
    let main = spec.containers.iter().map(|it| Played::new(it, Role::Main));
    init.chain(main).collect()
}

/// The image a pod asks for under this name.
pub(crate) fn wanted<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a str> {
    let mut all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    all.find(|it| it.name == name)?.image.as_deref()
}

/// Starts what can start, in order, and says which did.
pub(crate) fn bring_up(containers: &mut [Played], now: &str) -> Vec<String> {
    let mut started = Vec::new();
    for container in containers {
        if matches!(container.state, State::Waiting | State::BackOff) && container.start(now) {
            started.push(container.name.clone());
        }
        let holds_others = container.role != Role::Main;
        if holds_others && matches!(container.state, State::Waiting | State::BackOff) {
            break;
        }
    }
    started
}

impl Played {
    fn new(container: &Container, role: Role) -> Self {
        Self {
            name: container.name.clone(),
            role,
            image: container.image.clone().unwrap_or_default(),
            state: State::Waiting,
            starts: 0,
            restarting: false,
            since: String::new(),
            until: String::new(),
        }
    }

    fn start(&mut self, now: &str) -> bool {
        if is_broken(&self.image) {
            self.state = State::BackOff;
            return false;
        }
        self.starts += 1;
        now.clone_into(&mut self.since);
        match self.role {
            Role::Init => self.end(now),
            Role::Sidecar | Role::Main => self.state = State::Running,
        }
        true
    }

    /// Ends it and starts it again with this image; says whether it started.
    pub(crate) fn replace(&mut self, image: &str, now: &str) -> bool {
        image.clone_into(&mut self.image);
        now.clone_into(&mut self.until);
        self.start(now)
    }

    /// It ends well and stays so.
    pub(crate) fn end(&mut self, now: &str) {
        self.state = State::Ended;
        now.clone_into(&mut self.until);
    }

    pub(crate) fn restarts(&self) -> u32 {
        self.starts.saturating_sub(1)
    }

    /// Whether it has yet to run for the first time.
    pub(crate) fn is_new(&self) -> bool {
        self.starts == 0
    }

    /// Its status, as a kubelet would write it.
    pub(crate) fn status(&self, pod: &str, ready: bool) -> Value {
        let id = |run: u32| {
            format!(
                "containerd://{}",
                digest(&format!("{pod}/{}/{run}", self.name))
            )
        };
        let ended = |run| {
            json!({
                "exitCode": 0, "reason": "Completed", "containerID": id(run),
                "startedAt": self.since, "finishedAt": self.until,
            })
        };
        let state = match self.state {
            State::Waiting => json!({ "waiting": { "reason": "PodInitializing" } }),
            State::BackOff => json!({ "waiting": {
                "reason": "ImagePullBackOff",
                "message": format!("Back-off pulling image {:?}", self.image),
            }}),
            State::Running => json!({ "running": { "startedAt": self.since } }),
            State::Ended => json!({ "terminated": ended(self.starts) }),
        };
        let mut status = json!({
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "restartCount": self.restarts(),
            "started": self.state == State::Running,
            "ready": ready,
            "state": state,
        });
        if self.starts > 0 {
            status["imageID"] = format!("{}@sha256:{}", self.image, digest(&self.image)).into();
            status["containerID"] = id(self.starts).into();
        }
        let before = match self.state {
            State::BackOff => self.starts,
            _ => self.restarts(),
        };
        if before > 0 {
            status["lastState"] = json!({ "terminated": ended(before) });
        }
        status
    }
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
