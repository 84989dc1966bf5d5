//! One look at everything: which NMState counts, what it shall have, what is not so yet, and what to
//! say about it.
//!
//! Every decision is made elsewhere, by a function; here they meet the cluster, in an order that
//! matters: the profile's ConfigMap before the workloads that are stamped with its hash, and the
//! webhook configuration last. What fails is said and keeps nothing else from being done.

use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use keelson_api::NMState;
use keelson_api::host::{METRICS, METRICS_PORT, TLS_CONFIG_MAP, TLS_PROFILE_KEY, WEBHOOK};
use keelson_api::names::{HostWorkload, NMSTATE_GROUP};
use keelson_cluster::Key;
use keelson_render::host::{Capabilities, Certificates, HostInstall, Object, Profile, objects};
use rustls::SignatureAlgorithm;
use serde_json::Value;

use super::apply;
use super::certificates::Intervals;
use super::certify::{Certify, Standing};
use super::controller::Controller;
use super::loaded;
use super::platform::{Capability, Platform};
use super::profile::{Asked, Cluster, Decision, decide};
use super::refresh::refresh;
use super::replicas::{Place, Placement, webhooks};
use super::report;
use super::settings::ConsolePlugin;
use super::status::{self, Report};

/// How soon to look again while something is under way.
const SOON: Duration = Duration::from_secs(2);

/// One look.
pub(super) struct Pass<'a> {
    controller: &'a Controller,
    now: Timestamp,
}

impl<'a> Pass<'a> {
    pub(super) fn new(controller: &'a Controller, now: Timestamp) -> Self {
        Self { controller, now }
    }

    /// Looks, and says when to look again.
    pub(super) async fn run(&self) -> Result<Option<Duration>, String> {
        let world = &self.controller.world;
        let all: Vec<_> = world.nmstates.all().into_iter().map(|(_, it)| it).collect();
        let Some(counts) = status::oldest(all.iter().map(AsRef::as_ref)) else {
            return Ok(None);
        };
        let name = counts.metadata.name.clone().unwrap_or_default();
        for other in &all {
            let going = other.metadata.deletion_timestamp.is_some();
            if !going && other.metadata.uid != counts.metadata.uid {
                let said = status::superseded(&name, report::before(other), self.now);
                report::write(self.controller, other, said).await?;
            }
        }
        if let Some((original, _)) = world.originals.all().into_iter().next() {
            let said = status::foreign(Some(&original), report::before(counts), self.now);
            report::write(self.controller, counts, said).await?;
            return Ok(None);
        }
        self.look_after(counts).await
    }

    async fn look_after(&self, nmstate: &NMState) -> Result<Option<Duration>, String> {
        let platform = self.controller.platform();
        let unknown = platform.unknown();
        if !unknown.is_empty() {
            let report = Report {
                unsettled: unknown,
                ..Report::default()
            };
            self.say(nmstate, &report).await?;
            return Ok(Some(SOON));
        }
        let mut report = Report::default();
        let decision = self.decide(nmstate, &platform);
        let made = self.certificates(nmstate, &platform, &mut report).await;
        let mut again = made.as_ref().map(|made| self.until(made.until));
        if let Some(waits) = made.as_ref().and_then(|made| made.waits.clone()) {
            report.notes.push(waits);
        }
        let ours = !platform.has(Capability::ServiceCa);
        if !ours || made.is_some() {
            let bundle = made.map(|made| made.bundle);
            let wanted = self.render(nmstate, &platform, &decision, bundle.as_deref());
            match wanted {
                Ok(wanted) => self.bring_about(nmstate, &wanted, &mut report).await,
                Err(error) => report.failures.push(error),
            }
        }
        report.loading = self.loading(&decision).await;
        report.profile = Some(&decision);
        self.say(nmstate, &report).await?;
        if !report.failures.is_empty() {
            return Err(report.failures.join("; "));
        }
        if !report.loading.is_empty() {
            again = Some(again.unwrap_or(SOON).min(SOON));
        }
        Ok(again)
    }

    fn decide(&self, nmstate: &NMState, platform: &Platform) -> Decision {
        let map: Option<ConfigMap> = self.controller.seen("ConfigMap", TLS_CONFIG_MAP);
        let data = map.and_then(|map| map.data);
        let last = data.and_then(|mut data| data.remove(TLS_PROFILE_KEY));
        // What service-ca makes has an RSA key; ours have an EC key.
        let key = match platform.has(Capability::ServiceCa) {
            true => SignatureAlgorithm::RSA,
            false => SignatureAlgorithm::ECDSA,
        };
        let last = last.as_deref().map(str::as_bytes);
        decide(&nmstate.spec.tls(), &self.cluster(platform), last, &[key])
    }

    /// What the cluster's own settings say.
    fn cluster(&self, platform: &Platform) -> Cluster {
        let mirror = &self.controller.world.api_servers;
        if !platform.has(Capability::ClusterProfile) {
            return Cluster::Absent;
        }
        if !mirror.is_synced() {
            let why = mirror.readiness().err();
            return Cluster::Unread(
                why.unwrap_or_else(|| "APIServers are being listed".to_owned()),
            );
        }
        let key = Key {
            namespace: String::new(),
            name: "cluster".to_owned(),
        };
        match mirror.get(&key) {
            Some(object) => Cluster::There(Asked::read(&object)),
            None => Cluster::Absent,
        }
    }

    /// Does what certificates need; none where the platform makes them, or where it failed.
    async fn certificates(
        &self,
        nmstate: &NMState,
        platform: &Platform,
        report: &mut Report<'_>,
    ) -> Option<Standing> {
        if platform.has(Capability::ServiceCa) {
            return None;
        }
        let written = nmstate.spec.self_sign_configuration.as_ref();
        let intervals = Intervals::read(written).unwrap_or_else(|why| {
            report.notes.push(format!("{why}; the defaults are used"));
            Intervals::default()
        });
        let certify = Certify {
            calls: &self.controller.calls,
            world: &self.controller.world,
            memory: &self.controller.memory,
            nudges: &self.controller.certificates,
            namespace: &self.controller.settings.namespace,
            owner: owner(nmstate),
            intervals,
            metrics_port: self.metrics_port(),
        };
        if let Err(error) = apply::namespace(self.controller).await {
            report.failures.push(error);
            return None;
        }
        match certify.run(self.now).await {
            Ok(standing) => Some(standing),
            Err(error) => {
                report.failures.push(error);
                None
            }
        }
    }

    /// Every object as it shall be.
    fn render(
        &self,
        nmstate: &NMState,
        platform: &Platform,
        decision: &Decision,
        bundle: Option<&str>,
    ) -> Result<Vec<Object>, String> {
        let settings = &self.controller.settings;
        let text = String::from_utf8_lossy(&decision.profile.canonical()).into_owned();
        let hash = decision.profile.hash();
        let mut install = HostInstall {
            name: nmstate.metadata.name.as_deref().unwrap_or_default(),
            uid: nmstate.metadata.uid.as_deref().unwrap_or_default(),
            spec: &nmstate.spec,
            namespace: &settings.namespace,
            monitoring_namespace: &settings.monitoring_namespace,
            operator: &settings.operator,
            image: &settings.image,
            capabilities: Capabilities {
                openshift: platform.openshift() == Some(true),
                security_constraints: platform.has(Capability::SecurityConstraints),
                console: platform.has(Capability::Console),
                service_monitors: platform.has(Capability::ServiceMonitors),
                prometheus_rules: platform.has(Capability::PrometheusRules),
            },
            profile: Profile {
                text: &text,
                hash: &hash,
            },
            certificates: match bundle {
                Some(ca_bundle) => Certificates::Operator { ca_bundle },
                None => Certificates::ServiceCa,
            },
            webhook_replicas: self.webhooks_now(),
            api_ports: &settings.api_ports,
            retries: settings.retries,
            plugin: settings.plugin.as_ref().map(ConsolePlugin::rendered),
        };
        let first = objects(&install).map_err(|error| error.to_string())?;
        let nodes: Vec<_> = self.controller.world.nodes.all();
        let nodes: Vec<&Place> = nodes.iter().map(|(_, node)| node.as_ref()).collect();
        let wanted = webhooks(nodes, &placement(&first), install.webhook_replicas);
        if wanted == install.webhook_replicas {
            return Ok(first);
        }
        install.webhook_replicas = wanted;
        objects(&install).map_err(|error| error.to_string())
    }

    async fn bring_about(&self, nmstate: &NMState, wanted: &[Object], report: &mut Report<'_>) {
        report
            .failures
            .extend(apply::all(self.controller, wanted).await);
        if report.failures.is_empty() {
            let uid = nmstate.metadata.uid.as_deref().unwrap_or_default();
            report
                .failures
                .extend(apply::prune(self.controller, uid, wanted).await);
        }
        for object in wanted {
            let seen = self.controller.world.object(&object.identity);
            let unsettled = match object.identity.kind.kind {
                "Deployment" => seen.map(|it| {
                    it.as_type::<Deployment>()
                        .as_ref()
                        .and_then(status::deployment)
                }),
                "DaemonSet" => seen.map(|it| {
                    it.as_type::<DaemonSet>()
                        .as_ref()
                        .and_then(status::daemon_set)
                }),
                _ => continue,
            };
            let missing = || Some(format!("{} is not there yet", object.identity));
            report.unsettled.extend(unsettled.unwrap_or_else(missing));
        }
    }

    /// Pods of webhook and metrics that do not serve the profile, one sentence each. Their kubelets
    /// are asked to bring the file, which they otherwise do within a minute and a half.
    async fn loading(&self, decision: &Decision) -> Vec<String> {
        let hash = &decision.profile.hash();
        let served = [HostWorkload::Webhook, HostWorkload::Metrics].map(|it| it.to_string());
        let pods = self.controller.world.pods.all().into_iter();
        let running = pods.filter(|(_, pod)| pod.running && served.contains(&pod.component));
        let asked = running.map(|(key, pod)| async move {
            let said = match pod.address {
                None => return None,
                Some(address) => loaded::ask(address).await,
            };
            // A new file helps none that nobody heard of.
            let (lacks, helps) = match said {
                Ok(loaded) => (loaded.lacks(hash)?, true),
                Err(error) => (
                    format!("cannot be asked for its TLS profile: {error}"),
                    false,
                ),
            };
            let said = format!("pod {} {lacks}", key.name);
            Some((said, helps.then_some((key, pod))))
        });
        let behind = join_all(asked).await.into_iter().flatten();
        let (mut said, pods): (Vec<_>, Vec<_>) = behind.unzip();
        let pods: Vec<_> = pods.into_iter().flatten().collect();
        refresh(&self.controller.calls, &self.controller.profiles, &pods).await;
        said.sort();
        said
    }

    async fn say(&self, nmstate: &NMState, report: &Report<'_>) -> Result<(), String> {
        let before = report::before(nmstate);
        let said = status::conditions(report, before, self.now);
        report::write(self.controller, nmstate, said).await
    }

    fn webhooks_now(&self) -> i32 {
        let webhook: Option<Deployment> = self.controller.seen("Deployment", WEBHOOK);
        let replicas = webhook.and_then(|it| it.spec?.replicas);
        replicas.unwrap_or(1).clamp(1, 2)
    }

    /// Where the metrics endpoint is, by the workload that is there.
    fn metrics_port(&self) -> u16 {
        let metrics: Option<Deployment> = self.controller.seen("Deployment", METRICS);
        let pod = metrics.and_then(|it| it.spec?.template.spec);
        let ports = pod
            .iter()
            .flat_map(|it| &it.containers)
            .flat_map(|it| it.ports.iter().flatten());
        let named = ports
            .into_iter()
            .find(|it| it.name.as_deref() == Some("metrics"));
        let port = named.and_then(|it| u16::try_from(it.container_port).ok());
        port.unwrap_or(METRICS_PORT)
    }

    fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now)).unwrap_or_default()
    }
}

/// Where the pods of the rendered webhook may run.
fn placement(wanted: &[Object]) -> Placement {
    let webhook =
        |it: &&Object| it.identity.kind.kind == "Deployment" && it.identity.name == WEBHOOK;
    let pod = wanted
        .iter()
        .find(webhook)
        .map(|it| it.value["spec"]["template"]["spec"].clone());
    let pod = pod.unwrap_or(Value::Null);
    serde_json::from_value(pod)
        .map(|pod| Placement::of(&pod))
        .unwrap_or_default()
}

/// The NMState as an owner.
fn owner(nmstate: &NMState) -> OwnerReference {
    OwnerReference {
        api_version: format!("{NMSTATE_GROUP}/v1"),
        kind: "NMState".to_owned(),
        name: nmstate.metadata.name.clone().unwrap_or_default(),
        uid: nmstate.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
