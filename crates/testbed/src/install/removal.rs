//! Takes Keelson out of a cluster again, and refuses to take what is not the example's with it.

use super::Installer;
use crate::error::Error;
use serde_json::{Value, json};

impl Installer {
    /// Takes away all that was installed. Nodes first, while there is an operator to see them off, and
    /// the types last.
    pub fn remove(&self) -> Result<(), Error> {
        let example = self.objects("examples/local")?;
        let (nodes, rest): (Vec<_>, Vec<_>) =
            example.into_iter().partition(|it| it["kind"] == "SeiNode");
        if self.has(&["crd", "seinodes.sei.io"])? {
            self.refuse_others(&rest)?;
            self.delete(nodes)?;
        }
        // The operator made it for the namespace, and it belongs to none.
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": "sei-rbac-proxy:local" },
        });
        self.delete(rest.into_iter().chain([binding]).collect())?;
        let hosts = self.hosts.then_some("deploy/host");
        let all = ["deploy/local", "deploy/operator", "deploy/crds"];
        for folder in hosts.into_iter().chain(all) {
            self.delete(self.objects(folder)?)?;
        }
        Ok(())
    }

    /// The types take every node with them: nodes of other people are theirs to delete.
    fn refuse_others(&self, example: &[Value]) -> Result<(), Error> {
        let ours = |namespace: &str| {
            let mut all = example.iter();
            all.any(|it| it["kind"] == "Namespace" && it["metadata"]["name"] == namespace)
        };
        let nodes = self.kubectl.get(&["seinodes", "--all-namespaces"])?;
        let nodes = nodes["items"].as_array().cloned().unwrap_or_default();
        let others = nodes.iter().filter_map(|it| {
            let namespace = it["metadata"]["namespace"].as_str()?;
            let name = it["metadata"]["name"].as_str()?;
            (!ours(namespace)).then(|| format!("{namespace}/{name}"))
        });
        let others: Vec<String> = others.collect();
        match others.is_empty() {
            true => Ok(()),
            false => Err(Error::InUse {
                what: others.join(", "),
            }),
        }
    }

    /// Deletes objects and waits until they are gone.
    fn delete(&self, objects: Vec<Value>) -> Result<(), Error> {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        let words = ["delete", "--ignore-not-found", "--timeout=120s", "-f", "-"];
        self.kubectl.feed(&words, list.to_string().as_bytes())?;
        Ok(())
    }
}
