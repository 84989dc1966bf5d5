//! The handler as the operator installs it: in the pod of its DaemonSet, on the cluster's own machine.
//!
//! What it does with policies of every kind, and whoever dies, is shown on hosts of their own
//! (`crates/host/tests`). Here is that it does so in its image, with the rights, mounts and probes it is
//! rendered with, under a real kubelet.

use super::Hosts;
use super::machine::Machine;
use crate::outages::Away;
use crate::world::PATIENCE;
use keelson_api::host::{DEFAULT_NAMESPACE, WEBHOOK_CONFIGURATION};
use keelson_testbed::until;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Instant;

/// The bridge that policies ask for, and its two cables, of which one is a port of it.
const BRIDGE: &str = "lab0";
const PORT: &str = "lab1";
const OTHER_END: &str = "lab2";
/// A bridge that somebody makes by hand.
const BY_HAND: &str = "lab9";

/// What Kubernetes itself puts into a namespace.
const OF_EVERY_NAMESPACE: [&str; 2] = ["configmap/kube-root-ca.crt", "serviceaccount/default"];

/// A bridge with this address and a port.
fn bridge(address: &str) -> Value {
    // This kernel may have no VLAN filtering: a port that says nothing of it needs none.
    let bridge = json!({
        "name": BRIDGE, "type": "linux-bridge", "state": "up",
        "ipv4": {
            "enabled": true, "dhcp": false,
            "address": [{ "ip": address, "prefix-length": 24 }],
        },
        "bridge": {
            "options": { "stp": { "enabled": false } },
            "port": [{ "name": PORT, "vlan": {} }],
        },
    });
    let port =
        json!({ "name": PORT, "type": "veth", "state": "up", "veth": { "peer": OTHER_END } });
    json!({ "interfaces": [bridge, port] })
}

/// What there is of the host components, a name in each line.
fn left(hosts: &Hosts) -> Result<String, String> {
    let get = ["get", "--ignore-not-found", "--output=name"];
    let here = ["--namespace", DEFAULT_NAMESPACE];
    let kinds = ["daemonsets,deployments,pods,services,configmaps,serviceaccounts"];
    let webhook = ["mutatingwebhookconfiguration", WEBHOOK_CONFIGURATION];
    let ask = |words: &[&str]| {
        let said = hosts.world.kubectl.run(&[&get[..], words].concat());
        said.map_err(|error| error.to_string())
    };
    Ok(ask(&[&here[..], &kinds].concat())? + &ask(&webhook)?)
}

#[tokio::test]
async fn a_handler_in_its_pod_enacts_a_policy_on_its_machine_and_goes_with_the_nmstate() {
    let hosts = Hosts::enter().await;
    let begun = Instant::now();
    let machine = Machine::begin(&hosts).await;
    println!(
        "a handler is ready {:.1?} after its NMState",
        begun.elapsed()
    );
    let pod = machine.pod().await.expect("a pod").metadata.name;
    let pod = pod.expect("a name");
    let container = machine.container(&pod).expect("a container");
    assert_eq!(machine.probe(&container, "live"), Ok(()));
    assert_eq!(machine.probe(&container, "ready"), Ok(()));
    // The bridge that carries the pods is seen, and is nobody's to change.
    machine.reported("tb0", true).await;

    machine.policy("lab", &bridge("192.0.2.1"));
    machine.enacted("lab").await;
    let (_, addresses) = machine.link(BRIDGE).expect("the bridge");
    assert_eq!(addresses, ["192.0.2.1"]);
    assert_eq!(machine.ports(BRIDGE), Ok(vec![PORT.to_owned()]));
    machine.reported(BRIDGE, true).await;

    machine.delete("lab", &[BRIDGE, PORT, OTHER_END]).await;
    machine.reported(BRIDGE, false).await;
    let begun = Instant::now();
    let words = ["delete", "nmstate", "nmstate"];
    hosts.world.kubectl.run(&words).expect("no NMState");
    let gone = until("the end of everything", PATIENCE, async || {
        let left = left(&hosts)?;
        match left.lines().all(|it| OF_EVERY_NAMESPACE.contains(&it)) {
            true => Ok(()),
            false => Err(left),
        }
    });
    gone.await.expect("nothing that is left");
    println!("all is gone {:.1?} after the NMState", begun.elapsed());
}

/// Kills the handler's container and waits until another one is live and ready, by its own word and by
/// the kubelet's.
async fn killed(machine: &Machine<'_>, pod: &str) {
    let old = machine.container(pod).expect("a container");
    let begun = Instant::now();
    let signal = machine.hosts.world.cluster.signal(&old, Signal::SIGKILL);
    signal.expect("a signal");
    let again = until("another handler that is ready", PATIENCE, async || {
        let now = machine.container(pod)?;
        if now.id == old.id {
            return Err("the old one".to_owned());
        }
        machine.probe(&now, "live")?;
        machine.probe(&now, "ready")?;
        Ok(now)
    });
    let again = again.await.expect("a handler");
    println!("killed, it is live and ready after {:.1?}", begun.elapsed());
    let before = machine.answers(pod, "Readiness").expect("a count");
    let asked = until("a good answer to the kubelet", PATIENCE, async || {
        let now = machine.answers(pod, "Readiness")?;
        (now > before).then_some(()).ok_or(format!("{now}"))
    });
    asked.await.expect("a good answer");
    println!("the kubelet calls it ready after {:.1?}", begun.elapsed());
    let now = machine.container(pod).expect("a container");
    assert_eq!(now.process, again.process, "nobody has ended it");
}

#[tokio::test]
async fn killed_with_no_api_server_a_handler_is_ready_again_and_goes_on_when_the_server_is_back() {
    let hosts = Hosts::enter_alone().await;
    let machine = Machine::begin(&hosts).await;
    machine.policy("lab", &bridge("192.0.2.1"));
    machine.enacted("lab").await;
    let enacted = machine.link(BRIDGE).expect("the bridge");
    let pod = machine.pod().await.expect("a pod").metadata;
    let (pod, uid) = (pod.name.expect("a name"), pod.uid);
    // The kubelet asks the API server about us now; later it could not.
    machine.answers(&pod, "Readiness").expect("a count");

    let away = Away::kill(&hosts.world.cluster, "kube-apiserver").await;
    let by_hand = machine.run(&format!("ip link add {BY_HAND} type bridge"));
    by_hand.expect("a bridge by hand");
    killed(&machine, &pod).await;
    assert_eq!(machine.link(BRIDGE), Ok(enacted.clone()), "the same link");
    drop(away);
    let begun = Instant::now();
    let back = until("the API server", PATIENCE, async || machine.pod().await);
    back.await.expect("a server that is back");
    println!("the API server answers again after {:.1?}", begun.elapsed());
    let begun = Instant::now();
    let (reported, restarted) = tokio::join!(
        async {
            machine.reported(BY_HAND, true).await;
            begun.elapsed()
        },
        async {
            let restarted = machine.in_order(1).await;
            assert_eq!(restarted.metadata.uid, uid, "the same pod");
            begun.elapsed()
        },
    );
    println!("then what was done meanwhile is reported after {reported:.1?}");
    println!("and the DaemonSet is in order after {restarted:.1?}");

    machine.policy("lab", &bridge("192.0.2.2"));
    machine.enacted("lab").await;
    let edited = (enacted.0, vec!["192.0.2.2".to_owned()]);
    assert_eq!(machine.link(BRIDGE), Ok(edited));
    machine.delete("lab", &[BRIDGE, PORT, OTHER_END]).await;
    let removed = machine.run(&format!("ip link delete {BY_HAND}"));
    removed.expect("no bridge by hand");
}
