//! What a port speaks, learned by a handshake that sends nothing else.
//!
//! A server of plain HTTP answers the greeting of TLS with a text. kube-rbac-proxy waits for the end
//! of a line first, and every greeting has one: a line feed is also the number of the extension in
//! which the groups are listed.

use keelson_tls::client::{NoPins, Pins, Untrusted};
use keelson_tls::observe::{Peer, Unobserved, observe_on};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

use super::connection::{CONNECT, tcp};
use super::error::chain;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(3);

/// What a port speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// Nothing was learned, and why.
    Unknown(String),
    /// Plain HTTP, or at any rate not TLS.
    Plaintext,
    /// TLS, by a server the pins cover.
    Tls(Peer),
    /// TLS, by a server that could not be verified, and why.
    Untrusted(String),
}

/// What is spoken at this address. Without pins every certificate is a stranger's.
pub(super) async fn at(address: SocketAddr, name: &str, pins: Option<&Pins>) -> Spoken {
    let given = match pins.map_or_else(|| nobody(name), |pins| Ok(pins.clone())) {
        Ok(given) => given,
        Err(bad) => return Spoken::Unknown(chain(&bad)),
    };
    let stream = match timeout(CONNECT, tcp(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Spoken::Unknown(error.to_string()),
        Err(_) => {
            return Spoken::Unknown(format!("no connection to {address} within {CONNECT:?}"));
        }
    };
    let seen = observe_on(stream, &given, HANDSHAKE).await;
    read(seen, pins.is_some())
}

/// Pins that cover no certificate.
fn nobody(name: &str) -> Result<Pins, NoPins> {
    let none = "0".repeat(64).parse().map_err(|_| NoPins::NothingPinned)?;
    Pins::leaf(none, &[name])
}

fn read(seen: Result<Peer, Unobserved>, pinned: bool) -> Spoken {
    match seen {
        Ok(peer) => Spoken::Tls(peer),
        Err(Unobserved::NotTls(_)) => Spoken::Plaintext,
        Err(Unobserved::Untrusted(Untrusted::OtherLeaf { presented, .. })) if !pinned => {
            Spoken::Untrusted(format!(
                "it presents the certificate {presented}, and there is nothing to verify it with"
            ))
        }
        Err(unknown) if unknown.unknown() => Spoken::Unknown(chain(&unknown)),
        Err(untrusted) => Spoken::Untrusted(chain(&untrusted)),
    }
}
