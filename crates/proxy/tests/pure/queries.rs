//! Queries against Go's url.ParseQuery, and what is forwarded (deviation A5).

use std::collections::BTreeMap;

use keelson_proxy::query::{Policy, Query, Unreadable, joined};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn a_query_is_read_as_go_reads_it() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../corpus/query.json")).unwrap();
    for row in rows {
        let raw = row["Query"].as_str().unwrap();
        let query = Query::parse(raw);
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in query.pairs() {
            values.entry(name.clone()).or_default().push(value.clone());
        }
        assert_eq!(row["Values"], serde_json::json!(values), "{raw:?}");
        // Bytes that are no text are not an error in Go; for us they are a change.
        let altered = row["Error"] != "" || raw.contains("%ff");
        assert_eq!(query.altered(), altered, "{raw:?}");
    }
}

#[test]
fn what_was_not_checked_is_not_forwarded() {
    for (raw, cleaned) in [
        ("a=b&c=d", "a=b&c=d"),
        ("", ""),
        ("a=%20&b=+", "a=%20&b=+"),
        ("namespace=x;namespace=y", ""),
        ("namespace=x&namespace=%zz", "namespace=x"),
        ("n=a%20b&n=é&;", "n=a+b&n=%C3%A9"),
        ("n=%ff", "n=%EF%BF%BD"),
    ] {
        let query = Query::parse(raw);
        assert_eq!(
            query.forwarded(raw, Policy::Cleaned).unwrap(),
            cleaned,
            "{raw}"
        );
        assert_eq!(query.forwarded(raw, Policy::Raw).unwrap(), raw);
        let strict = query.forwarded(raw, Policy::Strict);
        match raw == cleaned {
            true => assert_eq!(strict.unwrap(), raw),
            false => assert_eq!(strict, Err(Unreadable)),
        }
    }
}

#[test]
fn the_upstreams_query_comes_first() {
    for (upstream, request, both) in [
        ("", "", ""),
        ("", "a", "a"),
        ("u", "", "u"),
        ("u", "a", "u&a"),
    ] {
        assert_eq!(joined(upstream, request), both);
    }
}

#[test]
fn names_are_told_apart_by_case() {
    let query = Query::parse("A=1&a=2&a=3");
    assert_eq!(query.values("a").collect::<Vec<_>>(), ["2", "3"]);
    assert_eq!(query.values("A").collect::<Vec<_>>(), ["1"]);
    assert_eq!(query.values("b").count(), 0);
}

proptest! {
    #[test]
    fn a_cleaned_query_has_the_pairs_that_were_read(raw in "[a-cA-C=&;%+0-9 é]{0,40}") {
        let query = Query::parse(&raw);
        let again = Query::parse(&query.encode());
        prop_assert_eq!(again.pairs(), query.pairs());
        prop_assert!(!again.altered());
    }

    #[test]
    fn what_is_forwarded_holds_exactly_what_was_checked(raw in ".{0,40}") {
        let query = Query::parse(&raw);
        let forwarded = query.forwarded(&raw, Policy::Cleaned).unwrap().into_owned();
        let again = Query::parse(&forwarded);
        prop_assert_eq!(again.pairs(), query.pairs());
        prop_assert!(!again.altered());
    }
}
