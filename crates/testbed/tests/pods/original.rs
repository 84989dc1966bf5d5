//! A validator as the original operator left it, in a namespace of a real cluster: its objects with
//! their field managers, its pod, and the start it had approved.
//!
//! The objects are not part of this workspace; [`Original::read`] says so where they are not beside
//! it. What was of their platform (images, pool, sizes, names of Secrets) is this cluster's here, and
//! nothing else is changed.

use crate::access::account;
use crate::world::{Chain, PATIENCE, SEID};
use keelson_api::names::Port;
use keelson_testbed::images::{self, EXPORTER};
use keelson_testbed::{Product, until};
use serde_json::{Value, json};
use std::path::Path;

const NODE: &str = "validator";

/// The lists of the original's objects, as text.
pub(crate) struct Original {
    nodes: String,
    /// What belongs to a node, in the order it is made.
    rest: Vec<String>,
}

impl Original {
    /// Reads them; nothing where there are none.
    pub(crate) fn read() -> Option<Self> {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/original");
        if !folder.is_dir() {
            println!("skipped: the original's objects are not beside this workspace");
            return None;
        }
        let list = |file: &str| std::fs::read_to_string(folder.join(file)).expect("a list");
        let rest = [
            "persistentvolumeclaims.yaml",
            "configmaps.yaml",
            "statefulsets.yaml",
            "services.yaml",
        ];
        Some(Self {
            nodes: list("seinodes.yaml"),
            rest: rest.map(list).into(),
        })
    }

    /// Makes the validator with this image of its proxy, and has its start approved as the original
    /// does: set up, and released through the proxy. Returns when it makes blocks.
    pub(crate) async fn make(&self, chain: &Chain, proxy: &str) {
        let mapped = |list: &str| mapped(list, chain, proxy);
        let node = of_validator(&mapped(&self.nodes)).remove(0);
        let uid = make(chain, &node);
        let status = json!({ "status": node["status"] }).to_string();
        let words = ["patch", "seinode", NODE, "--subresource=status"];
        let merge = ["--type=merge", "--patch", &status];
        kubectl(chain, &[&words[..], &merge].concat());
        leave_to_managers(chain, &node);
        let old = node["metadata"]["uid"].as_str().expect("a uid");
        for list in &self.rest {
            for object in of_validator(&mapped(list).replace(old, &uid)) {
                make(chain, &object);
                leave_to_managers(chain, &object);
            }
        }
        bind(chain);
        account(chain, "original", true);
        set_up(chain).await;
        chain.makes_blocks(NODE, 2).await;
    }
}

/// A list with what is this cluster's own in place of what was the original platform's.
fn mapped(list: &str, chain: &Chain, proxy: &str) -> String {
    let name = chain.name.as_str();
    let own = [
        ("registry.example/seid:v6.0.0", SEID.to_owned()),
        ("quay.io/brancz/kube-rbac-proxy:v0.19.1", proxy.to_owned()),
        (
            "image: sidecar:1",
            format!("image: {}", images::name(Product::Sidecar)),
        ),
        ("image: exporter:1", format!("image: {EXPORTER}")),
        ("atlantic-2", name.to_owned()),
        ("namespace: chain", format!("namespace: {name}")),
        (
            "\"namespace\":\"chain\"",
            format!("\"namespace\":\"{name}\""),
        ),
        ("val-signing", "validator-signing-key".to_owned()),
        ("val-node", "validator-node-key".to_owned()),
        ("- sei-node\n", "- local\n".to_owned()),
        ("cpu: \"4\"\n", "cpu: 50m\n".to_owned()),
        ("memory: 32Gi", "memory: 512Mi".to_owned()),
        ("storage: 2000Gi", "storage: 1Gi".to_owned()),
        ("gp3-10k-750", "local".to_owned()),
    ];
    let replace = |text: String, (theirs, ours): &(&str, String)| text.replace(theirs, ours);
    own.iter().fold(list.to_owned(), replace)
}

/// What of a list is the validator, or belongs to it.
fn of_validator(list: &str) -> Vec<Value> {
    let list: Value = serde_saphyr::from_str(list).expect("YAML");
    let mut items = list["items"].as_array().cloned().expect("a list");
    items.retain(|it| {
        let metadata = &it["metadata"];
        metadata["labels"]["sei.io/node"] == NODE
            || (it["kind"] == "SeiNode" && metadata["name"] == NODE)
    });
    items
}

fn kubectl(chain: &Chain, words: &[&str]) -> String {
    let words = [&["--namespace", &chain.name], words].concat();
    chain.world.kubectl.run(&words).expect("a command")
}

/// Creates an object without what the server gives it; returns its uid.
fn make(chain: &Chain, object: &Value) -> String {
    let mut bare = object.clone();
    if let Some(fields) = bare.as_object_mut() {
        fields.remove("status");
    }
    let given = ["uid", "resourceVersion", "creationTimestamp", "generation"];
    for field in given.into_iter().chain(["managedFields"]) {
        bare["metadata"][field] = Value::Null;
    }
    let words = ["create", "--output=jsonpath={.metadata.uid}", "-f", "-"];
    let made = chain
        .world
        .kubectl
        .feed(&words, bare.to_string().as_bytes());
    made.expect("an object as the original left it")
}

/// Says of every field whose it is, as the original and kubectl left it.
fn leave_to_managers(chain: &Chain, object: &Value) {
    let mut managers = object["metadata"]["managedFields"].clone();
    if let Some(managers) = managers.as_array_mut() {
        // The controllers of this cluster write the status of what they look after.
        managers.retain(|it| it["subresource"] != "status" || object["kind"] == "SeiNode");
    }
    let patch = json!({ "metadata": { "managedFields": managers } }).to_string();
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    let words = ["patch", &kind, &name, "--type=merge", "--patch", &patch];
    kubectl(chain, &words);
}

/// What people bound by hand for the original's proxies, with the role that is here.
fn bind(chain: &Chain) {
    let name = format!("sei-rbac-proxy:{}", chain.name);
    let account = format!("--serviceaccount={}:seid-node", chain.name);
    let words = ["create", "clusterrolebinding", &name, &account];
    let role = ["--clusterrole=sei-rbac-proxy"];
    kubectl(chain, &[&words[..], &role].concat());
}

/// Sets the node up and releases it, as the plan of the original did.
async fn set_up(chain: &Chain) {
    let waits = until("the original's gate", PATIENCE, async || {
        let pod = chain.pod(NODE).await?;
        let status = pod.status.and_then(|it| it.container_statuses);
        let mut all = status.into_iter().flatten();
        let waits =
            all.any(|it| it.name == "seid" && it.state.is_some_and(|it| it.running.is_some()));
        match (waits, chain.get(NODE, Port::Api, "/v0/healthz").await) {
            (true, Ok((503, _))) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    waits.await.expect("a node at its gate");
    let pod = format!("{NODE}-0");
    let words = ["--namespace", &chain.name, "exec", "--stdin", &pod];
    let script = ["--container=seid", "--", "sh", "-c"];
    let write = ["cat > $HOME/config/genesis.json"];
    let words = [&words[..], &script, &write].concat();
    let genesis = chain.founding.genesis.as_bytes();
    chain
        .world
        .kubectl
        .feed(&words, genesis)
        .expect("a genesis");
    for task in [
        json!({ "type": "config-apply", "params": { "mode": "validator" } }),
        json!({ "type": "config-validate" }),
        json!({ "type": "mark-ready" }),
    ] {
        done(chain, &task).await;
    }
}

/// Submits a task with a token any API server takes, and waits until it is done.
async fn done(chain: &Chain, task: &Value) {
    let token = kubectl(chain, &["create", "token", "original"]);
    let bearer = format!("Bearer {}", token.trim());
    let headers = [("Authorization", bearer.as_str())];
    let address = chain.address(NODE, Port::Api).await.expect("an address");
    let ask = |line: &str, body: &str| {
        let (status, said) = chain
            .world
            .cluster
            .ask(address, line, &headers, body)
            .map_err(|error| error.to_string())?;
        let said: Value = serde_json::from_str(&said).unwrap_or(Value::String(said));
        match status {
            200..300 => Ok(said),
            _ => Err(format!("{status}: {said}")),
        }
    };
    let what = format!("{} of the original's", task["type"]);
    let submitted = until(&what, PATIENCE, async || {
        ask("POST /v0/tasks", &task.to_string())
    });
    let submitted = submitted.await.expect("a task");
    let line = format!("GET /v0/tasks/{}", submitted["id"].as_str().expect("an id"));
    let ended = until(&what, PATIENCE, async || match ask(&line, "")? {
        said if said["status"] == "completed" => Ok(()),
        said => Err(said.to_string()),
    });
    ended.await.expect("a task that is done");
}
