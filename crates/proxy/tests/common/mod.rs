//! What several test binaries of the proxy need; each uses its part.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod program;
