//! The headers of a request on its way to the upstream, and of the answer on its way back.
//!
//! [`forward`] does all of it in the one order that is safe: hop-by-hop headers go first, so that a
//! client cannot have later ones removed by naming them in `Connection`; what the client says about
//! identity goes next, on every path; ours comes last (deviations A1 and A2). It reads no socket and
//! decides about no path; who the caller is, it is told.

mod credential;
mod hop;
mod identity;
mod upgrade;

use std::io::Write;
use std::net::IpAddr;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};

pub use credential::{SubprotocolFault, SubprotocolToken, bearer, subprotocol_token};
pub use hop::{announced_trailers, is_hop_by_hop, strip_hop_by_hop};
pub use identity::{Conflict, IdentityHeaders, NotTold};
pub use upgrade::{Upgrades, requested_upgrade};

use crate::review::Identity;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// What is done to every request's headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What the upstream is told about the caller.
    pub identity: IdentityHeaders,
    /// Which protocols a connection may be upgraded to.
    pub upgrades: Upgrades,
    /// What becomes of `X-Forwarded-For`.
    pub forwarded_for: ForwardedFor,
    /// Whether the upstream gets the token that authenticated the request.
    pub bearer: Bearer,
    /// Whether the upstream gets bearer tokens on exempt paths (deviation A8).
    pub bearer_on_exempt: Bearer,
}

/// What becomes of `X-Forwarded-For`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedFor {
    /// The client's address is put behind what was sent.
    #[default]
    Append,
    /// The client's address takes the place of what was sent.
    Replace,
    /// It passes as it was sent.
    Off,
}

/// What becomes of a bearer token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bearer {
    /// It ends here.
    #[default]
    Dropped,
    /// It is passed on.
    Passed,
}

/// On whose behalf a request is forwarded.
#[derive(Clone, Copy, Debug)]
pub enum Caller<'a> {
    /// Nobody's in particular: the path is exempt.
    Exempt,
    /// This one's.
    Known {
        /// Who it is.
        identity: &'a Identity,
        /// How we know.
        proof: Proof<'a>,
    },
}

/// How a caller was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof<'a> {
    /// A bearer token in `Authorization`.
    Bearer,
    /// A client certificate; `Authorization` is then the upstream's business.
    Certificate,
    /// A token among the websocket's subprotocols, of which these are left.
    Subprotocol(&'a str),
}

/// What was found on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// The protocol the upstream is asked to switch to.
    pub upgrade: Option<String>,
    /// Groups the upstream is not told, because it could misread them (deviation A23).
    pub dropped_groups: Vec<String>,
}

/// Turns the client's headers into those the upstream gets.
pub fn forward(
    headers: &mut HeaderMap,
    policy: &Policy,
    caller: Caller<'_>,
    client: Option<IpAddr>,
) -> Result<Forwarded, NotTold> {
    let exempt = matches!(caller, Caller::Exempt);
    let upgrade = requested_upgrade(headers).filter(|name| policy.upgrades.allow(name, exempt));
    strip_hop_by_hop(headers);
    policy.identity.strip(headers);
    drop_credential(headers, policy, caller);
    if let Some(client) = client {
        add_client(headers, policy.forwarded_for, client);
    }
    let dropped_groups = match caller {
        Caller::Known { identity, .. } => policy.identity.tell(headers, identity)?,
        Caller::Exempt => Vec::new(),
    };
    if let Some(name) = &upgrade {
        upgrade::ask(headers, name);
    }
    Ok(Forwarded {
        upgrade,
        dropped_groups,
    })
}

fn drop_credential(headers: &mut HeaderMap, policy: &Policy, caller: Caller<'_>) {
    match caller {
        Caller::Exempt if policy.bearer_on_exempt == Bearer::Dropped => {
            credential::drop_bearer(headers);
        }
        Caller::Known { proof, .. } => match proof {
            Proof::Bearer if policy.bearer == Bearer::Dropped => {
                headers.remove(AUTHORIZATION);
            }
            Proof::Subprotocol(left) => {
                if let Ok(left) = HeaderValue::from_str(left) {
                    headers.insert(SEC_WEBSOCKET_PROTOCOL, left);
                } else {
                    headers.remove(SEC_WEBSOCKET_PROTOCOL);
                }
            }
            Proof::Bearer | Proof::Certificate => {}
        },
        Caller::Exempt => {}
    }
}

fn add_client(headers: &mut HeaderMap, policy: ForwardedFor, client: IpAddr) {
    // Room for an address, so that the line grows for those that name several alone.
    let mut line = Vec::with_capacity(48);
    match policy {
        ForwardedFor::Off => return,
        ForwardedFor::Replace => {}
        ForwardedFor::Append => {
            for value in headers.get_all(&X_FORWARDED_FOR) {
                line.extend_from_slice(value.as_bytes());
                line.extend_from_slice(b", ");
            }
        }
    }
    // A v4 client of a v6 socket is a v4 client.
    if write!(line, "{}", client.to_canonical()).is_err() {
        return;
    }
    if let Ok(value) = HeaderValue::from_bytes(&line) {
        headers.insert(X_FORWARDED_FOR, value);
    }
}
