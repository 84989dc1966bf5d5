//! What the upstream is told about the caller, and what it must not hear from anybody else.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::review::Identity;

/// The headers that carry an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityHeaders {
    /// Whether the upstream is told.
    pub enabled: bool,
    /// Header of the name.
    pub user: HeaderName,
    /// Header of the groups.
    pub groups: HeaderName,
    /// What stands between two groups; empty for one line each.
    pub separator: String,
    /// Header of the uid, if any.
    pub uid: Option<HeaderName>,
    /// What the headers of extra attributes start with, if there are any; in lower case.
    pub extra_prefix: Option<String>,
    /// What becomes of a group that contains the separator (deviation A23).
    pub conflict: Conflict,
    /// Whether what the client says passes where we do not overwrite it (deviation A1 undone).
    pub trust_inbound: bool,
}

impl Default for IdentityHeaders {
    fn default() -> Self {
        IdentityHeaders {
            enabled: false,
            user: HeaderName::from_static("x-remote-user"),
            groups: HeaderName::from_static("x-remote-groups"),
            separator: "|".to_owned(),
            uid: None,
            extra_prefix: None,
            conflict: Conflict::default(),
            trust_inbound: false,
        }
    }
}

/// What becomes of a group that contains the separator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// The upstream is not told of it.
    #[default]
    Drop,
    /// The request is refused.
    Reject,
    /// It is told, and the upstream sees two groups.
    Keep,
}

/// Why an identity cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTold {
    /// It has bytes a header cannot carry.
    #[error("the {0} of the caller has bytes that a header cannot carry")]
    Unprintable(&'static str),
    /// A group contains the separator.
    #[error("a group of the caller contains the separator: {}", crate::golang::quote(.0))]
    Ambiguous(String),
}

/// Families of headers that mean an identity to somebody.
const FAMILIES: [&str; 2] = ["x-remote-", "impersonate-"];

impl IdentityHeaders {
    /// Removes what the client says about identity, underscores read as dashes: gateways of the CGI
    /// kind do not tell them apart.
    pub(super) fn strip(&self, headers: &mut HeaderMap) {
        if self.trust_inbound {
            return;
        }
        let spoofed: Vec<HeaderName> = headers
            .keys()
            .filter(|name| self.is_ours(name.as_str()))
            .cloned()
            .collect();
        for name in spoofed {
            headers.remove(name);
        }
    }

    fn is_ours(&self, name: &str) -> bool {
        let starts = |prefix: &str| {
            name.len() >= prefix.len() && folded_eq(&name.as_bytes()[..prefix.len()], prefix)
        };
        let is = |header: &HeaderName| folded_eq(name.as_bytes(), header.as_str());
        FAMILIES.iter().any(|family| starts(family))
            || is(&self.user)
            || is(&self.groups)
            || self.uid.as_ref().is_some_and(is)
            || self.extra_prefix.as_deref().is_some_and(starts)
    }

    /// Tells the upstream who the caller is; returns the groups left out.
    pub(super) fn tell(
        &self,
        headers: &mut HeaderMap,
        identity: &Identity,
    ) -> Result<Vec<String>, NotTold> {
        if !self.enabled {
            return Ok(Vec::new());
        }
        headers.insert(&self.user, value(&identity.user, "name")?);
        let dropped = self.tell_groups(headers, &identity.groups)?;
        if let Some(name) = &self.uid {
            headers.insert(name, value(&identity.uid, "uid")?);
        }
        if let Some(prefix) = &self.extra_prefix {
            tell_extra(headers, prefix, identity)?;
        }
        Ok(dropped)
    }

    fn tell_groups(
        &self,
        headers: &mut HeaderMap,
        groups: &[String],
    ) -> Result<Vec<String>, NotTold> {
        if self.separator.is_empty() {
            headers.remove(&self.groups);
            for group in groups {
                headers.append(&self.groups, value(group, "group")?);
            }
            return Ok(Vec::new());
        }
        let conflicts = |group: &&String| group.contains(&self.separator);
        let ambiguous: Vec<String> = match self.conflict {
            Conflict::Keep => Vec::new(),
            _ => groups.iter().filter(conflicts).cloned().collect(),
        };
        if let (Conflict::Reject, Some(group)) = (self.conflict, ambiguous.first()) {
            return Err(NotTold::Ambiguous(group.clone()));
        }
        let room = groups.iter().map(|it| it.len() + self.separator.len());
        let mut told = String::with_capacity(room.sum());
        let mut first = true;
        for group in groups.iter().filter(|group| !ambiguous.contains(group)) {
            if !std::mem::take(&mut first) {
                told.push_str(&self.separator);
            }
            told.push_str(group);
        }
        headers.insert(&self.groups, value(&told, "group")?);
        Ok(ambiguous)
    }
}

fn tell_extra(headers: &mut HeaderMap, prefix: &str, identity: &Identity) -> Result<(), NotTold> {
    for (key, values) in identity.extra.iter() {
        let name = format!("{prefix}{}", header_key(key));
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| NotTold::Unprintable("extra attribute"))?;
        for text in values {
            headers.append(&name, value(text, "extra attribute")?);
        }
    }
    Ok(())
}

/// A key as part of a header's name, escaped as Kubernetes' own front proxy does.
fn header_key(key: &str) -> String {
    let mut out = String::new();
    for byte in key.to_lowercase().bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`'
            | b'|' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

/// Any text a header can carry, bytes beyond ASCII included.
fn value(text: &str, what: &'static str) -> Result<HeaderValue, NotTold> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| NotTold::Unprintable(what))
}

/// Equal, `_` read as `-`. Header names are lower case; the other side is made so when it is set.
fn folded_eq(name: &[u8], other: &str) -> bool {
    let fold = |byte: u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    name.len() == other.len()
        && name
            .iter()
            .zip(other.bytes())
            .all(|(a, b)| fold(*a) == fold(b))
}
