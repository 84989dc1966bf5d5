//! Who calls: nobody asks, or the proxy before the sidecar says so in a header.
//!
//! In the second mode the sidecar listens on the pod's own loopback address only, and every path but
//! the open ones needs the header, exactly once and not empty. A second line means that somebody else
//! wrote one, too.

use http::HeaderMap;
use keelson_wire::route;

/// How callers are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Not at all.
    Unauthenticated,
    /// By the proxy, which says who it is in a header.
    TrustedHeader,
}

/// A word that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SEI_SIDECAR_AUTHN_MODE={0:?} is not known: use trusted-header or unauthenticated")]
pub struct UnknownMode(String);

impl Mode {
    /// Reads the mode; case and space around it do not matter, spelling does.
    pub fn parse(text: &str) -> Result<Self, UnknownMode> {
        match text.trim().to_lowercase().as_str() {
            "" | "unauthenticated" => Ok(Self::Unauthenticated),
            "trusted-header" => Ok(Self::TrustedHeader),
            _ => Err(UnknownMode(text.to_owned())),
        }
    }

    /// The mode's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unauthenticated => "unauthenticated",
            Self::TrustedHeader => "trusted-header",
        }
    }
}

/// Why a caller is refused; also a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// No header.
    Missing,
    /// More than one.
    Duplicate,
    /// One that says nothing.
    Empty,
}

impl Unknown {
    /// The label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Missing => "missing_header",
            Self::Duplicate => "duplicate_header",
            Self::Empty => "empty_header",
        }
    }

    /// The answer.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "missing X-Remote-User header",
            Self::Duplicate => "more than one X-Remote-User header",
            Self::Empty => "empty X-Remote-User header",
        }
    }
}

/// Who calls, where that is asked and known. The path is compared to the letter, as the routes are.
pub fn caller(mode: Mode, path: &str, headers: &HeaderMap) -> Result<Option<String>, Unknown> {
    if mode == Mode::Unauthenticated || route::OPEN.contains(&path) {
        return Ok(None);
    }
    let mut lines = headers.get_all(route::REMOTE_USER).iter();
    let user = lines.next().ok_or(Unknown::Missing)?;
    if lines.next().is_some() {
        return Err(Unknown::Duplicate);
    }
    if user.is_empty() {
        return Err(Unknown::Empty);
    }
    Ok(Some(String::from_utf8_lossy(user.as_bytes()).into_owned()))
}
