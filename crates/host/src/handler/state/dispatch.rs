//! Dispatch scripts: NetworkManager runs them as root, so a state that brings one is refused unless
//! the NMState allows it.
//!
//! Admission refuses such a policy already. The handler asks again about the state it is going to
//! apply, because captures may have written a script into it, and because a cached policy meets no
//! admission.

use keelson_api::nmstate::DispatchScripts;
use keelson_api::policy::State;

use super::{interfaces, text};

/// A state that brings scripts it may not bring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "scripts of interfaces[].dispatch, as {} has one, run as root on hosts and are refused: \
     remove it, or set dispatchScripts: Allowed in the NMState",
    interfaces.join(", ")
)]
pub struct Refused {
    /// The interfaces that have one.
    pub interfaces: Vec<String>,
}

/// Refuses a state that brings scripts where they are not allowed.
pub fn check_dispatch(state: &State, allowed: DispatchScripts) -> Result<(), Refused> {
    let interfaces: Vec<String> = interfaces(state)
        .filter(|it| it.contains_key("dispatch"))
        .map(|it| text(it, "name").unwrap_or("an interface").to_owned())
        .collect();
    match allowed {
        DispatchScripts::Refused if !interfaces.is_empty() => Err(Refused { interfaces }),
        _ => Ok(()),
    }
}
