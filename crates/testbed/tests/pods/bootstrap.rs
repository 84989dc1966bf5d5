//! Nodes that do not begin with the first block: from an uploaded snapshot, through the bootstrap Job,
//! and from the volume another node left.
//!
//! The chain restores a snapshot that is on its volume where `use-local-snapshot` says so, as Sei's
//! node does; its own part of that is `testbed/go/chain/local.go`.

use crate::access::{account, token};
use crate::world::{Chain, NEW, PATIENCE, SEID, world};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use keelson_api::names::Port;
use keelson_testbed::until;
use kube::Api;
use serde_json::{Value, json};

/// Snapshots come every so many blocks.
const EVERY: u64 = 5;
/// How many blocks the Job makes of the snapshot's state before it halts.
const REPLAYED: u64 = 6;

/// Has a node's sidecar upload a snapshot; says of which block it is.
async fn upload(chain: &Chain, node: &str) -> u64 {
    account(chain, "uploader", true);
    let audience = format!("keelson-sidecar/{}/{node}", chain.name);
    let bearer = format!("Bearer {}", token(chain, "uploader", &audience));
    let headers = [("Authorization", bearer.as_str())];
    let sidecar = chain.address(node, Port::Api).await.expect("an address");
    let ask = |line: &str, body: &str| -> Value {
        let answer = chain.world.cluster.ask(sidecar, line, &headers, body);
        let (_, said) = answer.expect("an answer");
        serde_json::from_str(&said).expect("JSON")
    };
    let task = json!({ "type": "snapshot-upload-once" }).to_string();
    let submitted = ask("POST /v0/tasks", &task);
    let id = submitted["id"].as_str().expect("an id");
    let uploaded = until("the upload", PATIENCE, async || {
        let task = ask(&format!("GET /v0/tasks/{id}"), "");
        let height = task["result"]["height"].as_u64();
        height
            .filter(|_| task["status"] == "completed")
            .ok_or(task.to_string())
    });
    uploaded.await.expect("an uploaded snapshot")
}

/// The first block a node has.
async fn first_block(chain: &Chain, node: &str) -> u64 {
    let answer = chain.get(node, Port::Rpc, "/status").await;
    let (_, said) = answer.expect("an answer");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let first = said["sync_info"]["earliest_block_height"].as_str();
    first.and_then(|it| it.parse().ok()).expect("a height")
}

/// The block the state of a node's process was at when it started.
pub(crate) fn began_at(chain: &Chain, node: &str) -> u64 {
    let log = chain.log(node, "seid");
    let line = log
        .lines()
        .find(|it| it.contains("ABCI Handshake App Info"));
    let line = line.unwrap_or_else(|| panic!("{node} does not tell where it begins: {log}"));
    // Names are coloured, and what follows is not.
    let (_, after) = line.split_once("height=\u{1b}[0m").expect("a height");
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// The Job's pod, and what it runs.
async fn replaying(chain: &Chain, node: &str) -> Pod {
    let client = chain.world.cluster.client();
    let jobs = Api::<Job>::namespaced(client.clone(), &chain.name);
    let pods = Api::<Pod>::namespaced(client, &chain.name);
    let of_job = format!("batch.kubernetes.io/job-name={node}-bootstrap");
    let of_job = kube::api::ListParams::default().labels(&of_job);
    let found = until("the Job and its pod", PATIENCE, async || {
        let job = jobs.get(&format!("{node}-bootstrap")).await;
        job.map_err(|error| error.to_string())?;
        let listed = pods.list(&of_job).await;
        let mut listed = listed.map_err(|error| error.to_string())?;
        listed.items.pop().ok_or("no pod yet".to_owned())
    });
    found.await.expect("a Job")
}

/// Waits until a node is where the chain is.
async fn caught_up(chain: &Chain, node: &str) {
    let goal = chain.height("validator").await.expect("a height");
    let what = format!("{node} at block {goal}");
    let waited = until(&what, PATIENCE, async || {
        let height = chain.height(node).await?;
        (height >= goal).then_some(()).ok_or(height.to_string())
    });
    waited.await.expect("a node that catches up");
    chain.makes_blocks(node, 2).await;
}

async fn from_snapshot(chain: &Chain) {
    let uploaded = upload(chain, "full").await;
    assert!(uploaded >= EVERY && uploaded.is_multiple_of(EVERY));
    let target = uploaded + REPLAYED;
    let mut late = chain.node(
        "late",
        json!({ "fullNode": { "snapshot": {
            "s3": { "targetHeight": target }, "bootstrapImage": SEID,
        }}}),
    );
    late["spec"]["image"] = json!(NEW);
    chain.apply(&late);

    let job = replaying(chain, "late").await;
    let containers = job.spec.map(|it| it.containers).unwrap_or_default();
    let [node] = &containers[..] else {
        panic!("the Job's pod has the node and its sidecars: {containers:?}");
    };
    assert_eq!(node.image.as_deref(), Some(SEID));
    assert!(chain.pod("late").await.is_err(), "one pod after the other");

    let seen = chain.running("late").await;
    let image = seen.status.and_then(|it| it.current_image);
    assert_eq!(image.as_deref(), Some(NEW));
    caught_up(chain, "late").await;
    assert_eq!(began_at(chain, "late"), target, "where the Job halted");
    // The blocks before it were never there.
    assert_eq!(first_block(chain, "late").await, uploaded + 1);
    let jobs = Api::<Job>::namespaced(chain.world.cluster.client(), &chain.name);
    let job = jobs.get_opt("late-bootstrap").await.expect("an answer");
    assert!(job.is_none(), "{job:?}");
}

/// A node is deleted, and one of another name imports the volume it left.
async fn from_volume(chain: &Chain) {
    let before = chain.height("full").await.expect("a height");
    let words = ["--namespace", &chain.name, "delete", "seinode", "full"];
    chain.world.kubectl.run(&words).expect("a deletion");
    let mut heir = chain.node("heir", json!({ "fullNode": {} }));
    heir["spec"]["dataVolume"] = json!({ "import": { "pvcName": "data-full" } });
    chain.apply(&heir);

    chain.running("heir").await;
    caught_up(chain, "heir").await;
    let began = began_at(chain, "heir");
    assert!(began >= before, "it began at {began}, and not at {before}");
    assert_eq!(first_block(chain, "heir").await, 1);
    let claims =
        Api::<PersistentVolumeClaim>::namespaced(chain.world.cluster.client(), &chain.name);
    let own = claims.get_opt("data-heir").await.expect("an answer");
    assert!(own.is_none(), "it has no other volume");
}

#[tokio::test]
async fn a_node_begins_where_a_snapshot_and_the_job_end_and_another_where_a_kept_volume_does() {
    let chain = world().await.chain("bootstrap").await;
    chain.apply(&chain.validator());
    let mut full = chain.node("full", json!({ "fullNode": {} }));
    full["spec"]["overrides"] = json!({
        "storage.snapshot_interval": EVERY.to_string(),
        "storage.snapshot_keep_recent": "5",
    });
    chain.apply(&full);
    chain.running("validator").await;
    chain.running("full").await;
    let two = until("two snapshots", PATIENCE, async || {
        let height = chain.height("full").await?;
        let enough = height > 2 * EVERY + 2;
        enough.then_some(()).ok_or(height.to_string())
    });
    two.await.expect("blocks");

    from_snapshot(&chain).await;
    from_volume(&chain).await;
}
