//! The one view of a request's query (deviation A5): what was checked is what is forwarded.
//!
//! Go reads a query leniently and drops what it cannot read: pairs with `;`, pairs with malformed
//! escapes. A rewrite then checks the pairs that are left, while an upstream with other rules may read
//! the dropped ones. So where a query rewrite is active and anything was dropped, the upstream gets a
//! query written anew from the pairs that were checked.

use std::borrow::Cow;

use crate::path::decode;

/// What to forward when a part of the query was not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The pairs that were read.
    #[default]
    Cleaned,
    /// Nothing: refuse the request (`--strict-query`).
    Strict,
    /// The query as it came (`--raw-query`).
    Raw,
}

/// The pairs of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
    altered: bool,
}

/// A part of the query cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a part of the query cannot be read")]
pub struct Unreadable;

impl Query {
    /// Reads as Go's `url.ParseQuery`, keeping what it keeps.
    pub fn parse(raw: &str) -> Query {
        let mut query = Query::default();
        for part in raw.split('&').filter(|part| !part.is_empty()) {
            match pair(part) {
                Some((name, value, faithful)) => {
                    query.pairs.push((name, value));
                    query.altered |= !faithful;
                }
                None => query.altered = true,
            }
        }
        query
    }

    /// The values of a name, in order; names are told apart by case.
    pub fn values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// All pairs.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Whether the pairs say less, or other, than the query did.
    pub fn altered(&self) -> bool {
        self.altered
    }

    /// The pairs written as a query.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.pairs {
            if !out.is_empty() {
                out.push('&');
            }
            escape(name, &mut out);
            out.push('=');
            escape(value, &mut out);
        }
        out
    }

    /// What the upstream gets for `raw`, of which these are the pairs.
    pub fn forwarded<'a>(&self, raw: &'a str, policy: Policy) -> Result<Cow<'a, str>, Unreadable> {
        match policy {
            Policy::Raw => Ok(Cow::Borrowed(raw)),
            _ if !self.altered => Ok(Cow::Borrowed(raw)),
            Policy::Cleaned => Ok(Cow::Owned(self.encode())),
            Policy::Strict => Err(Unreadable),
        }
    }
}

/// A pair, and whether its text is exactly its bytes.
fn pair(part: &str) -> Option<(String, String, bool)> {
    if part.contains(';') {
        return None;
    }
    let (name, value) = part.split_once('=').unwrap_or((part, ""));
    let (name, name_faithful) = unescape(name)?;
    let (value, value_faithful) = unescape(value)?;
    Some((name, value, name_faithful && value_faithful))
}

fn unescape(text: &str) -> Option<(String, bool)> {
    let spaced = text.replace('+', " ");
    let bytes = decode(&spaced).ok()?;
    Some(match String::from_utf8_lossy(&bytes) {
        Cow::Borrowed(text) => (text.to_owned(), true),
        Cow::Owned(text) => (text, false),
    })
}

fn escape(text: &str, out: &mut String) {
    for &byte in text.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// The upstream's own query and the request's, joined.
pub fn joined<'a>(upstream: &str, request: &'a str) -> Cow<'a, str> {
    match (upstream.is_empty(), request.is_empty()) {
        (true, _) => Cow::Borrowed(request),
        (false, true) => Cow::Owned(upstream.to_owned()),
        (false, false) => Cow::Owned(format!("{upstream}&{request}")),
    }
}
