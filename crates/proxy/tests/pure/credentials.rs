//! Tokens and tunnels: §3.2, §3.3 and deviations A3 and A8.

use http::header::{HeaderMap, HeaderValue};
use keelson_proxy::headers::{
    Bearer, Caller, Policy, Proof, SubprotocolFault, bearer, forward, requested_upgrade,
    subprotocol_token,
};

use super::headers::{alice, headers, known, lines, owned};

#[test]
fn a_bearer_token_is_the_second_word() {
    for (line, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER abc def ghi", Some("abc")),
        ("  Bearer abc  ", Some("abc")),
        ("Bearer  abc", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearerabc", None),
        ("Basic abc", None),
        ("", None),
    ] {
        assert_eq!(
            bearer(&headers(&[("authorization", line)])),
            token,
            "{line:?}"
        );
    }
    assert_eq!(bearer(&HeaderMap::new()), None);
    let two = headers(&[
        ("authorization", "Basic x"),
        ("authorization", "Bearer abc"),
    ]);
    assert_eq!(bearer(&two), None);
}

#[test]
fn credentials_end_where_they_were_used() {
    let alice = alice();
    let by = |proof| Caller::Known {
        identity: &alice,
        proof,
    };
    let (bearer, basic) = (("authorization", "Bearer t"), ("authorization", "Basic x"));
    let passing = Policy {
        bearer: Bearer::Passed,
        bearer_on_exempt: Bearer::Passed,
        ..Policy::default()
    };
    let default = Policy::default();
    for (policy, caller, sent, got) in [
        // All lines go after a bearer login, whatever they are.
        (&default, by(Proof::Bearer), vec![bearer, basic], vec![]),
        (
            &passing,
            by(Proof::Bearer),
            vec![bearer, basic],
            vec![bearer, basic],
        ),
        (
            &default,
            by(Proof::Certificate),
            vec![bearer, basic],
            vec![bearer, basic],
        ),
        (&default, Caller::Exempt, vec![bearer, basic], vec![basic]),
        (
            &default,
            Caller::Exempt,
            vec![("authorization", " bEARER\tt")],
            vec![],
        ),
        (
            &default,
            Caller::Exempt,
            vec![("authorization", "Bearer")],
            vec![],
        ),
        (
            &default,
            Caller::Exempt,
            vec![("authorization", "Bearerish x")],
            vec![("authorization", "Bearerish x")],
        ),
        (&passing, Caller::Exempt, vec![bearer], vec![bearer]),
    ] {
        let mut map = headers(&sent);
        forward(&mut map, policy, caller, None).unwrap();
        assert_eq!(lines(&map), owned(&got), "{caller:?} {sent:?}");
    }
}

#[test]
fn only_known_protocols_are_tunnelled_and_none_for_nobody() {
    let alice = alice();
    let asking = |name| headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", name)]);
    let mut policy = Policy::default();
    for (name, known_caller, exempt) in [
        ("websocket", true, false),
        ("WebSocket", true, false),
        ("SPDY/3.1", true, false),
        ("h2c", false, false),
        ("foo", false, false),
        ("websocket, h2c", false, false),
    ] {
        for (caller, passes) in [(known(&alice), known_caller), (Caller::Exempt, exempt)] {
            let mut map = asking(name);
            let forwarded = forward(&mut map, &policy, caller, None).unwrap();
            let expected = passes.then(|| name.to_owned());
            assert_eq!(forwarded.upgrade, expected, "{name}");
            let lines_left = match passes {
                true => owned(&[("connection", "Upgrade"), ("upgrade", name)]),
                false => vec![],
            };
            assert_eq!(lines(&map), lines_left, "{name}");
        }
    }
    policy.upgrades.names = vec!["*".into()];
    policy.upgrades.on_exempt = true;
    let mut map = asking("h2c");
    let forwarded = forward(&mut map, &policy, Caller::Exempt, None).unwrap();
    assert_eq!(forwarded.upgrade.as_deref(), Some("h2c"));
}

#[test]
fn an_upgrade_must_be_asked_for_in_connection_too() {
    assert_eq!(
        requested_upgrade(&headers(&[("upgrade", "websocket")])),
        None
    );
    assert_eq!(
        requested_upgrade(&headers(&[("connection", "upgrade")])),
        None
    );
    let two = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("upgrade", "h2c"),
    ];
    assert_eq!(requested_upgrade(&headers(&two)), None);
}

fn websocket(protocols: &[&str]) -> HeaderMap {
    let mut map = headers(&[("connection", "Upgrade"), ("upgrade", "websocket")]);
    for line in protocols {
        map.append(
            "sec-websocket-protocol",
            HeaderValue::from_str(line).expect(line),
        );
    }
    map
}

const TOKEN: &str = "base64url.bearer.authorization.k8s.io.dG9rZW4";

#[test]
fn a_websocket_may_bring_its_token_as_a_subprotocol() {
    let found = subprotocol_token(&websocket(&["v1, ", TOKEN, "v2"]))
        .unwrap()
        .unwrap();
    assert_eq!(
        (found.token.as_str(), found.left.as_str()),
        ("token", "v1,,v2")
    );
    assert!(!format!("{found:?}").contains("token\""));
    for (lines, answer) in [
        (vec![TOKEN], Err(SubprotocolFault::Alone)),
        (vec![TOKEN, TOKEN, "v1"], Err(SubprotocolFault::Several)),
        (
            vec!["base64url.bearer.authorization.k8s.io.***, v1"],
            Err(SubprotocolFault::Encoding),
        ),
        (
            vec!["base64url.bearer.authorization.k8s.io.dG9rZQ==, v1"],
            Err(SubprotocolFault::Encoding),
        ),
        (
            vec!["base64url.bearer.authorization.k8s.io._w, v1"],
            Err(SubprotocolFault::Text),
        ),
        (vec!["base64url.bearer.authorization.k8s.io., v1"], Ok(None)),
        (vec!["v1"], Ok(None)),
        (vec![], Ok(None)),
    ] {
        assert_eq!(subprotocol_token(&websocket(&lines)), answer, "{lines:?}");
    }
    let plain = headers(&[("sec-websocket-protocol", TOKEN)]);
    assert_eq!(subprotocol_token(&plain), Ok(None));
}

#[test]
fn the_token_does_not_reach_the_upstream_as_a_subprotocol() {
    let mut map = websocket(&[TOKEN, "v1"]);
    let found = subprotocol_token(&map).unwrap().unwrap();
    let alice = alice();
    let caller = Caller::Known {
        identity: &alice,
        proof: Proof::Subprotocol(&found.left),
    };
    forward(&mut map, &Policy::default(), caller, None).unwrap();
    assert_eq!(
        lines(&map),
        owned(&[
            ("connection", "Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-protocol", "v1")
        ])
    );
}
