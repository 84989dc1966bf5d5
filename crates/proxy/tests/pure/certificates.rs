//! Client certificates: who their holder is, and that remembering a judgement changes none (§3.4).

use crate::pki::{Ca, Held};
use jiff::Timestamp;
use keelson_proxy::decision::Keys;
use keelson_proxy::reviewers::Login;
use keelson_proxy::x509::{NotAccepted, Presented, identity, judge, unchanged_until};
use keelson_tls::{Authorities, Fingerprint};
use proptest::prelude::*;
use rcgen::{DnType, date_time_ymd};
use std::sync::Arc;

/// Kubernetes' own attribute for uids, and the organization's number under another name, because
/// the maker of certificates takes each name once.
const UID: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

fn held(attributes: &[(DnType, &str)]) -> Held {
    Ca::new("clients").client("", |params| {
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, text) in attributes {
            params.distinguished_name.push(kind.clone(), *text);
        }
    })
}

#[test]
fn the_common_name_is_the_user_and_organizations_are_groups_in_order() {
    let held = held(&[
        (DnType::OrganizationName, "zebras"),
        (DnType::CommonName, "ada"),
        (DnType::CustomDnType(ORGANIZATION.to_vec()), "antelopes"),
        (DnType::CustomDnType(UID.to_vec()), "7"),
        (DnType::OrganizationalUnitName, "not a group"),
    ]);
    let who = identity(&held.der).expect("somebody");
    assert_eq!((who.user.as_str(), who.uid.as_str()), ("ada", "7"));
    assert_eq!(who.groups, ["zebras", "antelopes"]);
    let credential = format!("X509SHA256={}", Fingerprint::of(&held.der));
    assert_eq!(
        *who.extra,
        [(
            "authentication.kubernetes.io/credential-id".to_owned(),
            vec![credential]
        )]
    );
}

#[test]
fn a_subject_without_a_name_or_with_a_doubtful_uid_is_nobody() {
    let uid = || DnType::CustomDnType(UID.to_vec());
    for (attributes, expected) in [
        (vec![], NotAccepted::Nameless),
        (vec![(DnType::CommonName, "")], NotAccepted::Nameless),
        (
            vec![(DnType::OrganizationName, "group")],
            NotAccepted::Nameless,
        ),
        (
            vec![(DnType::CommonName, "ada"), (uid(), "")],
            NotAccepted::Uid,
        ),
    ] {
        assert_eq!(
            identity(&held(&attributes).der),
            Err(expected),
            "{attributes:?}"
        );
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

#[test]
fn a_judgement_holds_until_a_certificate_begins_or_ends() {
    let ca = Ca::new("clients");
    let leaf = ca.client("ada", |params| {
        params.not_before = date_time_ymd(2030, 1, 1);
        params.not_after = date_time_ymd(2040, 1, 1);
    });
    let other = ca.client("between", |params| {
        params.not_before = date_time_ymd(2010, 1, 1);
        params.not_after = date_time_ymd(2035, 1, 1);
    });
    let chain = [leaf.der.clone(), other.der.clone()];
    for (now, until) in [
        ("2000-01-01T00:00:00Z", "2010-01-01T00:00:00Z"),
        ("2010-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
        ("2034-12-31T23:59:59Z", "2035-01-01T00:00:01Z"),
        ("2035-01-01T00:00:01Z", "2040-01-01T00:00:01Z"),
    ] {
        assert_eq!(unchanged_until(&chain, at(now)), at(until), "{now}");
    }
    assert_eq!(
        unchanged_until(&chain, at("2041-01-01T00:00:00Z")),
        Timestamp::MAX
    );

    let authorities = Authorities::from_pem(ca.pem.as_bytes()).expect("authorities");
    for (now, good) in [
        ("2029-12-31T23:59:59Z", false),
        ("2030-01-01T00:00:00Z", true),
        ("2040-01-01T00:00:00Z", true),
        ("2040-01-01T00:00:01Z", false),
    ] {
        let judged = judge(&chain[..1], &authorities, at(now));
        assert_eq!(judged.is_ok(), good, "{now}: {judged:?}");
    }
}

#[test]
fn a_judgement_is_made_once_and_then_remembered() {
    let ca = Ca::new("clients");
    let authorities = Authorities::from_pem(ca.pem.as_bytes()).expect("authorities");
    let authorities = Arc::new(authorities);
    let keys = Keys::random().expect("randomness");
    let presented = Presented::new(vec![ca.client("ada", |_| {}).der]);
    let mut logins = (0..2).map(|second| {
        let now = Timestamp::from_second(1_900_000_000 + second).expect("a time");
        match presented.login(&authorities, &keys, now) {
            Login::Known { identity, .. } => identity,
            Login::Unknown(why) => panic!("{why}"),
        }
    });
    let (first, second) = (logins.next().expect("one"), logins.next().expect("two"));
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(first.groups, ["system:authenticated"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the order of bundles and times, a clock set back included.
    #[test]
    fn a_remembered_judgement_is_the_one_that_would_be_made_now(
        visits in prop::collection::vec((any::<bool>(), -3_i64..3, any::<bool>()), 1..24),
    ) {
        let cas = ["one", "other"].map(Ca::new);
        let bundles = cas.each_ref().map(|ca| {
            Arc::new(Authorities::from_pem(ca.pem.as_bytes()).expect("authorities"))
        });
        let leaf = cas[0].client("ada", |params| {
            params.not_before = date_time_ymd(2030, 1, 1);
            params.not_after = date_time_ymd(2031, 1, 1);
        });
        let turns = [at("2030-01-01T00:00:00Z"), at("2031-01-01T00:00:00Z")];
        let chain = vec![leaf.der];
        let keys = Keys::random().expect("randomness");
        let presented = Presented::new(chain.clone());
        for (other, offset, late) in visits {
            let bundle = &bundles[usize::from(other)];
            let now = turns[usize::from(late)].as_second() + offset;
            let now = Timestamp::from_second(now).expect("a time");
            let remembered = presented.login(bundle, &keys, now);
            let known = matches!(remembered, Login::Known { .. });
            prop_assert_eq!(known, judge(&chain, bundle, now).is_ok(), "{} {}", other, now);
        }
    }
}
