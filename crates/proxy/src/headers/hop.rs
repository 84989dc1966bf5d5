//! Headers that are about one connection and end with it.

use http::HeaderMap;
use http::header::{
    CONNECTION, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what `Connection` names and what is hop-by-hop by definition, from requests and responses
/// alike. An offer of trailers is renewed: we carry them.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Comparing the names there are is cheaper than looking for each that might be.
    let listed: Vec<&[u8]> = tokens(headers, &CONNECTION).collect();
    let named = |name: &HeaderName| {
        let mut listed = listed.iter();
        listed.any(|token| token.eq_ignore_ascii_case(name.as_ref()))
    };
    let leaving: Vec<HeaderName> = headers
        .keys()
        .filter(|name| HOP_BY_HOP.contains(name) || named(name))
        .cloned()
        .collect();
    if leaving.is_empty() {
        return;
    }
    let trailers = lists_token(headers, &TE, "trailers");
    for name in leaving {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Whether `Connection` has this header removed.
pub fn is_hop_by_hop(headers: &HeaderMap, name: &str) -> bool {
    lists_token(headers, &CONNECTION, name)
}

/// The header that says which trailers follow the body, to be put back once those of the other hop
/// are gone: without it none are sent on.
pub fn announced_trailers(headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
    let names: Vec<&[u8]> = tokens(headers, &TRAILER).collect();
    let value = HeaderValue::from_bytes(&names.join(&b", "[..])).ok()?;
    (!names.is_empty()).then_some((TRAILER, value))
}

/// The comma-separated items of all lines of a header.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|item| !item.is_empty())
}

/// Whether a header lists a token, in any case.
pub(super) fn lists_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|item| item.eq_ignore_ascii_case(token.as_bytes()))
}
