//! The host components of `nmstate.io`: the webhook and the metrics, each a role of one program, and
//! the [`handler`], a program of its own behind the same command line ([`run`]).
//!
//! [`cli`] says which role, and with what. [`files`] reads certificate and TLS profile and never
//! gives up the last good ones; [`serving`] listens with them and answers on the health port
//! ([`health`]). No part of that touches the network, so a role is healthy before it is connected to
//! anything. [`webhook`] needs no API server at all; [`metrics`] follows one for ever and serves what
//! it last knew while there is none.

pub mod answer;
pub mod cli;
pub mod connecting;
pub mod files;
pub mod handler;
pub mod health;
pub mod logging;
pub mod metrics;
pub mod run;
pub mod serving;
pub mod webhook;
