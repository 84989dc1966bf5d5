//! Client certificates, with the program as a pod runs it and rights of a real cluster: who a
//! certificate makes its holder, which do not count, and what a new bundle of authorities does to
//! connections that are open already (§3.4, §5, §6 of the specification).

mod common;

use common::client::Connection;
use common::pki::{Ca, Held};
use common::program::{Proxy, SOON, folder, free, get};
use common::rights::{account, bearer, permit, tasks_of};
use common::upstream::{hello, upstream};
use http::StatusCode;
use keelson_testbed::{Cluster, until};
use keelson_tls::Fingerprint;
use rcgen::{DnType, ExtendedKeyUsagePurpose, date_time_ymd};
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A proxy with a secure listener that takes certificates of `clients`.
struct Secure {
    proxy: Proxy,
    address: SocketAddr,
    server: Ca,
    namespace: String,
    _in: keelson_testbed::Namespace<'static>,
}

impl Secure {
    async fn start(test: &str, clients: Option<&Ca>) -> Self {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace(test).await;
        let (server, address, folder) = (Ca::new("servers"), free(), folder(test));
        let more = flags(&folder, &server, address, clients);
        let config = tasks_of(namespace.name());
        let proxy = Proxy::with(test, &cluster.kubeconfig(), &config, upstream(), &more);
        proxy.healthy().await;
        Self {
            proxy,
            address,
            server,
            namespace: namespace.name().to_owned(),
            _in: namespace,
        }
    }

    async fn open(&self, held: Option<&Held>) -> Connection {
        Connection::open(self.address, &self.server, held).await
    }

    fn put_ca(&self, pem: &str) {
        replace(&self.proxy.folder.join("clients.crt"), pem);
    }
}

/// As an operator replaces a file: whole, or not at all.
fn replace(file: &Path, text: &str) {
    let beside = file.with_extension("new");
    std::fs::write(&beside, text).expect("a file");
    std::fs::rename(beside, file).expect("a rename");
}

fn pair(folder: &Path, server: &Ca) {
    let held = server.server();
    std::fs::write(folder.join("tls.crt"), held.pem).expect("a file");
    std::fs::write(folder.join("tls.key"), held.key_pem).expect("a file");
}

fn flags(folder: &Path, server: &Ca, secure: SocketAddr, clients: Option<&Ca>) -> Vec<String> {
    pair(folder, server);
    let at = |name: &str| folder.join(name).display().to_string();
    let mut flags = vec![
        format!("--secure-listen-address={secure}"),
        format!("--tls-cert-file={}", at("tls.crt")),
        format!("--tls-private-key-file={}", at("tls.key")),
        "--tls-reload-interval=100ms".to_owned(),
    ];
    if let Some(clients) = clients {
        std::fs::write(folder.join("clients.crt"), &clients.pem).expect("a file");
        flags.push(format!("--client-ca-file={}", at("clients.crt")));
    }
    flags
}

#[tokio::test]
async fn a_certificate_is_the_user_of_its_common_name_with_the_rights_that_user_has() {
    let clients = Ca::new("clients");
    let stage = Secure::start("common-name", Some(&clients)).await;
    let ada = clients.client("ada", |params| {
        params
            .distinguished_name
            .push(DnType::OrganizationName, "engineers");
    });
    let mut connection = stage.open(Some(&ada)).await;
    let said = connection.ask(None).await;
    assert_eq!(said.status, StatusCode::FORBIDDEN, "no role yet");
    let who = "Forbidden (user=ada, verb=get, resource=seinodetasks, subresource=)\n";
    assert_eq!(said.body, who);

    permit(&stage.namespace, "bea", "get").await;
    let bea = clients.client("bea", |params| {
        params
            .distinguished_name
            .push(DnType::OrganizationName, "engineers");
    });
    let mut connection = stage.open(Some(&bea)).await;
    let said = connection.ask(Some("Basic dXBzdHJlYW0=")).await;
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    assert_eq!(said.saw("x-remote-user"), Some("bea"));
    assert_eq!(
        said.saw("x-remote-groups"),
        Some("engineers|system:authenticated")
    );
    assert_eq!(
        said.saw("authorization"),
        Some("basic dxbzdhjlyw0="),
        "after a certificate the header is the upstream's business"
    );
    let said = connection.ask(Some("Bearer anything")).await;
    assert_eq!(said.status, StatusCode::OK);
    assert_eq!(said.saw("authorization"), Some("bearer anything"));
    assert_eq!(stage.proxy.calls("authn"), 0, "no token was asked about");
}

#[tokio::test]
async fn a_certificate_that_does_not_count_is_401_and_stops_no_token() {
    let (clients, others) = (Ca::new("clients"), Ca::new("others"));
    let stage = Secure::start("does-not-count", Some(&clients)).await;
    for user in ["ada", &account(&stage.namespace)] {
        permit(&stage.namespace, user, "get").await;
    }
    let token = bearer(&stage.namespace).await;
    let wrong = [
        ("another authority's", others.client("ada", |_| {})),
        (
            "a server's",
            clients.client("ada", |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            }),
        ),
        (
            "an expired one",
            clients.client("ada", |params| params.not_after = date_time_ymd(2020, 1, 1)),
        ),
        (
            "one that is not valid yet",
            clients.client("ada", |params| {
                params.not_before = date_time_ymd(4000, 1, 1)
            }),
        ),
        ("one without a name", clients.client("", |_| {})),
    ];
    for (which, held) in &wrong {
        let mut connection = stage.open(Some(held)).await;
        let said = connection.ask(None).await;
        assert_eq!(
            (said.status, said.body.as_str()),
            (StatusCode::UNAUTHORIZED, "Unauthorized\n"),
            "{which}"
        );
        let said = connection.ask(Some(&token)).await;
        assert_eq!(said.status, StatusCode::OK, "{which}: {}", said.body);
        let who = account(&stage.namespace);
        assert_eq!(said.saw("x-remote-user"), Some(who.as_str()), "{which}");
        assert_eq!(said.saw("authorization"), None, "the token stays here");
    }
    let mut nobody = stage.open(None).await;
    assert_eq!(nobody.ask(None).await.status, StatusCode::UNAUTHORIZED);

    let unlimited = clients.client("ada", |params| params.extended_key_usages.clear());
    let said = stage.open(Some(&unlimited)).await.ask(None).await;
    assert_eq!(
        said.status,
        StatusCode::OK,
        "one for any use: {}",
        said.body
    );
}

#[tokio::test]
async fn a_new_bundle_decides_about_the_next_request_of_an_open_connection() {
    let (first, second) = (Ca::new("first"), Ca::new("second"));
    let stage = Secure::start("swapped", Some(&first)).await;
    permit(&stage.namespace, "ada", "get").await;
    let old = first.client("ada", |_| {});
    let new = second.client("ada", |_| {});
    let (mut old, mut new) = (stage.open(Some(&old)).await, stage.open(Some(&new)).await);
    assert_eq!(old.ask(None).await.status, StatusCode::OK);
    assert_eq!(new.ask(None).await.status, StatusCode::UNAUTHORIZED);

    stage.put_ca("-----BEGIN CERTIFICATE-----\nhalf of it");
    stage.proxy.says("the last good state stays").await;
    assert_eq!(
        old.ask(None).await.status,
        StatusCode::OK,
        "the last good one"
    );

    stage.put_ca(&second.pem);
    until("the new bundle", SOON, async || {
        match old.ask(None).await.status {
            StatusCode::UNAUTHORIZED => Ok(()),
            status => Err(status.to_string()),
        }
    })
    .await
    .expect("the old authority no longer counts, on the same connection");
    assert_eq!(
        new.ask(None).await.status,
        StatusCode::OK,
        "and the new one does, on a connection that was refused before"
    );
}

#[tokio::test]
async fn the_configuration_names_authorities_for_the_switching_listener_and_keeps_the_last_good_ones()
 {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("configured").await;
    let (server, clients, folder) = (Ca::new("servers"), Ca::new("clients"), folder("configured"));
    pair(&folder, &server);
    let bundle = folder.join("clients.crt");
    std::fs::write(&bundle, &clients.pem).expect("a file");
    let at = folder.display();
    let config = format!(
        "{}tls:\n  mode: required\n  certFile: {at}/tls.crt\n  keyFile: {at}/tls.key\n  clientCAFile: {at}/clients.crt\n",
        tasks_of(namespace.name())
    );
    let often = ["--tls-reload-interval=100ms".to_owned()];
    let proxy = Proxy::with(
        "configured",
        &cluster.kubeconfig(),
        &config,
        upstream(),
        &often,
    );
    proxy.healthy().await;
    permit(namespace.name(), "ada", "get").await;
    let ada = clients.client("ada", |_| {});
    let other = Ca::new("others").client("ada", |_| {});
    let mut connection = Connection::open(proxy.requests, &server, Some(&ada)).await;
    assert_eq!(connection.ask(None).await.status, StatusCode::OK);
    let mut stranger = Connection::open(proxy.requests, &server, Some(&other)).await;
    assert_eq!(stranger.ask(None).await.status, StatusCode::UNAUTHORIZED);

    for (broken, sentence) in [
        (None, "the client CA file is missing"),
        (Some("no certificate"), "the CA file holds no certificate"),
    ] {
        match broken {
            None => std::fs::remove_file(&bundle).expect("removal"),
            Some(text) => replace(&bundle, text),
        }
        until("the complaint", SOON, async || {
            let loaded = get(proxy.health, "/loaded", "").expect("an answer");
            match loaded.contains(sentence) {
                true => Ok(()),
                false => Err(loaded),
            }
        })
        .await
        .expect("what is wrong is told");
        assert_eq!(
            connection.ask(None).await.status,
            StatusCode::OK,
            "{sentence}"
        );
        let mut fresh = Connection::open(proxy.requests, &server, Some(&ada)).await;
        assert_eq!(fresh.ask(None).await.status, StatusCode::OK, "{sentence}");
    }
}

/// A client that counts how often it is asked for a certificate.
#[derive(Debug, Default)]
struct Asked(AtomicUsize);

impl ResolvesClientCert for Asked {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        None
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn clients_are_asked_for_a_certificate_only_where_somebody_vouches_for_it() {
    let clients = Ca::new("clients");
    for (test, authorities, times) in [("asked", Some(&clients), 1), ("not-asked", None, 0)] {
        let stage = Secure::start(test, authorities).await;
        let mut roots = RootCertStore::empty();
        roots.add(stage.server.der.clone()).expect("an authority");
        let asked = Arc::new(Asked::default());
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_cert_resolver(Arc::clone(&asked) as Arc<dyn ResolvesClientCert>);
        let mut connection = Connection::configured(stage.address, config).await;
        assert_eq!(connection.ask(None).await.status, StatusCode::UNAUTHORIZED);
        assert_eq!(asked.0.load(Ordering::SeqCst), times, "{test}");
    }
}

#[tokio::test]
async fn a_bundle_that_is_not_there_at_the_start_ends_it_with_a_sentence() {
    let cluster = Cluster::shared().await;
    let (server, folder) = (Ca::new("servers"), folder("no-bundle"));
    let mut more = flags(&folder, &server, free(), None);
    more.push(format!(
        "--client-ca-file={}",
        folder.join("gone").display()
    ));
    let config = tasks_of("any");
    let mut proxy = Proxy::with(
        "no-bundle",
        &cluster.kubeconfig(),
        &config,
        upstream(),
        &more,
    );
    assert_eq!(proxy.end().code(), Some(1));
    let said = proxy.log();
    let sentence = "failed to instantiate delegating authenticator: the client CA file is missing";
    assert!(said.contains(sentence), "{said}");
}

#[tokio::test]
async fn the_decision_about_one_certificate_is_not_that_about_another_of_the_same_name() {
    let clients = Ca::new("clients");
    let stage = Secure::start("same-name", Some(&clients)).await;
    let [one, other] = [(); 2].map(|()| clients.client("ada", |_| {}));
    assert_ne!(Fingerprint::of(&one.der), Fingerprint::of(&other.der));
    for (held, reviews) in [(&one, 1), (&one, 1), (&other, 2)] {
        let said = stage.open(Some(held)).await.ask(None).await;
        assert_eq!(said.status, StatusCode::FORBIDDEN);
        assert_eq!(stage.proxy.calls("authz"), reviews);
    }
}

#[tokio::test]
async fn an_https_upstream_is_trusted_by_the_authorities_of_the_host() {
    let cluster = Cluster::shared().await;
    let (host, folder) = (Ca::new("the host's"), folder("host-roots"));
    let bundle = folder.join("host.crt");
    std::fs::write(&bundle, &host.pem).expect("a file");
    for (authority, status) in [(&host, "200"), (&Ca::new("another"), "502")] {
        let address = https_upstream(authority);
        let more = [format!("--upstream=https://{address}")];
        let proxy = Proxy::trusting(
            "host-roots",
            &cluster.kubeconfig(),
            &tasks_of("any"),
            address,
            &more,
            Some(bundle.clone()),
        );
        proxy.healthy().await;
        let said = get(proxy.requests, "/v0/healthz", "").expect("an answer");
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
        // The folder goes with the proxy; the next one needs the bundle again.
        drop(proxy);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(&bundle, &host.pem).expect("a file");
    }
    std::fs::remove_dir_all(folder).expect("removal");
}

/// An upstream that speaks TLS with a certificate of this authority.
fn https_upstream(authority: &Ca) -> SocketAddr {
    let held = authority.server();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![held.der.clone()], held.key())
        .expect("a pair");
    let config = Arc::new(config);
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).expect("a session");
            let stream = rustls::StreamOwned::new(session, stream);
            std::thread::spawn(move || hello(stream));
        }
    });
    address
}
