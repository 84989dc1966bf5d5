//! The decision about what was read, without files: bytes and a time in, keep, swap or refuse out.

use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

use super::pki::{Authority, Pem, Wanted};
use keelson_tls::reload::{Content, Decision, Demands, Reading, Serving, decide};
use keelson_tls::{ClientAuth, Profile};

fn content(text: &str) -> Content {
    Content::Read(text.as_bytes().to_vec())
}

fn reading(pem: &Pem) -> Reading {
    Reading {
        certificate: content(&pem.certificate),
        key: content(&pem.key),
        client_ca: None,
        profile: None,
    }
}

fn swapped(decision: Decision) -> Serving {
    match decision {
        Decision::Swap(serving) => *serving,
        other => panic!("{other:?}"),
    }
}

fn refused(decision: Decision) -> String {
    match decision {
        Decision::Refuse(refusal) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

const MODERN: &str = r#"{"minTLSVersion":"VersionTLS13"}"#;

#[test]
fn the_same_bytes_are_kept_and_others_swapped_with_the_next_generation() {
    let authority = Authority::new("reload");
    let (one, two) = (authority.server(), authority.server());
    let (demands, now) = (Demands::default(), Timestamp::now());
    let first = swapped(decide(None, &reading(&one), &demands, now));
    assert_eq!(first.generation, 1);
    assert_eq!(first.leaf.fingerprint, one.fingerprint());
    assert_eq!(first.profile_hash, Profile::intermediate().hash());
    assert!(matches!(
        decide(Some(&first), &reading(&one), &demands, now),
        Decision::Keep
    ));
    let second = swapped(decide(Some(&first), &reading(&two), &demands, now));
    assert_eq!(
        (second.generation, second.leaf.fingerprint),
        (2, two.fingerprint())
    );
}

#[test]
fn each_part_alone_is_enough_for_a_swap() {
    let authority = Authority::new("reload");
    let pem = authority.server();
    let demands = Demands {
        client_auth: ClientAuth::Required,
        ..Demands::default()
    };
    let base = Reading {
        client_ca: Some(content(&authority.certificate)),
        profile: Some(content(MODERN)),
        ..reading(&pem)
    };
    let now = Timestamp::now();
    let first = swapped(decide(None, &base, &demands, now));
    let other_ca = Reading {
        client_ca: Some(content(&Authority::new("other").certificate)),
        ..base.clone()
    };
    let other_profile = Reading {
        profile: Some(content(r#"{"source":"None"}"#)),
        ..base.clone()
    };
    for changed in [other_ca, other_profile] {
        assert_eq!(
            swapped(decide(Some(&first), &changed, &demands, now)).generation,
            2
        );
    }
    assert!(matches!(
        decide(Some(&first), &base, &demands, now),
        Decision::Keep
    ));
}

#[test]
fn authorities_stay_the_same_value_until_their_file_changes() {
    let authority = Authority::new("reload");
    let base = Reading {
        client_ca: Some(content(&authority.certificate)),
        ..reading(&authority.server())
    };
    let demands = Demands {
        client_auth: ClientAuth::Deferred,
        ..Demands::default()
    };
    let now = Timestamp::now();
    let first = swapped(decide(None, &base, &demands, now));
    let next = |client_ca| {
        let changed = Reading {
            client_ca,
            ..reading(&authority.server())
        };
        swapped(decide(Some(&first), &changed, &demands, now)).authorities
    };
    let of_first = first.authorities.as_ref().expect("authorities");
    let same = next(base.client_ca.clone()).expect("authorities");
    assert!(
        Arc::ptr_eq(of_first, &same),
        "another certificate, the same bundle"
    );
    let other = next(Some(content(&Authority::new("other").certificate)));
    assert!(!Arc::ptr_eq(of_first, &other.expect("authorities")));
    assert!(next(None).is_none());
}

#[test]
fn what_is_not_usable_as_a_whole_is_refused_with_a_sentence() {
    let authority = Authority::new("reload");
    let (one, two) = (authority.server(), authority.server());
    let now = Timestamp::now();
    let hour = SignedDuration::from_hours(1);
    let valid = |from, until| {
        authority.sign(&Wanted {
            valid: (from, until),
            ..Wanted::default()
        })
    };
    let expired = valid(now - hour * 2, now - hour);
    let early = valid(now + hour, now + hour * 2);
    let good = reading(&one);
    let with_profile = |json: &str| Reading {
        profile: Some(content(json)),
        ..good.clone()
    };
    let rsa_only = r#"{"ciphers":["ECDHE-RSA-AES128-GCM-SHA256"]}"#;
    let cases = [
        (
            Reading {
                key: content(&two.key),
                ..good.clone()
            },
            "the private key does not belong to the certificate",
        ),
        (
            Reading {
                certificate: Content::Absent,
                ..good.clone()
            },
            "the certificate file is missing",
        ),
        (
            Reading {
                key: Content::Absent,
                ..good.clone()
            },
            "the key file is missing",
        ),
        (
            Reading {
                key: Content::Unreadable("permission denied".into()),
                ..good.clone()
            },
            "the key file cannot be read: permission denied",
        ),
        (
            Reading {
                client_ca: Some(content("")),
                ..good.clone()
            },
            "the CA file holds no certificate",
        ),
        (
            Reading {
                client_ca: Some(Content::Absent),
                ..good.clone()
            },
            "the client CA file is missing",
        ),
        (
            with_profile("{"),
            "the TLS profile is not JSON (line 1, column 1)",
        ),
        (
            with_profile(r#"{"ciphers":[]}"#),
            "the TLS profile lists no cipher at all: name one, or leave ciphers out for the library's",
        ),
        (
            with_profile(rsa_only),
            "none of the TLS profile's ciphers goes with the certificate's EC key: \
             name one that does, or a suite of TLS 1.3",
        ),
    ];
    let demands = Demands::default();
    let serving = swapped(decide(None, &reading(&two), &demands, now));
    // The certificate being served with another key is not what is being served.
    let half = Reading {
        key: content(&one.key),
        ..reading(&two)
    };
    assert_eq!(
        refused(decide(Some(&serving), &half, &demands, now)),
        "the private key does not belong to the certificate"
    );
    for (bad, sentence) in cases {
        assert_eq!(refused(decide(None, &bad, &demands, now)), sentence);
        assert_eq!(
            refused(decide(Some(&serving), &bad, &demands, now)),
            sentence
        );
    }
    for (pem, beginning) in [
        (expired, "the certificate expired at"),
        (early, "the certificate is not valid before"),
    ] {
        for previous in [None, Some(&serving)] {
            let sentence = refused(decide(previous, &reading(&pem), &demands, now));
            assert!(sentence.starts_with(beginning), "{sentence}");
        }
    }
}

#[test]
fn a_certificate_that_expires_while_served_is_kept_and_hinders_no_new_profile() {
    let pem = Authority::new("reload").server();
    let (demands, now) = (Demands::default(), Timestamp::now());
    let later = now + SignedDuration::from_hours(48);
    let base = Reading {
        profile: Some(content("{}")),
        ..reading(&pem)
    };
    let serving = swapped(decide(None, &base, &demands, now));
    assert!(matches!(
        decide(Some(&serving), &base, &demands, later),
        Decision::Keep
    ));
    let stricter = Reading {
        profile: Some(content(MODERN)),
        ..base
    };
    assert_eq!(
        swapped(decide(Some(&serving), &stricter, &demands, later)).generation,
        2
    );
    assert!(refused(decide(None, &stricter, &demands, later)).contains("expired"));
}

#[test]
fn a_profile_not_there_yet_is_the_demanded_one_and_a_profile_gone_is_kept() {
    let pem = Authority::new("reload").server();
    let now = Timestamp::now();
    let absent = Reading {
        profile: Some(Content::Absent),
        ..reading(&pem)
    };
    let written = Reading {
        profile: Some(content(MODERN)),
        ..reading(&pem)
    };
    let demands = Demands::default();
    let fallback = swapped(decide(None, &absent, &demands, now));
    assert_eq!(fallback.profile_hash, Profile::intermediate().hash());
    assert!(matches!(
        decide(Some(&fallback), &absent, &demands, now),
        Decision::Keep
    ));
    let serving = swapped(decide(Some(&fallback), &written, &demands, now));
    assert_eq!(
        refused(decide(Some(&serving), &absent, &demands, now)),
        "the profile file is gone; its last content stays in force"
    );
    let strict = Demands {
        profile: None,
        ..Demands::default()
    };
    assert_eq!(
        refused(decide(None, &absent, &strict, now)),
        "the profile file is missing"
    );
    assert_eq!(
        refused(decide(None, &reading(&pem), &strict, now)),
        "the profile file is missing"
    );
}

#[test]
fn nothing_of_a_key_is_printed_by_a_reading_or_a_state() {
    let pem = Authority::new("reload").server();
    let secret = pem.key.lines().nth(1).expect("a line of the key");
    let read = reading(&pem);
    let serving = swapped(decide(None, &read, &Demands::default(), Timestamp::now()));
    for printed in [format!("{read:?}"), format!("{serving:?}")] {
        assert!(!printed.contains(secret), "{printed}");
        let bytes = format!("{:?}", &pem.key.as_bytes()[30..50]);
        assert!(
            !printed.contains(bytes.trim_matches(['[', ']'])),
            "{printed}"
        );
    }
}
