//! Certificates with their keys: what is refused, in which words, and what is read off the leaf.

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

use super::pki::{Authority, NAMES, Wanted, one_of_each_kind};
use keelson_tls::certificate::{NameMissing, Untimely};
use keelson_tls::self_signed::{LIFE, SelfSigned};
use keelson_tls::{Fingerprint, Pair, PairError};

fn read(certificate: &str, key: &str) -> Result<Pair, PairError> {
    Pair::from_pem(certificate.as_bytes(), key.as_bytes())
}

#[test]
fn keys_of_every_kind_are_read() {
    for pem in one_of_each_kind() {
        assert!(read(&pem.certificate, &pem.key).is_ok());
    }
}

#[test]
fn each_way_a_pair_is_broken_has_its_error() {
    let authority = Authority::new("pairs");
    let (one, two) = (authority.server(), authority.server());
    let half = &one.certificate[..one.certificate.len() / 2];
    let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let cases = [
        ("", one.key.as_str(), PairError::CertificateMissing),
        (&one.key, &one.key, PairError::CertificateMissing),
        (half, &one.key, PairError::CertificateUnreadable),
        (junk, &one.key, PairError::CertificateUnreadable),
        (&one.certificate, "", PairError::KeyMissing),
        (&one.certificate, &one.certificate, PairError::KeyMissing),
        (&one.certificate, &one.key[..80], PairError::KeyMissing),
        (&one.certificate, no_key, PairError::KeyUnsupported),
        (&one.certificate, &two.key, PairError::Mismatched),
        (&two.certificate, &one.key, PairError::Mismatched),
    ];
    for (certificate, key, expected) in cases {
        let error = read(certificate, key).expect_err("a broken pair");
        assert_eq!(error, expected);
        assert!(!error.to_string().is_empty() && !error.to_string().contains('\n'));
    }
    // Leaf first: an authority before it is not the leaf.
    let reversed = format!("{}{}", authority.certificate, one.certificate);
    assert_eq!(read(&reversed, &one.key).err(), Some(PairError::Mismatched));
    let chain = format!("{}{}", one.certificate, authority.certificate);
    assert!(read(&chain, &one.key).is_ok());
}

#[test]
fn a_pair_serves_within_its_time_under_names_it_carries() {
    let from: Timestamp = "2031-01-01T00:00:00Z".parse().expect("a time");
    let until: Timestamp = "2031-02-01T00:00:00Z".parse().expect("a time");
    let pair = Authority::new("pairs")
        .sign(&Wanted {
            names: &["*.sei.svc", "node-0", "10.0.0.1"],
            common_name: Some("only-a-common-name"),
            valid: (from, until),
            ..Wanted::default()
        })
        .pair();
    let second = SignedDuration::from_secs(1);
    let early = PairError::Untimely(Untimely::NotYetValid(from));
    let late = PairError::Untimely(Untimely::Expired(until));
    let none: &[&str] = &[];
    assert_eq!(pair.serves(none, from - second), Err(early));
    assert_eq!(pair.serves(none, until + second), Err(late.clone()));
    assert_eq!(
        late.to_string(),
        "the certificate expired at 2031-02-01T00:00:00Z"
    );
    assert_eq!(pair.serves(none, from), Ok(()));
    assert_eq!(pair.serves(none, until), Ok(()));

    for name in ["a.sei.svc", "NODE-0", "10.0.0.1"] {
        assert_eq!(pair.serves(&[name], from), Ok(()), "{name}");
    }
    for name in [
        "a.b.sei.svc",
        "sei.svc",
        "10.0.0.2",
        "only-a-common-name",
        "",
        "*.sei.svc",
    ] {
        let missing = NameMissing {
            missing: name.to_owned(),
            names: vec!["*.sei.svc".into(), "node-0".into(), "10.0.0.1".into()],
        };
        assert_eq!(
            pair.serves(&["node-0", name], from),
            Err(missing.into()),
            "{name}"
        );
    }
    let error = pair.serves(&["x"], from).expect_err("x");
    assert_eq!(
        error.to_string(),
        "the certificate does not name x; it names *.sei.svc, node-0, 10.0.0.1"
    );
}

#[test]
fn the_facts_of_a_leaf_are_those_openssl_would_print() {
    let authority = Authority::new("the issuer");
    let pem = authority.server();
    let pair = pem.pair();
    let leaf = pair.leaf();
    assert_eq!(leaf.issuer, "CN=the issuer");
    assert_eq!(leaf.names, NAMES);
    let text = leaf.fingerprint.to_string();
    assert_eq!(text.len(), 64);
    assert_eq!(text, text.to_lowercase());
    assert_eq!(text.parse(), Ok(leaf.fingerprint));
    let spaced: Vec<_> = text
        .as_bytes()
        .chunks(2)
        .map(|it| std::str::from_utf8(it).expect("hex"))
        .collect();
    assert_eq!(
        spaced.join(":").to_uppercase().parse(),
        Ok(leaf.fingerprint)
    );
    assert!("abc".parse::<Fingerprint>().is_err());
}

#[test]
fn nothing_of_a_key_is_printed() {
    let pem = Authority::new("pairs").server();
    let secret = pem.key.lines().nth(1).expect("a line of the key");
    let printed = format!("{:?}", pem.pair());
    assert!(!printed.contains(secret), "{printed}");
}

#[test]
fn a_self_signed_pair_is_p_256_and_due_after_two_thirds_of_its_life() {
    let now: Timestamp = "2031-01-01T00:00:00Z".parse().expect("a time");
    let names = ["node-0.sei.svc".to_owned(), "10.0.0.1".to_owned()];
    let own = SelfSigned::new(&names, LIFE, now).expect("a pair");
    let pair = Pair::from_pem(&own.certificate, &own.key).expect("a pair");
    assert_eq!(pair.algorithm(), rustls::SignatureAlgorithm::ECDSA);
    assert_eq!(pair.serves(&names, now), Ok(()));
    assert_eq!(pair.leaf().not_before.to_string(), "2030-12-31T23:00:00Z");
    assert_eq!(pair.leaf().not_after.to_string(), "2032-01-01T00:00:00Z");
    let day = SignedDuration::from_hours(24);
    assert!(!own.due(now + day * 243));
    assert!(own.due(now + day * 244));
    let secret = String::from_utf8(own.key.clone()).expect("PEM");
    assert!(!format!("{own:?}").contains(secret.lines().nth(1).expect("a line")));
    assert!(SelfSigned::new(&["n\u{f6}".to_owned()], LIFE, now).is_err());
}

/// RFC 5280 writes "no expiry" as a time that jiff cannot hold.
#[test]
fn a_certificate_without_an_end_is_valid_to_the_end_of_time_and_has_its_serial_in_hex() {
    let mut params = rcgen::CertificateParams::default();
    params.serial_number = Some(vec![0x0a, 0xbc, 0x01].into());
    params.not_after = rcgen::date_time_ymd(9999, 12, 31) + Duration::from_secs(86_399);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    let pair = read(&certificate, &key.serialize_pem()).expect("a pair");
    assert_eq!(pair.leaf().not_after, Timestamp::MAX);
    assert_eq!(pair.leaf().serial, "abc01");
    assert_eq!(pair.leaf().valid_at(Timestamp::now()), Ok(()));
}
