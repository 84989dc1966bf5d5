//! The sidecar beside every node: persisted, idempotent tasks and a start gate, a drop-in for
//! `seictl serve`.
//!
//! Whoever calls submits a task under an id of their own and asks for it until it has ended. Tasks
//! are kept in the original's SQLite file; what is decided about them is pure and in [`engine`],
//! what they do is in [`tasks`], and seid's container waits at the [`gate`].

pub mod archive;
pub mod authn;
pub mod cli;
pub mod configuration;
pub mod disk;
pub mod ec2;
pub mod engine;
pub mod fault;
pub mod fetch;
pub mod gate;
pub mod hex;
pub mod home;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod node_id;
pub mod objects;
pub mod pack;
pub mod probe;
pub mod process;
pub mod rpc;
pub mod serve;
pub mod settings;
pub mod site;
pub mod store;
pub mod tasks;
pub mod work;
