//! What clients are asked for, seen from clients with the right certificate, a foreign one, none.

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

use super::pki::{Authority, Pem};
use super::world::{dial, echo, fixed};
use keelson_tls::client_auth::AuthorityError;
use keelson_tls::{Authorities, ClientAuth, Profile, server_config};

fn client(authority: &Authority, identity: Option<&Pem>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.certificate.as_bytes()).expect("a root");
    roots.add(root).expect("a root");
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let chain = CertificateDer::from_pem_slice(pem.certificate.as_bytes()).expect("one");
            let key = PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).expect("a key");
            builder
                .with_client_auth_cert(vec![chain], key)
                .expect("a client")
        }
    })
}

#[tokio::test]
async fn each_mode_admits_whom_it_should() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (good, foreign) = (ours.client("alice"), theirs.client("mallory"));
    let authorities = Authorities::from_pem(ours.certificate.as_bytes()).expect("a bundle");
    let pair = ours.server().pair();
    // Who gets in: without a certificate, with a good one, with a foreign one.
    let cases = [
        (ClientAuth::None, [true, true, true]),
        (ClientAuth::Optional, [true, true, false]),
        (ClientAuth::Required, [false, true, false]),
        (ClientAuth::Deferred, [true, true, true]),
    ];
    for (mode, expected) in cases {
        let profile = Profile::intermediate();
        let (config, _) =
            server_config(&profile, &pair, mode, Some(&authorities), &[]).expect("a configuration");
        let address = echo(fixed(config)).await;
        let identities = [None, Some(&good), Some(&foreign)];
        for (identity, admitted) in identities.into_iter().zip(expected) {
            let dialled = dial(address, &client(&ours, identity)).await;
            let who = identity.map_or("nobody", |it| {
                if it.key == good.key {
                    "good"
                } else {
                    "foreign"
                }
            });
            assert_eq!(
                dialled.is_ok(),
                admitted,
                "{mode:?} {who}: {:?}",
                dialled.err()
            );
        }
    }
}

#[test]
fn a_deferred_certificate_is_verified_by_the_caller_with_the_same_rules() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let authorities = Authorities::from_pem(ours.certificate.as_bytes()).expect("a bundle");
    let der = |pem: &Pem| CertificateDer::from_pem_slice(pem.certificate.as_bytes()).expect("one");
    let now = UnixTime::now();
    assert!(
        authorities
            .verify(&[der(&ours.client("alice"))], now)
            .is_ok()
    );
    assert!(
        authorities
            .verify(&[der(&theirs.client("mallory"))], now)
            .is_err()
    );
    assert!(
        authorities.verify(&[der(&ours.server())], now).is_err(),
        "for servers only"
    );
    assert!(authorities.verify(&[], now).is_err());
    let later = Timestamp::now().as_second() + 48 * 3600;
    let later = std::time::Duration::from_secs(later.try_into().expect("after 1970"));
    let later = UnixTime::since_unix_epoch(later);
    assert!(
        authorities
            .verify(&[der(&ours.client("alice"))], later)
            .is_err(),
        "expired"
    );
}

#[test]
fn a_bundle_must_be_whole_and_a_mode_that_checks_must_have_one() {
    let ours = Authority::new("ours");
    let cases = [
        (String::new(), AuthorityError::Missing),
        ("no PEM at all".to_owned(), AuthorityError::Missing),
        (
            format!(
                "{}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                ours.certificate
            ),
            AuthorityError::Unreadable,
        ),
        (
            ours.certificate[..200].to_owned(),
            AuthorityError::Unreadable,
        ),
    ];
    for (pem, expected) in cases {
        assert_eq!(
            Authorities::from_pem(pem.as_bytes()).err(),
            Some(expected),
            "{pem}"
        );
    }
    let pair = ours.server().pair();
    for mode in [ClientAuth::Optional, ClientAuth::Required] {
        let refused = server_config(&Profile::intermediate(), &pair, mode, None, &[]);
        assert_eq!(
            refused.err().map(|error| error.to_string()).as_deref(),
            Some("client certificates are to be checked and no CA file is given")
        );
    }
}
