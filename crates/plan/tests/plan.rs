//! Plans from the outside: lists, rules, and laws over random histories of a small model world.

#[path = "plan/births.rs"]
mod births;
#[path = "plan/drafts.rs"]
mod drafts;
#[path = "plan/history.rs"]
mod history;
#[path = "plan/laws.rs"]
mod laws;
#[path = "plan/lists.rs"]
mod lists;
#[path = "plan/progress.rs"]
mod progress;
#[path = "plan/sidecar.rs"]
mod sidecar;
#[path = "plan/targets.rs"]
mod targets;
#[path = "plan/world.rs"]
mod world;
