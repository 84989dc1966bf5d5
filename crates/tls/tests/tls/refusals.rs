//! Profiles nobody could be served with, and files that are no profile: each with its sentence.

use rustls::SignatureAlgorithm;

use super::mapping::listed;
use keelson_tls::Profile;
use keelson_tls::profile::{Kind, Listed, Version};

#[test]
fn a_profile_that_serves_nobody_is_refused_with_a_sentence() {
    let cases = [
        (
            listed(Version::Tls12, &[], &[]),
            "the TLS profile lists no cipher at all: name one, or leave ciphers out for the library's",
        ),
        (
            listed(
                Version::Tls10,
                &["AES128-SHA", "ECDHE-RSA-AES128-SHA", "nonsense"],
                &[],
            ),
            "none of the TLS profile's ciphers can be served: \
             ignored ciphers AES128-SHA: RSA key exchange is not supported; \
             ignored ciphers ECDHE-RSA-AES128-SHA: CBC is not supported; \
             ignored ciphers nonsense: the name is unknown",
        ),
        (
            listed(Version::Tls12, &["TLS_AES_128_GCM_SHA256"], &["secp521r1"]),
            "none of the TLS profile's groups can be served: \
             ignored groups secp521r1: the group is not supported",
        ),
        (
            listed(
                Version::Tls12,
                &["ECDHE-RSA-AES128-GCM-SHA256"],
                &["X25519MLKEM768"],
            ),
            "the TLS profile's groups are for TLS 1.3 and its ciphers for TLS 1.2: \
             no client can connect",
        ),
    ];
    for (profile, sentence) in cases {
        let refusal = profile.honour().expect_err("a refusal");
        assert_eq!(refusal.to_string(), sentence);
    }
}

#[test]
fn suites_for_another_kind_of_key_are_refused_unless_tls_1_3_is_there() {
    let rsa = "ECDHE-RSA-AES128-GCM-SHA256";
    let alone = listed(Version::Tls12, &[rsa], &[])
        .honour()
        .expect("suites");
    let sentence = "none of the TLS profile's ciphers goes with the certificate's EC key: \
                    name one that does, or a suite of TLS 1.3";
    let refusal = alone.clone().for_key(SignatureAlgorithm::ECDSA);
    assert_eq!(refusal.expect_err("a refusal").to_string(), sentence);
    assert!(alone.for_key(SignatureAlgorithm::RSA).is_ok());

    let both = listed(Version::Tls12, &[rsa, "TLS_AES_128_GCM_SHA256"], &[]);
    let both = both.honour().expect("suites");
    assert!(both.for_key(SignatureAlgorithm::ECDSA).is_ok());
}

#[test]
fn a_file_that_is_no_profile_is_refused_with_a_sentence() {
    let cases = [
        ("", "the TLS profile is not JSON (line 1, column 0)"),
        ("[]", "the TLS profile is not a JSON object"),
        (
            r#"{"cipher":["AES128-SHA"]}"#,
            r#""cipher" is not a key of a TLS profile; did you mean "ciphers"?"#,
        ),
        (
            r#"{"minTlsVersion":"VersionTLS12"}"#,
            r#""minTlsVersion" is not a key of a TLS profile; did you mean "minTLSVersion"?"#,
        ),
        (
            r#"{"x":1}"#,
            r#""x" is not a key of a TLS profile: use ciphers, minTLSVersion and groups"#,
        ),
        (
            r#"{"ciphers":"AES128-SHA"}"#,
            "ciphers of the TLS profile is not a list of strings",
        ),
        (
            r#"{"groups":[29]}"#,
            "groups of the TLS profile is not a list of strings",
        ),
        (
            r#"{"minTLSVersion":12}"#,
            "minTLSVersion of the TLS profile is not a string",
        ),
        (
            r#"{"minTLSVersion":"TLS1.2"}"#,
            r#"minTLSVersion "TLS1.2" is unknown: use VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13"#,
        ),
        (
            r#"{"groups":["X25519"],"curves":["P-256"]}"#,
            "the TLS profile has groups and curves and they differ: remove curves",
        ),
        (
            r#"{"source":"Auto"}"#,
            r#"source "Auto" is not for the profile file: only None is"#,
        ),
        (
            r#"{"source":"None","ciphers":[]}"#,
            "source None asks for the library's defaults: remove the other keys of the TLS profile",
        ),
    ];
    for (json, sentence) in cases {
        let refusal = Profile::parse(json.as_bytes()).expect_err(json);
        assert_eq!(refusal.to_string(), sentence, "{json}");
    }
}

#[test]
fn an_unknown_type_and_a_custom_without_its_body_are_refused() {
    let unknown = "Paranoid".parse::<Kind>().expect_err("no such type");
    assert_eq!(
        unknown.to_string(),
        r#"unknown TLS profile type "Paranoid": use Old, Intermediate, Modern or Custom"#
    );
    assert_eq!("".parse::<Kind>(), Ok(Kind::Intermediate));
    let missing = Profile::named(Kind::Custom, None).expect_err("no body");
    assert_eq!(
        missing.to_string(),
        "the TLS profile type is Custom and nothing is written under custom"
    );
    let body = Listed {
        ciphers: None,
        minimum: Version::Tls12,
        groups: Vec::new(),
    };
    assert!(Profile::named(Kind::Modern, Some(body.clone())).is_err());
    assert_eq!(
        Profile::named(Kind::Custom, Some(body.clone())),
        Ok(Profile::Listed(body))
    );
}
