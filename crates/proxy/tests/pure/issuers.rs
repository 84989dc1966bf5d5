//! Tokens of an issuer as values: what they claim, when they hold, and who signed them (§3.5).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keelson_proxy::oidc::{
    Algorithm, KeySet, NotAKeySet, Pace, Proof, Rejected, Signed, identity, meant_for, timely,
};
use keelson_proxy::settings::Oidc;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

fn oidc() -> Oidc {
    Oidc {
        issuer: "https://issuer".into(),
        client_id: "keelson".into(),
        groups_claim: "groups".into(),
        username_claim: "email".into(),
        groups_prefix: "g:".into(),
        username_prefix: "u:".into(),
        sign_algs: vec!["RS256".into()],
        ca_file: None,
    }
}

fn claims(value: Value) -> Map<String, Value> {
    value.as_object().expect("claims").clone()
}

#[test]
fn the_bearer_is_who_the_claims_say_with_the_prefixes_before() {
    let refused = |name: &str| Err(Rejected::Claim(name.to_owned()));
    let ada = |groups: &[&str]| Ok(("u:ada".to_owned(), groups.join(",")));
    for (value, expected) in [
        (json!({ "email": "ada" }), ada(&[])),
        (json!({ "email": "ada", "email_verified": true }), ada(&[])),
        (json!({ "email": "ada", "groups": "one" }), ada(&["g:one"])),
        (json!({ "email": "ada", "groups": null }), ada(&[])),
        (
            json!({ "email": "ada", "groups": ["b", "a"] }),
            ada(&["g:b", "g:a"]),
        ),
        (json!({ "groups": "one" }), refused("email")),
        (json!({ "email": "" }), refused("email")),
        (json!({ "email": 7 }), refused("email")),
        (json!({ "email": "ada", "groups": 7 }), refused("groups")),
        (
            json!({ "email": "ada", "groups": ["a", 7] }),
            refused("groups"),
        ),
        (
            json!({ "email": "ada", "email_verified": false }),
            Err(Rejected::EmailNotVerified),
        ),
        (
            json!({ "email": "ada", "email_verified": "true" }),
            Err(Rejected::EmailNotVerified),
        ),
        (
            json!({ "email": "ada", "_claim_names": { "groups": "src1" } }),
            Err(Rejected::Distributed("groups".into())),
        ),
        (
            json!({ "email": "ada", "groups": [], "_claim_names": { "groups": "src1" } }),
            ada(&[]),
        ),
        (
            json!({ "email": "ada", "_claim_names": { "address": "src1" } }),
            ada(&[]),
        ),
    ] {
        let who = identity(&claims(value.clone()), &oidc());
        let who = who.map(|who| (who.user, who.groups.join(",")));
        assert_eq!(who, expected, "{value}");
    }
    let by_sub = Oidc {
        username_claim: "sub".into(),
        ..oidc()
    };
    let unverified = claims(json!({ "sub": "7", "email_verified": false }));
    let who = identity(&unverified, &by_sub).expect("the address is not the name");
    assert_eq!(who.user, "u:7");
}

#[test]
fn a_token_is_for_one_issuer_and_one_client() {
    for (value, expected) in [
        (json!({ "iss": "https://issuer", "aud": "keelson" }), Ok(())),
        (
            json!({ "iss": "https://issuer", "aud": ["a", "keelson"] }),
            Ok(()),
        ),
        (
            json!({ "iss": "https://issuer", "aud": [] }),
            Err(Rejected::Audience),
        ),
        (
            json!({ "iss": "https://issuer", "aud": "keelson-2" }),
            Err(Rejected::Audience),
        ),
        (json!({ "iss": "https://issuer" }), Err(Rejected::Audience)),
        (
            json!({ "iss": "https://issuer/", "aud": "keelson" }),
            Err(Rejected::OtherIssuer),
        ),
        (json!({ "aud": "keelson" }), Err(Rejected::OtherIssuer)),
    ] {
        assert_eq!(
            meant_for(&claims(value.clone()), &oidc()),
            expected,
            "{value}"
        );
    }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn times_that_are_none_end_a_token() {
    for value in [
        json!({}),
        json!({ "exp": null }),
        json!({ "exp": "4000000000" }),
        json!({ "exp": -1 }),
        json!({ "exp": 1e300 }),
    ] {
        let held = timely(&claims(value.clone()), at(1));
        assert_eq!(held, Err(Rejected::Expired), "{value}");
    }
    let odd = claims(json!({ "exp": 10, "nbf": "soon" }));
    assert_eq!(timely(&odd, at(1)), Err(Rejected::TooEarly));
}

proptest! {
    #[test]
    fn a_token_holds_from_five_minutes_before_its_begin_to_its_end(
        exp in 1_u64..4_000, nbf in prop::option::of(0_u64..4_000), now in 0_u64..4_000,
    ) {
        let mut value = json!({ "exp": exp });
        if let Some(nbf) = nbf {
            value["nbf"] = nbf.into();
        }
        let good = now <= exp && nbf.is_none_or(|nbf| nbf <= now + 300);
        let held = timely(&claims(value), at(now));
        prop_assert_eq!(held.is_ok(), good);
        if let Ok(end) = held {
            prop_assert_eq!(end, at(exp));
        }
    }

    #[test]
    fn no_text_upsets_the_reader(text in "\\PC{0,80}", dots in "[A-Za-z0-9_.-]{0,80}") {
        prop_assert!(Signed::read(&text).is_err());
        let _ = Signed::read(&dots);
    }
}

#[test]
fn a_token_has_three_parts_a_header_we_understand_and_claims() {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let token = |header: &str, claims: &str| format!("{}.{}.c2ln", part(header), part(claims));
    let good = token(r#"{"alg":"RS256","kid":"k"}"#, r#"{"iss":"i"}"#);
    let signed = Signed::read(&good).expect("a token");
    assert_eq!(
        (signed.algorithm.as_str(), signed.key.as_deref()),
        ("RS256", Some("k"))
    );
    assert_eq!(
        (signed.signature.as_slice(), signed.message.len()),
        (&b"sig"[..], good.len() - 5)
    );
    assert_eq!(signed.claims["iss"], "i");
    assert!(
        !format!("{signed:?}").contains("c2ln"),
        "a log must not show it"
    );
    for bad in [
        token(r#"{"alg":"RS256","crit":["b64"]}"#, "{}"),
        token(r#"{"kid":"k"}"#, "{}"),
        token(r#"{"alg":"RS256"}"#, "[]"),
        token(r#"["RS256"]"#, "{}"),
        token("{", "{}"),
        format!("{good}.more"),
        format!("{good}="),
        good.rsplit_once('.').expect("parts").0.to_owned(),
        "a.b.c".to_owned(),
        String::new(),
    ] {
        assert_eq!(Signed::read(&bad), Err(Rejected::NotAToken), "{bad}");
    }
}

const MESSAGE: &[u8] = b"header.claims";

/// The algorithm, the key, the signature.
type Made = (&'static str, &'static str, Vec<u8>);

/// Every algorithm with a signature of it, and the set with all the keys.
fn signatures() -> (KeySet, Vec<Made>) {
    let (random, text) = (SystemRandom::new(), |bytes: &[u8]| {
        URL_SAFE_NO_PAD.encode(bytes)
    });
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
    let mut made = Vec::new();
    for (name, padding) in [
        (
            "RS256",
            &RSA_PKCS1_SHA256 as &'static dyn aws_lc_rs::signature::RsaEncoding,
        ),
        ("RS384", &RSA_PKCS1_SHA384),
        ("RS512", &RSA_PKCS1_SHA512),
        ("PS256", &RSA_PSS_SHA256),
        ("PS384", &RSA_PSS_SHA384),
        ("PS512", &RSA_PSS_SHA512),
    ] {
        let mut signature = vec![0; rsa.public_modulus_len()];
        rsa.sign(padding, &random, MESSAGE, &mut signature)
            .expect("a signature");
        made.push((name, "rsa", signature));
    }
    // PKCS #1: a sequence of two numbers, the modulus with a zero before it.
    let public = rsa.public_key().as_ref();
    let mut keys = vec![json!({
        "kty": "RSA", "kid": "rsa", "n": text(&public[8..9 + 256]), "e": text(&[1, 0, 1]),
    })];
    for (name, key, curve, algorithm) in [
        ("ES256", "p256", "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
        ("ES384", "p384", "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        ("ES512", "p521", "P-521", &ECDSA_P521_SHA512_FIXED_SIGNING),
    ] {
        let pair = EcdsaKeyPair::generate(algorithm).expect("a key");
        let point = &pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(point.len() / 2);
        keys.push(json!({ "kty": "EC", "crv": curve, "kid": key, "x": text(x), "y": text(y) }));
        let signature = pair.sign(&random, MESSAGE).expect("a signature");
        made.push((name, key, signature.as_ref().to_vec()));
    }
    let keys = KeySet::read(json!({ "keys": keys }).to_string().as_bytes());
    (keys.expect("a key set"), made)
}

#[test]
fn each_algorithm_proves_its_own_signatures_and_no_other() {
    let (keys, made) = signatures();
    for (name, key, signature) in &made {
        for (other, ..) in &made {
            let algorithm = Algorithm::named(other).expect("an algorithm");
            let expected = match name == other {
                true => Proof::Good,
                false => Proof::Bad,
            };
            let proof = keys.prove(algorithm, Some(key), MESSAGE, signature);
            assert_eq!(proof, expected, "{name} read as {other}");
        }
        let algorithm = Algorithm::named(name).expect("an algorithm");
        let prove = |key, message, signature| keys.prove(algorithm, key, message, signature);
        assert_eq!(
            prove(None, MESSAGE, signature),
            Proof::Good,
            "without a name"
        );
        assert_eq!(prove(Some("gone"), MESSAGE, signature), Proof::NoSuchKey);
        assert_eq!(prove(None, b"other", signature), Proof::NoSuchKey);
        assert_eq!(prove(Some(key), b"other", signature), Proof::Bad);
        let mut flipped = signature.clone();
        flipped[20] ^= 1;
        assert_eq!(prove(Some(key), MESSAGE, &flipped), Proof::Bad);
    }
    for name in ["none", "None", "HS256", "HS512", "rs256", ""] {
        assert!(Algorithm::named(name).is_none(), "{name}");
    }
}

#[test]
fn a_key_set_without_a_key_to_check_with_is_none() {
    let read = |value: Value| KeySet::read(value.to_string().as_bytes());
    let rsa = json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" });
    assert!(read(json!({ "keys": [rsa] })).is_ok());
    let mut for_encryption = rsa.clone();
    for_encryption["use"] = "enc".into();
    for key in [
        for_encryption,
        json!({ "kty": "oct", "k": "AQAB" }),
        json!({ "kty": "RSA", "n": "", "e": "AQAB" }),
        json!({ "kty": "RSA", "n": "+", "e": "AQAB" }),
        json!({ "kty": "EC", "crv": "P-1", "x": "AQAB", "y": "AQAB" }),
        json!({ "kty": "EC", "crv": "P-256", "x": URL_SAFE_NO_PAD.encode([1; 33]), "y": "AQAB" }),
    ] {
        assert_eq!(
            read(json!({ "keys": [key] })),
            Err(NotAKeySet::Empty),
            "{key}"
        );
    }
    assert_eq!(read(json!({})), Err(NotAKeySet::Malformed));
    assert_eq!(KeySet::read(b"<html>"), Err(NotAKeySet::Malformed));
}

#[test]
fn keys_are_fetched_for_a_token_again_only_after_the_floor() {
    let (pace, now) = (Pace::default(), Instant::now());
    assert!(pace.allows(None, now));
    for (after, allowed) in [(0, false), (9_999, false), (10_000, true)] {
        let later = now + Duration::from_millis(after);
        assert_eq!(pace.allows(Some(now), later), allowed, "{after} ms");
    }
}
