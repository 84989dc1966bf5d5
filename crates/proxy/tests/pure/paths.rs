//! Paths: patterns against Go's path.Match, the redirect against net/http, and the one view
//! (deviation A4).

use keelson_proxy::glob::Glob;
use keelson_proxy::path::{self, Ambiguous, Mode, Path, Reading, Rules, Standing, cleaned};
use proptest::prelude::*;
use serde_json::Value;

fn corpus(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("a corpus")
}

#[test]
fn patterns_match_what_go_matches() {
    for row in corpus(include_str!("../corpus/glob.json")) {
        let (pattern, name) = (
            row["Pattern"].as_str().unwrap(),
            row["Name"].as_str().unwrap(),
        );
        match Glob::compile(pattern) {
            Ok(glob) => {
                assert_eq!(row["Error"], "", "{pattern:?}");
                assert_eq!(row["Match"], glob.matches(name), "{pattern:?} {name:?}");
            }
            Err(error) => assert_eq!(row["Error"], error.to_string(), "{pattern:?}"),
        }
    }
}

#[test]
fn a_path_is_cleaned_as_go_cleans_it() {
    for row in corpus(include_str!("../corpus/clean.json")) {
        let (raw, clean) = (
            row["Path"].as_str().unwrap(),
            row["Clean"].as_str().unwrap(),
        );
        let expected = (raw != clean).then(|| clean.to_owned());
        assert_eq!(cleaned(raw), expected, "{raw:?}");
    }
}

fn clean(raw: &str, mode: Mode) -> Path<'_> {
    match path::read(raw, mode) {
        Ok(Reading::Clean(path)) => path,
        other => panic!("{raw}: {other:?}"),
    }
}

#[test]
fn a_path_that_could_be_read_in_two_ways_is_refused() {
    for (raw, why) in [
        ("/api/%2e%2e/x", Ambiguous::Dots),
        ("/api/.%2E/x", Ambiguous::Dots),
        ("/%2e", Ambiguous::Dots),
        ("/api/..;/x", Ambiguous::Dots),
        ("/api/..;a=b/x", Ambiguous::Dots),
        ("/api/..%3bx/x", Ambiguous::Dots),
        ("/v0%2Fhealthz", Ambiguous::Slash),
        ("/v0%2fhealthz", Ambiguous::Slash),
        ("/a\\b", Ambiguous::Backslash),
        ("/a%5cb", Ambiguous::Backslash),
        ("/a%00", Ambiguous::Control),
        ("/a%0d%0ab", Ambiguous::Control),
        ("/a%7f", Ambiguous::Control),
        ("/a%", Ambiguous::Escape),
        ("/a%2", Ambiguous::Escape),
        ("/a%zz", Ambiguous::Escape),
        ("/a%ff", Ambiguous::Text),
        // Refused before it is cleaned: cleaning would hide what it was.
        ("/a/%2e%2e//b", Ambiguous::Dots),
    ] {
        assert_eq!(path::read(raw, Mode::Strict), Err(why), "{raw}");
    }
}

#[test]
fn an_unclean_path_is_redirected_before_anything_is_matched() {
    for (raw, to) in [
        ("//", "/"),
        ("/a//b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/..", "/"),
        ("a", "/a"),
        ("/a%20b//c/", "/a%20b/c/"),
    ] {
        for mode in [Mode::Strict, Mode::Lenient] {
            assert_eq!(path::read(raw, mode), Ok(Reading::Redirect(to.to_owned())));
        }
    }
}

#[test]
fn a_clean_path_is_forwarded_as_it_came_and_matched_decoded() {
    for (raw, decoded) in [
        ("/", "/"),
        ("/a/", "/a/"),
        ("/a%20b", "/a b"),
        ("/%C3%A9", "/é"),
        ("/a+b", "/a+b"),
        ("/...", "/..."),
        ("/a;b", "/a;b"),
        ("/%25", "/%"),
    ] {
        let path = clean(raw, Mode::Strict);
        assert_eq!((path.raw, path.decoded.as_ref()), (raw, decoded));
    }
}

#[test]
fn the_lenient_mode_has_the_references_views() {
    for (raw, decoded) in [
        ("/api/%2e%2e/x", "/api/../x"),
        ("/v0%2Fhealthz", "/v0/healthz"),
        ("/a%5cb", "/a\\b"),
        ("/a%00", "/a\0"),
        ("/a%ff", "/a\u{fffd}"),
    ] {
        let path = clean(raw, Mode::Lenient);
        assert_eq!((path.raw, path.decoded.as_ref()), (raw, decoded));
    }
    assert_eq!(path::read("/%zz", Mode::Lenient), Err(Ambiguous::Escape));
}

fn rules(allow: &[&str], ignore: &[&str]) -> Rules {
    let globs = |list: &[&str]| {
        list.iter()
            .map(|pattern| Glob::compile_with_prefix(pattern).expect(pattern))
            .collect()
    };
    Rules {
        allow: globs(allow),
        ignore: globs(ignore),
    }
}

#[test]
fn a_path_must_be_allowed_before_it_can_be_exempt() {
    use Standing::{Absent, Exempt, Guarded};
    let neither = rules(&[], &[]);
    let allow = rules(&["/metrics", "/api/v1/label/*/values"], &[]);
    let ignore = rules(&[], &["/metrics", "/api/v1/*"]);
    let both = rules(&["/a", "/b"], &["/b", "/c"]);
    let below = rules(&[], &["/api/**"]);
    for (rules, raw, standing) in [
        (&neither, "/", Guarded),
        (&allow, "/", Absent),
        (&allow, "/api/v1/label/name", Absent),
        (&allow, "/metrics", Guarded),
        (&allow, "/api/v1/label/job/values", Guarded),
        (&ignore, "/metrics", Exempt),
        (&ignore, "/api/v1/labels", Exempt),
        (&ignore, "/api/v1/", Exempt),
        (&ignore, "/api/v1", Guarded),
        (&ignore, "/api/v1/label/job/values", Guarded),
        (&ignore, "/", Guarded),
        (&both, "/a", Guarded),
        (&both, "/b", Exempt),
        (&both, "/c", Absent),
        (&both, "/d", Absent),
        (&below, "/api", Exempt),
        (&below, "/api/", Exempt),
        (&below, "/api/a/b", Exempt),
        (&below, "/apix", Guarded),
    ] {
        assert_eq!(rules.standing(&clean(raw, Mode::Strict)), standing, "{raw}");
    }
}

#[test]
fn two_stars_mean_nothing_on_the_command_line() {
    let glob = Glob::compile("/api/**").unwrap();
    assert!(glob.matches("/api/a"));
    assert!(!glob.matches("/api/a/b"));
    assert!(!glob.matches("/api"));
}

/// What an upstream makes of a path that decodes first and normalises then.
fn resolved(decoded: &str) -> String {
    let mut kept = Vec::new();
    for segment in decoded.split(['/', '\\']) {
        match segment.split(';').next() {
            _ if segment.is_empty() => {}
            Some(".") => {}
            Some("..") => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

proptest! {
    #[test]
    fn reading_is_idempotent(raw in "[/.a%2eEfF5cC;\\\\]{0,24}") {
        match path::read(&raw, Mode::Strict) {
            Ok(Reading::Clean(path)) => {
                prop_assert_eq!(path.raw, raw.as_str());
                let again = path::read(path.raw, Mode::Strict);
                prop_assert_eq!(again, Ok(Reading::Clean(path.clone())));
            }
            Ok(Reading::Redirect(to)) => {
                let again = path::read(&to, Mode::Strict);
                prop_assert!(matches!(again, Ok(Reading::Clean(_))), "{to}: {again:?}");
            }
            Err(_) => {}
        }
    }

    #[test]
    fn an_accepted_path_never_escapes(raw in "(/(\\.|\\.\\.|%2e|%2E|%2f|%5c|\\\\|;|a|%61){0,4}){1,6}") {
        if let Ok(Reading::Clean(path)) = path::read(&raw, Mode::Strict) {
            let trimmed = path.decoded.trim_end_matches('/');
            let expected = if trimmed.is_empty() { "/" } else { trimmed };
            prop_assert_eq!(resolved(&path.decoded), expected);
        }
    }

    #[test]
    fn a_pattern_never_panics(pattern in ".{0,12}", name in ".{0,12}") {
        if let Ok(glob) = Glob::compile(&pattern) {
            glob.matches(&name);
        }
        if let Ok(glob) = Glob::compile_with_prefix(&pattern) {
            glob.matches(&name);
        }
    }

    #[test]
    fn a_name_matches_itself_when_quoted(name in ".{0,12}") {
        let pattern: String = name.chars().flat_map(|c| ['\\', c]).collect();
        prop_assert!(Glob::compile(&pattern).unwrap().matches(&name));
    }
}
