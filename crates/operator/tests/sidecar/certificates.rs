//! What is made of a Secret, without a cluster.

use crate::stage::{NAMES, authority};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use keelson_api::node_condition::NodeReason;
use keelson_api::sidecar::IssuerKind;
use keelson_operator::certificate::{Held, Unfit, fits, owned, pins, read};
use keelson_plan::Tls;
use keelson_testbed::{Authority, Identity};
use keelson_tls::client::{Accepted, NoPins, Pins};
use keelson_tls::{Fingerprint, Leaf};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const CERTIFICATE: &str = "pacific-sidecar-tls";
const WRITTEN: [(&str, &str); 3] = [
    ("cert-manager.io/certificate-name", CERTIFICATE),
    ("cert-manager.io/issuer-name", "ours"),
    ("cert-manager.io/issuer-kind", "ClusterIssuer"),
];

fn names() -> Vec<String> {
    NAMES.map(str::to_owned).to_vec()
}

fn secret(identity: &Identity, ca: &str) -> Secret {
    let mut secret = Secret {
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    };
    secret.metadata.name = Some("mine".to_owned());
    put(&mut secret, "tls.crt", &identity.certificate);
    put(&mut secret, "tls.key", &identity.key);
    put(&mut secret, "ca.crt", ca);
    secret
}

fn put(secret: &mut Secret, key: &str, value: &str) {
    let value = ByteString(value.as_bytes().to_vec());
    let data = secret.data.get_or_insert_default();
    data.insert(key.to_owned(), value);
}

fn annotated(mut secret: Secret, annotations: &[(&str, &str)]) -> Secret {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    secret.metadata.annotations = Some(annotations.iter().map(own).collect());
    secret
}

fn good(authority: &Authority) -> Secret {
    let identity = authority.server(&NAMES).expect("a certificate");
    secret(&identity, authority.certificate())
}

fn leaf(pem: &str) -> Leaf {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    Leaf::read(&der).expect("a leaf")
}

fn ordered() -> Tls {
    let name = "ours".to_owned();
    let kind = IssuerKind::ClusterIssuer;
    Tls::Issuer { name, kind }
}

#[test]
fn a_secret_is_read_with_all_that_is_worth_knowing() {
    let ours = authority("ours");
    let more = [NAMES[1], "another.example", NAMES[0], "10.0.0.1"];
    let identity = ours.server(&more).expect("a certificate");
    let secret = annotated(secret(&identity, ours.certificate()), &WRITTEN);

    let held = read(&secret, &names()).expect("a good one");

    let leaf = leaf(&identity.certificate);
    let expected = Held {
        fingerprint: leaf.fingerprint,
        not_before: leaf.not_before,
        not_after: leaf.not_after,
        names: more.map(str::to_owned).to_vec(),
        ca: Some(ours.certificate().as_bytes().to_vec()),
        issuer: Some(("ours".to_owned(), IssuerKind::ClusterIssuer)),
        certificate: Some(CERTIFICATE.to_owned()),
    };
    assert_eq!(held, expected);
}

#[test]
fn a_secret_of_a_person_has_no_issuer_and_may_have_no_authority() {
    let ours = authority("ours");
    for ca in ["", "\n"] {
        let identity = ours.server(&NAMES).expect("a certificate");
        let held = read(&secret(&identity, ca), &names()).expect("a good one");
        assert_eq!((held.ca, held.issuer, held.certificate), (None, None, None));
    }
}

#[test]
fn a_wildcard_covers_the_pod_as_it_does_for_any_client() {
    let wild = ["*.pacific.sei.svc.cluster.local", NAMES[0]];
    let identity = authority("ours").server(&wild).expect("a certificate");
    read(&secret(&identity, ""), &names()).expect("a good one");
}

type Spoil<'a> = &'a dyn Fn(&mut Secret);

#[test]
fn a_secret_without_a_usable_pair_is_malformed_and_says_what_is_wrong() {
    let ours = authority("ours");
    let another = ours.server(&NAMES).expect("a certificate");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let pair = "tls.crt and tls.key of Secret mine are no key pair: ";
    let table: [(Spoil<'_>, &str); 9] = [
        (
            &|it| it.type_ = Some("Opaque".to_owned()),
            "Secret mine is of type \"Opaque\": make one of type kubernetes.io/tls",
        ),
        (
            &|it| it.type_ = None,
            "Secret mine is of type \"\": make one of type kubernetes.io/tls",
        ),
        (
            &|it| it.data = None,
            "tls.crt of Secret mine is missing or empty",
        ),
        (
            &|it| put(it, "tls.crt", ""),
            "tls.crt of Secret mine is missing or empty",
        ),
        (
            &|it| put(it, "tls.key", ""),
            "tls.key of Secret mine is missing or empty",
        ),
        (
            &|it| put(it, "tls.crt", "not PEM"),
            &format!("{pair}the certificate file holds no certificate"),
        ),
        (
            &|it| put(it, "tls.crt", broken),
            &format!("{pair}the certificate file is not readable as PEM certificates"),
        ),
        (
            &|it| put(it, "tls.key", "not PEM"),
            &format!("{pair}the key file holds no private key"),
        ),
        (
            &|it| put(it, "tls.key", &another.key),
            &format!("{pair}the private key does not belong to the certificate"),
        ),
    ];
    for (spoil, sentence) in table {
        let mut secret = good(&ours);
        spoil(&mut secret);
        let unfit = read(&secret, &names()).expect_err("a bad one");
        assert_eq!(unfit, Unfit::Malformed(sentence.to_owned()));
        assert_eq!(unfit.reason(), NodeReason::TlsSecretMalformed);
    }
}

#[test]
fn every_name_that_is_missing_is_told() {
    let ours = authority("ours");
    let part = ours.server(&NAMES[..1]).expect("a certificate");
    let other = ours.server(&["else.example", "10.0.0.1"]);
    let other = other.expect("a certificate");
    // Its common name is the Service's, which counts for nothing.
    let common = ours.client(NAMES[0], None).expect("a certificate");
    for (identity, missing, has) in [
        (part, &NAMES[1..], NAMES[0]),
        (other, &NAMES[..], "else.example, 10.0.0.1"),
        (common, &NAMES[..], "nothing"),
    ] {
        let unfit = read(&secret(&identity, ""), &names()).expect_err("a bad one");
        assert_eq!(unfit.reason(), NodeReason::TlsSecretSansMismatch);
        let sentence = format!(
            "the certificate in Secret mine must name {} too; it names {has}",
            missing.join(", ")
        );
        assert_eq!(unfit.to_string(), sentence);
    }
}

#[test]
fn a_secret_that_is_not_there_is_named() {
    for (wanted, name) in [
        (Tls::Secret("mine".to_owned()), "mine"),
        (ordered(), CERTIFICATE),
    ] {
        let unfit = fits(None, &wanted, CERTIFICATE, &names()).expect_err("none");
        assert_eq!(unfit, Unfit::NotFound(name.to_owned()));
        assert_eq!(unfit.reason(), NodeReason::TlsSecretNotFound);
    }
    let unread = Unfit::Unavailable("the API server does not answer".to_owned());
    assert_eq!(unread.reason(), NodeReason::TlsSecretUnavailable);
}

#[test]
fn a_persons_secret_needs_nobodys_mark() {
    let ours = authority("ours");
    let wanted = Tls::Secret("mine".to_owned());
    fits(Some(&good(&ours)), &wanted, CERTIFICATE, &names()).expect("a good one");
}

#[test]
fn a_secret_cert_manager_did_not_write_for_us_is_not_ours() {
    let ours = authority("ours");
    let other = [("cert-manager.io/certificate-name", "another"), WRITTEN[1]];
    let bad = annotated(Secret::default(), &WRITTEN[1..]);
    for (secret, sentence) in [
        (
            good(&ours),
            "Secret mine was not written by cert-manager: remove it, or name it as sidecar.tls.secretName",
        ),
        (
            annotated(good(&ours), &other),
            "Secret mine belongs to the Certificate another: give that another secretName",
        ),
        (
            bad,
            "Secret  was not written by cert-manager: remove it, or name it as sidecar.tls.secretName",
        ),
    ] {
        let unfit = fits(Some(&secret), &ordered(), CERTIFICATE, &names());
        let unfit = unfit.expect_err("somebody else's");
        assert_eq!(unfit, Unfit::NotOwned(sentence.to_owned()));
        assert_eq!(unfit.reason(), NodeReason::TlsSecretNotOwned);
        assert_eq!(owned(&secret, CERTIFICATE), Err(unfit));
    }
    let written = annotated(good(&ours), &WRITTEN);
    assert_eq!(owned(&written, CERTIFICATE), Ok(()));
}

#[test]
fn a_certificate_of_another_issuer_is_not_the_one_that_was_ordered() {
    let ours = authority("ours");
    let group = ("cert-manager.io/issuer-group", "cert-manager.io");
    let good_one = annotated(good(&ours), &[&WRITTEN[..], &[group]].concat());
    fits(Some(&good_one), &ordered(), CERTIFICATE, &names()).expect("a good one");

    let [certificate, name, kind] = WRITTEN;
    for (annotations, found) in [
        (
            vec![certificate, ("cert-manager.io/issuer-name", "before"), kind],
            "ClusterIssuer before",
        ),
        (vec![certificate, name], "Issuer ours"),
        (
            vec![certificate, name, ("cert-manager.io/issuer-kind", "Vault")],
            "Vault ours",
        ),
        (
            vec![certificate, name, kind, (group.0, "example.com")],
            "ClusterIssuer ours",
        ),
        (vec![certificate], "an issuer it does not name"),
    ] {
        let secret = annotated(good(&ours), &annotations);
        let unfit = fits(Some(&secret), &ordered(), CERTIFICATE, &names());
        let unfit = unfit.expect_err("another issuer's");
        assert_eq!(unfit.reason(), NodeReason::CertificatePending);
        let sentence = format!(
            "the certificate in the Secret is still from {found}, not from ClusterIssuer ours"
        );
        assert_eq!(unfit.to_string(), sentence);
    }
}

fn judged(pins: &Pins, pem: &str) -> Option<Accepted> {
    let leaf = leaf(pem);
    pins.judge(leaf.der(), &[], jiff::Timestamp::now()).ok()
}

#[test]
fn a_handshake_trusts_the_known_leaf_the_authority_or_the_one_leaf() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let make = |it: &Authority| it.server(&NAMES).expect("a certificate");
    let (current, renewed, foreign) = (make(&ours), make(&ours), make(&theirs));
    let hold = |ca: &str| read(&secret(&current, ca), &names()).expect("a good one");
    let (chained, alone) = (hold(ours.certificate()), hold(""));
    let known = Some(leaf(&foreign.certificate).fingerprint);

    for (held, known, expected) in [
        (
            &chained,
            None,
            [Some(Accepted::Chained), Some(Accepted::Chained), None],
        ),
        (
            &chained,
            known,
            [
                Some(Accepted::Chained),
                Some(Accepted::Chained),
                Some(Accepted::Known),
            ],
        ),
        (&alone, None, [Some(Accepted::Pinned), None, None]),
        (
            &alone,
            known,
            [Some(Accepted::Pinned), None, Some(Accepted::Known)],
        ),
    ] {
        let pins = pins(Some(held), known, &names()).expect("pins");
        let seen = [&current, &renewed, &foreign].map(|it| judged(&pins, &it.certificate));
        assert_eq!(seen, expected);
    }
    let only_known = pins(None, known, &names()).expect("pins");
    assert_eq!(
        judged(&only_known, &foreign.certificate),
        Some(Accepted::Known)
    );
    let nothing = pins(None, None::<Fingerprint>, &names()).expect_err("nothing to trust");
    assert_eq!(nothing, NoPins::NothingPinned);
}
