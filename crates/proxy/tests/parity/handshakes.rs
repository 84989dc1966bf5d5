//! TLS as either program serves it, and speaks it to the upstream.

use crate::case::get;
use crate::stage::{Place, Stage};
use crate::subject::{Folder, Running, Subject, free};
use crate::upstream::header;
use crate::wire::{Door, leaf};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ProtocolVersion, RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

const BOTH: [Subject; 2] = [Subject::KubeRbacProxy, Subject::Keelson];
const OPEN: &str = "--ignore-paths=/open";
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_floor_is_served_with_the_newest_version_both_know() {
    let (old, new) = (ProtocolVersion::TLSv1_2, ProtocolVersion::TLSv1_3);
    let stage = Stage::new("floors").await;
    let root = stage.authority.certificate();
    for subject in BOTH {
        for floor in [
            "VersionTLS10",
            "VersionTLS11",
            "VersionTLS12",
            "VersionTLS13",
        ] {
            let flag = format!("--tls-min-version={floor}");
            let running = stage.start(subject, Place::TLS, "", &[OPEN, &flag]).await;
            let spoken =
                async |versions: &[ProtocolVersion]| running.door.version(root, versions).await;
            assert_eq!(spoken(&[old, new]).await, Some(new), "{subject:?} {floor}");
            let only_old = (floor != "VersionTLS13").then_some(old);
            assert_eq!(spoken(&[old]).await, only_old, "{subject:?} {floor}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_request_to_a_tls_port_is_told_so() {
    let stage = Stage::new("plain").await;
    let place = Place::TLS;
    let mut said = Vec::new();
    for subject in [Subject::KubeRbacProxy, Subject::Keelson] {
        let running = stage.start(subject, place, "", &[]).await;
        let plain = Door {
            tls: None,
            ..running.door.clone()
        };
        let answer = plain.exchange(get("/", &[]).as_bytes()).await;
        assert_eq!(answer.status, Some(400));
        assert_eq!(answer.headers, Vec::<String>::new());
        assert_eq!(
            answer.body,
            "Client sent an HTTP request to an HTTPS server.\n"
        );
        said.push(answer);
    }
    assert_eq!(said[0], said[1]);
}

/// A greeting that knows nothing newer than TLS 1.1, and only suites of that time.
fn greeting_of_2006() -> Vec<u8> {
    let suites = [0xc0, 0x09, 0xc0, 0x13, 0xc0, 0x0a, 0xc0, 0x14];
    let extensions = [
        [0, 10, 0, 4, 0, 2, 0, 23].as_slice(), // one group, P-256
        &[0, 11, 0, 2, 1, 0],                  // points as they are
    ]
    .concat();
    let mut hello = vec![3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 8]);
    hello.extend(suites);
    hello.extend([1, 0, 0, u8::try_from(extensions.len()).expect("short")]);
    hello.extend(extensions);
    let length = u8::try_from(hello.len()).expect("short");
    let mut record = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
    record.extend(hello);
    record
}

/// The kind of record that answers: 22 is a handshake, 21 an alert.
async fn answered(running: &Running) -> u8 {
    let mut stream = TcpStream::connect(running.door.address)
        .await
        .expect("a connection");
    stream
        .write_all(&greeting_of_2006())
        .await
        .expect("a greeting");
    let answer = timeout(SOON, stream.read_u8()).await.expect("in time");
    answer.expect("a record")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a16_tls_of_2006_can_be_had_there_and_not_here() {
    let stage = Stage::new("old").await;
    for (subject, wanted) in [(Subject::KubeRbacProxy, 22), (Subject::Keelson, 21)] {
        let running = stage
            .start(subject, Place::TLS, "", &["--tls-min-version=VersionTLS10"])
            .await;
        assert_eq!(answered(&running).await, wanted, "{subject:?}");
        let log = running.log();
        let noted = log.contains("VersionTLS10 is taken as VersionTLS12");
        assert_eq!(noted, subject == Subject::Keelson, "{log}");
    }
}

const RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const P256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a18_a_certificate_of_its_own_is_rsa_there_and_p_256_here() {
    let stage = Stage::new("own").await;
    for (subject, rsa) in [(Subject::KubeRbacProxy, true), (Subject::Keelson, false)] {
        let address = free();
        let flag = format!("--secure-listen-address={address}");
        let mut running = stage.plain(subject, "", &[&flag]).await;
        running.listening(address).await;
        let shown = leaf(address).await;
        let has = |name: &[u8]| shown.windows(name.len()).any(|it| it == name);
        assert_eq!((has(&RSA), has(&P256)), (rsa, !rsa), "{subject:?}");
    }
}

/// An upstream that asks for a certificate of this stage's authority.
async fn demanding(stage: &Stage) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(stage.authority.certificate().as_bytes());
    roots.add(root.expect("PEM")).expect("a root");
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
    let identity = stage
        .authority
        .server(&["127.0.0.1"])
        .expect("a certificate");
    let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("PEM");
    let config = ServerConfig::builder()
        .with_client_cert_verifier(verifier.expect("a verifier"))
        .with_single_cert(vec![chain], key)
        .expect("a pair");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await.ok()?;
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.ok()?);
                }
                let host = header(&String::from_utf8_lossy(&head), "host")?.to_owned();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{host}",
                    host.len()
                );
                stream.write_all(answer.as_bytes()).await.ok()
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_shown_to_an_upstream_that_asks_for_one() {
    let stage = Stage::new("shown").await;
    let upstream = format!("--upstream=https://{}", demanding(&stage).await);
    let folder = Folder::new();
    let identity = stage
        .authority
        .client("proxy", None)
        .expect("a certificate");
    let authority = folder.file("ca.crt", stage.authority.certificate());
    let authority = format!("--upstream-ca-file={authority}");
    let pair = [
        format!(
            "--upstream-client-cert-file={}",
            folder.file("c.crt", &identity.certificate)
        ),
        format!(
            "--upstream-client-key-file={}",
            folder.file("c.key", &identity.key)
        ),
    ];
    for subject in BOTH {
        let without = stage
            .plain(subject, "", &[OPEN, &upstream, &authority])
            .await;
        let answer = without.door.exchange(get("/open", &[]).as_bytes()).await;
        assert_eq!(answer.status, Some(502), "{subject:?} shows nothing");
        let flags = [OPEN, &upstream, &authority, &pair[0], &pair[1]];
        let with = stage.plain(subject, "", &flags).await;
        let answer = with.door.exchange(get("/open", &[]).as_bytes()).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (Some(200), "node.example")
        );
    }
}

/// The reference passes over the pair without a word. Ours reads it whatever else is given, finds
/// none here, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a21_a_certificate_for_the_upstream_without_an_authority_is_not_passed_over() {
    let stage = Stage::new("mtls").await;
    let flags = [
        "--upstream=https://127.0.0.1:1",
        "--upstream-client-cert-file=/nowhere/tls.crt",
        "--upstream-client-key-file=/nowhere/tls.key",
        OPEN,
    ];
    let reference = stage.plain(Subject::KubeRbacProxy, "", &flags).await;
    let answer = reference.door.exchange(get("/open", &[]).as_bytes()).await;
    assert_eq!(answer.status, Some(502), "it started, and never looked");
    let around = stage.surroundings(Place::default(), "").await;
    let mut ours = Running::launch(Subject::Keelson, around, &stage.words(&flags));
    assert_eq!(ours.ended().await.code(), Some(1));
    let wanted = "/nowhere/tls.crt";
    assert!(ours.log().contains(wanted), "{}", ours.log());
}
