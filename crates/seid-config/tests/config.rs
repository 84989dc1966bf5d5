//! The configuration of seid from the outside: intents in, texts out.

#[path = "config/checks.rs"]
mod checks;
#[path = "config/committed.rs"]
mod committed;
#[path = "config/editing.rs"]
mod editing;
#[path = "config/golden.rs"]
mod golden;
#[path = "config/incremental.rs"]
mod incremental;
#[path = "config/laws.rs"]
mod laws;
#[path = "config/overriding.rs"]
mod overriding;
#[path = "config/patching.rs"]
mod patching;
#[path = "config/reading.rs"]
mod reading;
#[path = "config/table.rs"]
mod table;
#[path = "config/world.rs"]
mod world;
