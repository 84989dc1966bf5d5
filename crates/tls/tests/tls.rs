//! The crate from outside: profiles, listeners on loopback, files on disk, clients that pin.
//!
//! One binary, because linking takes longer than any of it.

#[path = "tls/any_profile.rs"]
mod any_profile;
#[path = "tls/client_auth.rs"]
mod client_auth;
#[path = "tls/hashes.rs"]
mod hashes;
#[path = "tls/interop.rs"]
mod interop;
#[path = "tls/mapping.rs"]
mod mapping;
#[path = "tls/pairs.rs"]
mod pairs;
#[path = "tls/pki.rs"]
mod pki;
#[path = "tls/refusals.rs"]
mod refusals;
#[path = "tls/reloading.rs"]
mod reloading;
#[path = "tls/reloading_files.rs"]
mod reloading_files;
#[path = "tls/trust.rs"]
mod trust;
#[path = "tls/wire.rs"]
mod wire;
#[path = "tls/world.rs"]
mod world;
