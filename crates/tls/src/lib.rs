//! TLS for every server of Keelson, and for the one client that must not be fooled.
//!
//! * A [`profile`] says which versions, suites and groups are wanted; [`honour`] turns it into what
//!   rustls does, names what it does not, and refuses what would serve nobody.
//! * A [`pair`] is a certificate chain with its key; [`client_auth`] is what clients are asked for;
//!   [`server`] makes a configuration of all three.
//! * [`reload`] keeps such a configuration true to the files it came from and never gives up the
//!   last good one; [`listener`] hands the current one to each new connection.
//! * An [`mod@authority`] signs certificates of servers whose clients can be told what to trust.
//! * [`client`] verifies a server against pins; [`mod@observe`] does one handshake and tells who
//!   answered.
//!
//! What is decided here is decided by functions of bytes and of a time they are given. Which files
//! to read, which port to open, whether to start without a certificate: all that is the caller's.

pub mod authority;
pub mod certificate;
pub mod client;
pub mod client_auth;
pub mod group;
mod hex;
pub mod honour;
pub mod listener;
pub mod observe;
pub mod pair;
pub mod profile;
pub mod reload;
pub mod report;
pub mod self_signed;
pub mod server;
pub mod subject;
pub mod suite;

pub use authority::{Authority, Issued};
pub use certificate::{Fingerprint, Leaf};
pub use client::{Pins, pinned};
pub use client_auth::{Authorities, ClientAuth};
pub use honour::{Honoured, Unusable};
pub use listener::{CurrentConfig, TlsListener, wrap};
pub use observe::{Peer, observe};
pub use pair::{Pair, PairError};
pub use profile::Profile;
pub use reload::{Loaded, Reloader, Serving, Sources};
pub use report::Report;
pub use server::server_config;
pub use subject::Subject;
