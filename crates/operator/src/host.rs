//! The host components: what an NMState asks for, brought about and kept so.
//!
//! Decisions are functions of what was seen and of a time they are given: what the cluster can do
//! ([`platform`]), which TLS profile holds ([`profile`]), when certificates are replaced
//! ([`certificates`]), how many webhooks there are ([`replicas`]) and what is said ([`status`]). What
//! objects look like is for `render`. Around the decisions a [`controller`] looks at the [`world`],
//! applies what is not so and reports. Beside it another one says how the [`policies`] stand.

mod apply;
pub mod certificates;
pub mod certify;
pub mod controller;
pub mod loaded;
mod pass;
pub mod platform;
pub mod policies;
pub mod profile;
mod refresh;
pub mod replicas;
mod report;
pub mod run;
pub mod seen;
pub mod settings;
pub mod status;
pub mod world;
