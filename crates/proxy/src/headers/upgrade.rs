//! Which protocols a connection may turn into (deviation A3).
//!
//! A tunnel is unchecked from its first byte. The reference opens one for any name the upstream
//! answers to, HTTP/2 itself among them, even for callers it never asked who they are.

use http::HeaderMap;
use http::header::{CONNECTION, HeaderValue, UPGRADE};

use super::hop::lists_token;

/// Which protocols a connection may turn into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrades {
    /// Their names; `*` for any.
    pub names: Vec<String>,
    /// Whether exempt paths may be upgraded too.
    pub on_exempt: bool,
}

impl Default for Upgrades {
    fn default() -> Self {
        Upgrades {
            names: vec!["websocket".to_owned(), "SPDY/3.1".to_owned()],
            on_exempt: false,
        }
    }
}

impl Upgrades {
    /// Whether a protocol is allowed, in any case of its name.
    pub(super) fn allow(&self, name: &str, exempt: bool) -> bool {
        (!exempt || self.on_exempt)
            && self
                .names
                .iter()
                .any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(name))
    }
}

/// The protocol the client asks to switch to, if it asks properly: the header, and `Connection`
/// naming it. A list, or a name that is not printable, is no request.
pub fn requested_upgrade(headers: &HeaderMap) -> Option<String> {
    if !headers.contains_key(UPGRADE) || !lists_token(headers, &CONNECTION, "upgrade") {
        return None;
    }
    let mut lines = headers.get_all(UPGRADE).iter();
    let name = lines.next()?.to_str().ok()?.trim();
    let single = lines.next().is_none() && !name.is_empty();
    (single
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b','))
    .then(|| name.to_owned())
}

/// Asks the upstream to switch.
pub(super) fn ask(headers: &mut HeaderMap, name: &str) {
    if let Ok(name) = HeaderValue::from_str(name) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, name);
    }
}
