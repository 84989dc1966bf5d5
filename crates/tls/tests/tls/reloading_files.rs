//! Listeners that follow their files: swaps as the kubelet makes them, half-written pairs, metrics.

use jiff::{SignedDuration, Timestamp};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use super::pki::{Authority, Pem, Wanted};
use super::world::{Mount, PATIENCE, default_client, dial, echo, leaf, ping};
use keelson_tls::reload::{Demands, Look, PairSource, Refusal};
use keelson_tls::{Reloader, Sources};

fn files(pem: &Pem) -> [(&'static str, &str); 2] {
    [("tls.crt", &pem.certificate), ("tls.key", &pem.key)]
}

fn sources(mount: &Mount) -> Sources {
    Sources {
        pair: PairSource::Files {
            certificate: mount.path("tls.crt"),
            key: mount.path("tls.key"),
        },
        client_ca: None,
        profile: None,
    }
}

fn start(mount: &Mount) -> Arc<Reloader> {
    let started = Reloader::start(sources(mount), Demands::default(), Timestamp::now());
    Arc::new(started.expect("a start"))
}

/// The value of a metric, as a scrape has it.
fn metric(registry: &Registry, name: &str) -> i64 {
    let mut text = String::new();
    encode(&mut text, registry).expect("text");
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name} ")));
    let value = line.and_then(|line| line.rsplit(' ').next()).expect(name);
    value.parse().expect("a number")
}

#[tokio::test]
async fn new_connections_get_the_new_leaf_and_open_ones_go_on() {
    let authority = Authority::new("files");
    let (one, two) = (authority.server(), authority.server());
    let mount = Mount::new(&files(&one));
    let reloader = start(&mount);
    let address = echo(Arc::clone(&reloader)).await;
    let mut open = dial(address, &default_client()).await.expect("the first");
    assert_eq!(leaf(&open), one.fingerprint());

    mount.swap(&files(&two));
    assert_eq!(reloader.look(Timestamp::now()), Look::Swapped);
    assert_eq!(reloader.look(Timestamp::now()), Look::Kept);

    let next = dial(address, &default_client()).await.expect("the second");
    assert_eq!(leaf(&next), two.fingerprint());
    assert_eq!(ping(&mut open, 42).await.expect("the first goes on"), 42);
    let loaded = reloader.loaded();
    assert_eq!(
        (loaded.generation, loaded.fingerprint),
        (2, two.fingerprint())
    );
}

#[tokio::test]
async fn a_client_s_session_is_not_resumed_over_a_change_of_the_leaf() {
    let authority = Authority::new("files");
    let (one, two) = (authority.server(), authority.server());
    let mount = Mount::new(&files(&one));
    let reloader = start(&mount);
    let address = echo(Arc::clone(&reloader)).await;
    let client = default_client();
    let kind = |stream: &tokio_rustls::client::TlsStream<_>| stream.get_ref().1.handshake_kind();
    drop(dial(address, &client).await.expect("the first"));
    let resumed = dial(address, &client).await.expect("the second");
    assert_eq!(kind(&resumed), Some(rustls::HandshakeKind::Resumed));
    mount.swap(&files(&two));
    assert_eq!(reloader.look(Timestamp::now()), Look::Swapped);
    let next = dial(address, &client).await.expect("the third");
    assert_eq!(kind(&next), Some(rustls::HandshakeKind::Full));
    assert_eq!(leaf(&next), two.fingerprint());
}

#[tokio::test]
async fn polling_finds_a_swap_by_itself() {
    let authority = Authority::new("files");
    let (one, two) = (authority.server(), authority.server());
    let mount = Mount::new(&files(&one));
    let reloader = start(&mount);
    let mut changes = reloader.subscribe();
    let polling = tokio::spawn(Arc::clone(&reloader).poll(Duration::from_millis(5)));
    mount.swap(&files(&two));
    let changed = changes.wait_for(|loaded| loaded.fingerprint == two.fingerprint());
    let changed = tokio::time::timeout(PATIENCE, changed)
        .await
        .expect("in time");
    assert_eq!(changed.expect("a change").generation, 2);
    polling.abort();
}

#[tokio::test]
async fn a_half_written_pair_keeps_the_last_good_one_and_tells_so() {
    let authority = Authority::new("files");
    let (one, two) = (authority.server(), authority.server());
    let mount = Mount::new(&files(&one));
    let reloader = start(&mount);
    let mut registry = Registry::default();
    reloader.register(&mut registry);
    let address = echo(Arc::clone(&reloader)).await;
    let began = reloader.loaded().last_reload;
    assert_eq!(metric(&registry, "tls_last_reload_success"), 1);
    assert_eq!(metric(&registry, "tls_reload_failures_total"), 0);
    let expiry = one.pair().leaf().not_after.as_second();
    assert_eq!(metric(&registry, "tls_cert_not_after_seconds"), expiry);

    mount.swap(&[("tls.crt", &two.certificate), ("tls.key", &one.key)]);
    for _ in 0..3 {
        assert_eq!(reloader.look(Timestamp::now()), Look::Refused);
    }
    let loaded = reloader.loaded();
    let sentence = "the private key does not belong to the certificate";
    assert_eq!(loaded.last_error.as_deref(), Some(sentence));
    assert_eq!(
        (loaded.generation, loaded.fingerprint),
        (1, one.fingerprint())
    );
    assert_eq!(loaded.last_reload, began);
    assert_eq!(metric(&registry, "tls_last_reload_success"), 0);
    assert_eq!(metric(&registry, "tls_reload_failures_total"), 1);
    let stream = dial(address, &default_client()).await.expect("a session");
    assert_eq!(leaf(&stream), one.fingerprint());

    let later = Timestamp::now() + SignedDuration::from_secs(60);
    mount.swap(&files(&two));
    assert_eq!(reloader.look(later), Look::Swapped);
    assert_eq!(reloader.loaded().last_error, None);
    assert_eq!(metric(&registry, "tls_last_reload_success"), 1);
    assert_eq!(
        metric(&registry, "tls_last_reload_timestamp_seconds"),
        later.as_second()
    );
    assert_eq!(metric(&registry, "tls_reload_failures_total"), 1);
}

#[test]
fn files_that_go_back_to_what_is_served_are_good_again() {
    let authority = Authority::new("files");
    let one = authority.server();
    let mount = Mount::new(&files(&one));
    let reloader = start(&mount);
    let mut registry = Registry::default();
    reloader.register(&mut registry);
    mount.swap(&[("tls.crt", "")]);
    assert_eq!(reloader.look(Timestamp::now()), Look::Refused);
    assert_eq!(metric(&registry, "tls_last_reload_success"), 0);
    mount.swap(&files(&one));
    assert_eq!(reloader.look(Timestamp::now()), Look::Kept);
    assert_eq!(reloader.loaded().last_error, None);
    assert_eq!(reloader.loaded().generation, 1);
    assert_eq!(metric(&registry, "tls_last_reload_success"), 1);
}

#[test]
fn an_expired_certificate_is_refused_at_a_start_and_at_a_reload() {
    let authority = Authority::new("files");
    let now = Timestamp::now();
    let hour = SignedDuration::from_hours(1);
    let expired = authority.sign(&Wanted {
        valid: (now - hour * 2, now - hour),
        ..Wanted::default()
    });
    let mount = Mount::new(&files(&expired));
    let refused = Reloader::start(sources(&mount), Demands::default(), now);
    assert!(matches!(refused, Err(Refusal::Pair(_))));

    let good = authority.server();
    mount.swap(&files(&good));
    let reloader = start(&mount);
    mount.swap(&files(&expired));
    assert_eq!(reloader.look(now), Look::Refused);
    assert_eq!(reloader.loaded().fingerprint, good.fingerprint());
}

#[test]
fn a_start_without_files_is_an_error_value() {
    let mount = Mount::new(&[]);
    let refused = Reloader::start(sources(&mount), Demands::default(), Timestamp::now());
    let sentence = refused.err().map(|refusal| refusal.to_string());
    assert_eq!(sentence.as_deref(), Some("the certificate file is missing"));
}

#[test]
fn a_deleted_mount_a_folder_and_a_huge_file_change_nothing_but_the_sentence() {
    let one = Authority::new("files").server();
    let mount = Mount::new(&files(&one));
    let reloader = start(&mount);
    let sentence = |reloader: &Reloader| {
        assert_eq!(reloader.look(Timestamp::now()), Look::Refused);
        reloader.loaded().last_error.expect("an error")
    };
    mount.swap(&[]);
    assert_eq!(sentence(&reloader), "the certificate file is missing");
    let huge = "x".repeat(1024 * 1024 + 1);
    mount.swap(&[("tls.crt", &huge), ("tls.key", &one.key)]);
    assert_eq!(
        sentence(&reloader),
        "the certificate file cannot be read: it is larger than 1 MiB"
    );
    mount.swap(&[("tls.key", &one.key)]);
    fs::create_dir(mount.path("..data").join("tls.crt")).expect("a folder");
    assert_eq!(
        sentence(&reloader),
        "the certificate file cannot be read: it is not a file"
    );
    assert_eq!(reloader.loaded().fingerprint, one.fingerprint());
}

#[tokio::test]
async fn a_new_profile_is_taken_over_and_a_bad_one_is_not() {
    let one = Authority::new("files").server();
    let both = |profile: &'static str| {
        let [certificate, key] = files(&one);
        [certificate, key, ("profile.json", profile)]
    };
    let mount = Mount::new(&both(r#"{"minTLSVersion":"VersionTLS12"}"#));
    let sources = Sources {
        profile: Some(mount.path("profile.json")),
        ..sources(&mount)
    };
    let started = Reloader::start(sources, Demands::default(), Timestamp::now());
    let reloader = Arc::new(started.expect("a start"));
    let address = echo(Arc::clone(&reloader)).await;
    let tls12 = super::world::client_of(
        rustls::crypto::aws_lc_rs::default_provider(),
        &[&rustls::version::TLS12],
    );
    assert!(dial(address, &tls12).await.is_ok());
    mount.swap(&both(
        r#"{"minTLSVersion":"VersionTLS13","groups":["X25519","P-521"]}"#,
    ));
    assert_eq!(reloader.look(Timestamp::now()), Look::Swapped);
    assert!(dial(address, &tls12).await.is_err());
    let loaded = reloader.loaded();
    assert_eq!(
        loaded.profile_notes,
        ["ignored groups P-521: the group is not supported"]
    );
    mount.swap(&both(r#"{"groups":["P-521"]}"#));
    assert_eq!(reloader.look(Timestamp::now()), Look::Refused);
    assert_eq!(reloader.loaded().profile_hash, loaded.profile_hash);
}

#[test]
fn what_is_loaded_is_told_as_json_without_secrets() {
    let one = Authority::new("files").server();
    let mount = Mount::new(&files(&one));
    let loaded = serde_json::to_value(start(&mount).loaded()).expect("JSON");
    let keys: Vec<_> = loaded
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    let expected = [
        "generation",
        "fingerprint",
        "serial",
        "notAfter",
        "profileHash",
        "profileNotes",
        "lastReload",
    ];
    assert_eq!(keys, expected);
    assert_eq!(loaded["fingerprint"], one.fingerprint().to_string());
    assert_eq!(loaded["notAfter"], one.pair().leaf().not_after.to_string());
}

#[test]
fn a_self_signed_pair_is_renewed_when_it_is_due() {
    let life = Duration::from_secs(30 * 24 * 3600);
    let sources = Sources {
        pair: PairSource::SelfSigned {
            names: vec!["node-0".to_owned()],
            life,
        },
        client_ca: None,
        profile: None,
    };
    let now = Timestamp::now();
    let day = SignedDuration::from_hours(24);
    let reloader = Reloader::start(sources, Demands::default(), now).expect("a start");
    let first = reloader.loaded();
    assert_eq!(reloader.look(now + day * 19), Look::Kept);
    assert_eq!(reloader.look(now + day * 20), Look::Swapped);
    let second = reloader.loaded();
    assert_ne!(first.fingerprint, second.fingerprint);
    assert!(second.not_after > first.not_after);
    assert_eq!(reloader.look(now + day * 21), Look::Kept);
}
