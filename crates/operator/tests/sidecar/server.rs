//! A server in the place of a proxy: it answers as it is told and remembers what it was sent.

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use keelson_testbed::Identity;
use keelson_tls::{ClientAuth, Pair, Profile, server_config};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How long a test waits for what the server sees.
const SOON: Duration = Duration::from_secs(20);

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Answer(StatusCode, String),
    /// Nothing, for as long as the caller waits.
    Hang,
    /// It ends the connection.
    Cut,
}

/// An answer with this status and JSON.
pub(crate) fn answer(status: u16, body: impl ToString) -> Reply {
    let status = StatusCode::from_u16(status).expect("a status");
    Reply::Answer(status, body.to_string())
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Which connection it came on, from one.
    pub(crate) connection: usize,
    /// The name that was asked for in the handshake.
    pub(crate) server_name: Option<String>,
    /// Method and path.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What the server has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) seen: Vec<Seen>,
    pub(crate) opened: usize,
    pub(crate) closed: usize,
}

impl Ledger {
    pub(crate) fn lines(&self) -> Vec<String> {
        let seen = self.seen.iter();
        seen.map(|it| format!("{} {}", it.connection, it.line))
            .collect()
    }
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// The server. It ends when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    ledger: watch::Sender<Ledger>,
    hang_ups: watch::Sender<()>,
    acceptor: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn plaintext(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(None, Arc::new(script)).await
    }

    pub(crate) async fn tls(
        identity: &Identity,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let pair = Pair::from_pem(identity.certificate.as_bytes(), identity.key.as_bytes());
        let pair = pair.expect("a pair");
        let made = server_config(&Profile::intermediate(), &pair, ClientAuth::None, None, &[]);
        let (config, _) = made.expect("a configuration");
        Self::start(Some(TlsAcceptor::from(Arc::new(config))), Arc::new(script)).await
    }

    async fn start(tls: Option<TlsAcceptor>, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let ledger = watch::Sender::new(Ledger::default());
        let hang_ups = watch::Sender::new(());
        let (told, ends) = (ledger.clone(), hang_ups.clone());
        let acceptor = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (tls, told, script) = (tls.clone(), told.clone(), Arc::clone(&script));
                let mut end = ends.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        () = converse(stream, tls, &told, &script) => {}
                        // When the server is gone, so are its connections.
                        _ = end.changed() => {}
                    }
                    told.send_modify(|ledger| ledger.closed += 1);
                });
            }
        });
        Self {
            address,
            ledger,
            hang_ups,
            acceptor,
        }
    }

    /// Ends every connection there is.
    pub(crate) fn hang_up(&self) {
        self.hang_ups.send_replace(());
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger.borrow().clone()
    }

    /// Waits until the server has seen this.
    pub(crate) async fn saw(&self, what: &str, holds: impl FnMut(&Ledger) -> bool) {
        let mut ledger = self.ledger.subscribe();
        let seen = timeout(SOON, ledger.wait_for(holds)).await;
        assert!(seen.is_ok(), "{what}: {:?}", self.ledger());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.hang_up();
    }
}

async fn converse(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    told: &watch::Sender<Ledger>,
    script: &Script,
) {
    told.send_modify(|ledger| ledger.opened += 1);
    let connection = told.borrow().opened;
    match tls {
        None => serve(stream, connection, None, told, script).await,
        Some(tls) => {
            // A client that does not trust the certificate ends the handshake.
            if let Ok(stream) = tls.accept(stream).await {
                let name = stream.get_ref().1.server_name().map(str::to_owned);
                serve(stream, connection, name, told, script).await;
            }
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    server_name: Option<String>,
    told: &watch::Sender<Ledger>,
    script: &Script,
) {
    let service = service_fn(async |request: Request<Incoming>| {
        let (parts, body) = request.into_parts();
        let seen = Seen {
            connection,
            server_name: server_name.clone(),
            line: format!("{} {}", parts.method, parts.uri),
            headers: parts.headers,
            body: body.collect().await.map_err(io::Error::other)?.to_bytes(),
        };
        let reply = script(&seen);
        told.send_modify(|ledger| ledger.seen.push(seen));
        match reply {
            Reply::Answer(status, body) => {
                let mut answer = Response::new(Full::new(Bytes::from(body)));
                *answer.status_mut() = status;
                Ok(answer)
            }
            Reply::Hang => std::future::pending().await,
            Reply::Cut => Err(io::Error::other("cut")),
        }
    });
    let conversation = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // How it ends is what the test looks at from the other side.
    let _ = conversation.await;
}
