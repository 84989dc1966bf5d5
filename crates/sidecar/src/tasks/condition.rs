//! Waiting for the node, and ending it when it is where it was waited for.
//!
//! There is no deadline: whoever waits for a height knows when it comes, and deletes the task if it
//! is not to come any more. A node that does not answer is waited for like one that is not there yet.

use super::process::{ask, end};
use crate::configuration;
use crate::engine::policy::Lock;
use crate::process::Insist;
use crate::rpc::Status;
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use keelson_wire::TaskType;
use keelson_wire::params::{Action, AwaitCondition, Condition};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const TASK: &str = TaskType::AwaitCondition.as_str();
/// How often the node is asked.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long seid may take to end before it is killed, unless the settings give it less.
const GRACE: Duration = Duration::from_secs(30);

/// Waits for the node, then does something.
pub async fn wait(params: AwaitCondition, site: &Site, run: &Run) -> Done {
    let waiting = async {
        reach(&params, site, run).await;
        match params.action {
            Some(Action::SigtermSeid) => end_node(site, run).await,
            None => Ok(()),
        }
    };
    run.until_stopped(TASK, waiting).await??;
    Ok(None)
}

/// Whether the node is where it is waited for. A node that has just started says that it does not
/// catch up before it has looked for anyone to catch up with; its first block is the one it begins
/// with.
pub fn is_met(params: &AwaitCondition, status: &Status) -> bool {
    match params.condition {
        Condition::Height => i128::from(status.height) >= i128::from(params.target_height),
        Condition::CatchingUp => !status.catching_up && status.height > 1,
    }
}

async fn reach(params: &AwaitCondition, site: &Site, run: &Run) {
    loop {
        match ask(site).await {
            Ok(status) if is_met(params, &status) => return,
            Ok(status) => run.progress.see(seen(params, &status)),
            Err(trouble) => {
                let waiting = json!({ "waitingFor": "seid to serve", "last": trouble.to_string() });
                run.progress.see(waiting);
            }
        }
        sleep(ASK_EVERY).await;
    }
}

/// What is shown of a node that is not there yet.
fn seen(params: &AwaitCondition, status: &Status) -> Value {
    let mut seen = json!({ "height": status.height, "catchingUp": status.catching_up });
    if params.condition == Condition::Height {
        seen["targetHeight"] = params.target_height.into();
    }
    seen
}

/// Ends seid, alone with its process. A node that does not end is killed, for it must not go on past
/// the height; a validator is not, for it may be about to sign.
async fn end_node(site: &Site, run: &Run) -> Result<(), Trouble> {
    let waiting = json!({ "waitingFor": "a task that has the process of seid" });
    run.progress.see(waiting);
    let _alone = site.locks.take(Lock::Process).await;
    let insist = match configuration::is_validator(&site.home).await {
        Ok(false) => Insist::Kill,
        Ok(true) => Insist::Never,
        Err(error) => {
            tracing::warn!(%error, "the node may be a validator: it is not killed if it does not end");
            Insist::Never
        }
    };
    let grace = GRACE.min(site.settings.stop_grace);
    end(TASK, site, run, grace, insist).await
}
