//! The program itself, as a pod runs it: flags, files, ports and signals.

use keelson_testbed::{Cluster, until};
use keelson_tls::{Fingerprint, Pins, observe};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(10);

/// A port nobody has, from below those the system hands out: nobody else gets it before the program
/// does.
fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 500).expect("small") * 20;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if let Ok(socket) = TcpListener::bind(("127.0.0.1", port)) {
            return socket.local_addr().expect("an address");
        }
    }
}

struct Proxy {
    child: Child,
    folder: PathBuf,
    requests: SocketAddr,
    health: SocketAddr,
    started: Instant,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Proxy {
    /// Starts the program before an upstream, with this kubeconfig and configuration.
    fn start(test: &str, kubeconfig: &str, config: &str, upstream: SocketAddr) -> Self {
        Self::with(test, kubeconfig, config, upstream, &[])
    }

    /// The same, with more flags.
    fn with(
        test: &str,
        kubeconfig: &str,
        config: &str,
        upstream: SocketAddr,
        more: &[String],
    ) -> Self {
        let folder =
            std::env::temp_dir().join(format!("keelson-proxy-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("kubeconfig"), kubeconfig).expect("a file");
        std::fs::write(folder.join("config.yaml"), config).expect("a file");
        let (requests, health) = (free(), free());
        let started = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_keelson-proxy"))
            .arg(format!("--listen-address={requests}"))
            .arg(format!("--health-listen-address={health}"))
            .arg(format!("--upstream=http://{upstream}"))
            .arg(format!(
                "--kubeconfig={}",
                folder.join("kubeconfig").display()
            ))
            .arg(format!(
                "--config-file={}",
                folder.join("config.yaml").display()
            ))
            .args([
                "--ignore-paths=/v0/healthz",
                "--strict-config",
                "--auth-header-fields-enabled",
            ])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        Self {
            child,
            folder,
            requests,
            health,
            started,
        }
    }

    async fn healthy(&self) -> Duration {
        until("the proxy", SOON, async || {
            match get(self.health, "/healthz", "") {
                Some(said) if said.ends_with("ok") => Ok(()),
                said => Err(format!("{said:?}")),
            }
        })
        .await
        .expect("a healthy proxy");
        self.started.elapsed()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("a signal");
    }
}

/// One request on a connection of its own; the whole answer.
fn get(address: SocketAddr, path: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(SOON)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n{headers}\r\n"
    )
    .ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}

/// An upstream that says hello to everyone.
fn upstream() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            std::thread::spawn(move || hello(stream));
        }
    });
    address
}

fn hello(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    let _ =
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
}

/// A kubeconfig for a server that is not there.
fn nowhere(cluster: &Cluster) -> String {
    let text = cluster.kubeconfig();
    let at = text.find("https://127.0.0.1:").expect("a server");
    let end = at + text[at..].find('"').expect("its end");
    format!("{}https://127.0.0.1:1{}", &text[..at], &text[end..])
}

const CONFIG: &str =
    "authorization:\n  resourceAttributes:\n    apiGroup: sei.io\n    resource: seinodetasks\n";

#[tokio::test]
async fn it_starts_and_serves_without_an_api_server() {
    let cluster = Cluster::shared().await;
    let proxy = Proxy::start("alone", &nowhere(cluster), CONFIG, upstream());
    let took = proxy.healthy().await;
    println!("healthy {took:.1?} after its start");
    let ignored = get(proxy.requests, "/v0/healthz", "").expect("an answer");
    assert!(
        ignored.starts_with("HTTP/1.1 200") && ignored.ends_with("hello"),
        "{ignored}"
    );
    let guarded =
        get(proxy.requests, "/v0/tasks", "Authorization: Bearer any\r\n").expect("an answer");
    assert!(guarded.starts_with("HTTP/1.1 401"), "{guarded}");
}

#[tokio::test]
async fn it_tells_what_it_has_loaded_and_counts_what_it_answered() {
    let cluster = Cluster::shared().await;
    let proxy = Proxy::start("loaded", &cluster.kubeconfig(), CONFIG, upstream());
    proxy.healthy().await;
    let loaded = get(proxy.health, "/loaded", "").expect("an answer");
    assert!(
        loaded.contains(r#""tlsMode":"off""#) && loaded.contains("configHash"),
        "{loaded}"
    );
    assert!(!loaded.contains("lastError"), "{loaded}");
    get(
        proxy.requests,
        "/v0/tasks",
        "Authorization: Bearer made-up\r\n",
    )
    .expect("an answer");
    let metrics = get(proxy.health, "/metrics", "").expect("an answer");
    for line in [
        r#"keelson_proxy_http_requests_total{code="401",method="GET",outcome="unauthorized"} 1"#,
        r#"keelson_proxy_apiserver_requests_total{api="authn"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
}

#[tokio::test]
async fn the_secure_listener_and_its_endpoints_port_present_the_given_certificate() {
    let cluster = Cluster::shared().await;
    let made = rcgen::generate_simple_self_signed(vec!["node.example".to_owned()]);
    let made = made.expect("a certificate");
    let folder = std::env::temp_dir().join(format!("keelson-pair-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let (secure, endpoints) = (free(), free());
    let more = [
        format!("--secure-listen-address={secure}"),
        format!("--proxy-endpoints-port={}", endpoints.port()),
        format!("--tls-cert-file={}", certificate.display()),
        format!("--tls-private-key-file={}", key.display()),
    ];
    let proxy = Proxy::with("secure", &cluster.kubeconfig(), CONFIG, upstream(), &more);
    proxy.healthy().await;
    let expected = Fingerprint::of(made.cert.der());
    let pins = Pins::leaf(expected, &["node.example"]).expect("pins");
    for address in [secure, endpoints] {
        let peer = observe(address, &pins, SOON)
            .await
            .expect("the certificate it was given");
        assert_eq!(peer.leaf.fingerprint, expected);
    }
    let plain = get(secure, "/", "").expect("an answer");
    assert!(
        plain.contains("Client sent an HTTP request to an HTTPS server."),
        "{plain}"
    );
    std::fs::remove_dir_all(folder).expect("removal");
}

#[tokio::test]
async fn a_changed_configuration_is_taken_over_without_a_restart() {
    let cluster = Cluster::shared().await;
    let proxy = Proxy::start("changed", &cluster.kubeconfig(), CONFIG, upstream());
    proxy.healthy().await;
    let before = get(proxy.health, "/loaded", "").expect("an answer");
    let config = format!("{CONFIG}    namespace: elsewhere\n");
    std::fs::write(proxy.folder.join("config.yaml"), config).expect("a file");
    until("the new configuration", SOON, async || {
        let now = get(proxy.health, "/loaded", "").expect("an answer");
        if now == before {
            Err("it is the old one".into())
        } else {
            Ok(())
        }
    })
    .await
    .expect("files are followed");
}

#[tokio::test]
async fn a_signal_ends_it_well_and_a_wrong_configuration_ends_it_with_a_sentence() {
    let cluster = Cluster::shared().await;
    let mut proxy = Proxy::start("signal", &cluster.kubeconfig(), CONFIG, upstream());
    proxy.healthy().await;
    proxy.signal(Signal::SIGTERM);
    let status = proxy.child.wait().expect("its end");
    assert!(status.success(), "{status}");

    let wrong = CONFIG.replace("apiGroup", "group");
    let mut proxy = Proxy::start("wrong", &cluster.kubeconfig(), &wrong, upstream());
    let status = proxy.child.wait().expect("its end");
    assert_eq!(status.code(), Some(1));
    let mut said = String::new();
    proxy
        .child
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut said)
        .expect("text");
    assert!(
        said.contains("group") && said.contains("apiGroup"),
        "{said}"
    );
}
