//! Calls that are late, lost or torn: what the caller knows and what the server did differ.

use crate::stage::{Stage, begin_create, create, io_kind, silent, soon};
use anyhow::Result;
use keelson_testbed::{
    faults::{Fault, On, Pause},
    until,
};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

#[tokio::test]
async fn a_swallowed_call_is_never_answered_and_never_made() -> Result<()> {
    let stage = Stage::new("swallowed").await;
    let maps = stage.through();
    create(&maps, "before").await?;
    let hole = stage.faults.inject(Fault::BlackHole, On::writes());
    let mut swallowed = begin_create(&maps, "swallowed");
    hole.hit(1).await?;
    assert!(silent(&mut swallowed).await);
    maps.get("before").await?;

    hole.clear();
    let error = soon("the end of the swallowed call", swallowed).await?;
    assert_eq!(
        io_kind(&error.unwrap_err()),
        Some(io::ErrorKind::ConnectionReset)
    );
    assert!(!stage.stored("swallowed").await);
    create(&maps, "after").await?;
    Ok(())
}

#[tokio::test]
async fn a_slow_request_is_made_when_it_is_let_go_and_not_before() -> Result<()> {
    let stage = Stage::new("slow-request").await;
    let maps = stage.through();
    let slow = Fault::SlowRequest(Pause::UntilCleared);
    let slow = stage.faults.inject(slow, On::writes());
    let mut late = begin_create(&maps, "late");
    slow.hit(1).await?;
    assert!(silent(&mut late).await);
    assert!(!stage.stored("late").await);

    slow.clear();
    soon("the late call", late).await??;
    assert!(stage.stored("late").await);
    Ok(())
}

#[tokio::test]
async fn a_caller_that_gives_up_a_slow_request_has_written_nothing() -> Result<()> {
    let stage = Stage::new("gave-up").await;
    let slow = Fault::SlowRequest(Pause::UntilCleared);
    let slow = stage.faults.inject(slow, On::writes().name("given-up"));
    let maps = stage.through();
    let given_up = begin_create(&maps, "given-up");
    slow.hit(1).await?;
    given_up.abort();
    assert!(given_up.await.is_err());
    let gone = async || match stage.faults.connections() {
        0 => Ok(()),
        open => Err(format!("{open} connections")),
    };
    until("the end of the connection", Duration::from_secs(10), gone).await?;

    slow.clear();
    create(&stage.through(), "after").await?;
    assert!(!stage.stored("given-up").await);
    Ok(())
}

#[tokio::test]
async fn a_slow_answer_comes_after_the_write_has_happened() -> Result<()> {
    let stage = Stage::new("slow-answer").await;
    let maps = stage.through();
    let slow = Fault::SlowAnswer(Pause::UntilCleared);
    let slow = stage.faults.inject(slow, On::writes());
    let mut late = begin_create(&maps, "late");
    let written = async || match stage.stored("late").await {
        true => Ok(()),
        false => Err("not there".to_string()),
    };
    until(
        "the write of the late call",
        Duration::from_secs(10),
        written,
    )
    .await?;
    assert!(silent(&mut late).await);
    assert_eq!(stage.calls(), ["create configmaps late unanswered"]);

    slow.clear();
    soon("the late answer", late).await??;
    assert_eq!(stage.calls(), ["create configmaps late 201"]);
    Ok(())
}

#[tokio::test]
async fn a_pause_for_a_time_delays_the_call_by_that_time() -> Result<()> {
    let stage = Stage::new("pause").await;
    let maps = stage.through();
    let pause = Pause::For(Duration::from_millis(400));
    for slow in [Fault::SlowRequest(pause), Fault::SlowAnswer(pause)] {
        let slow = stage.faults.inject(slow, On::every().next(1));
        let start = Instant::now();
        maps.get_opt("a").await?;
        assert!(start.elapsed() >= Duration::from_millis(400));
        assert_eq!(slow.clear(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn after_a_reset_the_caller_has_an_error_and_the_server_has_the_object() -> Result<()> {
    let stage = Stage::new("reset").await;
    let maps = stage.through();
    let reset = stage.faults.inject(Fault::Reset, On::writes().next(1));
    let error = create(&maps, "torn").await.unwrap_err();
    assert!(!matches!(error, kube::Error::Api(_)), "{error}");
    assert_eq!(reset.hits(), 1);
    assert!(stage.stored("torn").await);
    assert_eq!(stage.calls(), ["create configmaps torn unanswered"]);
    create(&maps, "after").await?;
    Ok(())
}

#[tokio::test]
async fn a_reset_comes_after_exactly_one_byte_of_the_answer() -> Result<()> {
    let stage = Stage::new("byte").await;
    let _reset = stage.faults.inject(Fault::Reset, On::every());
    let mut stream = raw(&stage).await?;
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await?;
    let mut bytes = Vec::new();
    let end = soon("the end of the connection", stream.read_to_end(&mut bytes)).await;
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(bytes, b"H");
    Ok(())
}

#[tokio::test]
async fn after_a_lost_answer_the_connection_is_closed_and_the_server_has_the_object() -> Result<()>
{
    let stage = Stage::new("lost").await;
    let maps = stage.through();
    let lost = stage.faults.inject(Fault::LostAnswer, On::writes().next(1));
    let error = create(&maps, "lost").await.unwrap_err();
    assert!(!matches!(error, kube::Error::Api(_)), "{error}");
    assert_ne!(io_kind(&error), Some(io::ErrorKind::ConnectionReset));
    assert_eq!(lost.hits(), 1);
    assert!(stage.stored("lost").await);
    assert_eq!(stage.calls(), ["create configmaps lost unanswered"]);
    create(&maps, "after").await?;
    Ok(())
}

/// A TLS session with the proxy and no HTTP client in between.
async fn raw(stage: &Stage) -> Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    let authority = stage.cluster.authority().certificate();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(stage.faults.address()).await?;
    let name = ServerName::try_from("localhost")?;
    Ok(TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?)
}
