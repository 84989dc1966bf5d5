//! A pod that is played: what of it runs, whether its gate is open, what its proxy serves, and the
//! status a kubelet would write for it.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use keelson_api::names::{Annotation, Component, Label};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::container::{self, Played, Role, State};
use super::place::Place;
use super::proxy::{Files, Serving};

pub(crate) const SIDECAR: &str = "sei-sidecar";
pub(crate) const PROXY: &str = "kube-rbac-proxy";
pub(crate) const PROCESS: &str = "seid";

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// On no machine yet, or on its way to one.
    Unbound,
    /// On its machine, and its containers are not made yet.
    Bound,
    /// Its containers are there.
    Up,
    /// All of it ended well.
    Done,
    /// It was stopped, and its object is on its way out.
    Stopped,
}

/// What the sidecar was told about its pod; nothing where it was told less than all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) node_uid: String,
    pub(crate) pod_kind: String,
    pub(crate) start_fingerprint: String,
}

/// A pod that is played.
#[derive(Debug)]
pub(crate) struct PlayedPod {
    pub(crate) node: Place,
    pub(crate) place: Place,
    pub(crate) uid: String,
    /// The object as it was last seen.
    pub(crate) object: Pod,
    pub(crate) step: Step,
    /// Whether the next step is on its way.
    pub(crate) stepping: bool,
    /// Whether its end is on its way.
    pub(crate) leaving: bool,
    pub(crate) containers: Vec<Played>,
    pub(crate) address: String,
    pub(crate) since: String,
    pub(crate) gate_open: bool,
    /// Whether the node's process runs, behind the gate.
    pub(crate) process: bool,
    pub(crate) files: Files,
    pub(crate) serving: Serving,
    /// Whether anyone was ever served TLS here.
    pub(crate) tls_was_served: bool,
    /// When the pod was last touched for its files.
    pub(crate) touched: Option<String>,
    /// The status that was written last, and whether one is being written.
    pub(crate) written: Option<Value>,
    pub(crate) writing: bool,
}

impl PlayedPod {
    pub(crate) fn new(object: Pod, node: Place, uid: String, address: String, now: &str) -> Self {
        let touched = object.annotations().get(Annotation::Refresh.as_str());
        Self {
            place: Place::of(&object),
            touched: touched.cloned(),
            node,
            uid,
            step: Step::Unbound,
            stepping: false,
            leaving: false,
            containers: object.spec.as_ref().map(container::of).unwrap_or_default(),
            object,
            address,
            since: now.to_owned(),
            gate_open: false,
            process: false,
            files: Files::default(),
            serving: Serving::Nothing,
            tls_was_served: false,
            written: None,
            writing: false,
        }
    }

    pub(crate) fn spec(&self) -> Option<&PodSpec> {
        self.object.spec.as_ref()
    }

    pub(crate) fn is_bootstrap(&self) -> bool {
        let component = self.object.labels().get(Label::Component.as_str());
        component.is_some_and(|it| it == Component::Bootstrap.as_str())
    }

    pub(crate) fn container(&mut self, name: &str) -> Option<&mut Played> {
        self.containers.iter_mut().find(|it| it.name == name)
    }

    /// Whether a container runs.
    pub(crate) fn runs(&self, name: &str) -> bool {
        let mut all = self.containers.iter();
        let running = |it: &Played| it.name == name && it.state == State::Running;
        self.step == Step::Up && all.any(running)
    }

    /// How often the sidecar has started: what one of them began, another does not end.
    pub(crate) fn sidecar_starts(&self) -> u32 {
        let sidecar = self.containers.iter().find(|it| it.name == SIDECAR);
        sidecar.map_or(0, |it| it.starts)
    }

    /// The claim its data is on.
    pub(crate) fn claim(&self) -> Option<Place> {
        let volumes = self.spec()?.volumes.iter().flatten();
        let mut claims = volumes.filter_map(|it| it.persistent_volume_claim.as_ref());
        Some(self.place.beside(&claims.next()?.claim_name))
    }

    /// The Secret its consensus key comes from.
    pub(crate) fn signing_key(&self) -> Option<&str> {
        let mut volumes = self.spec()?.volumes.iter().flatten();
        let volume = volumes.find(|it| it.name == "signing-key")?;
        volume.secret.as_ref()?.secret_name.as_deref()
    }

    /// Arguments of its proxy.
    pub(crate) fn proxy_arguments(&self) -> &[String] {
        let proxy = self.spec().and_then(|spec| find(spec, PROXY));
        proxy.and_then(|it| it.args.as_deref()).unwrap_or_default()
    }

    /// What the sidecar was told of the pod.
    pub(crate) fn facts(&self) -> Option<Facts> {
        let sidecar = find(self.spec()?, SIDECAR)?;
        let told = |name: &str| {
            let mut all = sidecar.env.iter().flatten();
            all.find(|it| it.name == name)?.value.clone()
        };
        Some(Facts {
            node_uid: told("KEELSON_NODE_UID")?,
            pod_kind: told("KEELSON_POD_KIND")?,
            start_fingerprint: told("KEELSON_START_FINGERPRINT")?,
        })
    }

    /// Everything that ran no longer does.
    pub(crate) fn stop(&mut self, step: Step) {
        self.step = step;
        self.gate_open = false;
        self.process = false;
        self.serving = Serving::Nothing;
    }

    fn is_ready(&self, container: &Played) -> bool {
        match (container.role, container.state) {
            (Role::Init, state) => state == State::Ended,
            (_, State::Running) => match container.name.as_str() {
                SIDECAR => self.gate_open,
                PROCESS => self.gate_open && self.process,
                _ => true,
            },
            _ => false,
        }
    }

    fn phase(&self) -> &'static str {
        match self.step {
            Step::Done => "Succeeded",
            Step::Up if !self.containers.iter().any(Played::is_new) => "Running",
            _ => "Pending",
        }
    }

    /// The status, as a kubelet would write it.
    pub(crate) fn status(&self) -> Value {
        let ready = |it: &&Played| self.is_ready(it);
        let stays: Vec<_> = self
            .containers
            .iter()
            .filter(|it| it.role != Role::Init)
            .collect();
        let all_ready = self.step == Step::Up && stays.iter().all(ready);
        let not_main: Vec<_> = self
            .containers
            .iter()
            .filter(|it| it.role != Role::Main)
            .collect();
        let initialized = not_main
            .iter()
            .all(|it| !it.is_new() && it.state != State::BackOff);
        let condition = |name: &str, holds: bool| {
            let status = if holds { "True" } else { "False" };
            json!({ "type": name, "status": status, "lastTransitionTime": self.since })
        };
        let statuses = |init: bool| -> Vec<Value> {
            let wanted = self.containers.iter();
            let wanted = wanted.filter(|it| (it.role != Role::Main) == init);
            wanted
                .map(|it| it.status(&self.uid, self.is_ready(it)))
                .collect()
        };
        json!({
            "phase": self.phase(),
            "observedGeneration": self.object.metadata.generation,
            "hostIP": "192.0.2.1",
            "hostIPs": [{ "ip": "192.0.2.1" }],
            "podIP": self.address,
            "podIPs": [{ "ip": self.address }],
            "startTime": self.since,
            "conditions": [
                condition("PodScheduled", true),
                condition("PodReadyToStartContainers", self.step == Step::Up),
                condition("Initialized", initialized),
                condition("ContainersReady", all_ready),
                condition("Ready", all_ready),
            ],
            "initContainerStatuses": statuses(true),
            "containerStatuses": statuses(false),
        })
    }
}

fn find<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a Container> {
    let mut all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    all.find(|it| it.name == name)
}
