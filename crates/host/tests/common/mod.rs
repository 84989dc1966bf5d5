//! What tests of the whole program share: the program itself, a client that speaks TLS, readers with
//! rights and without, and handlers on hosts.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod client;
pub(crate) mod desired;
pub(crate) mod homes;
pub(crate) mod outage;
pub(crate) mod parts;
pub(crate) mod program;
pub(crate) mod rights;
pub(crate) mod snapshot;
