//! How controllers talk to the API server, and to nobody else.
//!
//! Clients whose every call has a deadline, watches that keep what a controller needs of an object
//! and nothing more, server-side apply that leaves alone what is already so, a queue of what to look
//! at next, the lease, events and the pages that are scraped. What to do with what is seen is for
//! the controllers.

mod access;
mod calls;
mod client;
mod error;
mod events;
mod lean;
mod lease;
mod mirror;
mod owned;
mod pages;
mod quantity;
mod queue;

pub use access::{Rule, missing};
pub use calls::{Calls, DEADLINE, Only, Propagation};
pub use client::{CONNECT_TIMEOUT, connect, within};
pub use error::Error;
pub use events::Recorder;
pub use lean::Lean;
pub use lease::{Lease, Led, Standing, lead};
pub use mirror::{Key, Mirror, Needed, Patience};
pub use owned::{comparable, digest, owned};
pub use pages::{Pages, Readiness, serve};
pub use queue::Queue;
