//! The controller of SeiNodes: observe, validate, plan, act, report.
//!
//! [`world`] watches and [`sight`] looks; [`desired`] works out what a spec asks for and [`observe`]
//! what is there, both for `plan` to compare; [`act`] does one step, [`report`] says what a status
//! says, and [`pass`] is the order of it all.

pub mod act;
pub mod applied;
pub mod bindings;
pub mod controller;
pub mod desired;
pub mod difference;
pub mod edited;
pub mod effects;
pub mod fields;
pub mod handshakes;
pub mod loading;
pub mod made;
pub mod news;
pub mod observe;
pub mod pass;
pub mod peers;
pub mod points;
pub mod put_back;
pub mod record;
pub mod report;
pub mod rest;
pub mod run;
pub mod seen;
pub mod share;
pub mod sight;
pub mod under_way;
pub mod unstarted;
pub mod validate;
pub mod world;
