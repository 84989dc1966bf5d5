//! The decision engine on a paused clock, against a scripted API server: the sequences of failures
//! and answers it needs are not to be had from a real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// So that `cargo test decision` runs these too.
#[path = "."]
mod decision {
    mod bounds;
    mod flights;
    mod histories;
    mod outages;
    mod paced;
    mod refresh;
    mod stage;
    mod stale;
    mod tokens;
}
