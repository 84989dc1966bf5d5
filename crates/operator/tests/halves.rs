//! One half of the operator by itself, as a process on a real control plane where neither half's types
//! are installed at first: what it waits for, what it is ready without, and that it leaves the other
//! half alone.

#[path = "platform/deployed.rs"]
mod deployed;
#[path = "killed/process.rs"]
mod process;

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use keelson_api::NMState;
use keelson_operator::host::settings::IMAGE;
use keelson_operator::rights::{NAMESPACE, OPERATOR};
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, until};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::deployed::{OBJECTS, apply, folder, token};
use crate::process::{Program, VARIABLES, Way, command, until_page};

const HOSTS: &str = "registry.example/keelson-host:test";

/// Types that are not served are looked for every 15 seconds.
const SOON: Duration = Duration::from_secs(60);

/// A process, what it asked the API server, and where its probes are.
struct Half {
    _program: Program,
    _way: Way,
    faults: FaultProxy,
    probes: SocketAddr,
}

impl Half {
    async fn start(cluster: &Cluster, command: Command, token: Option<&str>, asked: &str) -> Self {
        let faults = cluster.faults().expect("a proxy");
        let way = match token {
            Some(token) => Way::with_token(&faults.kubeconfig(), token),
            None => Way::by(&faults.kubeconfig()),
        };
        let asked: Vec<&str> = asked.split_whitespace().collect();
        let program = Program::run(command, &way, &asked);
        let [_, probes] = program.addresses().await;
        Self {
            _program: program,
            _way: way,
            faults,
            probes,
        }
    }

    async fn waits_for(&self, what: &str) {
        let known = format!("{what} are not known yet");
        until_page(self.probes, "/readyz", |status, page| {
            status == 503 && page.contains(&known) && !page.contains("may not")
        })
        .await;
    }

    async fn is_ready(&self) {
        until_page(self.probes, "/readyz", |status, _| status == 200).await;
    }

    fn asked_for(&self, resource: &str) -> bool {
        let calls = self.faults.calls();
        calls.iter().any(|call| call.resource == resource)
    }
}

/// Everything SeiNodes need, in a namespace of its own.
async fn nodes(cluster: &Cluster, test: &str) -> Command {
    let mut command = command();
    let namespace = cluster.namespace(test).await;
    command
        .envs(VARIABLES.iter().copied())
        .env("POD_NAMESPACE", namespace.name());
    command
}

/// The account of `deploy/operator` with what `deploy/host` gives it, and nothing of the other half.
async fn give(cluster: &Cluster) -> String {
    let client = cluster.client();
    let kinds = ["Namespace", "ServiceAccount"];
    for object in OBJECTS
        .iter()
        .filter(|it| kinds.iter().any(|kind| it["kind"] == *kind))
    {
        apply(&client, object).await;
    }
    for file in ["bindings.yaml", "roles.yaml"] {
        let path = folder().join("../host").join(file);
        let text = std::fs::read_to_string(path).expect("a file of the install");
        for object in serde_saphyr::from_multiple::<Value>(&text).expect("objects in YAML") {
            apply(&client, &object).await;
        }
    }
    token(&client, NAMESPACE, OPERATOR).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_that_is_asked_for_waits_for_its_types_and_leaves_the_other_alone() {
    let cluster = Cluster::shared().await;
    let token = give(cluster).await;
    let mut only_hosts = command();
    only_hosts
        .env("POD_NAME", "keelson-operator-0")
        .env("POD_NAMESPACE", NAMESPACE)
        .env(IMAGE, HOSTS);
    let asked = "--controllers nmstate";
    let hosts = Half::start(cluster, only_hosts, Some(&token), asked).await;
    let mut both_said = nodes(cluster, "by-name").await;
    both_said.env(IMAGE, HOSTS);
    let sei = Half::start(cluster, both_said, None, "--controllers sei").await;
    let mut both = nodes(cluster, "both").await;
    both.env(IMAGE, HOSTS).env("HANDLER_NAMESPACE", "elsewhere");
    let unsaid = Half::start(cluster, both, None, "").await;

    hosts.waits_for("NMStates").await;
    sei.waits_for("SeiNodes").await;
    unsaid.is_ready().await;
    assert!(unsaid.asked_for("seinodes") && unsaid.asked_for("nmstates"));
    drop(unsaid);

    cluster.install_crds().await.expect("our types");
    hosts.is_ready().await;
    sei.is_ready().await;
    let nmstate: NMState = serde_json::from_value(json!({
        "apiVersion": "nmstate.io/v1", "kind": "NMState", "metadata": {"name": "nmstate"}, "spec": {},
    }))
    .expect("an NMState");
    let nmstates: Api<NMState> = Api::all(cluster.client());
    let made = nmstates.create(&PostParams::default(), &nmstate).await;
    made.expect("an NMState");
    let sets: Api<DaemonSet> = Api::namespaced(cluster.client(), "nmstate");
    until("the handler", SOON, async || {
        let found = sets.get_opt("nmstate-handler").await;
        let found = found.map_err(|it| it.to_string())?;
        found.map(drop).ok_or_else(|| "none yet".to_owned())
    })
    .await
    .expect("a DaemonSet of handlers");
    assert!(!hosts.asked_for("seinodes"), "{:?}", hosts.faults.calls());
    assert!(!sei.asked_for("nmstates"), "{:?}", sei.faults.calls());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_by_name_is_not_ready_without_its_rights() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("rightless").await;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "rightless", "namespace": namespace.name()},
    });
    apply(&cluster.client(), &account).await;
    let token = token(&cluster.client(), namespace.name(), "rightless").await;
    let mut command = command();
    command
        .env("POD_NAME", "rightless")
        .env("POD_NAMESPACE", namespace.name())
        .env(IMAGE, HOSTS);
    let half = Half::start(cluster, command, Some(&token), "--controllers=nmstate").await;
    until_page(half.probes, "/readyz", |status, page| {
        status == 503 && page.contains("nmstates") && page.contains("secrets")
    })
    .await;
}
