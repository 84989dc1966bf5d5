//! That nobody writes what nothing has to be done for: the versions of a node's objects, over looks of
//! the operator that were called for.

use crate::world::{Chain, PATIENCE};
use keelson_testbed::until;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// How often the operator is called to look. When the last look begins, those before it are over.
const LOOKS: u64 = 3;
/// Counts the operator's looks at nodes, by namespace.
const COUNTER: &str = "sei_controller_seinode_sidecar_health_probes_total";

/// A node for which nothing is to be done, and the versions of its objects.
pub(crate) struct Quiet<'a> {
    chain: &'a Chain,
    node: &'a str,
    versions: BTreeMap<String, String>,
}

impl<'a> Quiet<'a> {
    /// The versions as they are now.
    pub(crate) fn begin(chain: &'a Chain, node: &'a str) -> Self {
        let versions = versions(chain, node);
        Self {
            chain,
            node,
            versions,
        }
    }

    /// Has the operator look at the node again and again, and sees that it writes nothing.
    pub(crate) async fn holds(self) {
        for look in 1..=LOOKS {
            let before = self.looks().expect("a count");
            // Whatever happens to the pod is a reason to look at the node.
            let pod = format!("pod/{}-0", self.node);
            let mark = format!("example.com/look={look}");
            let place = ["--namespace", &self.chain.name, "annotate", "--overwrite"];
            let kubectl = &self.chain.world.kubectl;
            let touched = kubectl.run(&[&place[..], &[&pod, &mark]].concat());
            touched.expect("a reason to look");
            let waited = until("another look", PATIENCE, async || match self.looks()? {
                count if count > before => Ok(()),
                _ => Err(format!("{before} looks")),
            });
            waited.await.expect("a look");
        }
        assert_eq!(versions(self.chain, self.node), self.versions);
    }

    /// How often the operator has looked at the nodes of this namespace.
    fn looks(&self) -> Result<u64, String> {
        let world = self.chain.world;
        let selector = "--selector=app.kubernetes.io/name=keelson-operator";
        let words = ["--namespace", "keelson-system", "pods", selector];
        let pods = world.kubectl.get(&words).map_err(|it| it.to_string())?;
        let address = pods["items"][0]["status"]["podIP"].as_str();
        let address = address.and_then(|it| it.parse().ok()).ok_or("no address")?;
        let page = world
            .cluster
            .get(SocketAddr::new(address, 8080), "/metrics");
        let (_, page) = page.map_err(|error| error.to_string())?;
        let namespace = format!("namespace=\"{}\"", self.chain.name);
        let lines = page
            .lines()
            .filter(|line| line.starts_with(COUNTER) && line.contains(&namespace));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(counts.sum())
    }
}

/// The versions of a node and of what the operator and cert-manager write for it, and of how much was
/// said about it.
fn versions(chain: &Chain, node: &str) -> BTreeMap<String, String> {
    let always = [
        ("seinode", ""),
        ("statefulset", ""),
        ("service", ""),
        ("configmap", "-rbac-proxy-config"),
        ("networkpolicy", "-sidecar"),
    ];
    // Where a certificate is ordered, that is.
    let with_tls = [("certificate", "-sidecar-tls"), ("secret", "-sidecar-tls")];
    let names = always.iter().chain(&with_tls);
    let names: Vec<String> = names
        .map(|(kind, end)| format!("{kind}/{node}{end}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = ["--namespace", &chain.name, "--ignore-not-found"];
    let words = [&place[..], &names].concat();
    let found = chain.world.kubectl.get(&words).expect("objects");
    let version = |object: &serde_json::Value| {
        let kind = object["kind"].as_str()?.to_owned();
        // Its controller writes there how many pods are ready.
        let which = match kind.as_str() {
            "StatefulSet" => "generation",
            _ => "resourceVersion",
        };
        Some((kind, object["metadata"][which].to_string()))
    };
    let items = found["items"].as_array().expect("a list");
    let mut versions: BTreeMap<_, _> = items.iter().filter_map(version).collect();
    assert!(versions.len() >= always.len(), "{versions:?}");
    versions.insert("events".to_owned(), said(chain, node));
    versions
}

/// How often something was said about a node, however often it was the same.
fn said(chain: &Chain, node: &str) -> String {
    let about = format!("--field-selector=involvedObject.kind=SeiNode,involvedObject.name={node}");
    let words = ["--namespace", &chain.name, "events", &about];
    let events = chain.world.kubectl.get(&words).expect("events");
    let events = events["items"].as_array().expect("a list");
    let version = |event: &serde_json::Value| event["metadata"]["resourceVersion"].to_string();
    let versions: Vec<String> = events.iter().map(version).collect();
    versions.join(" ")
}
