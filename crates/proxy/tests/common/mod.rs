//! What tests of the whole program share: the program itself, clients, certificates, an upstream, and
//! rights in the cluster.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod client;
pub(crate) mod greeter;
pub(crate) mod line;
pub(crate) mod pki;
pub(crate) mod program;
pub(crate) mod rights;
pub(crate) mod upstream;
