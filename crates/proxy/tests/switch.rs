//! Plaintext and TLS on one socket: a switch loses no request and leaves nobody in the old mode.

use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use keelson_proxy::serve::{Limits, Listener, Mode, Origin, Posture, Respond};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

/// Says how the request came.
struct Mirror;

impl Respond for Mirror {
    type Body = Full<Bytes>;
    type Unanswered = Infallible;

    async fn respond(
        self: Arc<Self>,
        origin: Arc<Origin>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.uri().path() == "/never" {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(Full::from(if origin.secure {
            "tls"
        } else {
            "plain"
        })))
    }
}

struct Stage {
    address: SocketAddr,
    posture: watch::Sender<Posture>,
    tls: Mode,
    trust: Arc<rustls::ClientConfig>,
    end: CancellationToken,
}

async fn stage(limits: Limits) -> Stage {
    let made = rcgen::generate_simple_self_signed(vec!["node".to_owned()]).expect("a certificate");
    let certificate: CertificateDer<'static> = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let server = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("a pair");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let trust = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (posture, told) = watch::channel(Posture::new(Mode::Plain));
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let listener = Listener::new(socket, told, limits);
    let address = listener.local_addr().expect("an address");
    let end = CancellationToken::new();
    tokio::spawn(listener.serve(Arc::new(Mirror), end.clone()));
    Stage {
        address,
        posture,
        tls: Mode::Tls(Arc::new(server)),
        trust: Arc::new(trust),
        end,
    }
}

impl Stage {
    fn switch(&self, mode: Mode) {
        self.posture
            .send_modify(|posture| *posture = posture.then(mode));
    }

    async fn plain(&self) -> Result<String, hyper::Error> {
        ask(TcpStream::connect(self.address)
            .await
            .expect("a connection"))
        .await
    }

    async fn secure(&self) -> Result<String, Box<dyn std::error::Error>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("node")?;
        let stream = TlsConnector::from(Arc::clone(&self.trust))
            .connect(name, stream)
            .await?;
        Ok(ask(stream).await?)
    }
}

async fn ask(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<String, hyper::Error> {
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    let request = Request::get("/")
        .header("host", "node")
        .body(Empty::<Bytes>::new());
    let answer = sender.send_request(request.expect("a request")).await?;
    let body = answer.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn new_connections_get_the_mode_of_the_moment_on_the_same_socket() {
    let stage = stage(Limits::default()).await;
    for _ in 0..20 {
        stage.switch(Mode::Plain);
        assert_eq!(stage.plain().await.expect("an answer"), "plain");
        stage.secure().await.expect_err("no TLS now");
        stage.switch(stage.tls.clone());
        assert_eq!(stage.secure().await.expect("an answer"), "tls");
    }
}

#[tokio::test]
async fn without_a_certificate_nothing_is_served_in_the_open() {
    let stage = stage(Limits::default()).await;
    stage.switch(Mode::Shut);
    stage.plain().await.expect_err("closed");
    stage.secure().await.expect_err("closed");
    stage.switch(Mode::Plain);
    assert_eq!(stage.plain().await.expect("an answer"), "plain");
}

#[tokio::test]
async fn plain_http_on_a_tls_port_is_told_so() {
    let stage = stage(Limits::default()).await;
    stage.switch(stage.tls.clone());
    let mut stream = TcpStream::connect(stage.address)
        .await
        .expect("a connection");
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .expect("a request");
    let mut said = String::new();
    let read = stream.read_to_string(&mut said).await;
    read.expect("an answer, and then an end that is no reset");
    assert!(
        said.starts_with("HTTP/1.0 400 Bad Request\r\n\r\n"),
        "{said:?}"
    );
    assert!(
        said.ends_with("Client sent an HTTP request to an HTTPS server.\n"),
        "{said:?}"
    );
}

#[tokio::test]
async fn an_open_connection_of_the_other_mode_ends_and_one_with_a_new_certificate_does_not() {
    let stage = stage(Limits::default()).await;
    let stream = TcpStream::connect(stage.address)
        .await
        .expect("a connection");
    let io = TokioIo::new(stream);
    let (mut sender, driver) = hyper::client::conn::http1::handshake(io)
        .await
        .expect("HTTP");
    let driver = tokio::spawn(driver);
    let request = || {
        Request::get("/")
            .header("host", "n")
            .body(Empty::<Bytes>::new())
            .expect("one")
    };
    let answer = sender.send_request(request()).await.expect("an answer");
    answer.into_body().collect().await.expect("its body");

    stage.switch(Mode::Plain);
    sender.ready().await.expect("the same mode ends nobody");
    let answer = sender.send_request(request()).await.expect("an answer");
    answer.into_body().collect().await.expect("its body");

    stage.switch(stage.tls.clone());
    let ended = tokio::time::timeout(Duration::from_secs(5), driver).await;
    assert!(
        ended.is_ok(),
        "an idle connection of the old mode is closed"
    );
}

/// One request in the mode of the moment. None where the mode changed meanwhile: then a client may
/// have knocked at the wrong door, and knocks again.
async fn knock(stage: &Stage) -> Option<Result<String, String>> {
    let before = stage.posture.borrow().clone();
    let answer = match before.mode {
        Mode::Tls(_) => stage.secure().await.map_err(|error| error.to_string()),
        Mode::Plain | Mode::Shut => stage.plain().await.map_err(|error| error.to_string()),
    };
    before.outlives(&stage.posture.borrow()).then_some(answer)
}

#[tokio::test]
async fn no_request_is_lost_while_the_mode_changes_under_load() {
    const CLIENTS: usize = 16;
    const SWITCHES: usize = 100;
    let stage = stage(Limits::default()).await;
    let (answered, mut count) = watch::channel(0_usize);
    let over = CancellationToken::new();
    let client = async || {
        while !over.is_cancelled() {
            if let Some(answer) = knock(&stage).await {
                answer.expect("a request in the right mode is answered");
                answered.send_modify(|count| *count += 1);
            }
        }
    };
    let switcher = async {
        for round in 0..SWITCHES {
            let so_far = *count.borrow_and_update();
            stage.switch(if round % 2 == 0 {
                stage.tls.clone()
            } else {
                Mode::Plain
            });
            let more = count.wait_for(|count| *count >= so_far + CLIENTS);
            let more = tokio::time::timeout(Duration::from_secs(20), more).await;
            more.expect("requests are answered in every mode")
                .expect("clients");
        }
        over.cancel();
    };
    let clients = futures::future::join_all((0..CLIENTS).map(|_| client()));
    tokio::join!(clients, switcher);
    assert!(*answered.borrow() >= SWITCHES * CLIENTS);
}

/// Whether the socket speaks HTTP/2 to a client that begins with it.
async fn speaks_h2c(stage: &Stage) -> bool {
    let stream = TcpStream::connect(stage.address)
        .await
        .expect("a connection");
    let executor = hyper_util::rt::TokioExecutor::new();
    let begun = hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await;
    let Ok((mut sender, driver)) = begun else {
        return false;
    };
    tokio::spawn(driver);
    let request = Request::get("http://node/")
        .body(Empty::<Bytes>::new())
        .expect("a request");
    sender.send_request(request).await.is_ok()
}

#[tokio::test]
async fn http2_is_spoken_by_prior_knowledge_unless_it_is_disabled() {
    assert!(speaks_h2c(&stage(Limits::default()).await).await);
    let limits = Limits {
        http2: None,
        ..Limits::default()
    };
    let stage = stage(limits).await;
    assert!(!speaks_h2c(&stage).await);
    assert_eq!(stage.plain().await.expect("an answer"), "plain");
}

#[tokio::test]
async fn the_end_waits_for_an_answer_under_way_and_no_longer_than_its_patience() {
    let limits = Limits {
        farewell: Duration::from_millis(200),
        ..Limits::default()
    };
    let stage = stage(limits).await;
    let mut slow = TcpStream::connect(stage.address)
        .await
        .expect("a connection");
    slow.write_all(b"GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .expect("a request");
    // An answer on another connection shows that both requests are inside.
    assert_eq!(stage.plain().await.expect("an answer"), "plain");
    stage.end.cancel();
    let mut rest = Vec::new();
    let over = tokio::time::timeout(Duration::from_secs(5), slow.read_to_end(&mut rest)).await;
    assert!(
        over.is_ok(),
        "a client that never finishes is not waited for"
    );
    TcpStream::connect(stage.address)
        .await
        .expect_err("the socket is closed");
}
