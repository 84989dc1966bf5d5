//! An API server for answers a real one does not give: two POSTs, answered as scripted.

use crate::upstream::header;
use keelson_testbed::Authority;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What is odd about its answers. Otherwise everyone is `ada` and may everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    /// Access is allowed and denied at once.
    Torn,
    /// A token is good and no audience is named.
    NoAudiences,
    /// A token is good the first time only.
    GoodOnce,
    /// The user's name has a line break in it.
    OddName,
}

/// It serves until the runtime of its test ends.
pub(crate) struct Fake;

impl Fake {
    /// Starts it, with a certificate of this authority.
    pub(crate) async fn start(authority: &Authority, script: Script) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let identity = authority.server(&["127.0.0.1"]).expect("a certificate");
        let chain = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("PEM");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .expect("a pair");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let asked = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, asked) = (acceptor.clone(), Arc::clone(&asked));
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await.ok()?;
                    serve(stream, script, &asked).await
                });
            }
        });
        address
    }
}

async fn serve(
    mut stream: TlsStream<TcpStream>,
    script: Script,
    asked: &AtomicUsize,
) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let length = header(&head, "content-length")?.parse().ok()?;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let mut review: Value = serde_json::from_slice(&body).ok()?;
        review["status"] = match head.contains("tokenreviews") {
            true => token(script, &review, asked.fetch_add(1, Ordering::SeqCst)),
            false => access(script),
        };
        let text = review.to_string();
        let answer = format!(
            "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

fn token(script: Script, review: &Value, before: usize) -> Value {
    if script == Script::GoodOnce && before > 0 {
        return json!({ "user": {} });
    }
    let name = match script {
        Script::OddName => "ada\nlovelace",
        _ => "ada",
    };
    let mut status = json!({
        "authenticated": true, "user": { "username": name, "groups": ["engine"] },
    });
    if script != Script::NoAudiences {
        status["audiences"] = review["spec"]["audiences"].clone();
    }
    status
}

fn access(script: Script) -> Value {
    json!({ "allowed": true, "denied": script == Script::Torn })
}
