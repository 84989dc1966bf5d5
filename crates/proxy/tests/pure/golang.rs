//! Numbers, durations, lists and URLs as Go reads them.

use keelson_proxy::golang::{Duration, list};
use keelson_proxy::target::{Place, Target, Url};
use serde_json::Value;

fn corpus(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("a corpus")
}

#[test]
fn durations_are_read_as_go_reads_them() {
    for row in corpus(include_str!("../corpus/duration.json")) {
        let text = row["Text"].as_str().unwrap();
        match Duration::parse(text) {
            Ok(Duration(nanoseconds)) => {
                assert_eq!(row["Error"], "", "{text:?}");
                assert_eq!(row["Nanoseconds"], nanoseconds, "{text:?}");
            }
            Err(error) => assert_eq!(row["Error"], error, "{text:?}"),
        }
    }
}

#[test]
fn lists_are_read_as_pflag_reads_them() {
    for row in corpus(include_str!("../corpus/csv.json")) {
        let values: Vec<String> = serde_json::from_value(row["Values"].clone()).unwrap();
        let mut all = Vec::new();
        let mut error = String::new();
        for value in &values {
            match list(value) {
                Ok(items) => all.extend(items),
                Err(cause) => {
                    let value = keelson_proxy::golang::quote(value);
                    error = format!("invalid argument {value} for \"--list\" flag: {cause}");
                }
            }
        }
        assert_eq!(row["Error"], error, "{values:?}");
        let expected: Vec<String> =
            serde_json::from_value(row["Result"].clone()).unwrap_or_default();
        assert_eq!(expected, all, "{values:?}");
    }
}

#[test]
fn upstream_urls_are_read_as_go_reads_them() {
    for row in corpus(include_str!("../corpus/url.json")) {
        let text = row["Text"].as_str().unwrap();
        match Url::parse(text) {
            Err(cause) => {
                let error = Target::parse(text).unwrap_err();
                assert_eq!(row["Error"], error, "{text:?}");
                assert!(error.ends_with(&cause));
            }
            Ok(url) => {
                assert_eq!(row["Error"], "", "{text:?}");
                let seen = [&url.scheme, &url.host, &url.path, &url.query];
                let expected = ["Scheme", "Host", "Path", "Query"].map(|key| row[key].as_str());
                assert_eq!(seen.map(|part| Some(part.as_str())), expected, "{text:?}");
            }
        }
    }
}

#[test]
fn an_upstream_is_a_place_a_prefix_and_a_query() {
    let target = |place, prefix: &str, query: &str| Target {
        place,
        prefix: prefix.to_owned(),
        query: query.to_owned(),
    };
    for (text, expected) in [
        (
            "http://127.0.0.1:7777/",
            target(Place::Http("127.0.0.1:7777".into()), "/", ""),
        ),
        (
            "https://h/p?x=1",
            target(Place::Https("h".into()), "/p", "x=1"),
        ),
        (
            "unix:///run/x.sock",
            target(Place::Unix("/run/x.sock".into()), "", ""),
        ),
        (
            "unix:///run/x.sock:/p",
            target(Place::Unix("/run/x.sock".into()), "/p", ""),
        ),
    ] {
        assert_eq!(Target::parse(text), Ok(expected));
    }
    for nowhere in ["", "host", "host:80", "http://", "http:opaque", "ftp://h/"] {
        let target = Target::parse(nowhere).unwrap();
        assert!(matches!(target.place, Place::Nowhere(_)), "{nowhere}");
    }
}

#[test]
fn upstream_and_request_paths_are_joined_with_one_slash() {
    for (upstream, request, joined) in [
        ("http://h", "/a", "/a"),
        ("http://h/", "/a", "/a"),
        ("http://h/p", "/a", "/p/a"),
        ("http://h/p/", "/a", "/p/a"),
        ("http://h/p", "/", "/p/"),
        ("http://h/p%2f", "/a%20b", "/p%2f/a%20b"),
        ("unix:///s:/p", "/a", "/p/a"),
    ] {
        let target = Target::parse(upstream).unwrap();
        assert_eq!(target.path(request), joined, "{upstream} + {request}");
    }
}
