//! The one view of a request's path (deviation A4): what is redirected, matched, authorized and
//! forwarded is the same path, or the request is refused.
//!
//! The reference has three views (escaped for the redirect, decoded for patterns and authorization,
//! raw for the upstream) and an attacker picks where they differ. Here a path is accepted only if
//! they agree: nothing in it is a separator or a dot segment in one view and not in another. The
//! lenient mode has the reference's views again.
//!
//! Matching itself is in [`crate::glob`]; which list a path is on is [`Rules`].

use std::borrow::Cow;

use crate::glob::Glob;

/// How strictly to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Refuse what could be read in two ways.
    #[default]
    Strict,
    /// Read as the reference does (`--lenient-paths`).
    Lenient,
}

/// A path all sides agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// As the client wrote it, and as the upstream gets it.
    pub raw: &'a str,
    /// Decoded: what patterns and authorization see.
    pub decoded: Cow<'a, str>,
}

/// What becomes of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<'a> {
    /// It is served.
    Clean(Path<'a>),
    /// The client is sent to the cleaned path, escaped as it came.
    Redirect(String),
}

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ambiguous {
    /// A `%` without two hexadecimal digits.
    #[error("the path has a malformed escape")]
    Escape,
    /// NUL or another control byte.
    #[error("the path has a control byte")]
    Control,
    /// A backslash, which some servers read as `/`.
    #[error("the path has a backslash")]
    Backslash,
    /// An encoded `/`.
    #[error("the path has an encoded slash")]
    Slash,
    /// A dot segment in disguise: encoded, or with a parameter.
    #[error("the path has a disguised dot segment")]
    Dots,
    /// Bytes that are no text, which a review could not carry.
    #[error("the path is not UTF-8")]
    Text,
}

/// Reads the escaped path of a request's target.
pub fn read(raw: &str, mode: Mode) -> Result<Reading<'_>, Ambiguous> {
    let decoded = match mode {
        Mode::Strict => {
            // Checked before cleaning, or `/a%2f../b` would be cleaned to something harmless.
            for segment in raw.split('/') {
                unambiguous(segment)?;
            }
            match decode(raw)? {
                Cow::Borrowed(_) => Cow::Borrowed(raw),
                Cow::Owned(bytes) => {
                    Cow::Owned(String::from_utf8(bytes).map_err(|_| Ambiguous::Text)?)
                }
            }
        }
        Mode::Lenient => match decode(raw)? {
            Cow::Borrowed(_) => Cow::Borrowed(raw),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        },
    };
    Ok(match cleaned(raw) {
        // Many clients read `/\` at the front as `//`, which would be another host. The reference
        // escapes it too.
        Some(path) => Reading::Redirect(path.replace('\\', "%5C")),
        None => Reading::Clean(Path { raw, decoded }),
    })
}

fn unambiguous(segment: &str) -> Result<(), Ambiguous> {
    let bytes = decode(segment)?;
    for &byte in bytes.iter() {
        match byte {
            b'\\' => return Err(Ambiguous::Backslash),
            b'/' => return Err(Ambiguous::Slash),
            byte if byte.is_ascii_control() => return Err(Ambiguous::Control),
            _ => {}
        }
    }
    // Some servers cut a segment's parameters (`..;x`) before they normalise.
    let name = bytes.split(|byte| *byte == b';').next().unwrap_or_default();
    let dots = matches!(name, b"." | b"..");
    // In plain sight it is cleaned by the redirect.
    if dots && !matches!(segment, "." | "..") {
        return Err(Ambiguous::Dots);
    }
    Ok(())
}

/// Percent-decodes; `+` stays. Borrowed when there is nothing to decode.
pub(crate) fn decode(text: &str) -> Result<Cow<'_, [u8]>, Ambiguous> {
    let bytes = text.as_bytes();
    if !bytes.contains(&b'%') {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
            let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2)) else {
                return Err(Ambiguous::Escape);
            };
            out.push(u8::try_from(high * 16 + low).unwrap_or_default());
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    Ok(Cow::Owned(out))
}

/// The rooted path without empty and dot segments, if that is another one. A slash at the end stays.
pub fn cleaned(path: &str) -> Option<String> {
    let inner = path.strip_prefix('/');
    let tidy = inner.is_some_and(|inner| {
        let mut segments = inner.split('/').peekable();
        let mut tidy = true;
        while let Some(segment) = segments.next() {
            let last = segments.peek().is_none();
            tidy &= !matches!(segment, "." | "..") && (last || !segment.is_empty());
        }
        tidy
    });
    if tidy {
        return None;
    }
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let mut out = format!("/{}", kept.join("/"));
    if path.ends_with('/') && out != "/" {
        out.push('/');
    }
    Some(out)
}

/// Where a path stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is not served (404).
    Absent,
    /// It is served to anyone.
    Exempt,
    /// It is served to who is permitted.
    Guarded,
}

/// Which paths are served, and which of them to anyone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Served paths; empty for all.
    pub allow: Vec<Glob>,
    /// Paths served without authentication.
    pub ignore: Vec<Glob>,
}

impl Rules {
    /// A path has to be allowed before it can be exempt.
    pub fn standing(&self, path: &Path<'_>) -> Standing {
        let on = |list: &[Glob]| list.iter().any(|glob| glob.matches(&path.decoded));
        if !self.allow.is_empty() && !on(&self.allow) {
            Standing::Absent
        } else if on(&self.ignore) {
            Standing::Exempt
        } else {
            Standing::Guarded
        }
    }
}
