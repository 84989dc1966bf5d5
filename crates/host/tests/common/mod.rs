//! What tests of the whole program share: the program itself, a client that speaks TLS, and readers
//! with rights and without.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod client;
pub(crate) mod program;
pub(crate) mod rights;
