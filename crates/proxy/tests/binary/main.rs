//! The program itself, as a pod runs it: flags, files, ports and signals.

#[path = "../common/mod.rs"]
mod common;
mod ending;
mod logs;
mod metrics;

use common::program::{CONFIG, Proxy, SOON, free, get, nowhere};
use common::upstream::upstream;
use keelson_testbed::{Cluster, until};
use keelson_tls::{Fingerprint, Pins, observe};
use nix::sys::signal::Signal;

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
        r#"keelson_proxy_apiserver_requests_total{api="authn",code="201"} 1"#,
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
    let said = proxy.log();
    let last = said.lines().last().expect("a line");
    assert!(
        last.starts_with('E') && last.contains(r#"] "command failed" err=""#),
        "{said}"
    );
    assert!(
        last.contains("group") && last.contains("apiGroup"),
        "{said}"
    );
}
