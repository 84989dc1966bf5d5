//! The host components of `nmstate.io` on real pods: from an NMState and the cluster's TLS profile,
//! by way of the operator and the kubelet, to what webhook and metrics serve and what the handler makes
//! of its machine.
//!
//! One NMState counts, so these tests take turns. It selects the cluster's machine for the handler only
//! in those that are about it (`handler`), where the machine has a NetworkManager (`machine`).

mod handler;
mod machine;
mod order;
mod outage;
mod profile;
mod rotation;
mod wire;

use crate::world::{PATIENCE, Turn, World, world_of_hosts};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::host::{
    DEFAULT_NAMESPACE, HEALTH_PORT, METRICS, METRICS_PORT, METRICS_SERVICE, TLS_PROFILE_HASH,
    TLS_REPORT_PATH, WEBHOOK, WEBHOOK_CONFIGURATION, WEBHOOK_PORT,
};
use keelson_api::names::{Annotation, HostWorkload};
use keelson_api::{NMState, NodeNetworkConfigurationPolicy};
use keelson_testbed::{Error, api_server_crd, until};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard};
use wire::Wire;

/// The label of every pod of theirs.
const OURS: &str = "app=kubernetes-nmstate";
/// Whether clients with TLS 1.2 alone and with TLS 1.3 alone are served, under each profile.
const INTERMEDIATE: [bool; 2] = [true, true];
const MODERN: [bool; 2] = [false, true];
/// No listener stays on an old profile for longer.
const PROMISED: Duration = Duration::from_secs(90);

/// A pod of webhook or metrics.
#[derive(Clone, Debug)]
struct Replica {
    name: String,
    uid: String,
    address: IpAddr,
    workload: &'static str,
}

impl Replica {
    /// None where the pod ends, does not run yet, or is another's.
    fn read(pod: Pod) -> Option<Self> {
        let labels = pod.metadata.labels.unwrap_or_default();
        let component = labels.get("component")?;
        let workload = match component.as_str() {
            it if it == HostWorkload::Webhook.as_str() => WEBHOOK,
            it if it == HostWorkload::Metrics.as_str() => METRICS,
            _ => return None,
        };
        let status = pod.status?;
        let runs = status.phase.as_deref() == Some("Running");
        let stays = pod.metadata.deletion_timestamp.is_none();
        (runs && stays).then_some(())?;
        Some(Self {
            name: pod.metadata.name?,
            uid: pod.metadata.uid?,
            address: status.pod_ip?.parse().ok()?,
            workload,
        })
    }

    /// Where it serves.
    fn serves(&self) -> SocketAddr {
        let port = match self.workload {
            WEBHOOK => WEBHOOK_PORT,
            _ => METRICS_PORT,
        };
        SocketAddr::new(self.address, port)
    }

    /// The name it is called by.
    fn service(&self) -> String {
        let service = match self.workload {
            WEBHOOK => WEBHOOK,
            _ => METRICS_SERVICE,
        };
        format!("{service}.{DEFAULT_NAMESPACE}.svc")
    }
}

/// The host components, and a turn with them.
struct Hosts {
    world: &'static World,
    _calm: Turn,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.look());
        }
    }
}

impl Hosts {
    /// Installed, settled, under the profile Intermediate; other tests go on.
    async fn enter() -> Self {
        let (turn, world) = (turn().await, world_of_hosts().await);
        Self::settle(turn, world.shared().await, world).await
    }

    /// The same for a test that breaks what all share.
    async fn enter_alone() -> Self {
        let (turn, world) = (turn().await, world_of_hosts().await);
        Self::settle(turn, world.alone().await, world).await
    }

    async fn settle(turn: MutexGuard<'static, ()>, calm: Turn, world: &'static World) -> Self {
        let hosts = Self {
            world,
            _calm: calm,
            _turn: turn,
        };
        let published = api_server_crd().expect("the type OpenShift publishes");
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        let made = world.kubectl.feed(&apply, published.as_bytes());
        made.expect("the type");
        let crd = "crd/apiservers.config.openshift.io";
        let served = ["wait", "--for=condition=Established", crd, "--timeout=30s"];
        world.kubectl.run(&served).expect("a served type");
        hosts.profile("Intermediate");
        let began = Instant::now();
        hosts.nmstate(json!({}));
        hosts.settled(INTERMEDIATE).await;
        println!("an NMState is Available after {:.1?}", began.elapsed());
        hosts
    }

    /// Applies the NMState with these fields; where none of them says so, no machine has a handler.
    fn nmstate(&self, spec: Value) {
        self.apply_nmstate(spec).expect("an NMState");
    }

    fn apply_nmstate(&self, mut spec: Value) -> Result<String, Error> {
        if spec.get("nodeSelector").is_none() {
            spec["nodeSelector"] = json!({ "example.com/handler": "nowhere" });
        }
        let nmstate = json!({
            "apiVersion": "nmstate.io/v1", "kind": "NMState",
            "metadata": { "name": "nmstate" }, "spec": spec,
        });
        self.world.kubectl.apply(&[nmstate])
    }

    /// Writes the cluster's own TLS profile, one of the named ones.
    fn profile(&self, name: &str) {
        let profile = json!({ "type": name, name.to_lowercase(): {} });
        let settings = json!({
            "apiVersion": "config.openshift.io/v1", "kind": "APIServer",
            "metadata": { "name": "cluster" }, "spec": { "tlsSecurityProfile": profile },
        });
        self.world.kubectl.apply(&[settings]).expect("a profile");
    }

    /// Pods of webhook and metrics that run and stay.
    async fn replicas(&self) -> Result<Vec<Replica>, String> {
        let pods = Api::<Pod>::namespaced(self.world.cluster.client(), DEFAULT_NAMESPACE);
        let pods = pods.list(&ListParams::default().labels(OURS)).await;
        let pods = pods.map_err(|error| error.to_string())?;
        let replicas: Vec<Replica> = pods.into_iter().filter_map(Replica::read).collect();
        for workload in [WEBHOOK, METRICS] {
            if !replicas.iter().any(|it| it.workload == workload) {
                return Err(format!("no pod of {workload} runs"));
            }
        }
        Ok(replicas)
    }

    /// What a pod says of its profile.
    fn told(&self, replica: &Replica) -> Result<Value, String> {
        let health = SocketAddr::new(replica.address, HEALTH_PORT);
        let said = self.world.cluster.get(health, TLS_REPORT_PATH);
        let (_, said) = said.map_err(|error| format!("{}: {error}", replica.name))?;
        serde_json::from_str(&said).map_err(|error| error.to_string())
    }

    /// Clients that trust whom the API server trusts now to be the webhook.
    async fn trusted(&self) -> Result<Wire<'static>, String> {
        let configurations = Api::<MutatingWebhookConfiguration>::all(self.world.cluster.client());
        let found = configurations.get(WEBHOOK_CONFIGURATION).await;
        let webhooks = found.map_err(|error| error.to_string())?.webhooks;
        let first = webhooks.unwrap_or_default().into_iter().next();
        let bundle = first.and_then(|it| it.client_config.ca_bundle);
        Ok(Wire {
            cluster: &self.world.cluster,
            bundle: bundle.ok_or("nobody is trusted yet")?.0,
        })
    }

    /// The replicas, where every one of them serves as under this profile.
    async fn serves(&self, profile: [bool; 2]) -> Result<Vec<Replica>, String> {
        let wire = self.trusted().await?;
        let replicas = self.replicas().await?;
        for replica in &replicas {
            let sessions = wire.sessions(replica)?;
            if sessions != profile {
                return Err(format!("{} serves {sessions:?}", replica.name));
            }
        }
        Ok(replicas)
    }

    /// Waits until nothing is left to do: the NMState is Available, the workloads have rolled, and
    /// their pods serve this profile and say that it is the one they were made for.
    async fn settled(&self, profile: [bool; 2]) -> Vec<Replica> {
        let settled = until("host components that are settled", PATIENCE, async || {
            self.available().await?;
            let stamps = [self.rolled(WEBHOOK).await?, self.rolled(METRICS).await?];
            let stamps: BTreeSet<String> = stamps.into();
            let replicas = self.serves(profile).await?;
            for replica in &replicas {
                let told = self.told(replica)?;
                let stamped = told["stamped"].as_str().unwrap_or_default();
                let so = told["loaded"] == told["stamped"] && told["error"].is_null();
                if !so || !stamps.iter().all(|it| it == stamped) {
                    return Err(format!("{}: {told}, for {stamps:?}", replica.name));
                }
            }
            Ok(replicas)
        });
        settled.await.expect("settled host components")
    }

    async fn available(&self) -> Result<(), String> {
        let nmstates = Api::<NMState>::all(self.world.cluster.client());
        let nmstate = nmstates.get("nmstate").await;
        let status = nmstate.map_err(|error| error.to_string())?.status;
        let all = status.unwrap_or_default().conditions;
        let so = all.iter().any(|it| {
            let reason = it.reason.as_deref() == Some("SuccessfullyDeployed");
            it.type_ == "Available" && it.status == "True" && reason
        });
        so.then_some(()).ok_or_else(|| format!("{all:?}"))
    }

    /// The hash a workload's pods are stamped with, once all of them are.
    async fn rolled(&self, workload: &str) -> Result<String, String> {
        let client = self.world.cluster.client();
        let workloads = Api::<Deployment>::namespaced(client, DEFAULT_NAMESPACE);
        let it = workloads.get(workload).await;
        let it = it.map_err(|error| error.to_string())?;
        let status = it.status.unwrap_or_default();
        let spec = it.spec.ok_or("no spec")?;
        let counts = [
            status.replicas,
            status.updated_replicas,
            status.ready_replicas,
        ];
        if status.observed_generation != it.metadata.generation
            || counts.iter().any(|count| *count != spec.replicas)
        {
            return Err(format!("{workload} rolls: {counts:?}"));
        }
        let annotations = spec.template.metadata.and_then(|it| it.annotations);
        let stamp = annotations.and_then(|mut it| it.remove(TLS_PROFILE_HASH));
        stamp.ok_or_else(|| format!("{workload} is not stamped"))
    }

    /// Writes a policy, and says whether what was kept carries the webhook's mutation.
    async fn mutates(&self, test: &str) -> Result<bool, String> {
        let client = self.world.cluster.client();
        let policies = Api::<NodeNetworkConfigurationPolicy>::all(client);
        let made = json!({
            "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
            "metadata": { "generateName": format!("{test}-") }, "spec": {},
        });
        let made = serde_json::from_value(made).map_err(|error| error.to_string())?;
        let kept = policies.create(&PostParams::default(), &made).await;
        let metadata = kept.map_err(|error| error.to_string())?.metadata;
        let annotations = metadata.annotations.unwrap_or_default();
        Ok(annotations.contains_key(Annotation::MutatedAt.as_str()))
    }

    /// Everything that may say why they are not as they should be.
    fn look(&self) -> String {
        let here = ["--namespace", DEFAULT_NAMESPACE];
        let tail = ["--prefix", "--tail=30"];
        let logs = [&["logs", "--selector", OURS][..], &tail].concat();
        let operator = ["--namespace", "keelson-system", "logs"];
        let operator = [&operator[..], &["deployment/keelson-operator"], &tail].concat();
        let looks: [Vec<&str>; 5] = [
            vec![
                "get",
                "nmstate,apiserver.config.openshift.io,nncp,nnce",
                "--output=yaml",
            ],
            [
                &here[..],
                &["get", "daemonsets,deployments,pods", "--output=wide"],
            ]
            .concat(),
            [&here[..], &["get", "events", "--sort-by=.lastTimestamp"]].concat(),
            [&here[..], &logs].concat(),
            operator,
        ];
        let look = |words: &Vec<&str>| {
            let said = self.world.kubectl.run(words);
            let said = said.unwrap_or_else(|error| error.to_string());
            format!("--- kubectl {} ---\n{said}\n", words.join(" "))
        };
        looks.iter().map(look).collect()
    }
}

/// Whether tests that take their time are wanted; where not, says what is left out.
fn is_soak(what: &str) -> bool {
    let soak = std::env::var_os("KEELSON_SOAK").is_some();
    if !soak {
        println!("{what}: left out, KEELSON_SOAK=1 does it");
    }
    soak
}

/// The turn of one test of these.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}
