//! TLS to a sidecar, and what a port speaks.

use crate::server::{Reply, Server, answer};
use crate::stage::{NAMES, OneToken, authority, pins, sidecars, tls, whom, with_tokens};
use keelson_operator::sidecar::{Audience, CallError, Spoken, Transport};
use keelson_tls::client::{Accepted, Pins};
use keelson_tls::{Fingerprint, Pair};
use std::net::TcpListener;
use std::sync::Arc;
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x1234);

#[tokio::test]
async fn over_tls_the_pods_own_name_is_asked_for() {
    let ours = authority("ours");
    let identity = ours.server(&NAMES).expect("a certificate");
    let server = Server::tls(&identity, |_| answer(404, "")).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let asked = sidecars
        .task(&whom("pod"), &tls(&ours), Audience::Node, ID)
        .await;
    assert_eq!(asked, Ok(None));
    let seen = &server.ledger().seen[0];
    assert_eq!(seen.server_name.as_deref(), Some(NAMES[1]));
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_sent_nothing() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let stranger = theirs.server(&NAMES).expect("a certificate");
    let misnamed = ours.server(&NAMES[..1]).expect("a certificate");
    for identity in [stranger, misnamed] {
        let server = Server::tls(&identity, |_| answer(404, "")).await;
        let tokens = Arc::new(OneToken::default());
        let sidecars = with_tokens(&[("pod", server.address)], tokens);
        let asked = sidecars
            .task(&whom("pod"), &tls(&ours), Audience::Node, ID)
            .await;
        let error = asked.expect_err("a stranger");
        assert!(matches!(error, CallError::Untrusted(_)), "{error:?}");
        assert!(
            error.passes_by_itself(),
            "a new certificate may be on its way"
        );
        server.saw("the end", |it| it.closed == 1).await;
        assert!(server.ledger().seen.is_empty());
    }
}

#[tokio::test]
async fn a_plaintext_port_is_told_from_one_that_speaks_tls() {
    let ours = authority("ours");
    let identity = ours.server(&NAMES).expect("a certificate");
    let plain = Server::plaintext(|_| Reply::Hang).await;
    let secure = Server::tls(&identity, |_| Reply::Hang).await;
    let sidecars = sidecars(&[("plain", plain.address), ("secure", secure.address)]);
    let pins = pins(&ours);

    for pins in [Some(&pins), None] {
        let spoken = sidecars.speaks(&whom("plain"), pins).await;
        assert_eq!(spoken, Spoken::Plaintext);
    }
    let Spoken::Tls(peer) = sidecars.speaks(&whom("secure"), Some(&pins)).await else {
        panic!("it speaks TLS");
    };
    assert_eq!(peer.accepted, Accepted::Chained);
    assert_eq!(peer.leaf.fingerprint, fingerprint(&identity));
    for server in [plain, secure] {
        server
            .saw("the end of all", |it| it.closed == it.opened)
            .await;
        assert!(
            server.ledger().seen.is_empty(),
            "a handshake asks for nothing"
        );
    }
}

fn fingerprint(identity: &keelson_testbed::Identity) -> Fingerprint {
    let pair = Pair::from_pem(identity.certificate.as_bytes(), identity.key.as_bytes());
    pair.expect("a pair").leaf().fingerprint
}

#[tokio::test]
async fn tls_that_cannot_be_verified_is_neither_trusted_nor_plaintext() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let identity = ours.server(&NAMES).expect("a certificate");
    let server = Server::tls(&identity, |_| Reply::Hang).await;
    let sidecars = sidecars(&[("pod", server.address)]);

    let Spoken::Untrusted(why) = sidecars.speaks(&whom("pod"), Some(&pins(&theirs))).await else {
        panic!("another authority");
    };
    assert!(why.contains("does not chain to the pinned CA"), "{why}");

    let spoken = sidecars.speaks(&whom("pod"), None).await;
    let presented = fingerprint(&identity);
    assert_eq!(
        spoken,
        Spoken::Untrusted(format!(
            "it presents the certificate {presented}, and there is nothing to verify it with"
        ))
    );
}

#[tokio::test]
async fn a_leaf_known_before_is_trusted_under_a_new_authority() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let identity = ours.server(&NAMES).expect("a certificate");
    let server = Server::tls(&identity, |_| Reply::Hang).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let known = Some(fingerprint(&identity));
    let bundle = Some(theirs.certificate().as_bytes());
    let pins = Pins::observation(known, bundle, None, &NAMES).expect("pins");
    let Spoken::Tls(peer) = sidecars.speaks(&whom("pod"), Some(&pins)).await else {
        panic!("it is known");
    };
    assert_eq!(peer.accepted, Accepted::Known);
}

#[tokio::test]
async fn nothing_is_learned_from_a_port_that_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address")
    };
    let cutting = Server::plaintext(|_| Reply::Cut).await;
    let at = silent.local_addr().expect("an address");
    let sidecars = sidecars(&[("silent", at), ("closed", closed), ("x", cutting.address)]);
    for (pod, expected) in [
        ("silent", "the handshake was not over after 3s"),
        ("closed", "the sidecar cannot be reached: no connection to"),
        (
            "nowhere",
            "the sidecar cannot be reached: the pod of sei/pacific has no address yet",
        ),
    ] {
        for pins in [Some(&pins(&authority("any"))), None] {
            let Spoken::Unknown(why) = sidecars.speaks(&whom(pod), pins).await else {
                panic!("nothing answered");
            };
            assert!(why.starts_with(expected), "{why}");
        }
    }
}

#[tokio::test]
async fn a_plaintext_call_to_a_tls_port_is_no_answer() {
    let ours = authority("ours");
    let identity = ours.server(&NAMES).expect("a certificate");
    let server = Server::tls(&identity, |_| answer(200, "")).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let health = sidecars.health(&whom("pod"), &Transport::Plaintext).await;
    let error = health.expect_err("no HTTP").0;
    assert!(matches!(error, CallError::Unreachable(_)), "{error:?}");
}
