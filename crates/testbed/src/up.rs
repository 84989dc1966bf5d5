//! What `make up` does once there is a cluster: Keelson and a chain of three nodes in it, and a screen
//! that shows them. Everything is looked at before it is made, so doing it again changes nothing.

use crate::chain::{Founding, found};
use crate::error::Error;
use crate::install::Installer;
use crate::kubectl::Kubectl;
use crate::progress::Progress;
use crate::trouble::{Trouble, of_node};
use crate::wait::until;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The namespace of the example, its chain, and where its genesis is kept.
const NAMESPACE: &str = "local";
const CHAIN: &str = "local-1";
const CHAIN_OF_EXAMPLE: &str = "chain local-1 of namespace local";
const KEPT: &str = "genesis";
const GENESIS: &str = "genesis.json";
const VALIDATOR: &str = "validator";
/// How long the nodes may take to make blocks.
const PATIENCE: Duration = Duration::from_secs(300);

/// A node of the example, as it is.
struct Shown {
    name: String,
    phase: String,
    /// What is being done, or what it waits for.
    doing: String,
    height: Option<u64>,
}

/// Installs Keelson, and a chain that makes blocks.
pub(crate) async fn up(
    kubectl: &Kubectl,
    installer: &Installer,
    settings: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let progress = Progress::start("installing Keelson, an authority and an S3 server");
    installer.operator(settings)?;
    installer.surroundings()?;
    installer.ready()?;
    progress.done();

    let progress = Progress::start(format!("founding chain {CHAIN}"));
    installer.namespace(NAMESPACE)?;
    let nodes = installer.example()?;
    founded(kubectl, installer)?;
    kubectl.apply(&nodes)?;
    installer.renew(NAMESPACE)?;
    progress.done();

    let progress = Progress::start(format!("waiting until {} nodes make blocks", nodes.len()));
    let names: Vec<&str> = nodes
        .iter()
        .filter_map(|it| it["metadata"]["name"].as_str())
        .collect();
    let mut first: BTreeMap<String, u64> = BTreeMap::new();
    let mut late = Vec::new();
    let shown = until("the nodes of the example", PATIENCE, async || {
        let shown = look(kubectl, &names).map_err(|error| error.to_string())?;
        for node in &shown {
            if let Some(height) = node.height.filter(|it| *it > 0) {
                first.entry(node.name.clone()).or_insert(height);
            }
        }
        let makes = |node: &Shown| {
            let begun = first.get(&node.name);
            node.phase == "Running" && begun.is_some_and(|begun| node.height > Some(*begun))
        };
        let waits = shown.iter().filter(|node| !makes(node));
        late = waits.map(Shown::trouble).collect();
        progress.at(shown.len() - late.len(), shown.len());
        let lines: Vec<String> = shown.iter().map(Shown::line).collect();
        progress.tell(&lines.join(", "));
        match late.is_empty() {
            true => Ok(Some(shown)),
            false if installer.is_hopeless(NAMESPACE) => Ok(None),
            false => Err(lines.join(", ")),
        }
    })
    .await;
    match shown {
        Ok(Some(shown)) => {
            progress.done();
            screen(&shown);
            Ok(())
        }
        // The pods say why, and the nodes that wait for them do not know.
        Ok(None) => Err(installer.not_up(CHAIN_OF_EXAMPLE, NAMESPACE, Vec::new())),
        Err(unseen) if late.is_empty() => Err(unseen),
        Err(_) => Err(installer.not_up(CHAIN_OF_EXAMPLE, NAMESPACE, late)),
    }
}

/// Sees to it that there are keys and a genesis, and that the genesis is in the bucket.
fn founded(kubectl: &Kubectl, installer: &Installer) -> Result<(), Error> {
    let words = [
        "--namespace",
        NAMESPACE,
        "configmaps",
        "--ignore-not-found",
        KEPT,
    ];
    let kept = kubectl.run(&[&["get", "--output=json"], &words[..]].concat())?;
    let kept: Value = serde_json::from_str(&kept).unwrap_or_default();
    let founding = match kept["data"][GENESIS].as_str() {
        Some(genesis) => Founding {
            chain: CHAIN.into(),
            genesis: genesis.into(),
            // They are where they belong, and nobody has another copy.
            signing_key: String::new(),
            node_key: String::new(),
        },
        None => {
            let founding = found(CHAIN)?;
            installer.keys(NAMESPACE, VALIDATOR, &founding)?;
            kubectl.apply(&[json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": KEPT, "namespace": NAMESPACE },
                "data": { GENESIS: founding.genesis },
            })])?;
            founding
        }
    };
    installer.genesis(&founding)
}

/// Looks at the nodes.
fn look(kubectl: &Kubectl, names: &[&str]) -> Result<Vec<Shown>, Error> {
    let words = ["--namespace", NAMESPACE, "seinodes"];
    let listed = kubectl.get(&words)?;
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    let one = |name: &&str| {
        let node = items.iter().find(|it| it["metadata"]["name"] == **name);
        shown(name, node.unwrap_or(&Value::Null), height(kubectl, name))
    };
    Ok(names.iter().map(one).collect())
}

fn shown(name: &str, node: &Value, height: Option<u64>) -> Shown {
    let status = &node["status"];
    let conditions = status["conditions"].as_array();
    let told = |kind: &str| {
        let mut all = conditions.into_iter().flatten();
        let found = all.find(|it| it["type"] == kind && it["status"] == "True");
        found.and_then(|it| it["message"].as_str())
    };
    Shown {
        name: name.to_owned(),
        phase: status["phase"].as_str().unwrap_or("Pending").to_owned(),
        doing: told("Stalled")
            .or(told("Reconciling"))
            .unwrap_or_default()
            .to_owned(),
        height,
    }
}

/// The height a node tells, asked through the API server, which reaches every pod.
fn height(kubectl: &Kubectl, node: &str) -> Option<u64> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{node}-0:26657/proxy/status");
    let said = kubectl.run(&["get", "--raw", &path]).ok()?;
    let said: Value = serde_json::from_str(&said).ok()?;
    said["sync_info"]["latest_block_height"]
        .as_str()?
        .parse()
        .ok()
}

impl Shown {
    fn line(&self) -> String {
        let Self {
            name,
            phase,
            doing,
            height,
        } = self;
        match height {
            Some(height) => format!("{name} {phase} at block {height}"),
            None if doing.is_empty() => format!("{name} {phase}"),
            None => format!("{name} {phase} ({doing})"),
        }
    }

    /// What a person is told of a node that does not make blocks.
    fn trouble(&self) -> Trouble {
        let Self { phase, doing, .. } = self;
        let says = match self.height {
            _ if !doing.is_empty() => doing.clone(),
            Some(height) => format!("it is {phase} and stays at block {height}"),
            None => format!("it is {phase} and tells no block"),
        };
        of_node(NAMESPACE, &self.name, &says)
    }
}

fn screen(nodes: &[Shown]) {
    println!("\n  NODE        PHASE     BLOCK");
    for node in nodes {
        let height = node.height.map_or("?".into(), |it| it.to_string());
        println!("  {:<11} {:<9} {height}", node.name, node.phase);
    }
}

/// Five things to do next, for a shell that has `kubectl` and KUBECONFIG, with images of this registry.
pub(crate) fn next(registry: &str) -> String {
    NEXT.replace(
        "localhost/",
        &format!("{}/", registry.trim_end_matches('/')),
    )
}

const NEXT: &str = r#"  # a new release: one pod cycle
  kubectl -n local patch seinode full-0 --type merge -p '{"spec":{"image":"localhost/seid:v6.1.0"}}'
  # TLS before the sidecar: no pod cycle
  kubectl -n local patch seinode full-0 --type merge -p '{"spec":{"sidecar":{"tls":{"issuerName":"local-ca"}}}}'
  # what is being done, and why
  kubectl -n local get seinode full-0 -o jsonpath='{.status.plan}'
  # the sidecar's tasks, with a token that is good for this node alone
  kubectl -n local port-forward pod/full-1-0 18443:8443 > /dev/null &
  curl -s -H "Authorization: Bearer $(kubectl -n keelson-system create token keelson-sidecar-client --audience keelson-sidecar/local/full-1)" http://localhost:18443/v0/tasks
  # a node goes, its volume stays
  kubectl -n local delete seinode full-1"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(node: &Value, height: Option<u64>) -> Trouble {
        shown("full-0", node, height).trouble()
    }

    #[test]
    fn a_node_that_makes_no_blocks_is_told_with_its_own_words_and_what_to_do() {
        let condition = |kind: &str, status: &str, message: &str| json!({ "type": kind, "status": status, "message": message });
        let stalled = json!({ "status": { "phase": "Initializing", "conditions": [
            condition("Reconciling", "True", "it is being set up"),
            condition("Stalled", "True", "the genesis is not in the bucket"),
        ] } });
        let trouble = told(&stalled, None);
        assert_eq!(trouble.why, "the genesis is not in the bucket");
        let command = "`kubectl --namespace local describe seinode full-0`";
        assert!(trouble.help.contains(command), "{trouble:?}");

        let slow = json!({ "status": { "phase": "Initializing", "conditions": [
            condition("Reconciling", "True", "it is being set up"),
            condition("Stalled", "False", "nothing is stalled"),
        ] } });
        assert_eq!(told(&slow, None).why, "it is being set up");
        let stuck = json!({ "status": { "phase": "Running", "conditions": [] } });
        let stays = "it is Running and stays at block 7";
        assert_eq!(told(&stuck, Some(7)).why, stays);
        let silent = "it is Pending and tells no block";
        assert_eq!(told(&Value::Null, None).why, silent);
    }

    #[test]
    fn what_to_try_next_names_the_image_where_the_cluster_has_it() {
        assert_eq!(next("localhost"), NEXT);
        let there = next("registry.example/keelson/");
        assert!(there.contains("\"registry.example/keelson/seid:v6.1.0\""));
        assert!(!there.contains("localhost/"), "{there}");
        // The sidecar is still opened on this machine.
        assert!(there.contains("http://localhost:18443/v0/tasks"), "{there}");
    }
}
