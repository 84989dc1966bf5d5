//! What tests of the whole program share: the program itself, and a client that speaks TLS.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod client;
pub(crate) mod program;
