//! API servers, and what they say of a Node.

use crate::{
    A_WHILE, BRIEFLY, PATIENTLY, ask, nobody_looks, passed, said_of_each, sentence, settings, state,
};
use k8s_openapi::api::core::v1::Node;
use keelson_host::handler::probe::Probe::{self, ApiServer, NodeReady};
use keelson_host::handler::probing::{Probes, Settings};
use keelson_testbed::faults::{Fault, On};
use keelson_testbed::{Authority, Cluster, Host, Network, until};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where hosts find the API server.
const SERVER: &str = "https://10.77.0.1:6443";

/// A kubeconfig by which a host finds the API server, with something else in it.
fn kubeconfig(cluster: &Cluster, host: &Host, name: &str, change: fn(&mut Value)) -> PathBuf {
    let text = cluster.kubeconfig();
    let mut config: Value = serde_json::from_str(&text).expect("a kubeconfig");
    config["clusters"][0]["cluster"]["server"] = SERVER.into();
    change(&mut config);
    let file = host.folder().join(name);
    std::fs::write(&file, config.to_string()).expect("a file");
    file
}

fn by(kubeconfig: &Path) -> Settings {
    Settings {
        kubeconfig: Some(kubeconfig.to_owned()),
        ..settings()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_passes_only_where_it_is_itself_and_says_yes() {
    let cluster = Cluster::shared().await;
    let host = Host::start(&Network::of_cluster(cluster)).await;
    let host = host.expect("a host");
    let made = |name, change| kubeconfig(cluster, &host, name, change);
    let good = made("good", |_| {});
    let files = [
        made("stranger", |config| {
            let stranger = Authority::new("a stranger").expect("an authority");
            let cluster = &mut config["clusters"][0]["cluster"];
            cluster["certificate-authority-data"] = encoded(stranger.certificate()).into();
        }),
        made("unknown", |config| {
            config["users"][0]["user"]["token"] = "nobody's".into();
        }),
        made("elsewhere", |config| {
            config["clusters"][0]["cluster"]["server"] = "https://10.77.0.1:1".into();
        }),
        host.folder().join("absent"),
    ];
    let asked = |within| ask(&host, by(&good), &[ApiServer], within, nobody_looks);
    passed(&asked(PATIENTLY), ApiServer);

    let failing: Vec<Settings> = files.iter().map(|file| by(file)).collect();
    let said = said_of_each(&host, &failing, ApiServer).await;
    let asking = format!("asking the API server {SERVER} for the namespace default");
    assert!(said[0].starts_with(&asking), "{said:?}");
    assert!(said[0].contains("invalid peer certificate"), "{said:?}");
    assert_eq!(said[1], format!("{asking} failed: Unauthorized"));
    assert!(said[2].contains("https://10.77.0.1:1 "), "{said:?}");
    assert!(said[2].contains("Connection refused"), "{said:?}");
    let no_way = "there is no way to the API server: ";
    assert!(said[3].starts_with(no_way), "{said:?}");

    host.black_hole().expect("a switch that forwards nothing");
    let silent = format!("the API server {SERVER} did not answer within 0.9 s");
    assert_eq!(sentence(asked(BRIEFLY), ApiServer), silent);
}

fn encoded(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_passes_where_it_is_there_and_ready() {
    let cluster = Cluster::shared().await;
    let host = Host::start(&Network::of_cluster(cluster)).await;
    let host = host.expect("a host");
    node(cluster, "mute", json!([])).await;
    let ready = |status: &str, message: &str| json!([{ "type": "Ready", "status": status, "reason": "Tried", "message": message }]);
    node(cluster, "down", ready("False", "the runtime is down")).await;
    node(cluster, "lost", ready("Unknown", "")).await;
    node(cluster, "good", ready("True", "")).await;
    let file = kubeconfig(cluster, &host, "good", |_| {});
    let of = |name: &str| Settings {
        node: name.to_owned(),
        ..by(&file)
    };
    let failing = ["absent", "mute", "down", "lost"].map(of);
    let said = said_of_each(&host, &failing, NodeReady).await;
    let expected = [
        &format!("asking the API server {SERVER} for the node absent: nodes \"absent\" not found"),
        "the node mute does not say whether it is Ready",
        "the node down is not Ready: the runtime is down",
        "the node lost is not Ready: Tried",
    ];
    assert_eq!(said, expected);
    let asked = ask(&host, of("good"), &[NodeReady], PATIENTLY, nobody_looks);
    passed(&asked, NodeReady);
}

/// Makes a Node that says this of itself.
async fn node(cluster: &Cluster, name: &str, conditions: Value) {
    let nodes = Api::<Node>::all(cluster.client());
    let node = serde_json::from_value(json!({ "metadata": { "name": name } }));
    let node = node.expect("a node");
    let made = nodes.create(&PostParams::default(), &node).await;
    made.expect("a node");
    let status = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    let params = PatchParams::default();
    let written = nodes.patch_status(name, &params, &status).await;
    written.expect("a status");
}

#[tokio::test]
async fn every_attempt_has_a_connection_of_its_own() {
    let cluster = Cluster::shared().await;
    let faults = cluster.faults().expect("a proxy");
    let file = cluster.folder().join("probing-faults");
    std::fs::write(&file, faults.kubeconfig()).expect("a file");
    let probes = Probes::new(by(&file));
    let which = [ApiServer].into();
    let ask = |within| probes.ask(&which, within, nobody_looks);
    passed(&ask(PATIENTLY).await, ApiServer);
    // None is kept that a question after a change could be asked by.
    until("no connection", PATIENTLY, async || {
        match faults.connections() {
            0 => Ok(()),
            some => Err(format!("{some} connections")),
        }
    })
    .await
    .expect("no connection");

    // What hangs does not keep the next from asking.
    let hanging = faults.inject(Fault::BlackHole, On::every().nth(1));
    let begun = Instant::now();
    passed(&ask(PATIENTLY).await, ApiServer);
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    drop(hanging);

    let _overloaded = faults.inject(Fault::Unavailable, On::every());
    let said = until("an answer", PATIENTLY, async || {
        let said = sentence(ask(A_WHILE).await, ApiServer);
        match said.contains("the API server answered 503") {
            true => Ok(()),
            false => Err(said),
        }
    });
    said.await.expect("an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_asked_at_the_same_time() {
    let cluster = Cluster::shared().await;
    let network = Network::of_cluster(cluster);
    let host = Host::start(&network).await.expect("a host");
    host.black_hole().expect("a switch that forwards nothing");
    let settings = Settings {
        kubeconfig: Some(kubeconfig(cluster, &host, "good", |_| {})),
        dns_servers: vec![network.address().into()],
        ..settings()
    };
    let seen = state(json!({ "routes": { "running": [{
        "destination": "0.0.0.0/0", "next-hop-address": network.address(), "next-hop-interface": "eth0",
    }]}}));
    let all = [Probe::Gateway, Probe::Dns, ApiServer, NodeReady];
    let begun = Instant::now();
    let answers = ask(&host, settings, &all, BRIEFLY, move || {
        let seen = seen.clone();
        async { Ok(seen) }
    });
    let took = begun.elapsed();
    assert!(took >= BRIEFLY && took < BRIEFLY * 3, "{took:?}");
    assert_eq!(answers.passed, [].into());
    assert_eq!(answers.failed.len(), 4);
    let silent = |said: &String| said.ends_with(" did not answer within 0.9 s");
    assert!(answers.failed.values().all(silent), "{answers:?}");
}
