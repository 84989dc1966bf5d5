//! Headers: where a credential stands, that it ends here, and that nobody speaks for the proxy.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use keelson_proxy::decision::jwt::Expiry;
use keelson_proxy::headers::{
    Caller, IdentityHeaders, Policy, Proof, SubprotocolFault, bearer, forward, subprotocol_token,
};
use keelson_proxy::review::Identity;

const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The input is a request's headers, `name: value` on a line each. Lines that are none are left out.
pub fn headers(data: &[u8]) {
    let headers = read(data);
    assert_eq!(bearer(&headers), first_bearer(&headers));
    if let Some(token) = bearer(&headers) {
        expiry(token);
    }
    let left = subprotocol(&headers);
    exempt(headers.clone());
    known(&headers, Proof::Bearer);
    known(&headers, Proof::Certificate);
    if let Some(left) = &left {
        known(&headers, Proof::Subprotocol(left));
    }
}

fn read(data: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// The second of the words of the first line, single blanks apart, if the first is `bearer`.
fn first_bearer(headers: &HeaderMap) -> Option<&str> {
    let line = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let words: Vec<&str> = line.trim_matches([' ', '\t']).split(' ').collect();
    match words.as_slice() {
        [scheme, token, ..] if scheme.to_lowercase() == "bearer" && !token.is_empty() => {
            Some(token)
        }
        _ => None,
    }
}

/// An end that is read is one the token names.
fn expiry(token: &str) {
    let Some(expiry) = Expiry::of(token) else {
        return;
    };
    let parts: Vec<&str> = token.split('.').collect();
    assert_eq!(parts.len(), 3, "{token}");
    let claims = URL_SAFE_NO_PAD.decode(parts[1]).expect("base64");
    // Claims nobody reads may be broken: the API server alone says whether a token is good.
    let Ok(claims) = serde_json::from_slice::<serde_json::Value>(&claims) else {
        return;
    };
    let claims = claims.as_object().expect("a map of claims");
    let end = claims["exp"].as_f64().expect("a number");
    let end = Duration::try_from_secs_f64(end).expect("a time");
    assert_eq!(expiry.left(SystemTime::UNIX_EPOCH), end);
}

/// The subprotocols left when one of them was a token.
fn subprotocol(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let lines: Vec<String> = lines
        .map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned())
        .collect();
    let names = lines.iter().flat_map(|line| line.split(',')).map(str::trim);
    let (tokens, others): (Vec<&str>, Vec<&str>) =
        names.partition(|name| name.starts_with(TOKEN_PROTOCOL));
    match subprotocol_token(headers) {
        Ok(None) => None,
        Ok(Some(found)) => {
            assert_eq!(tokens.len(), 1, "{tokens:?}");
            assert_eq!(found.left, others.join(","));
            assert!(!others.is_empty() && !found.token.is_empty());
            // The last character of base64 may have bits to spare.
            let again = format!("{TOKEN_PROTOCOL}{}", URL_SAFE_NO_PAD.encode(&found.token));
            assert_eq!(again.len(), tokens[0].len());
            let shorter = again.len() - 1;
            assert_eq!(again[..shorter], tokens[0][..shorter]);
            assert!(!format!("{found:?}").contains(&format!("{:?}", found.token)));
            Some(found.left)
        }
        Err(SubprotocolFault::Several) => {
            assert!(tokens.len() > 1);
            None
        }
        Err(SubprotocolFault::Alone) => {
            assert!(others.is_empty());
            None
        }
        Err(SubprotocolFault::Encoding | SubprotocolFault::Text) => {
            assert!(!tokens.is_empty());
            None
        }
    }
}

/// On an exempt path no token, no tunnel and no claim of an identity is passed on.
fn exempt(mut headers: HeaderMap) {
    let before = headers.clone();
    let found = forward(&mut headers, &Policy::default(), Caller::Exempt, None);
    let found = found.expect("nothing to tell");
    assert_eq!(found.upgrade, None);
    for line in headers.get_all(AUTHORIZATION) {
        let line = String::from_utf8_lossy(line.as_bytes()).to_lowercase();
        let after = line.trim().strip_prefix("bearer");
        let word = after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()));
        assert!(!word, "{line:?}");
    }
    assert!(claims(&headers).is_empty(), "{headers:?}");
    unharmed(&before, &headers);
}

/// Whatever a client sends, the upstream is told the identity we know, once, and no other.
fn known(before: &HeaderMap, proof: Proof<'_>) {
    let identity = Identity {
        user: "jane".to_owned(),
        groups: vec!["a".to_owned(), "b|c".to_owned(), "d".to_owned()],
        ..Identity::default()
    };
    let policy = Policy {
        identity: IdentityHeaders {
            enabled: true,
            ..IdentityHeaders::default()
        },
        ..Policy::default()
    };
    let mut headers = before.clone();
    let caller = Caller::Known {
        identity: &identity,
        proof,
    };
    let client: IpAddr = [192, 0, 2, 1].into();
    let found = forward(&mut headers, &policy, caller, Some(client)).expect("a printable name");
    assert_eq!(found.dropped_groups, ["b|c"]);
    let mut told = claims(&headers);
    told.sort_unstable();
    let expected = [("x-remote-groups", "a|d"), ("x-remote-user", "jane")];
    assert_eq!(
        told,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );

    let line = headers.get("x-forwarded-for").map(HeaderValue::as_bytes);
    assert!(line.is_none_or(|line| line.ends_with(b"192.0.2.1")));
    assert!(headers.get_all("x-forwarded-for").iter().count() <= 1);
    match proof {
        Proof::Bearer => assert!(!headers.contains_key(AUTHORIZATION)),
        Proof::Certificate => {}
        Proof::Subprotocol(_) => {
            for line in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
                let line = String::from_utf8_lossy(line.as_bytes());
                let mut names = line.split(',').map(str::trim);
                assert!(
                    !names.any(|name| name.starts_with(TOKEN_PROTOCOL)),
                    "{line}"
                );
            }
        }
    }
    let tunnels = ["websocket", "spdy/3.1"];
    let upgrade = found.upgrade.map(|name| name.to_lowercase());
    assert!(
        upgrade
            .as_ref()
            .is_none_or(|name| tunnels.contains(&name.as_str()))
    );
    assert_eq!(headers.contains_key("upgrade"), upgrade.is_some());
    unharmed(before, &headers);
}

/// The headers that say who the caller is, a dash and an underscore being the same.
fn claims(headers: &HeaderMap) -> Vec<(String, String)> {
    let is_claim = |name: &HeaderName| {
        let name = name.as_str().replace('_', "-");
        name.starts_with("x-remote-") || name.starts_with("impersonate-")
    };
    let claims = headers.iter().filter(|(name, _)| is_claim(name));
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    claims
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

/// Nothing of one connection is passed to another, and what nobody has a say in passes as it came.
fn unharmed(before: &HeaderMap, after: &HeaderMap) {
    let listed: Vec<String> = before
        .get_all("connection")
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_lowercase())
        .collect();
    for name in before.keys() {
        let hop = [
            "connection",
            "proxy-connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        let ours = ["authorization", "sec-websocket-protocol", "x-forwarded-for"];
        let folded = name.as_str().replace('_', "-");
        let claim = folded.starts_with("x-remote-") || folded.starts_with("impersonate-");
        let values = |headers: &HeaderMap| -> Vec<HeaderValue> {
            headers.get_all(name).iter().cloned().collect()
        };
        if hop.contains(&name.as_str()) {
            let renewed = matches!(name.as_str(), "te" | "connection" | "upgrade");
            assert!(values(after).is_empty() || renewed, "{name}");
        } else if listed.iter().any(|listed| listed == name.as_str()) {
            let told = claim || name == "x-forwarded-for" || name == SEC_WEBSOCKET_PROTOCOL;
            assert!(values(after).is_empty() || told, "{name}");
        } else if !ours.contains(&name.as_str()) && !claim {
            assert_eq!(values(before), values(after), "{name}");
        }
    }
    if let Some(offer) = after.get("te") {
        assert_eq!(offer, "trailers");
    }
}
