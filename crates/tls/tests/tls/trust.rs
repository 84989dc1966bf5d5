//! Clients that pin: the rule by itself, and in handshakes over loopback.

use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket};

use super::pki::{Authority, NAMES, Pem, Wanted, self_signed};
use super::world::{PATIENCE, dial, echo, fixed};
use keelson_tls::client::{Accepted, NoPins, Untrusted};
use keelson_tls::observe::Unobserved;
use keelson_tls::{ClientAuth, Pins, Profile, observe, pinned, server_config};

fn judge(pins: &Pins, pem: &Pem) -> Result<Accepted, Untrusted> {
    judge_at(pins, pem, Timestamp::now())
}

fn judge_at(pins: &Pins, pem: &Pem, now: Timestamp) -> Result<Accepted, Untrusted> {
    let der = CertificateDer::from_pem_slice(pem.certificate.as_bytes()).expect("one");
    pins.judge(&der, &[], now)
}

async fn server(pem: &Pem) -> SocketAddr {
    let profile = Profile::intermediate();
    let (config, _) =
        server_config(&profile, &pem.pair(), ClientAuth::None, None, &[]).expect("a configuration");
    echo(fixed(config)).await
}

#[test]
fn the_rule_of_observation_accepts_the_known_the_chained_or_without_a_ca_the_secret_s_leaf() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (leaf, other, foreign) = (ours.server(), ours.server(), theirs.server());
    let ca = Some(ours.certificate.as_bytes());
    let chained = Err("not chained");
    let other_leaf = Err("other leaf");
    // Known leaf, ca.crt, the Secret's leaf, what is presented, what comes of it.
    let cases = [
        (Some(&leaf), None, None, &leaf, Ok(Accepted::Known)),
        (Some(&leaf), None, None, &other, other_leaf),
        (Some(&foreign), ca, None, &foreign, Ok(Accepted::Known)),
        (None, ca, None, &leaf, Ok(Accepted::Chained)),
        (None, ca, None, &foreign, chained),
        (Some(&leaf), ca, None, &other, Ok(Accepted::Chained)),
        (None, None, Some(&leaf), &leaf, Ok(Accepted::Pinned)),
        (None, None, Some(&leaf), &other, other_leaf),
        (Some(&other), None, Some(&leaf), &other, Ok(Accepted::Known)),
        (Some(&other), None, Some(&leaf), &foreign, other_leaf),
        // With a ca.crt the Secret's leaf vouches for nothing.
        (None, ca, Some(&foreign), &foreign, chained),
        (
            None,
            Some(&b" \n"[..]),
            Some(&leaf),
            &leaf,
            Ok(Accepted::Pinned),
        ),
    ];
    for (number, (known, ca, secret, presented, expected)) in cases.into_iter().enumerate() {
        let print = |pem: Option<&Pem>| pem.map(Pem::fingerprint);
        let pins = Pins::observation(print(known), ca, print(secret), NAMES).expect("pins");
        let judged = judge(&pins, presented).map_err(|error| match error {
            Untrusted::NotChained { .. } => "not chained",
            Untrusted::OtherLeaf { .. } => "other leaf",
            _ => "something else",
        });
        assert_eq!(judged, expected, "case {number}");
    }
}

#[test]
fn names_and_time_are_demanded_whatever_vouches_for_the_leaf() {
    let ours = Authority::new("ours");
    let leaf = ours.server();
    let print = leaf.fingerprint();
    let ca = ours.certificate.as_bytes();
    let names = ["node-0", "node-1"];
    let later = Timestamp::now() + SignedDuration::from_hours(48);
    for (known, bundle, secret) in [
        (Some(print), None, None),
        (None, Some(ca), None),
        (None, None, Some(print)),
    ] {
        let pins = Pins::observation(known, bundle, secret, &names).expect("pins");
        let untrusted = judge(&pins, &leaf).expect_err("a name is missing");
        assert_eq!(
            untrusted.to_string(),
            "the certificate does not name node-1; it names node-0.sei.svc, node-0"
        );
        let pins = Pins::observation(known, bundle, secret, NAMES).expect("pins");
        assert!(judge(&pins, &leaf).is_ok());
        let untrusted = judge_at(&pins, &leaf, later).expect_err("expired");
        assert!(matches!(untrusted, Untrusted::Untimely(_)), "{untrusted}");
    }
}

#[test]
fn a_common_name_or_a_client_s_certificate_is_not_enough() {
    let ours = Authority::new("ours");
    let pins = Pins::authorities(ours.certificate.as_bytes(), &["node-0"]).expect("pins");
    let common = ours.sign(&Wanted {
        names: &["elsewhere"],
        common_name: Some("node-0"),
        ..Wanted::default()
    });
    assert!(matches!(
        judge(&pins, &common),
        Err(Untrusted::NameMissing(_))
    ));
    let client = ours.sign(&Wanted {
        purpose: ExtendedKeyUsagePurpose::ClientAuth,
        ..Wanted::default()
    });
    assert!(matches!(
        judge(&pins, &client),
        Err(Untrusted::NotChained { .. })
    ));
}

#[test]
fn a_self_signed_leaf_that_is_its_own_ca_crt_is_accepted() {
    let constraints = IsCa::Ca(BasicConstraints::Unconstrained);
    for authority in [IsCa::NoCa, IsCa::ExplicitNoCa, constraints] {
        let leaf = self_signed(authority);
        let pins = Pins::authorities(leaf.certificate.as_bytes(), NAMES).expect("pins");
        assert_eq!(judge(&pins, &leaf), Ok(Accepted::Chained));
        let other = self_signed(IsCa::NoCa);
        assert!(judge(&pins, &other).is_err());
    }
}

#[test]
fn pins_that_would_trust_anybody_or_nobody_are_not_made() {
    let ours = Authority::new("ours");
    let none: &[&str] = &[];
    let ca = ours.certificate.as_bytes();
    assert_eq!(Pins::authorities(ca, none).err(), Some(NoPins::NoName));
    assert_eq!(
        Pins::authorities(ca, &["not a name"]).err(),
        Some(NoPins::BadName("not a name".to_owned()))
    );
    assert_eq!(
        Pins::observation(None, None, None, NAMES).err(),
        Some(NoPins::NothingPinned)
    );
    assert!(Pins::authorities(b"junk", NAMES).is_err());
}

#[tokio::test]
async fn an_observation_tells_who_answered() {
    let ours = Authority::new("ours");
    let pem = ours.server();
    let address = server(&pem).await;
    let pins = Pins::authorities(ours.certificate.as_bytes(), NAMES).expect("pins");
    let peer = observe(address, &pins, PATIENCE).await.expect("a peer");
    assert_eq!(peer.accepted, Accepted::Chained);
    assert_eq!(peer.leaf, *pem.pair().leaf());
    assert_eq!(peer.leaf.issuer, "CN=ours");
}

#[tokio::test]
async fn a_pinned_client_talks_to_the_pinned_server_and_to_no_other() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (good, bad) = (ours.server(), theirs.server());
    let pins = Pins::leaf(good.fingerprint(), NAMES).expect("pins");
    let client = Arc::new(pinned(pins.clone(), &[]).expect("a client"));
    assert!(dial(server(&good).await, &client).await.is_ok());
    let address = server(&bad).await;
    assert!(dial(address, &client).await.is_err());
    let untrusted = observe(address, &pins, PATIENCE)
        .await
        .expect_err("another leaf");
    assert!(!untrusted.unknown());
    assert_eq!(
        untrusted.to_string(),
        format!(
            "the server's certificate {} is not the pinned one, {}",
            bad.fingerprint(),
            good.fingerprint()
        )
    );
}

#[tokio::test]
async fn a_pinned_client_offers_its_protocols_and_looks_at_the_leaf_every_time() {
    let ours = Authority::new("ours");
    let alpn = [b"http/1.1".to_vec()];
    let profile = Profile::intermediate();
    let pair = ours.server().pair();
    let (config, _) =
        server_config(&profile, &pair, ClientAuth::None, None, &alpn).expect("a configuration");
    let address = echo(fixed(config)).await;
    let pins = Pins::authorities(ours.certificate.as_bytes(), NAMES).expect("pins");
    let client = Arc::new(pinned(pins, &alpn).expect("a client"));
    for _ in 0..2 {
        let stream = dial(address, &client).await.expect("a session");
        let session = stream.get_ref().1;
        assert_eq!(session.handshake_kind(), Some(rustls::HandshakeKind::Full));
        assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
}

#[tokio::test]
async fn an_intermediate_the_server_sends_completes_the_chain() {
    let root = Authority::new("root");
    let middle = root.intermediate("middle");
    let mut pem = middle.server();
    pem.certificate.push_str(&middle.certificate);
    let pins = Pins::authorities(root.certificate.as_bytes(), NAMES).expect("pins");
    let peer = observe(server(&pem).await, &pins, PATIENCE)
        .await
        .expect("a peer");
    assert_eq!(peer.leaf.issuer, "CN=middle");
}

#[tokio::test]
async fn silence_refusal_and_plaintext_are_told_apart() {
    let ours = Authority::new("ours");
    let pins = Pins::authorities(ours.certificate.as_bytes(), NAMES).expect("pins");
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address");

    let silent = observe(address, &pins, Duration::from_millis(50)).await;
    let silent = silent.expect_err("nobody answers");
    assert!(matches!(silent, Unobserved::TimedOut(_)) && silent.unknown());

    let plain = tokio::spawn(async move {
        let (_silent, _) = socket.accept().await.expect("the first");
        let (mut stream, _) = socket.accept().await.expect("the second");
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        // Not dropped with bytes unread: that would reset the connection before the answer is read.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    });
    let spoken = observe(address, &pins, PATIENCE)
        .await
        .expect_err("plaintext");
    assert!(
        matches!(spoken, Unobserved::NotTls(_)) && !spoken.unknown(),
        "{spoken:?}"
    );

    plain.await.expect("the plain server");
    // Bound and not listening: nobody else gets this port meanwhile.
    let held = TcpSocket::new_v4().expect("a socket");
    held.bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let address = held.local_addr().expect("an address");
    let gone = observe(address, &pins, PATIENCE)
        .await
        .expect_err("nobody listens");
    assert!(matches!(gone, Unobserved::Unreachable(_)) && gone.unknown());
}
