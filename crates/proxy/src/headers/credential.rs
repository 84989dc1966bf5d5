//! Tokens in a request: where they stand, and how they leave it.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};

use super::upgrade::requested_upgrade;

/// The bearer token of the first `Authorization` line: the second word, single blanks apart.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    // A value has no control bytes, so this is what `to_str` admits, in a fraction of its time: the
    // line is as long as a token, and read for every request.
    let line = headers.get(AUTHORIZATION)?.as_bytes();
    let line = line.is_ascii().then(|| std::str::from_utf8(line).ok())??;
    let (scheme, rest) = line.trim().split_once(' ')?;
    let token = rest.split_once(' ').map_or(rest, |(token, _)| token);
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Removes every `Authorization` line with a bearer token and keeps the others.
pub(super) fn drop_bearer(headers: &mut HeaderMap) {
    let is_bearer = |line: &[u8]| {
        let scheme = line
            .trim_ascii_start()
            .split(|byte| !byte.is_ascii_alphanumeric())
            .next();
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
    };
    let lines = headers.get_all(AUTHORIZATION);
    if !lines.iter().any(|line| is_bearer(line.as_bytes())) {
        return;
    }
    let kept: Vec<_> = lines
        .iter()
        .filter(|line| !is_bearer(line.as_bytes()))
        .cloned()
        .collect();
    headers.remove(AUTHORIZATION);
    for line in kept {
        headers.append(AUTHORIZATION, line);
    }
}

const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// A token a websocket client sent as a subprotocol, browsers having no other place for it.
#[derive(Clone, PartialEq, Eq)]
pub struct SubprotocolToken {
    /// The token.
    pub token: String,
    /// The other subprotocols, for the upstream.
    pub left: String,
}

impl std::fmt::Debug for SubprotocolToken {
    /// Without the token: it must not end up in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SubprotocolToken")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// Why a subprotocol that looks like a token is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubprotocolFault {
    /// More than one.
    #[error("multiple base64.bearer.authorization tokens specified")]
    Several,
    /// Not base64url without padding.
    #[error("invalid base64.bearer.authorization token encoding")]
    Encoding,
    /// Not text.
    #[error("invalid base64.bearer.authorization token")]
    Text,
    /// Nothing else the server could choose.
    #[error("missing additional subprotocol")]
    Alone,
}

/// Go ignores the unused bits of the last character.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// The token among the subprotocols of a websocket request.
pub fn subprotocol_token(
    headers: &HeaderMap,
) -> Result<Option<SubprotocolToken>, SubprotocolFault> {
    let websocket =
        requested_upgrade(headers).is_some_and(|name| name.eq_ignore_ascii_case("websocket"));
    if !websocket {
        return Ok(None);
    }
    let mut token: Option<String> = None;
    let mut left: Vec<String> = Vec::new();
    for line in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        let line = String::from_utf8_lossy(line.as_bytes());
        for protocol in line.split(',').map(str::trim) {
            let Some(encoded) = protocol.strip_prefix(PREFIX) else {
                left.push(protocol.to_owned());
                continue;
            };
            if token.is_some() {
                return Err(SubprotocolFault::Several);
            }
            let bytes = BASE64
                .decode(encoded)
                .map_err(|_| SubprotocolFault::Encoding)?;
            token = Some(String::from_utf8(bytes).map_err(|_| SubprotocolFault::Text)?);
        }
    }
    match token {
        Some(token) if !token.is_empty() && left.is_empty() => Err(SubprotocolFault::Alone),
        Some(token) if !token.is_empty() => Ok(Some(SubprotocolToken {
            token,
            left: left.join(","),
        })),
        _ => Ok(None),
    }
}
