//! The mode on the wire for every state of the files: what the configuration asks for, what the
//! Secret holds, and whether the proxy has just started or has been running.

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use jiff::Timestamp;
use keelson_proxy::flags::{Invocation, parse};
use keelson_proxy::follow::Follower;
use keelson_proxy::serve::{Limits, Listener, Origin, Respond};
use keelson_proxy::settings::{Settings, settle};
use keelson_tls::reload::Demands;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, ServerName};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

/// What a client finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Plain,
    Old,
    New,
    Shut,
}

/// What the Secret holds.
#[derive(Clone, Copy, Debug)]
enum Secret {
    Nothing,
    Old,
    New,
    CertificateOnly,
    KeyOnly,
    Mismatched,
    Expired,
}

const SECRETS: [Secret; 7] = [
    Secret::Nothing,
    Secret::Old,
    Secret::New,
    Secret::CertificateOnly,
    Secret::KeyOnly,
    Secret::Mismatched,
    Secret::Expired,
];

struct Pair {
    der: CertificateDer<'static>,
    certificate: String,
    key: String,
}

fn pair(last_year: i32) -> Pair {
    let mut params = CertificateParams::new(vec!["node".to_owned()]).expect("a name");
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(last_year, 1, 1);
    let key = KeyPair::generate().expect("a key");
    let made = params.self_signed(&key).expect("a certificate");
    Pair {
        der: made.der().clone(),
        certificate: made.pem(),
        key: key.serialize_pem(),
    }
}

struct Files {
    folder: PathBuf,
    old: Pair,
    new: Pair,
    expired: Pair,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Files {
    fn new(test: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("keelson-cells-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self {
            folder,
            old: pair(2090),
            new: pair(2091),
            expired: pair(2021),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn configure(&self, mode: &str) {
        let (certificate, key) = (self.at("tls.crt"), self.at("tls.key"));
        let text = match mode {
            "off" => "tls: {mode: \"off\"}\n".to_owned(),
            _ => format!(
                "tls: {{mode: required, certFile: {}, keyFile: {}}}\n",
                certificate.display(),
                key.display()
            ),
        };
        std::fs::write(self.at("config.yaml"), text).expect("a file");
    }

    fn put(&self, secret: Secret) {
        let (certificate, key) = match secret {
            Secret::Nothing => (None, None),
            Secret::Old => (Some(&self.old.certificate), Some(&self.old.key)),
            Secret::New => (Some(&self.new.certificate), Some(&self.new.key)),
            Secret::CertificateOnly => (Some(&self.new.certificate), None),
            Secret::KeyOnly => (None, Some(&self.new.key)),
            Secret::Mismatched => (Some(&self.new.certificate), Some(&self.old.key)),
            Secret::Expired => (Some(&self.expired.certificate), Some(&self.expired.key)),
        };
        set(&self.at("tls.crt"), certificate);
        set(&self.at("tls.key"), key);
    }

    fn settings(&self) -> Settings {
        let words = [
            "--listen-address=127.0.0.1:0".to_owned(),
            "--upstream=http://127.0.0.1:1".to_owned(),
            format!("--config-file={}", self.at("config.yaml").display()),
        ];
        settled(words)
    }

    fn start(&self) -> Follower {
        Follower::start(self.settings(), Demands::default(), Timestamp::now()).expect("a start")
    }

    async fn found(&self, address: SocketAddr) -> Found {
        let mut plain = TcpStream::connect(address).await.expect("a connection");
        plain
            .write_all(b"GET / HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n")
            .await
            .expect("sent");
        let mut said = String::new();
        let _ = plain.read_to_string(&mut said).await;
        if said.starts_with("HTTP/1.1 200") {
            return Found::Plain;
        }
        let mut roots = rustls::RootCertStore::empty();
        for pair in [&self.old, &self.new, &self.expired] {
            roots.add(pair.der.clone()).expect("a root");
        }
        let config = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.expect("a connection");
        let name = ServerName::try_from("node").expect("a name");
        match TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
        {
            Err(_) => Found::Shut,
            Ok(stream) => {
                let leaf = &stream
                    .get_ref()
                    .1
                    .peer_certificates()
                    .expect("a certificate")[0];
                if *leaf == self.old.der {
                    Found::Old
                } else {
                    Found::New
                }
            }
        }
    }
}

fn settled<const N: usize>(words: [String; N]) -> Settings {
    let Ok(Invocation::Run(flags, given)) = parse(words) else {
        panic!("flags that run");
    };
    settle(&flags, &given).expect("settings").0
}

fn set(path: &Path, text: Option<&String>) {
    match text {
        Some(text) => std::fs::write(path, text).expect("a file"),
        None => drop(std::fs::remove_file(path)),
    }
}

struct Ok200;

impl Respond for Ok200 {
    type Body = Full<Bytes>;
    type Unanswered = Infallible;

    async fn respond(
        self: Arc<Self>,
        _: Arc<Origin>,
        _: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(Response::new(Full::from("ok")))
    }
}

async fn listen(follower: &Follower) -> (SocketAddr, CancellationToken) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let listener = Listener::new(socket, follower.posture(), Limits::default());
    let address = listener.local_addr().expect("an address");
    let end = CancellationToken::new();
    tokio::spawn(listener.serve(Arc::new(Ok200), end.clone()));
    (address, end)
}

/// A complete pair is a state; anything else is not.
fn complete(secret: Secret) -> Option<Found> {
    match secret {
        Secret::Old => Some(Found::Old),
        Secret::New => Some(Found::New),
        Secret::Nothing
        | Secret::CertificateOnly
        | Secret::KeyOnly
        | Secret::Mismatched
        | Secret::Expired => None,
    }
}

#[tokio::test]
async fn a_proxy_that_has_just_started_serves_what_is_complete_or_nothing() {
    let files = Files::new("started");
    for mode in ["off", "required"] {
        for secret in SECRETS {
            files.configure(mode);
            files.put(secret);
            let follower = files.start();
            let (address, end) = listen(&follower).await;
            let expected = match mode {
                "off" => Found::Plain,
                _ => complete(secret).unwrap_or(Found::Shut),
            };
            assert_eq!(
                files.found(address).await,
                expected,
                "{mode} with {secret:?}"
            );
            let loaded = follower.loaded().borrow().clone();
            assert_eq!(
                loaded.last_error.is_some(),
                expected == Found::Shut,
                "{loaded:?}"
            );
            end.cancel();
        }
    }
}

#[tokio::test]
async fn a_running_proxy_keeps_its_last_complete_state_until_the_next_is_complete() {
    let files = Files::new("running");
    for (before, kept) in [("required", Found::Old), ("off", Found::Plain)] {
        for mode in ["off", "required"] {
            for secret in SECRETS {
                files.configure(before);
                files.put(Secret::Old);
                let mut follower = files.start();
                let (address, end) = listen(&follower).await;
                assert_eq!(files.found(address).await, kept);

                files.configure(mode);
                files.put(secret);
                follower.look(&|_| (), Timestamp::now());
                let expected = match mode {
                    "off" => Found::Plain,
                    _ => complete(secret).unwrap_or(kept),
                };
                let found = files.found(address).await;
                assert_eq!(found, expected, "{before}, then {mode} with {secret:?}");
                let refused = mode == "required" && complete(secret).is_none();
                let loaded = follower.loaded().borrow().clone();
                assert_eq!(loaded.last_error.is_some(), refused, "{loaded:?}");
                end.cancel();
            }
        }
    }
}

#[tokio::test]
async fn the_lowest_version_and_the_groups_of_the_flags_hold_on_the_wire() {
    let files = Files::new("policy");
    files.configure("required");
    files.put(Secret::Old);
    let words = [
        "--listen-address=127.0.0.1:0".to_owned(),
        "--upstream=http://127.0.0.1:1".to_owned(),
        "--tls-min-version=VersionTLS13".to_owned(),
        "--tls-curve-preferences=23".to_owned(),
        format!("--config-file={}", files.at("config.yaml").display()),
    ];
    let settings = settled(words);
    let demands = keelson_proxy::assemble::demands(&settings);
    let follower = Follower::start(settings, demands, Timestamp::now()).expect("a start");
    let (address, _end) = listen(&follower).await;

    let connect = async |versions: &[&'static rustls::SupportedProtocolVersion]| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(files.old.der.clone()).expect("a root");
        let config = rustls::ClientConfig::builder_with_protocol_versions(versions)
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.expect("a connection");
        let name = ServerName::try_from("node").expect("a name");
        let connected = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await;
        let group = |group: &dyn rustls::crypto::SupportedKxGroup| group.name();
        connected.map(|stream| {
            stream
                .get_ref()
                .1
                .negotiated_key_exchange_group()
                .map(group)
        })
    };
    connect(&[&rustls::version::TLS12])
        .await
        .expect_err("1.2 is too low");
    let group = connect(&[&rustls::version::TLS13]).await.expect("1.3");
    assert_eq!(group, Some(rustls::NamedGroup::secp256r1));
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_changes_nothing_and_is_told() {
    let files = Files::new("unreadable");
    files.configure("required");
    files.put(Secret::Old);
    let mut follower = files.start();
    let (address, _end) = listen(&follower).await;
    std::fs::copy(files.at("config.yaml"), files.at("required.yaml")).expect("a copy");
    std::fs::write(files.at("config.yaml"), "tls: {mode: sometimes}\n").expect("a file");
    follower.look(&|_| (), Timestamp::now());
    assert_eq!(files.found(address).await, Found::Old);
    assert!(follower.loaded().borrow().last_error.is_some());

    // Authorities that are not there are no reason to do without.
    let text = std::fs::read_to_string(files.at("required.yaml")).expect("a file");
    let text = text.replace("keyFile", "clientCAFile: ca.crt, keyFile");
    std::fs::write(files.at("config.yaml"), text).expect("a file");
    follower.look(&|_| (), Timestamp::now());
    let told = follower.loaded().borrow().last_error.clone();
    assert!(told.is_some_and(|it| it.contains("the client CA file is missing")));
    assert_eq!(files.found(address).await, Found::Old);

    files.configure("required");
    follower.look(&|_| (), Timestamp::now());
    assert_eq!(
        follower.loaded().borrow().last_error,
        None,
        "the end of the trouble is told too"
    );
}
