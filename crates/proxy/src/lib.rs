//! The authorizing proxy before every sidecar, a drop-in for kube-rbac-proxy.
//!
//! From the outside in: [`flags`] and [`settings`] say what was asked for, [`config`] and [`mod@unit`]
//! what may change while the proxy runs, and [`follow`] takes such changes over. [`serve`] takes
//! connections, [`pipeline`] leads each request past [`hygiene`], [`path`], [`pipeline::Doorkeeper`] and
//! [`headers`] to the [`upstream`]. The doorkeeper knows callers by their certificate ([`x509`]) or by a
//! token of an issuer ([`oidc`]), and asks the [`apiserver`] about others, and about rights, through the
//! [`decision`] engine, which remembers, bounds and gives up. Everything that decides is a function of values;
//! sockets, files and clocks are at the edge.

pub mod apiserver;
pub mod assemble;
pub mod attributes;
pub mod check;
pub mod config;
pub mod decision;
pub mod explain;
pub mod flags;
pub mod follow;
pub mod glob;
pub mod golang;
pub mod headers;
pub mod health;
pub mod hygiene;
pub mod logging;
pub mod metrics;
pub mod oidc;
pub mod outcome;
pub mod path;
pub mod pipeline;
pub mod query;
pub mod refusal;
pub mod review;
pub mod reviewers;
pub mod run;
pub mod serve;
pub mod settings;
pub mod target;
pub mod template;
pub mod trust;
pub mod unit;
pub mod upstream;
pub mod x509;
