//! What a profile does to real connections over loopback.

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, NamedGroup, ProtocolVersion};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::mapping::listed;
use super::pki::Authority;
use super::world::{PATIENCE, client_of, default_client, dial, echo, fixed};
use keelson_tls::profile::{Kind, Version};
use keelson_tls::{ClientAuth, Profile, TlsListener, server_config};

async fn server(profile: &Profile) -> SocketAddr {
    let pair = Authority::new("wire").server().pair();
    let (config, _) =
        server_config(profile, &pair, ClientAuth::None, None, &[]).expect("a configuration");
    echo(fixed(config)).await
}

#[tokio::test]
async fn a_minimum_of_tls_1_3_turns_a_tls_1_2_client_away() {
    let modern = Profile::named(Kind::Modern, None).expect("a type");
    let address = server(&modern).await;
    let refused = dial(address, &client_of(default_provider(), &[&TLS12])).await;
    let refused = refused.expect_err("TLS 1.2").to_string();
    assert!(refused.contains("ProtocolVersion"), "{refused}");
    let stream = dial(address, &default_client()).await.expect("TLS 1.3");
    let session = stream.get_ref().1;
    assert_eq!(session.protocol_version(), Some(ProtocolVersion::TLSv1_3));
}

#[tokio::test]
async fn a_minimum_of_tls_1_2_serves_both_versions() {
    let address = server(&Profile::intermediate()).await;
    for (version, expected) in [
        (&TLS12, ProtocolVersion::TLSv1_2),
        (&TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let stream = dial(address, &client_of(default_provider(), &[version])).await;
        let stream = stream.expect("a session");
        assert_eq!(stream.get_ref().1.protocol_version(), Some(expected));
    }
}

#[tokio::test]
async fn only_the_listed_suites_are_spoken_in_both_versions() {
    let names = [
        "TLS_CHACHA20_POLY1305_SHA256",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ];
    let address = server(&listed(Version::Tls12, &names, &[])).await;
    let cases = [
        (&TLS13, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        (
            &TLS12,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
    ];
    for (version, expected) in cases {
        let stream = dial(address, &client_of(default_provider(), &[version])).await;
        let stream = stream.expect("a session");
        let suite = stream
            .get_ref()
            .1
            .negotiated_cipher_suite()
            .expect("a suite");
        assert_eq!(suite.suite(), expected);
    }
    let others = CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ],
        ..default_provider()
    };
    for version in [&TLS12, &TLS13] {
        let refused = dial(address, &client_of(others.clone(), &[version])).await;
        let refused = refused.expect_err("another suite").to_string();
        assert!(refused.contains("HandshakeFailure"), "{refused}");
    }
}

#[tokio::test]
async fn the_profile_s_order_of_suites_wins_over_the_client_s() {
    let names = ["TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"];
    let address = server(&listed(Version::Tls13, &names, &[])).await;
    let client = CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..default_provider()
    };
    let stream = dial(address, &client_of(client, &[&TLS13]))
        .await
        .expect("a session");
    let suite = stream
        .get_ref()
        .1
        .negotiated_cipher_suite()
        .expect("a suite");
    assert_eq!(suite.suite(), CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
}

#[tokio::test]
async fn only_the_listed_groups_are_agreed_upon() {
    let suites = ["TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"];
    let address = server(&listed(Version::Tls12, &suites, &["secp384r1"])).await;
    for version in [&TLS12, &TLS13] {
        let stream = dial(address, &client_of(default_provider(), &[version])).await;
        let stream = stream.expect("a session");
        let group = stream
            .get_ref()
            .1
            .negotiated_key_exchange_group()
            .expect("a group");
        assert_eq!(group.name(), NamedGroup::secp384r1);
        let others = CryptoProvider {
            kx_groups: vec![kx_group::SECP256R1, kx_group::X25519],
            ..default_provider()
        };
        assert!(dial(address, &client_of(others, &[version])).await.is_err());
    }
}

#[tokio::test]
async fn key_exchange_is_post_quantum_unless_the_profile_says_otherwise() {
    let modern = Profile::named(Kind::Modern, None).expect("a type");
    let pq = "X25519MLKEM768";
    let cases = [
        (Profile::LibraryDefaults, NamedGroup::X25519MLKEM768),
        (Profile::intermediate(), NamedGroup::X25519MLKEM768),
        (modern, NamedGroup::X25519MLKEM768),
        (
            listed(Version::Tls13, &[], &[pq, "X25519"]),
            NamedGroup::X25519MLKEM768,
        ),
        (
            listed(Version::Tls13, &[], &["secp256r1"]),
            NamedGroup::secp256r1,
        ),
    ];
    for (profile, expected) in cases {
        let address = server(&profile).await;
        let stream = dial(address, &default_client()).await.expect("a session");
        let group = stream
            .get_ref()
            .1
            .negotiated_key_exchange_group()
            .expect("a group");
        assert_eq!(group.name(), expected, "{profile:?}");
    }
}

#[tokio::test]
async fn the_first_protocol_of_the_server_s_that_the_client_has_is_agreed_upon() {
    let pair = Authority::new("wire").server().pair();
    let alpn = [b"h2".to_vec(), b"http/1.1".to_vec()];
    let (config, _) = server_config(
        &Profile::intermediate(),
        &pair,
        ClientAuth::None,
        None,
        &alpn,
    )
    .expect("a configuration");
    let address = echo(fixed(config)).await;
    let mut client = (*default_client()).clone();
    client.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
    let stream = dial(address, &client.into()).await.expect("a session");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
}

/// A listener with these limits that says one byte to whoever gets a session.
async fn greeter(deadline: Duration, handshakes: usize) -> SocketAddr {
    let pair = Authority::new("wire").server().pair();
    let profile = Profile::intermediate();
    let (config, _) =
        server_config(&profile, &pair, ClientAuth::None, None, &[]).expect("a configuration");
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut listener = TlsListener::with_limits(socket, fixed(config), deadline, handshakes);
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await;
            // Whether it arrives is the client's to say.
            let _ = stream.write_u8(7).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

/// Asks for the greeting until it comes: on a busy machine even this client may miss a deadline.
async fn greeted(address: SocketAddr) -> u8 {
    let greeting = async || {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("node-0").expect("a name");
        let connector = TlsConnector::from(default_client());
        let mut stream = connector.connect(name, stream).await?;
        stream.read_u8().await
    };
    let greeted = async {
        loop {
            if let Ok(byte) = greeting().await {
                return byte;
            }
        }
    };
    tokio::time::timeout(PATIENCE, greeted)
        .await
        .expect("in time")
}

#[tokio::test]
async fn a_client_that_says_nothing_delays_no_other() {
    let address = greeter(PATIENCE * 10, 2).await;
    let _silent = TcpStream::connect(address).await.expect("a connection");
    assert_eq!(greeted(address).await, 7);
}

#[tokio::test]
async fn a_client_that_says_nothing_is_cut_off_and_gives_its_place_to_the_next() {
    let address = greeter(Duration::from_millis(100), 1).await;
    let mut silent = TcpStream::connect(address).await.expect("a connection");
    assert_eq!(greeted(address).await, 7);
    assert_eq!(silent.read(&mut [0]).await.expect("an end"), 0);
}

#[tokio::test]
async fn bytes_that_are_not_tls_do_not_end_the_listener() {
    let address = greeter(PATIENCE, 1).await;
    let mut plain = TcpStream::connect(address).await.expect("a connection");
    plain
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .await
        .expect("a request");
    assert_eq!(greeted(address).await, 7);
}
