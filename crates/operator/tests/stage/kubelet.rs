//! The part of [`World`] that is the kubelet: pods come up, change in place and go.

use jiff::Timestamp;
use keelson_api::names::Annotation;
use kube::ResourceExt;

use super::container::{self, State};
use super::place::Place;
use super::pod::{PROCESS, PROXY, PlayedPod, SIDECAR, Step};
use super::proxy::{self, Files, Serving};
use super::world::{Deed, Wake, World, now};

impl World {
    /// Looks at a pod and does what is next. The same look twice does nothing twice.
    pub(super) fn consider(&mut self, uid: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get_mut(uid) else {
            return Vec::new();
        };
        let script = self.script.of(&pod.node);
        if self.script.paused || script.paused || pod.leaving || pod.step == Step::Stopped {
            return Vec::new();
        }
        let uid = uid.to_owned();
        if pod.object.metadata.deletion_timestamp.is_some() {
            pod.leaving = true;
            let wake = Wake::Stop { uid };
            return vec![Deed::Later {
                after: script.stop,
                wake,
            }];
        }
        let bound = pod.spec().is_some_and(|spec| spec.node_name.is_some());
        if pod.step == Step::Unbound && bound {
            (pod.step, pod.stepping) = (Step::Bound, false);
        }
        match pod.step {
            Step::Unbound if !pod.stepping => {
                let claim = pod.claim();
                if claim.is_some_and(|claim| !self.claims.contains_key(&claim)) {
                    return Vec::new();
                }
                pod.stepping = true;
                vec![Deed::Bind {
                    pod: pod.place.clone(),
                    uid,
                }]
            }
            Step::Bound if !pod.stepping => {
                pod.stepping = true;
                let wake = Wake::Start { uid };
                vec![Deed::Later {
                    after: script.start,
                    wake,
                }]
            }
            Step::Up => self.consider_running(&uid),
            _ => Vec::new(),
        }
    }

    fn consider_running(&mut self, uid: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get_mut(uid) else {
            return Vec::new();
        };
        let after = self.script.of(&pod.node).restart;
        let mut deeds = vec![Deed::Write {
            uid: uid.to_owned(),
        }];
        let spec = pod.object.spec.clone().unwrap_or_default();
        for container in &mut pod.containers {
            let wanted = container::wanted(&spec, &container.name);
            let differs = wanted.is_some_and(|wanted| wanted != container.image);
            if differs && !container.restarting && container.state != State::Ended {
                container.restarting = true;
                let (uid, container) = (uid.to_owned(), container.name.clone());
                let wake = Wake::Restart { uid, container };
                deeds.push(Deed::Later { after, wake });
            }
        }
        let touched = pod
            .object
            .annotations()
            .get(Annotation::Refresh.as_str())
            .cloned();
        if touched != pod.touched {
            pod.touched = touched;
            self.refresh(uid);
        }
        deeds
    }

    /// Something happens that was to happen after a while.
    pub(crate) fn wake(&mut self, wake: Wake) -> Vec<Deed> {
        match wake {
            Wake::Start { uid } => self.start(&uid),
            Wake::Stop { uid } => self.stop(&uid),
            Wake::Restart { uid, container } => self.restart(&uid, &container),
            Wake::Refresh { uid } => {
                self.refresh(&uid);
                Vec::new()
            }
            Wake::TaskEnds {
                uid,
                sidecar,
                id,
                run,
            } => self.task_ends(&uid, sidecar, &id, run),
            Wake::ReplayEnds { uid } => self.replay_ends(&uid),
        }
    }

    /// Makes the containers of a pod whose files are all there; one that lacks something waits.
    fn start(&mut self, uid: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get(uid) else {
            return Vec::new();
        };
        if pod.leaving || pod.step != Step::Bound {
            return Vec::new();
        }
        let whole = self.has_all(pod);
        let files = self.files(pod);
        let Some(pod) = self.pods.get_mut(uid) else {
            return Vec::new();
        };
        pod.stepping = false;
        if !whole {
            return vec![Deed::Write {
                uid: uid.to_owned(),
            }];
        }
        pod.files = files;
        pod.step = Step::Up;
        let started = container::bring_up(&mut pod.containers, &now());
        self.started(uid, &started)
    }

    /// Whether everything is there that a pod cannot be without.
    fn has_all(&self, pod: &PlayedPod) -> bool {
        let mut volumes = pod
            .spec()
            .and_then(|it| it.volumes.as_ref())
            .into_iter()
            .flatten();
        volumes.all(|volume| {
            let at = |name: &str| pod.place.beside(name);
            if let Some(claim) = &volume.persistent_volume_claim {
                let claim = self.claims.get(&at(&claim.claim_name));
                return claim.is_some_and(|it| it.bound);
            }
            if let Some(map) = &volume.config_map {
                return map.optional == Some(true) || self.config_maps.contains_key(&at(&map.name));
            }
            if let Some(secret) = &volume.secret {
                let name = secret.secret_name.as_deref().unwrap_or_default();
                return secret.optional == Some(true) || self.secrets.contains_key(&at(name));
            }
            true
        })
    }

    /// The files of a pod's proxy, as they are now.
    fn files(&self, pod: &PlayedPod) -> Files {
        let volumes = pod
            .spec()
            .and_then(|it| it.volumes.as_ref())
            .into_iter()
            .flatten();
        let mut files = Files::default();
        for volume in volumes {
            let at = |name: &str| pod.place.beside(name);
            match (volume.name.as_str(), &volume.config_map, &volume.secret) {
                ("rbac-proxy-config", Some(map), _) => {
                    // A ConfigMap that is gone leaves its files behind.
                    let text = self.config_maps.get(&at(&map.name)).cloned().flatten();
                    files.config = text.or_else(|| pod.files.config.clone());
                }
                ("sidecar-tls", _, Some(secret)) => {
                    let name = secret.secret_name.as_deref().unwrap_or_default();
                    files.pair = self.secrets.get(&at(name)).cloned().flatten();
                }
                _ => {}
            }
        }
        files
    }

    /// Brings a pod's files up to date, and its proxy follows them.
    fn refresh(&mut self, uid: &str) {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.step == Step::Up) else {
            return;
        };
        let files = self.files(pod);
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        if files != pod.files {
            pod.files = files;
            if pod.runs(PROXY) {
                let at = Timestamp::now();
                pod.serving = proxy::follow(&pod.serving, &pod.files, pod.proxy_arguments(), at);
            }
        }
    }

    /// Replaces one container, with the image the pod asks for now.
    pub(super) fn restart(&mut self, uid: &str, name: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.step == Step::Up) else {
            return Vec::new();
        };
        let image = pod.spec().and_then(|spec| container::wanted(spec, name));
        let image = image.unwrap_or_default().to_owned();
        let Some(container) = pod.container(name) else {
            return Vec::new();
        };
        container.restarting = false;
        let had_run = !container.is_new();
        let mut started = Vec::new();
        if container.replace(&image, &now()) {
            started.push(name.to_owned());
        }
        match name {
            SIDECAR => pod.gate_open = false,
            PROXY => pod.serving = Serving::Nothing,
            PROCESS => pod.process = false,
            _ => {}
        }
        if had_run && !started.is_empty() {
            let restarts = &mut self.ledger.node(&pod.node).restarts;
            *restarts.entry(name.to_owned()).or_default() += 1;
        }
        // What waited for an image may have held others up.
        started.extend(container::bring_up(&mut pod.containers, &now()));
        if name == SIDECAR {
            self.interrupt_of(uid);
        }
        let mut deeds = self.started(uid, &started);
        // It may have changed again while it was being replaced.
        deeds.extend(self.consider(uid));
        deeds
    }

    /// Containers have started.
    fn started(&mut self, uid: &str, names: &[String]) -> Vec<Deed> {
        let mut deeds = vec![Deed::Write {
            uid: uid.to_owned(),
        }];
        for name in names {
            match name.as_str() {
                SIDECAR => deeds.extend(self.sidecar_started(uid)),
                PROXY => {
                    if let Some(pod) = self.pods.get_mut(uid) {
                        let (arguments, at) = (pod.proxy_arguments(), Timestamp::now());
                        pod.serving = proxy::follow(&Serving::Nothing, &pod.files, arguments, at);
                    }
                }
                _ => {}
            }
        }
        deeds.extend(self.pass_gate(uid));
        deeds
    }

    /// The node's process starts where its container runs and the gate is open.
    pub(super) fn pass_gate(&mut self, uid: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get(uid) else {
            return Vec::new();
        };
        if !pod.gate_open || pod.process || !pod.runs(PROCESS) {
            return Vec::new();
        }
        let after = self.script.of(&pod.node).replay;
        self.look_for_another(pod.uid.clone());
        let files = self.configuration(uid);
        let Some(pod) = self.pods.get_mut(uid) else {
            return Vec::new();
        };
        pod.process = true;
        let seen = self.ledger.node(&pod.node);
        seen.process_starts += 1;
        seen.started_with = files;
        let uid = uid.to_owned();
        let mut deeds = vec![Deed::Write { uid: uid.clone() }];
        if pod.is_bootstrap() {
            let wake = Wake::ReplayEnds { uid };
            deeds.push(Deed::Later { after, wake });
        }
        deeds
    }

    /// A process that starts must be the only one of its volume, and of its key.
    fn look_for_another(&mut self, uid: String) {
        let Some(pod) = self.pods.get(&uid) else {
            return;
        };
        let others = self.pods.values().filter(|other| {
            other.uid != uid && other.process && other.place.namespace == pod.place.namespace
        });
        let mut found = Vec::new();
        for other in others {
            if other.claim() == pod.claim() {
                found.push(format!(
                    "its process and that of {} are on one volume",
                    other.place
                ));
            }
            if pod.signing_key().is_some() && other.signing_key() == pod.signing_key() {
                found.push(format!(
                    "its process and that of {} sign with one key",
                    other.place
                ));
            }
        }
        let node = pod.node.clone();
        found
            .into_iter()
            .for_each(|what| self.ledger.violated(&node, what));
    }

    /// A bootstrap pod has replayed: all of it ends well.
    fn replay_ends(&mut self, uid: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get_mut(uid).filter(|pod| pod.step == Step::Up) else {
            return Vec::new();
        };
        let now = now();
        pod.containers.iter_mut().for_each(|it| it.end(&now));
        pod.stop(Step::Done);
        self.interrupt_of(uid);
        vec![Deed::Write {
            uid: uid.to_owned(),
        }]
    }

    /// A pod that is to go has gone, as far as the machine is concerned.
    fn stop(&mut self, uid: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get_mut(uid) else {
            return Vec::new();
        };
        pod.stop(Step::Stopped);
        let deed = Deed::Remove {
            pod: pod.place.clone(),
            uid: uid.to_owned(),
        };
        self.interrupt_of(uid);
        vec![deed]
    }

    /// What is to be written of a pod, if anything is: one write at a time, and none twice.
    pub(crate) fn begin_write(&mut self, uid: &str) -> Option<(Place, serde_json::Value)> {
        let pod = self.pods.get_mut(uid)?;
        let status = pod.status();
        if pod.writing || pod.step == Step::Stopped || pod.written.as_ref() == Some(&status) {
            return None;
        }
        pod.writing = true;
        self.ledger.node(&pod.node).status_writes += 1;
        pod.written = Some(status.clone());
        Some((pod.place.clone(), status))
    }

    /// A write is over; one that failed is to be made again.
    pub(crate) fn end_write(&mut self, uid: &str, done: bool) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.writing = false;
            if !done {
                pod.written = None;
            }
        }
    }
}
