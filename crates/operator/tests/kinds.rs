//! Each kind of plan on a real control plane: from the node's creation to `Running`, task by task.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "kinds/diary.rs"]
mod diary;

#[path = "kinds/base.rs"]
mod base;
#[path = "kinds/bootstrap.rs"]
mod bootstrap;
#[path = "kinds/crowd.rs"]
mod crowd;
#[path = "kinds/keys.rs"]
mod keys;
#[path = "kinds/restore.rs"]
mod restore;
