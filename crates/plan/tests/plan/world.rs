//! A small model of a cluster with one node in it.
//!
//! Every effect looks before it acts. What the rest of the cluster does by itself (pods that come,
//! certificates that are issued, proxies that reload) happens in [`World::tick`]. What no plan may
//! ever do is noted as a violation, and a law that finds one fails.

use keelson_plan::{
    Data, Observed, Outcome, Plan, Pod, ProxyConfig, Running, Served, Stage, Step, Target, Task,
    Tls, Waiting,
};

use crate::sidecar::Sidecar;
use crate::targets::{baked, issuer};

/// An image whose process never starts.
pub(crate) const BROKEN: &str = "broken";

/// What the settings are after somebody edited the files on the volume.
pub(crate) const BY_HAND: &str = "by hand";

/// The bootstrap Job.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Job {
    pub(crate) approved: bool,
    pub(crate) complete: bool,
}

/// A cluster with one node in it, and what happened to the node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct World {
    pub(crate) volume: bool,
    pub(crate) data: Option<Data>,
    pub(crate) certificate: Option<Tls>,
    /// Where the certificate in the Secret we own comes from.
    pub(crate) secret: Option<Tls>,
    pub(crate) config: Option<ProxyConfig>,
    pub(crate) network_policy: bool,
    pub(crate) service: bool,
    pub(crate) template: Option<Pod>,
    pub(crate) pod: Option<Running>,
    pub(crate) served: Option<Served>,
    pub(crate) settings: Option<String>,
    /// What the process was started with, while it runs.
    pub(crate) process: Option<String>,
    pub(crate) peers: Option<String>,
    pub(crate) publishing: bool,
    pub(crate) approved: bool,
    pub(crate) job: Option<Job>,
    pub(crate) sidecar: Sidecar,
    /// Ticks until a certificate is issued.
    pub(crate) issuance: u32,
    issued_for: u32,
    pods: u32,
    pub(crate) config_was_taken: bool,
    pub(crate) cycles: u32,
    pub(crate) patches: u32,
    pub(crate) restarts: u32,
    pub(crate) restores: u32,
    pub(crate) violations: Vec<String>,
}

impl World {
    pub(crate) fn observe(&self) -> Observed {
        let sidecar = self.sidecar_answers();
        Observed {
            volume: self.volume,
            data: self.data.unwrap_or(Data::Empty),
            certificate: self.certificate.clone(),
            proxy_config: self.config.clone(),
            network_policy: self.network_policy,
            service: self.service,
            template: self.template.clone(),
            running: self.pod.clone(),
            served: self
                .served
                .clone()
                .filter(|_| self.pod.is_some())
                .unwrap_or(Served::Unknown),
            settings: self.settings.clone().filter(|_| sidecar),
            process: self.process.clone().filter(|_| sidecar),
            peers: self.peers.clone().filter(|_| sidecar),
            publishing: Some(self.publishing).filter(|_| self.data == Some(Data::Complete)),
            approved: sidecar.then_some(self.approved),
            bootstrap: self.job.is_some(),
        }
    }

    fn sidecar_answers(&self) -> bool {
        self.pod
            .as_ref()
            .is_some_and(|running| running.pod.sidecar_image != BROKEN)
    }

    /// What the rest of the cluster does by itself.
    pub(crate) fn tick(&mut self) {
        if self.certificate.is_some() && self.secret != self.certificate {
            self.issued_for += 1;
            if self.issued_for > self.issuance {
                self.secret = self.certificate.clone();
            }
        } else {
            self.issued_for = 0;
        }
        if self.pod.is_none() {
            self.pod = self.template.clone().map(|pod| {
                self.pods += 1;
                self.approved = false;
                self.served = None;
                Running {
                    uid: format!("pod-{}", self.pods),
                    pod,
                    leaving: false,
                }
            });
        }
        if let Some(job) = &mut self.job
            && job.approved
            && !job.complete
        {
            job.complete = true;
            self.data = Some(Data::Bootstrapped);
        }
        if let Some(served) = self.proxy_serves() {
            self.served = Some(served);
        }
        self.sidecar.tick();
    }

    /// What the proxy would serve now. `None`: it keeps what it has.
    fn proxy_serves(&self) -> Option<Served> {
        let config = self.config.as_ref()?;
        let pod = &self.pod.as_ref()?.pod;
        // A proxy that takes TLS from its flags serves what its pod was born with.
        let told = match (pod.tls.as_str(), &config.tls) {
            ("", tls) => tls.clone(),
            ("flags:none", _) => None,
            (born, _) => [issuer("x"), issuer("y"), Tls::Secret("s".to_owned())]
                .into_iter()
                .find(|tls| born == baked(Some(tls))),
        };
        match told {
            None => Some(Served::Plaintext),
            Some(tls @ Tls::Secret(_)) => Some(Served::Tls(tls)),
            Some(_) => self.secret.clone().map(Served::Tls),
        }
    }

    /// Does what a step asks for. The attempt is the number it is submitted under.
    pub(crate) fn perform(&mut self, plan: &Plan, step: Step, attempt: u32) -> Outcome {
        if step.task.is_submitted() {
            return self.submit(plan, step, attempt);
        }
        let want = &plan.target;
        match step.task {
            Task::EnsureVolume => self.volume = true,
            Task::OrderCertificate => self.certificate = want.tls.clone(),
            Task::AwaitSecret if !self.secret_fits(want) => {
                let why = "there is no Secret node-sidecar-tls".to_owned();
                return Outcome::Waiting {
                    on: Waiting::Secret { why },
                };
            }
            Task::ApplyProxyConfig => {
                self.config_was_taken = false;
                self.config = Some(ProxyConfig {
                    tls: want.tls.clone(),
                    policy: want.proxy_policy.clone(),
                });
            }
            Task::ApplyNetworkPolicy => self.network_policy = true,
            Task::DeployBootstrapJob => {
                self.check_ground(want);
                self.job.get_or_insert_default();
            }
            Task::AwaitBootstrap if !self.job.as_ref().is_none_or(|job| job.complete) => {
                let job = "node-bootstrap".to_owned();
                return Outcome::Waiting {
                    on: Waiting::Bootstrap { job },
                };
            }
            Task::TeardownBootstrap => self.job = None,
            Task::ApplyStatefulSet => {
                self.check_ground(want);
                let born = self.template.is_none();
                self.violation(
                    self.job.is_some(),
                    "a node's pod beside the bootstrap Job's",
                );
                self.violation(born && !self.secret_fits(want), "a pod before its Secret");
                self.template = Some(want.pod.clone());
            }
            Task::ApplyService => self.service = true,
            Task::PatchImages => self.patch(plan),
            Task::ReplacePod => self.replace(plan),
            Task::ObserveImage if !self.runs(want) => {
                let image = want.pod.image.clone();
                let pod = "node-0".to_owned();
                return Outcome::Waiting {
                    on: Waiting::Pod {
                        pod,
                        image,
                        why: None,
                    },
                };
            }
            Task::ObserveTls if step.stage == Stage::Node => {
                let served = self.observe().served;
                if served == Served::Unknown || served.contradicts(want.tls.as_ref()) {
                    let pod = "node-0".to_owned();
                    return Outcome::Waiting {
                        on: Waiting::Proxy {
                            pod,
                            why: "it serves something else".to_owned(),
                        },
                    };
                }
            }
            Task::DeleteCertificate => {
                let needed = !matches!(self.observe().served, Served::Plaintext)
                    && self.observe().served.contradicts(want.tls.as_ref());
                self.violation(needed, "a certificate removed while it is served");
                (self.certificate, self.secret) = (None, None);
            }
            _ => {}
        }
        Outcome::Done
    }

    /// The pod goes, whoever wanted it.
    pub(crate) fn take_pod(&mut self) {
        if let Some(pod) = self.pod.take() {
            self.sidecar.pod_gone(&pod.uid);
            self.process = None;
        }
    }

    /// A person, or another program, takes the proxy's configuration away.
    pub(crate) fn take_config(&mut self) {
        self.config = None;
        self.config_was_taken = true;
    }

    fn secret_fits(&self, want: &Target) -> bool {
        match &want.tls {
            Some(tls) if tls.is_issued() => self.secret.as_ref() == Some(tls),
            _ => true,
        }
    }

    fn check_ground(&mut self, want: &Target) {
        let told = self
            .config
            .as_ref()
            .is_some_and(|config| config.tls == want.tls);
        self.violation(
            !told && !self.config_was_taken,
            "a workload before its configuration",
        );
        self.violation(!self.volume, "a workload before its volume");
    }

    fn patch(&mut self, plan: &Plan) {
        let want = &plan.target.pod;
        if let Some(running) = self
            .pod
            .as_mut()
            .filter(|running| plan.patches(&running.pod))
        {
            running.pod.sidecar_image = want.sidecar_image.clone();
            running.pod.proxy_image = want.proxy_image.clone();
            self.patches += 1;
        }
    }

    fn replace(&mut self, plan: &Plan) {
        if self
            .pod
            .as_ref()
            .is_some_and(|running| plan.replaces(&running.pod))
        {
            self.violation(!self.secret_fits(&plan.target), "a pod before its Secret");
            self.take_pod();
            self.cycles += 1;
        }
    }

    fn runs(&self, want: &Target) -> bool {
        self.pod.as_ref().is_some_and(|running| {
            running.pod.image == want.pod.image
                && running.pod.sidecar_image == want.pod.sidecar_image
                && running.pod.proxy_image == want.pod.proxy_image
                && ![&running.pod.image, &running.pod.sidecar_image].contains(&&BROKEN.to_owned())
        })
    }

    fn submit(&mut self, plan: &Plan, step: Step, attempt: u32) -> Outcome {
        let there = match step.stage {
            Stage::Bootstrap => self.job.is_some(),
            _ => self.sidecar_answers(),
        };
        if !there {
            let pod = "node-0".to_owned();
            return Outcome::Waiting {
                on: Waiting::Sidecar {
                    pod,
                    why: "nobody is there".to_owned(),
                },
            };
        }
        let pod = match step.stage {
            Stage::Bootstrap => "job",
            _ => self.pod.as_ref().map_or("", |running| running.uid.as_str()),
        };
        let name = Sidecar::name(plan, step, attempt, pod);
        let (outcome, finished) = self.sidecar.ask(&name, step.task);
        if finished {
            self.finish(plan, step);
        }
        outcome
    }

    /// What a sidecar's task leaves behind.
    fn finish(&mut self, plan: &Plan, step: Step) {
        let want = &plan.target;
        match (step.stage, step.task) {
            (_, Task::SnapshotRestore) => {
                self.restores += 1;
                self.approved = false;
            }
            (Stage::Bootstrap, Task::MarkReady) => {
                if let Some(job) = &mut self.job {
                    job.approved = true;
                }
            }
            (Stage::Node, Task::MarkReady) => {
                let by_hand = self.settings.as_deref() == Some(BY_HAND);
                let ready = by_hand || self.settings.as_ref() == Some(&want.settings);
                let setup = plan.causes.contains(&keelson_plan::Drift::Setup);
                self.violation(
                    setup && !ready,
                    "a process started without its configuration",
                );
                self.approved = true;
                self.process = self.process.take().or_else(|| self.settings.clone());
                self.data = Some(Data::Complete);
            }
            (Stage::Node, Task::ConfigApply | Task::ConfigPatch) => {
                self.settings = Some(want.settings.clone());
            }
            (Stage::Node, Task::DiscoverPeers) => self.peers = want.peers.clone(),
            (Stage::Node, Task::SnapshotUpload) => self.publishing = want.publishes,
            (Stage::Node, Task::ConfigureGenesis | Task::ConfigureStateSync) => {
                self.approved = false;
            }
            (Stage::Node, Task::RestartProcess) => self.restart(want),
            _ => {}
        }
    }

    fn restart(&mut self, want: &Target) {
        if self.process.take_if(|old| *old != want.settings).is_some() {
            self.restarts += 1;
            self.approved = false;
        }
    }

    fn violation(&mut self, broken: bool, sentence: &str) {
        if broken {
            self.violations.push(sentence.to_owned());
        }
    }
}
