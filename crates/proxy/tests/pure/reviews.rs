//! Reviews: the questions to the byte, and what the answers mean (§3.2, §4, deviation A7).

use keelson_proxy::attributes::{Check, Object};
use keelson_proxy::config::Attributes;
use keelson_proxy::review::{
    AccessVerdict, Audiences, Identity, TokenVerdict, access_request, access_verdict,
    failure_message, masked_token_request, token_request, token_verdict,
};
use proptest::prelude::*;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("JSON is text")
}

#[test]
fn the_question_about_a_token_is_the_references() {
    assert_eq!(
        text(token_request("t\"1", &[])),
        r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"creationTimestamp":null},"spec":{"token":"t\"1"},"status":{"user":{}}}"#
    );
    assert!(
        text(token_request("t", &["a".into(), "b".into()]))
            .contains(r#""spec":{"token":"t","audiences":["a","b"]}"#)
    );
    assert!(masked_token_request(&[]).contains(r#""token":"<masked>""#));
}

fn verdict(body: &str, wanted: &[&str], accept_unnamed: bool) -> TokenVerdict {
    let audiences = Audiences {
        wanted: wanted
            .iter()
            .map(|audience| (*audience).to_owned())
            .collect(),
        accept_unnamed,
    };
    token_verdict(body.as_bytes(), &audiences)
}

#[test]
fn a_good_token_is_somebodys() {
    let body = r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"secret"},
        "status":{"authenticated":true,"user":{"username":"u","uid":"1","groups":["g"],"extra":{"k":["v"]},"new":1},"audiences":["a"]}}"#;
    let TokenVerdict::Authenticated {
        identity,
        audiences,
    } = verdict(body, &[], false)
    else {
        panic!("not authenticated");
    };
    assert_eq!(identity.user, "u");
    assert_eq!(identity.uid, "1");
    assert_eq!(identity.groups, ["g", "system:authenticated"]);
    assert_eq!(*identity.extra, [("k".to_owned(), vec!["v".to_owned()])]);
    assert_eq!(audiences, ["a"]);
}

#[test]
fn an_answer_is_read_tolerantly_and_never_quoted() {
    let rejected = |why: &str| TokenVerdict::Rejected(why.to_owned());
    let error = |why: &str| TokenVerdict::Error(why.to_owned());
    let none = "the API server's answer is not a TokenReview";
    for (body, expected) in [
        (
            r#"{"status":{"authenticated":false,"error":"expired"}}"#,
            rejected("expired"),
        ),
        (r#"{"status":{"error":"expired"}}"#, rejected("expired")),
        (r#"{"status":{}}"#, rejected("invalid bearer token")),
        (
            r#"{"kind":"TokenReview"}"#,
            rejected("invalid bearer token"),
        ),
        (r#"{"status":null}"#, rejected("invalid bearer token")),
        (
            r#"{"status":{"authenticated":null,"user":null}}"#,
            rejected("invalid bearer token"),
        ),
        (r#"{"status":{"authenticated":"yes"}}"#, error(none)),
        (r#"{"kind":"Status","message":"no"}"#, error("no")),
        (r#"{"kind":"Pod"}"#, error(none)),
        ("", error(none)),
        ("{", error(none)),
        ("[]", error(none)),
        (r#"{"status":[true]}"#, error(none)),
    ] {
        assert_eq!(verdict(body, &[], false), expected, "{body}");
    }
    let nulls = r#"{"status":{"authenticated":true,"user":{"username":"u","groups":null,"extra":null},"audiences":null}}"#;
    assert!(matches!(
        verdict(nulls, &[], false),
        TokenVerdict::Authenticated { .. }
    ));
}

#[test]
fn a_wanted_audience_must_be_named() {
    let body = |audiences: &str| {
        format!(
            r#"{{"status":{{"authenticated":true,"user":{{"username":"u"}},"audiences":[{audiences}]}}}}"#
        )
    };
    for (named, wanted, accept_unnamed, shared) in [
        ("", &[][..], false, Some(vec![])),
        (r#""a""#, &[][..], false, Some(vec!["a"])),
        (r#""a""#, &["a"][..], false, Some(vec!["a"])),
        (
            r#""b","a""#,
            &["a", "b", "c"][..],
            false,
            Some(vec!["a", "b"]),
        ),
        (r#""b""#, &["a"][..], false, None),
        ("", &["a"][..], false, None),
        ("", &["a"][..], true, Some(vec!["a"])),
        (r#""b""#, &["a"][..], true, None),
    ] {
        match (verdict(&body(named), wanted, accept_unnamed), shared) {
            (TokenVerdict::Authenticated { audiences, .. }, Some(shared)) => {
                assert_eq!(audiences, shared);
            }
            (TokenVerdict::Rejected(_), None) => {}
            (verdict, shared) => panic!("{named} {wanted:?}: {verdict:?}, not {shared:?}"),
        }
    }
}

#[test]
fn everyone_who_is_somebody_is_authenticated() {
    for (user, groups, expected) in [
        ("u", &[][..], &["system:authenticated"][..]),
        ("u", &["g"][..], &["g", "system:authenticated"][..]),
        (
            "u",
            &["system:authenticated", "g"][..],
            &["system:authenticated", "g"][..],
        ),
        (
            "u",
            &["system:unauthenticated"][..],
            &["system:unauthenticated"][..],
        ),
        ("system:anonymous", &[][..], &[][..]),
    ] {
        let identity = Identity {
            user: user.into(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..Identity::default()
        };
        assert_eq!(identity.authenticated().groups, expected);
    }
}

#[test]
fn the_question_about_access_omits_what_is_empty() {
    let identity = Identity {
        user: "u".into(),
        uid: "1".into(),
        groups: vec!["g".into()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
    };
    let check = Check {
        verb: "get".into(),
        object: Object::Resource(Attributes {
            namespace: "n".into(),
            api_group: "sei.io".into(),
            resource: "seinodetasks".into(),
            ..Attributes::default()
        }),
    };
    assert_eq!(
        text(access_request(&identity, &check)),
        r#"{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{"creationTimestamp":null},"spec":{"resourceAttributes":{"namespace":"n","verb":"get","group":"sei.io","resource":"seinodetasks"},"user":"u","groups":["g"],"extra":{"k":["v"]},"uid":"1"},"status":{"allowed":false}}"#
    );
    let check = Check {
        verb: "*".into(),
        object: Object::Path("/metrics".into()),
    };
    let nobody = Identity {
        user: "u".into(),
        ..Identity::default()
    };
    assert!(
        text(access_request(&nobody, &check)).contains(
            r#""spec":{"nonResourceAttributes":{"path":"/metrics","verb":"*"},"user":"u"}"#
        )
    );
}

#[test]
fn only_a_plain_yes_is_a_yes() {
    use AccessVerdict::{Allowed, Denied, Error, NoOpinion};
    for (body, expected) in [
        (
            r#"{"status":{"allowed":true,"reason":"r"}}"#,
            Allowed("r".into()),
        ),
        (
            r#"{"status":{"allowed":false,"denied":true,"reason":"r"}}"#,
            Denied("r".into()),
        ),
        (
            r#"{"status":{"allowed":false,"reason":"r"}}"#,
            NoOpinion("r".into()),
        ),
        (
            r#"{"status":{"evaluationError":"e"}}"#,
            NoOpinion("e".into()),
        ),
        (r#"{"status":{}}"#, NoOpinion("".into())),
        ("{}", NoOpinion("".into())),
        (
            r#"{"status":{"allowed":true,"denied":true}}"#,
            Error("webhook subject access review returned both allow and deny response".into()),
        ),
        (
            r#"{"kind":"Status","message":"forbidden"}"#,
            Error("forbidden".into()),
        ),
        (
            r#"{"status":{"allowed":1}}"#,
            Error("the API server's answer is not a SubjectAccessReview".into()),
        ),
        (
            "",
            Error("the API server's answer is not a SubjectAccessReview".into()),
        ),
    ] {
        assert_eq!(access_verdict(body.as_bytes()), expected, "{body}");
    }
}

#[test]
fn a_status_has_a_message() {
    assert_eq!(
        failure_message(br#"{"kind":"Status","message":"m"}"#),
        Some("m".into())
    );
    assert_eq!(failure_message(br#"{"kind":"Pod","message":"m"}"#), None);
    assert_eq!(failure_message(b"x"), None);
}

proptest! {
    #[test]
    fn no_answer_makes_a_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = token_verdict(&body, &Audiences::default());
        let _ = access_verdict(&body);
    }
}
