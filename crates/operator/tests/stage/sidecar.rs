//! The part of [`World`] that is the sidecars: tasks, the gate, and who is let in.

use keelson_wire::{Submission, TaskResult, TaskStatus, TaskType};

use super::ledger::{Shown, Submitted};
use super::place::Place;
use super::pod::{PROXY, PlayedPod, SIDECAR};
use super::proxy::Serving;
use super::script::End;
use super::volume::{Effect, Kept, Record, Verdict, Volume, effect, is_data};
use super::world::{Deed, Wake, World};

/// What a caller who submits is told, and what is to be done about it.
pub(crate) type Submitting = (Result<String, String>, Vec<Deed>);

impl World {
    /// The pod that answers under a node's name: the one whose proxy runs.
    pub(crate) fn answering(&self, node: &Place) -> Option<&PlayedPod> {
        let pods = self.by_node.get(node)?.iter();
        let mut running = pods
            .filter_map(|uid| self.pods.get(uid))
            .filter(|it| it.runs(PROXY));
        running.next()
    }

    /// What connections to a node get now, and from which pod.
    pub(crate) fn serving(&self, node: &Place) -> (Option<String>, Serving) {
        match self.answering(node) {
            Some(pod) => (Some(pod.uid.clone()), pod.serving.clone()),
            None => (None, Serving::Nothing),
        }
    }

    /// The configuration a pod's proxy has read.
    pub(crate) fn proxy_config(&self, uid: &str) -> Option<String> {
        self.pods.get(uid)?.files.config.clone()
    }

    /// A handshake with a pod has ended well.
    pub(crate) fn tls_was_served(&mut self, uid: &str) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.tls_was_served = true;
        }
    }

    /// Whether a handshake with a pod has ever ended well.
    pub(crate) fn has_served_tls(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(|it| it.tls_was_served)
    }

    /// A request came, with this token or without one.
    pub(crate) fn asked(&mut self, node: &Place, uid: &str, token: Option<&str>, plaintext: bool) {
        let seen = self.ledger.node(node);
        seen.requests += 1;
        let Some(token) = token else {
            seen.without_token += 1;
            return;
        };
        seen.with_token += 1;
        let shown = Shown {
            token: token.to_owned(),
            plaintext,
            pod: uid.to_owned(),
        };
        if !seen.shown.contains(&shown) {
            seen.shown.push(shown);
        }
    }

    /// A token came to a pod in the clear that must not have.
    pub(crate) fn downgraded(&mut self, node: &Place, uid: &str) {
        let what = format!("a token came in plaintext to pod {uid}, which had served TLS");
        self.ledger.violated(node, what);
    }

    /// Whether the gate of a pod is open; nothing where no sidecar runs behind the proxy.
    pub(crate) fn gate(&self, uid: &str) -> Option<bool> {
        let pod = self.pods.get(uid)?;
        pod.runs(SIDECAR).then_some(pod.gate_open)
    }

    /// A node's start is approved no longer, as after `mark-not-ready`.
    pub(crate) fn disapprove(&mut self, node: &Place) -> Vec<Deed> {
        let uid = self.answering(node).map(|pod| pod.uid.clone());
        uid.map_or_else(Vec::new, |uid| self.revoke(&uid))
    }

    /// Tasks of the volume a pod has.
    pub(crate) fn tasks(&self, uid: &str) -> Vec<TaskResult> {
        let volume = self
            .claim_of(uid)
            .and_then(|claim| self.volumes.get(&claim));
        let tasks = volume.map(|it| it.tasks.as_slice()).unwrap_or_default();
        tasks.iter().map(|it| it.result.clone()).collect()
    }

    /// The configuration on the volume a pod has.
    pub(crate) fn configuration(&self, uid: &str) -> String {
        let volume = self
            .claim_of(uid)
            .and_then(|claim| self.volumes.get(&claim));
        volume.map(|it| it.configuration()).unwrap_or_default()
    }

    /// Forgets a task, and says whether there was one.
    pub(crate) fn delete_task(&mut self, uid: &str, id: &str) -> bool {
        let Some(volume) = self.volume_of(uid) else {
            return false;
        };
        let before = volume.tasks.len();
        volume.tasks.retain(|it| it.result.id != id);
        volume.tasks.len() < before
    }

    /// Takes a task: what is new or has failed is begun, the rest is left as it is.
    pub(crate) fn submit(&mut self, uid: &str, id: &str, submission: &Submission) -> Submitting {
        let Some(node) = self.pods.get(uid).map(|pod| pod.node.clone()) else {
            return (Err("the pod is gone".to_owned()), Vec::new());
        };
        let type_ = submission.type_;
        let Some(volume) = self.volume_of(uid) else {
            return (Err("the pod has no volume".to_owned()), Vec::new());
        };
        let verdict = volume.judge(id, submission);
        if let Verdict::Conflict(sentence) = verdict {
            return (Err(sentence), Vec::new());
        }
        let crowded = is_data(type_) && volume.data_is_taken(id);
        if verdict == Verdict::Start {
            volume.keep(id, submission, Some("the caller".to_owned()));
        }
        let seen = self.ledger.node(&node);
        seen.submitted.push(Submitted {
            id: id.to_owned(),
            type_,
            params: submission.params.clone(),
            pod: uid.to_owned(),
        });
        if verdict == Verdict::Same {
            return (Ok(id.to_owned()), Vec::new());
        }
        *seen.runs.entry(id.to_owned()).or_default() += 1;
        if crowded {
            let what = format!("{type_} {id} was submitted while another task had the data");
            self.ledger.violated(&node, what);
        }
        self.look_at_data_task(uid, id, submission);
        (Ok(id.to_owned()), self.take_turns(uid))
    }

    /// Data is restored once, and never under a process.
    fn look_at_data_task(&mut self, uid: &str, id: &str, submission: &Submission) {
        let type_ = submission.type_;
        let Some(pod) = self.pods.get(uid).filter(|_| is_data(type_)) else {
            return;
        };
        let (node, process) = (pod.node.clone(), pod.process);
        let unchanged = self
            .volume_of(uid)
            .is_some_and(|it| !it.changes(type_, &submission.params));
        if process {
            let what = format!("{type_} {id} was submitted while the process ran");
            self.ledger.violated(&node, what);
        }
        if unchanged {
            let what = format!("{type_} {id} was begun though the volume has it already");
            self.ledger.violated(&node, what);
        }
    }

    /// A sidecar came up: what was approved is approved, and what was interrupted goes on.
    pub(super) fn sidecar_started(&mut self, uid: &str) -> Vec<Deed> {
        let facts = self.pods.get(uid).and_then(PlayedPod::facts);
        let approved = self
            .volume_of(uid)
            .is_some_and(|it| it.approves(facts.as_ref()));
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.gate_open = approved;
        }
        self.take_turns(uid)
    }

    /// Nobody is at work any more on the tasks of a pod's volume.
    pub(super) fn interrupt(&mut self, pod: &PlayedPod) {
        let claim = pod.claim();
        // Another pod may have the volume by now; its tasks are its own.
        let others = self.pods.values().filter(|it| it.uid != pod.uid);
        let taken = others
            .filter(|it| it.runs(SIDECAR))
            .any(|it| it.claim() == claim);
        let volume = claim.and_then(|claim| self.volumes.get_mut(&claim));
        if let Some(volume) = volume.filter(|_| !taken) {
            volume.tasks.iter_mut().for_each(|it| it.at_work = false);
        }
    }

    pub(super) fn interrupt_of(&mut self, uid: &str) {
        if let Some(volume) = self.volume_of(uid) {
            volume.tasks.iter_mut().for_each(|it| it.at_work = false);
        }
    }

    /// Begins every task that need not wait.
    fn take_turns(&mut self, uid: &str) -> Vec<Deed> {
        let mut deeds = Vec::new();
        while let Some(id) = self.volume_of(uid).and_then(|volume| volume.next()) {
            deeds.extend(self.begin(uid, &id));
        }
        deeds
    }

    fn begin(&mut self, uid: &str, id: &str) -> Vec<Deed> {
        let Some((type_, params, run)) = self.volume_of(uid).and_then(|it| it.task(id)).map(|it| {
            it.at_work = true;
            (it.type_, it.result.params.clone(), it.result.run)
        }) else {
            return Vec::new();
        };
        let changes = self
            .volume_of(uid)
            .is_some_and(|it| it.changes(type_, &params));
        if effect(type_, &params) == Effect::Closes && changes {
            self.close(uid);
        }
        let Some(pod) = self.pods.get(uid) else {
            return Vec::new();
        };
        let (node, sidecar) = (pod.node.clone(), pod.sidecar_starts());
        let next = self.script.next_run(&node, type_);
        let write = Deed::Write {
            uid: uid.to_owned(),
        };
        if next.end == End::Never {
            return vec![write];
        }
        if next.after.is_zero() {
            let mut deeds = self.finish(uid, id, &next.end);
            deeds.push(write);
            return deeds;
        }
        // How it ends is decided when it begins; a failure waits in the task until then.
        if let (End::Failed(error), Some(kept)) = (&next.end, self.kept(uid, id)) {
            kept.result.error.clone_from(error);
        }
        let wake = Wake::TaskEnds {
            uid: uid.to_owned(),
            sidecar,
            id: id.to_owned(),
            run,
        };
        vec![
            write,
            Deed::Later {
                after: next.after,
                wake,
            },
        ]
    }

    /// A task is over, if the sidecar that began it is still there.
    pub(super) fn task_ends(&mut self, uid: &str, sidecar: u32, id: &str, run: u32) -> Vec<Deed> {
        let same = |pod: &PlayedPod| pod.runs(SIDECAR) && pod.sidecar_starts() == sidecar;
        if !self.pods.get(uid).is_some_and(same) {
            return Vec::new();
        }
        let Some(kept) = self.kept(uid, id) else {
            return Vec::new();
        };
        if kept.result.run != run || kept.result.status != TaskStatus::Running {
            return Vec::new();
        }
        let end = match kept.result.error.as_str() {
            "" => End::Completed,
            error => End::Failed(error.to_owned()),
        };
        let mut deeds = self.finish(uid, id, &end);
        deeds.extend(self.take_turns(uid));
        deeds
    }

    /// Ends well what hangs of this type on a node, and says how many did.
    pub(crate) fn release(&mut self, node: &Place, type_: TaskType) -> (usize, Vec<Deed>) {
        let Some(uid) = self.answering(node).map(|pod| pod.uid.clone()) else {
            return (0, Vec::new());
        };
        let tasks = self.volume_of(&uid).map(|it| it.tasks.as_slice());
        let hung = tasks.unwrap_or_default().iter();
        let hung = hung.filter(|it| it.type_ == type_ && it.at_work);
        let ids: Vec<_> = hung.map(|it| it.result.id.clone()).collect();
        let mut deeds = Vec::new();
        for id in &ids {
            deeds.extend(self.finish(&uid, id, &End::Completed));
        }
        deeds.extend(self.take_turns(&uid));
        (ids.len(), deeds)
    }

    fn finish(&mut self, uid: &str, id: &str, end: &End) -> Vec<Deed> {
        let Some(volume) = self.volume_of(uid) else {
            return Vec::new();
        };
        volume.end(id, end);
        let Some(kept) = volume.task(id).filter(|_| *end == End::Completed) else {
            return Vec::new();
        };
        let (type_, params) = (kept.type_, kept.result.params.clone());
        volume.write(type_, &params);
        match type_ {
            TaskType::MarkReady => self.open(uid),
            TaskType::MarkNotReady => self.revoke(uid),
            TaskType::StopSeid | TaskType::RestartSeid => self.restart(uid, super::pod::PROCESS),
            TaskType::AwaitCondition if params.contains_key("action") => {
                self.restart(uid, super::pod::PROCESS)
            }
            _ => Vec::new(),
        }
    }

    fn open(&mut self, uid: &str) -> Vec<Deed> {
        let Some(pod) = self.pods.get_mut(uid) else {
            return Vec::new();
        };
        pod.gate_open = true;
        let facts = pod.facts();
        if let (Some(volume), Some(facts)) = (self.volume_of(uid), facts) {
            let configuration = volume.configuration();
            volume.record = Some(Record {
                facts,
                configuration,
            });
        }
        let mut deeds = self.pass_gate(uid);
        deeds.push(Deed::Write {
            uid: uid.to_owned(),
        });
        deeds
    }

    /// The gate is closed, and the same id may open it again.
    fn revoke(&mut self, uid: &str) -> Vec<Deed> {
        if let Some(volume) = self.volume_of(uid) {
            volume.forget_releases();
        }
        self.close(uid);
        vec![Deed::Write {
            uid: uid.to_owned(),
        }]
    }

    fn close(&mut self, uid: &str) {
        if let Some(volume) = self.volume_of(uid) {
            volume.record = None;
        }
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.gate_open = false;
        }
    }

    fn kept(&mut self, uid: &str, id: &str) -> Option<&mut Kept> {
        self.volume_of(uid)?.task(id)
    }

    fn claim_of(&self, uid: &str) -> Option<Place> {
        self.pods.get(uid)?.claim()
    }

    fn volume_of(&mut self, uid: &str) -> Option<&mut Volume> {
        let claim = self.claim_of(uid)?;
        Some(self.volumes.entry(claim).or_default())
    }
}
