//! Queries: what is forwarded holds what was checked and nothing besides.

use keelson_proxy::query::{Policy, Query, Unreadable};

/// A name and its value, in bytes.
type Pair = (Vec<u8>, Vec<u8>);

/// The input is a query without its question mark.
pub fn query(data: &[u8]) {
    let Some(raw) = super::text(data) else {
        return;
    };
    let query = Query::parse(raw);
    let (pairs, lost) = read(raw);
    let texts: Vec<(String, String)> = pairs.iter().map(|(a, b)| (lossy(a), lossy(b))).collect();
    assert_eq!(query.pairs(), texts, "read otherwise than by Go");
    let unlike = |(name, value): &Pair| {
        std::str::from_utf8(name).is_err() || std::str::from_utf8(value).is_err()
    };
    let altered = lost || pairs.iter().any(unlike);
    assert_eq!(query.altered(), altered);
    for (name, _) in &texts {
        let expected = texts.iter().filter(|(other, _)| other == name);
        let values: Vec<&str> = expected.map(|(_, value)| value.as_str()).collect();
        assert_eq!(query.values(name).collect::<Vec<_>>(), values);
    }

    assert_eq!(query.forwarded(raw, Policy::Raw).as_deref(), Ok(raw));
    let strict = query.forwarded(raw, Policy::Strict);
    let expected = if altered { Err(Unreadable) } else { Ok(raw) };
    assert_eq!(strict.as_deref(), expected.as_deref());
    let cleaned = query.forwarded(raw, Policy::Cleaned).expect("a query");
    nothing_hidden(&cleaned, &texts);
    nothing_hidden(&query.encode(), &texts);
}

/// Whoever reads the query, with a semicolon for a separator or without, finds these pairs.
fn nothing_hidden(forwarded: &str, checked: &[(String, String)]) {
    let (pairs, lost) = read(forwarded);
    assert!(!lost, "{forwarded:?} has a part that Go drops");
    assert!(!forwarded.contains(';'), "{forwarded:?} has two readings");
    let bytes = |(name, value): &(String, String)| (name.clone().into(), value.clone().into());
    let checked: Vec<Pair> = checked.iter().map(bytes).collect();
    assert_eq!(pairs, checked, "{forwarded:?} is not what was checked");
}

/// The pairs Go's `url.ParseQuery` keeps, and whether it drops any.
fn read(raw: &str) -> (Vec<Pair>, bool) {
    let mut pairs = Vec::new();
    let mut lost = false;
    for part in raw.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let form = |text: &str| super::decoded(text.replace('+', "%20").as_bytes());
        match (part.contains(';'), form(name), form(value)) {
            (false, Some(name), Some(value)) => pairs.push((name, value)),
            _ => lost = true,
        }
    }
    (pairs, lost)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
