//! Stopping and restarting seid, and whether it is there at all.
//!
//! The sidecar never starts seid: the kubelet does, when its container has ended, and the new one
//! waits at the gate. Two witnesses say whether the node runs: its process and its RPC. Where they
//! contradict each other the sidecar does not see what it would have to end, and says so instead of
//! claiming an end.

use crate::process::{Found, Insist, Node, Processes};
use crate::rpc::{self, GLANCE, Rpc, Status};
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use futures::future::{BoxFuture, try_join_all};
use jiff::{SignedDuration, Timestamp};
use keelson_wire::TaskType;
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a node that starts is asked whether it serves.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// When a process was started is told in hundredths of a second, and read from two files. No node ends,
/// and is started again, as fast as this.
const CLOCKS_AGREE: SignedDuration = SignedDuration::from_millis(30);

/// Stops seid.
pub async fn stop(site: &Site, run: &Run) -> Done {
    const TASK: &str = TaskType::StopSeid.as_str();
    let ending = end(TASK, site, run, site.settings.stop_grace, Insist::Never);
    run.until_stopped(TASK, ending).await??;
    Ok(None)
}

/// Stops seid and waits until it serves again. A node that was started after the restart was asked
/// for is not ended once more: another restart that was under way, or this one before the sidecar
/// died, has done it.
pub async fn restart(asked_at: Timestamp, site: &Site, run: &Run) -> Done {
    const TASK: &str = TaskType::RestartSeid.as_str();
    let restarting = async {
        // By one look: a node that comes after it is a new one.
        let mut nodes = found(TASK, site).await?;
        let all = nodes.len();
        nodes.retain(|it| !is_new(it.started, asked_at));
        if nodes.len() < all {
            tracing::info!("seid was started since its restart was asked for");
        }
        let grace = site.settings.stop_grace;
        end_these(TASK, nodes, run, grace, Insist::Never).await?;
        run.progress
            .see(json!({ "waitingFor": "seid to serve again" }));
        serves_again(TASK, site).await
    };
    run.until_stopped(TASK, restarting).await??;
    Ok(None)
}

/// Whether a process that was started then was so after a moment. One of which that is not known was not.
fn is_new(started: Option<Timestamp>, moment: Timestamp) -> bool {
    started.is_some_and(|it| it.duration_since(moment) > CLOCKS_AGREE)
}

/// Whether the node runs.
#[derive(Debug)]
pub enum Presence {
    /// Its process is seen.
    Seen(Found),
    /// Something answers for it, and no process of it is seen.
    Hidden(String),
    /// It does not run.
    Away,
}

/// What the two witnesses say together. Only a closed port means that nobody is there: a node that
/// answers late, or with an error, runs.
pub fn presence(found: Found, answer: Result<Status, rpc::Trouble>) -> Presence {
    if !found.nodes.is_empty() {
        return Presence::Seen(found);
    }
    let (url, problem) = match answer {
        Err(trouble) if trouble.is_unreachable() => return Presence::Away,
        Err(trouble) => (trouble.url, format!(" ({})", trouble.problem)),
        Ok(status) => (format!("node {}", status.node_id), String::new()),
    };
    let others: Vec<String> = found
        .others
        .iter()
        .map(|(pid, home)| format!("; process {pid} is the node of {}", home.display()))
        .collect();
    Presence::Hidden(format!(
        "{url} answers{problem}, but no process of seid with this home is seen{}",
        others.concat()
    ))
}

/// Asks the node for its status, and waits only a moment.
pub(super) fn ask(site: &Site) -> BoxFuture<'_, Result<Status, rpc::Trouble>> {
    Box::pin(async move { Rpc::new(&site.settings.seid_rpc, GLANCE).status().await })
}

/// Looks whether the node runs.
pub(super) async fn look(task: &'static str, site: &Site) -> Result<Presence, Trouble> {
    let processes = Processes::of(&site.home);
    let found = tokio::task::spawn_blocking(move || processes.find()).await;
    let problem = match found {
        Ok(Ok(found)) => {
            return Ok(presence(found, ask(site).await));
        }
        Ok(Err(trouble)) => trouble.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Trouble::passing(task, "look for seid", problem))
}

/// The processes of the node that have to be ended for it to be away.
async fn found(task: &'static str, site: &Site) -> Result<Vec<Node>, Trouble> {
    match look(task, site).await? {
        Presence::Away => Ok(Vec::new()),
        Presence::Seen(found) => Ok(found.nodes),
        Presence::Hidden(what) => Err(Trouble::lasting(task, "look for seid", what)
            .hinting("the pod needs shareProcessNamespace: true, and one home for both")),
    }
}

/// Tells seid to end and waits until it has. A node that does not run has ended already.
pub(super) async fn end(
    task: &'static str,
    site: &Site,
    run: &Run,
    grace: Duration,
    insist: Insist,
) -> Result<(), Trouble> {
    let nodes = found(task, site).await?;
    end_these(task, nodes, run, grace, insist).await
}

async fn end_these(
    task: &'static str,
    nodes: Vec<Node>,
    run: &Run,
    grace: Duration,
    insist: Insist,
) -> Result<(), Trouble> {
    if nodes.is_empty() {
        return Ok(());
    }
    for node in &nodes {
        tracing::info!(task, pid = node.pid, "seid is told to end");
    }
    run.progress.see(json!({ "waitingFor": "seid to end" }));
    let ended = try_join_all(nodes.into_iter().map(|node| node.end(grace, insist))).await;
    match ended {
        Ok(_) => Ok(()),
        Err(problem) => Err(Trouble::passing(task, "end seid", problem.to_string())),
    }
}

/// Waits until the node serves. Whether it has caught up is not asked.
async fn serves_again(task: &'static str, site: &Site) -> Result<(), Trouble> {
    let limit = site.settings.start_timeout;
    let deadline = Instant::now() + limit;
    loop {
        let last = match ask(site).await {
            Ok(_) => return Ok(()),
            Err(trouble) => trouble,
        };
        if Instant::now() >= deadline {
            let within = spell(limit);
            let state = state(task, site).await;
            let what = format!("seid RPC did not come up within {within}: {last}; {state}");
            return Err(Trouble::passing(task, "wait for seid", what));
        }
        sleep(ASK_EVERY).await;
    }
}

/// Why seid may not have come: what a person would look at first.
async fn state(task: &'static str, site: &Site) -> String {
    let process = match look(task, site).await {
        Ok(Presence::Seen(_)) => "its process runs, see its log",
        Ok(_) => "no process of it is seen, see its container",
        Err(_) => "its process cannot be looked for",
    };
    let gate = match site.gate.is_open() {
        true => "the gate is open",
        false => "the gate is closed: submit mark-ready",
    };
    format!("{process}; {gate}")
}

/// A span as the original writes it.
fn spell(span: Duration) -> String {
    let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    keelson_seid_config::Duration::from_nanoseconds(nanos).to_string()
}
