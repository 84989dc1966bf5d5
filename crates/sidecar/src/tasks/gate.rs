//! The tasks of the gate: release and hold.

use crate::engine::{Ledger, Order};
use crate::gate::GateError;
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use keelson_wire::TaskType;
use std::sync::Arc;
use tokio::task::JoinError;

/// Opens the gate and records what it was opened for.
pub async fn mark_ready(order: &Order, site: &Site, run: &Run) -> Done {
    let (gate, at, cancel) = (
        Arc::clone(&site.gate),
        order.submitted_at,
        run.cancel.clone(),
    );
    let approving = move || gate.approve(at, || cancel.is_cancelled());
    moved(
        TaskType::MarkReady,
        tokio::task::spawn_blocking(approving).await,
    )
}

/// Takes the approval back, forgets every release, and closes the gate.
pub async fn mark_not_ready(ledger: &Arc<Ledger>, site: &Site) -> Done {
    let (gate, ledger) = (Arc::clone(&site.gate), Arc::clone(ledger));
    let forget = move || {
        ledger.purge_blocking(TaskType::MarkReady)?;
        Ok(())
    };
    let holding = move || gate.hold(forget);
    moved(
        TaskType::MarkNotReady,
        tokio::task::spawn_blocking(holding).await,
    )
}

fn moved(type_: TaskType, moved: Result<Result<(), GateError>, JoinError>) -> Done {
    let problem = match moved {
        Ok(Ok(())) => return Ok(None),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Trouble::passing(type_.as_str(), "move the gate", problem))
}
