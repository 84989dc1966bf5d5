//! The cluster's own machine as a host whose network is looked after: a NetworkManager on it, the
//! handler's pod beside, and what is seen of both.

use super::{Hosts, INTERMEDIATE, OURS};
use crate::world::PATIENCE;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::condition::HostCondition;
use keelson_api::enactment::enactment_name;
use keelson_api::host::{DEFAULT_NAMESPACE, HANDLER, HANDLER_SOCKET, PROGRAM};
use keelson_api::names::{Annotation, HostWorkload};
use keelson_api::{
    NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
};
use keelson_testbed::{Container, Network, OnMachine, Program, until};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Instant;

/// What the handler asks before and after a change: the cluster's own name server, and soon.
fn probes(server: Ipv4Addr) -> Value {
    json!({
        "timeoutSeconds": 10, "checkpointSeconds": 30,
        "dns": { "host": "kubernetes.default.svc.cluster.local", "servers": [server] },
    })
}

/// The machine with NetworkManager and handler; both leave it however the test ends.
pub(super) struct Machine<'a> {
    pub(super) hosts: &'a Hosts,
    _network_manager: OnMachine,
    network: Network,
}

impl<'a> Machine<'a> {
    /// A NetworkManager, and an NMState that selects the machine; waits until its handler is ready.
    pub(super) async fn begin(hosts: &'a Hosts) -> Self {
        let cluster = &hosts.world.cluster;
        let network_manager = cluster.network_manager().await;
        let machine = Self {
            hosts,
            _network_manager: network_manager.expect("a NetworkManager"),
            network: Network::of_cluster(cluster),
        };
        // Those of other tests ask for nothing.
        let all = ["delete", "nodenetworkconfigurationpolicies", "--all"];
        hosts.world.kubectl.run(&all).expect("no policies");
        let here = json!({ "kubernetes.io/hostname": machine.node() });
        let probes = probes(machine.network.address());
        hosts.nmstate(json!({ "nodeSelector": here, "probeConfiguration": probes }));
        machine.in_order(0).await;
        hosts.settled(INTERMEDIATE).await;
        machine
    }

    /// The name of the machine's node.
    fn node(&self) -> &'static str {
        self.hosts.world.cluster.node()
    }

    /// The pod of the handler that stays, if one is there.
    pub(super) async fn pod(&self) -> Result<Pod, String> {
        let pods = Api::<Pod>::namespaced(self.hosts.world.cluster.client(), DEFAULT_NAMESPACE);
        let handlers = format!("{OURS},component={}", HostWorkload::Handler);
        let pods = pods.list(&ListParams::default().labels(&handlers)).await;
        let mut pods = pods.map_err(|error| error.to_string())?.items;
        pods.retain(|it| it.metadata.deletion_timestamp.is_none());
        pods.pop().ok_or("there is no handler".to_owned())
    }

    /// Waits until the DaemonSet has a pod on the machine that the kubelet calls ready, and whose
    /// container was started again so many times.
    pub(super) async fn in_order(&self, restarts: i32) -> Pod {
        let waited = until("a handler that is ready", PATIENCE, async || {
            let client = self.hosts.world.cluster.client();
            let sets = Api::<DaemonSet>::namespaced(client, DEFAULT_NAMESPACE);
            let set = get(&sets, HANDLER).await?;
            let status = set.status.unwrap_or_default();
            let counts = [
                status.desired_number_scheduled,
                status.updated_number_scheduled.unwrap_or_default(),
                status.number_ready,
            ];
            let observed = status.observed_generation == set.metadata.generation;
            let pod = self.pod().await?;
            match observed && counts == [1; 3] && is_ready(&pod, restarts) {
                true => Ok(pod),
                false => Err(format!("{counts:?}, {:?}", pod.status)),
            }
        });
        waited.await.expect("a handler in order")
    }

    /// The handler's container, as the container runtime knows it.
    pub(super) fn container(&self, pod: &str) -> Result<Container, String> {
        let cluster = &self.hosts.world.cluster;
        let found = cluster.container(DEFAULT_NAMESPACE, pod, HANDLER);
        found.map_err(|error| error.to_string())
    }

    /// Asks the handler in its container, as the kubelet does.
    pub(super) fn probe(&self, container: &Container, what: &str) -> Result<(), String> {
        let words = [PROGRAM, "probe", "--socket", HANDLER_SOCKET, what];
        let said = self.hosts.world.cluster.exec(container, &words);
        said.map(drop).map_err(|error| error.to_string())
    }

    /// How often the kubelet has asked the handler this and had a good answer, as it counts itself. It
    /// knows for some minutes whom the API server has let in.
    pub(super) fn answers(&self, pod: &str, probe: &str) -> Result<u64, String> {
        let cluster = &self.hosts.world.cluster;
        let key = |end: &str| cluster.folder().join(format!("pki/kubelet-client.{end}"));
        let words = format!(
            "{} --server=https://{}:10250 --insecure-skip-tls-verify --client-certificate={} \
             --client-key={} get --raw /metrics/probes",
            cluster.program(Program::Kubectl).display(),
            self.network.address(),
            key("crt").display(),
            key("key").display(),
        );
        let said = self.network.run(&words);
        let said = said.map_err(|error| error.to_string())?;
        let [pod, probe] = [format!("pod=\"{pod}\""), format!("probe_type=\"{probe}\"")];
        let so = ["prober_probe_total{", &pod, &probe, "result=\"successful\""];
        let line = said
            .lines()
            .find(|line| so.iter().all(|it| line.contains(it)));
        let count = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        count.map_or(Ok(0), |count| Ok(count as u64))
    }

    /// Applies a policy for the machine, which is undone when it is deleted.
    pub(super) fn policy(&self, name: &str, desired: &Value) {
        let policy = json!({
            "apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
            "metadata": { "name": name, "annotations": { Annotation::RevertOnDelete.as_str(): "true" } },
            "spec": { "desiredState": desired },
        });
        let applied = self.hosts.world.kubectl.apply(&[policy]);
        applied.expect("a policy");
    }

    /// Waits until a policy as it is now is enacted: its enactment says so, by the handler, and then the
    /// policy itself, by the operator.
    pub(super) async fn enacted(&self, policy: &str) {
        let begun = Instant::now();
        let client = self.hosts.world.cluster.client();
        let policies = Api::<NodeNetworkConfigurationPolicy>::all(client.clone());
        let enactments = Api::<NodeNetworkConfigurationEnactment>::all(client);
        let name = enactment_name(self.node(), policy);
        let enacted = until("an enactment", PATIENCE, async || {
            let wanted = get(&policies, policy).await?.metadata.generation;
            let status = get(&enactments, &name).await?.status.unwrap_or_default();
            let current = status.policy_generation == wanted;
            match current && is_available(&status.conditions) {
                true => Ok(()),
                false => Err(format!("{status:?}")),
            }
        });
        enacted.await.expect("an enactment");
        println!("{name} is Available after {:.1?}", begun.elapsed());
        let told = until("an enacted policy", PATIENCE, async || {
            let seen = get(&policies, policy).await?;
            let status = seen.status.unwrap_or_default();
            let current = status.observed_generation == seen.metadata.generation;
            match current && is_available(&status.conditions) {
                true => Ok(()),
                false => Err(format!("{status:?}")),
            }
        });
        told.await.expect("an enacted policy");
        println!("{policy} is Available after {:.1?}", begun.elapsed());
    }

    /// Deletes a policy and waits until its enactment and these links of it are gone.
    pub(super) async fn delete(&self, policy: &str, links: &[&str]) {
        let words = ["delete", "nodenetworkconfigurationpolicy", policy];
        let deleted = self.hosts.world.kubectl.run(&words);
        deleted.expect("a policy to delete");
        let name = enactment_name(self.node(), policy);
        let gone = until("the end of what a policy made", PATIENCE, async || {
            let client = self.hosts.world.cluster.client();
            let enactments = Api::<NodeNetworkConfigurationEnactment>::all(client);
            let enactment = enactments.get_opt(&name).await;
            let enactment = enactment.map_err(|error| error.to_string())?;
            let links = links.iter().filter(|link| self.link(link).is_ok());
            let links: Vec<_> = links.collect();
            match enactment.is_none() && links.is_empty() {
                true => Ok(()),
                false => Err(format!("{links:?}, {enactment:?}")),
            }
        });
        gone.await.expect("nothing left of a policy");
    }

    /// Waits until the machine's NodeNetworkState has a link of this name, or has it no longer.
    pub(super) async fn reported(&self, link: &str, there: bool) {
        let reported = until("a report of the machine's network", PATIENCE, async || {
            let states = Api::<NodeNetworkState>::all(self.hosts.world.cluster.client());
            let status = get(&states, self.node()).await?.status;
            let state = status.and_then(|it| it.current_state).unwrap_or_default();
            let links = state.get("interfaces").and_then(Value::as_array);
            let links = links.ok_or("it says nothing of links")?;
            let names: Vec<_> = links.iter().map(|it| &it["name"]).collect();
            match names.iter().any(|it| *it == link) == there {
                true => Ok(()),
                false => Err(format!("{names:?}")),
            }
        });
        reported.await.expect("a report");
    }

    /// Runs a command on the machine, words apart by spaces.
    pub(super) fn run(&self, words: &str) -> Result<String, String> {
        self.network.run(words).map_err(|error| error.to_string())
    }

    /// The links that are ports of a bridge of the machine.
    pub(super) fn ports(&self, bridge: &str) -> Result<Vec<String>, String> {
        let said = self.run(&format!("ip -json link show master {bridge}"))?;
        let said: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
        let names = said.as_array().into_iter().flatten();
        let names = names.filter_map(|it| it["ifname"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// A link of the machine: the number the kernel gave it, and its IPv4 addresses.
    pub(super) fn link(&self, name: &str) -> Result<(u64, Vec<String>), String> {
        let said = self.run(&format!("ip -json -4 address show dev {name}"))?;
        let said: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
        let number = said[0]["ifindex"].as_u64().ok_or("no number")?;
        let addresses = said[0]["addr_info"].as_array().cloned().unwrap_or_default();
        let addresses = addresses.iter().filter_map(|it| it["local"].as_str());
        Ok((number, addresses.map(str::to_owned).collect()))
    }
}

impl Drop for Machine<'_> {
    /// Who comes next finds the NMState that all others have.
    fn drop(&mut self) {
        let _ = self.hosts.apply_nmstate(json!({}));
    }
}

async fn get<K>(api: &Api<K>, name: &str) -> Result<K, String>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    api.get(name).await.map_err(|error| error.to_string())
}

fn is_ready(pod: &Pod, restarts: i32) -> bool {
    let Some(status) = &pod.status else {
        return false;
    };
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    let mut containers = status.container_statuses.iter().flatten();
    ready && containers.all(|it| it.ready && it.restart_count == restarts)
}

fn is_available(conditions: &[HostCondition]) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|it| it.type_ == "Available" && it.status == "True")
}
