//! Headers on their way to the upstream: §2.3, §2.4 and deviations A1, A2, A12, A23.

use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use keelson_proxy::headers::{
    Caller, Conflict, ForwardedFor, NotTold, Policy, Proof, announced_trailers, forward,
    strip_hop_by_hop,
};
use keelson_proxy::review::Identity;
use proptest::prelude::*;

pub(super) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect(name);
        map.append(
            name,
            HeaderValue::from_bytes(value.as_bytes()).expect(value),
        );
    }
    map
}

pub(super) fn lines(map: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut lines: Vec<_> = map
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect();
    lines.sort();
    lines
}

pub(super) fn owned(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut lines: Vec<_> = lines
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    lines.sort();
    lines
}

pub(super) fn alice() -> Identity {
    Identity {
        user: "alice".into(),
        uid: "u-1".into(),
        groups: vec!["a".into(), "b".into()],
        extra: [(
            "authentication.kubernetes.io/pod-name".to_owned(),
            vec!["p1".to_owned(), "p2".to_owned()],
        )]
        .into(),
    }
}

fn telling() -> Policy {
    let mut policy = Policy::default();
    policy.identity.enabled = true;
    policy
}

pub(super) fn known(identity: &Identity) -> Caller<'_> {
    Caller::Known {
        identity,
        proof: Proof::Bearer,
    }
}

#[test]
fn hop_by_hop_headers_end_here() {
    let mut map = headers(&[
        ("connection", "x-one, X-Two"),
        ("connection", "close"),
        ("x-one", "1"),
        ("x-two", "2"),
        ("x-three", "3"),
        ("proxy-connection", "x"),
        ("keep-alive", "x"),
        ("proxy-authenticate", "x"),
        ("proxy-authorization", "x"),
        ("te", "gzip, trailers"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
    ]);
    strip_hop_by_hop(&mut map);
    assert_eq!(lines(&map), owned(&[("te", "trailers"), ("x-three", "3")]));
    let mut map = headers(&[("te", "gzip")]);
    strip_hop_by_hop(&mut map);
    assert!(map.is_empty());
}

#[test]
fn trailers_an_upstream_announces_are_announced_again() {
    let announced = |lines: &[(&str, &str)]| {
        let found = announced_trailers(&headers(lines));
        found.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
    };
    let wanted = ("trailer".to_owned(), "X-A, X-B, X-C".to_owned());
    let lines = [("trailer", "X-A,X-B"), ("Trailer", " X-C")];
    assert_eq!(announced(&lines), Some(wanted));
    assert_eq!(announced(&[("trailer", ", ")]), None);
    assert_eq!(announced(&[("te", "trailers")]), None);
}

const SPOOFED: [(&str, &str); 9] = [
    ("X-Remote-User", "root"),
    ("x-remote-groups", "system:masters"),
    ("X-Remote-Group", "system:masters"),
    ("X-Remote-Extra-Scope", "all"),
    ("X-Remote-Uid", "0"),
    ("X_Remote_User", "root"),
    ("x-remote_user", "root"),
    ("Impersonate-User", "root"),
    ("Impersonate_Group", "system:masters"),
];

#[test]
fn identity_headers_of_the_client_never_pass() {
    let alice = alice();
    for caller in [Caller::Exempt, known(&alice)] {
        let mut map = headers(&SPOOFED);
        map.append("x-other", HeaderValue::from_static("kept"));
        forward(&mut map, &Policy::default(), caller, None).unwrap();
        assert_eq!(lines(&map), owned(&[("x-other", "kept")]));
    }
    let mut map = headers(&SPOOFED);
    forward(&mut map, &telling(), known(&alice), None).unwrap();
    assert_eq!(
        lines(&map),
        owned(&[("x-remote-user", "alice"), ("x-remote-groups", "a|b")])
    );
    let mut map = headers(&SPOOFED);
    forward(&mut map, &telling(), Caller::Exempt, None).unwrap();
    assert!(map.is_empty());
}

#[test]
fn configured_names_are_stripped_in_every_spelling() {
    let mut policy = telling();
    policy.identity.user = HeaderName::from_static("x-my_user");
    policy.identity.uid = Some(HeaderName::from_static("x-uid"));
    policy.identity.extra_prefix = Some("x-more-".into());
    let sent = [
        ("X-My-User", "root"),
        ("x_my_user", "root"),
        ("X_Uid", "0"),
        ("x_more_scope", "all"),
    ];
    let mut map = headers(&sent);
    forward(&mut map, &policy, Caller::Exempt, None).unwrap();
    assert!(map.is_empty(), "{map:?}");
}

#[test]
fn trusting_the_client_restores_the_reference() {
    let mut policy = Policy::default();
    policy.identity.trust_inbound = true;
    let mut map = headers(&SPOOFED);
    forward(&mut map, &policy, Caller::Exempt, None).unwrap();
    assert_eq!(map.len(), SPOOFED.len());
    policy.identity.enabled = true;
    let mut map = headers(&SPOOFED);
    forward(&mut map, &policy, known(&alice()), None).unwrap();
    assert_eq!(
        map.get_all("x-remote-user").iter().collect::<Vec<_>>(),
        ["alice"]
    );
    assert_eq!(map["x-remote-group"], "system:masters");
}

#[test]
fn connection_cannot_remove_what_is_injected() {
    let mut map = headers(&[
        ("connection", "x-remote-user, x-remote-groups"),
        ("x-remote-user", "root"),
    ]);
    forward(&mut map, &telling(), known(&alice()), None).unwrap();
    assert_eq!(
        lines(&map),
        owned(&[("x-remote-user", "alice"), ("x-remote-groups", "a|b")])
    );
}

#[test]
fn the_whole_identity_can_be_told() {
    let mut policy = telling();
    policy.identity.separator = String::new();
    policy.identity.uid = Some(HeaderName::from_static("x-remote-uid"));
    policy.identity.extra_prefix = Some("x-remote-extra-".into());
    let mut map = HeaderMap::new();
    forward(&mut map, &policy, known(&alice()), None).unwrap();
    assert_eq!(
        lines(&map),
        owned(&[
            ("x-remote-user", "alice"),
            ("x-remote-uid", "u-1"),
            ("x-remote-groups", "a"),
            ("x-remote-groups", "b"),
            (
                "x-remote-extra-authentication.kubernetes.io%2fpod-name",
                "p1"
            ),
            (
                "x-remote-extra-authentication.kubernetes.io%2fpod-name",
                "p2"
            ),
        ])
    );
}

#[test]
fn a_group_with_the_separator_is_dropped_rejected_or_kept() {
    let mut identity = alice();
    identity.groups.push("g|2".into());
    let mut policy = telling();
    let mut told = |conflict| {
        policy.identity.conflict = conflict;
        let mut map = HeaderMap::new();
        forward(&mut map, &policy, known(&identity), None).map(|forwarded| {
            (
                map["x-remote-groups"].to_str().unwrap().to_owned(),
                forwarded.dropped_groups,
            )
        })
    };
    assert_eq!(
        told(Conflict::Drop),
        Ok(("a|b".into(), vec!["g|2".to_owned()]))
    );
    assert_eq!(told(Conflict::Keep), Ok(("a|b|g|2".into(), vec![])));
    let rejected = told(Conflict::Reject).unwrap_err();
    assert_eq!(rejected, NotTold::Ambiguous("g|2".into()));
    assert_eq!(
        rejected.to_string(),
        "a group of the caller contains the separator: \"g|2\""
    );
}

#[test]
fn an_identity_with_control_bytes_is_not_told_and_one_beyond_ascii_is() {
    for field in ["user", "group"] {
        let mut identity = alice();
        match field {
            "user" => identity.user = "a\nb".into(),
            _ => identity.groups[0] = "a\0b".into(),
        }
        let told = forward(&mut HeaderMap::new(), &telling(), known(&identity), None);
        assert!(matches!(told, Err(NotTold::Unprintable(_))), "{field}");
    }
    let identity = Identity {
        user: "élan".into(),
        ..alice()
    };
    let mut map = HeaderMap::new();
    forward(&mut map, &telling(), known(&identity), None).unwrap();
    assert_eq!(map["x-remote-user"].as_bytes(), "élan".as_bytes());
}

#[test]
fn the_client_is_appended_to_x_forwarded_for() {
    let client: IpAddr = "10.0.0.1".parse().unwrap();
    for (policy, sent, got) in [
        (ForwardedFor::Append, &[][..], Some("10.0.0.1")),
        (
            ForwardedFor::Append,
            &["1.1.1.1", "2.2.2.2, 3.3.3.3"][..],
            Some("1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1"),
        ),
        (ForwardedFor::Replace, &["1.1.1.1"][..], Some("10.0.0.1")),
        (ForwardedFor::Off, &["1.1.1.1"][..], Some("1.1.1.1")),
        (ForwardedFor::Off, &[][..], None),
    ] {
        let policy = Policy {
            forwarded_for: policy,
            ..Policy::default()
        };
        let mut map = HeaderMap::new();
        for value in sent {
            map.append("x-forwarded-for", HeaderValue::from_static(value));
        }
        forward(&mut map, &policy, Caller::Exempt, Some(client)).unwrap();
        assert_eq!(
            map.get("x-forwarded-for")
                .map(|value| value.to_str().unwrap()),
            got
        );
    }
    let mut map = HeaderMap::new();
    let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    forward(&mut map, &Policy::default(), Caller::Exempt, Some(mapped)).unwrap();
    assert_eq!(map["x-forwarded-for"], "10.0.0.1");
}

#[test]
fn nothing_is_added_that_was_not_sent() {
    // A12: neither Accept-Encoding nor User-Agent nor X-Forwarded-Host.
    let mut map = HeaderMap::new();
    forward(&mut map, &Policy::default(), Caller::Exempt, None).unwrap();
    assert!(map.is_empty());
}

proptest! {
    #[test]
    fn no_identity_header_of_a_client_survives(
        names in proptest::collection::vec("(x|impersonate)[-_](remote|user|group|x)[-_]?(user|groups?|uid|extra[-_]a)?", 1..6),
        connection in "(x-remote-user|close|upgrade|x-remote-groups|te|, ){0,4}",
        exempt in any::<bool>(),
    ) {
        let mut map = HeaderMap::new();
        for name in &names {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static("spoofed"));
        }
        map.append("connection", HeaderValue::from_str(&connection).unwrap());
        let identity = alice();
        let caller = if exempt { Caller::Exempt } else { known(&identity) };
        forward(&mut map, &telling(), caller, None).unwrap();
        for (name, value) in &map {
            let folded = name.as_str().replace('_', "-");
            if folded.starts_with("x-remote-") || folded.starts_with("impersonate-") {
                prop_assert_ne!(value, "spoofed");
            }
        }
        let told = map.get_all("x-remote-user").iter().count();
        prop_assert_eq!(told, usize::from(!exempt));
    }
}
