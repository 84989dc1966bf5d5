//! The program itself, as a process: killed again and again, stopped, without what it needs, and asked
//! how it does.

mod stage;

#[path = "killed/kills.rs"]
mod kills;
#[path = "killed/pages.rs"]
mod pages;
#[path = "killed/process.rs"]
mod process;
#[path = "killed/program.rs"]
mod program;
#[path = "killed/settings.rs"]
mod settings;
