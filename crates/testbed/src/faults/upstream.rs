//! The way to the API server: one connection for each caller's connection, made when needed.
//!
//! Nothing is retried here. A call that fails on the way fails for the caller, with the reason.

use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig,
    pki_types::{IpAddr, Ipv4Addr, ServerName},
};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpStream, sync::Mutex, time::timeout};
use tokio_rustls::TlsConnector;

/// What a request carries: the caller's stream, or bytes already read for the object's name.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// A loopback connection to a running server takes milliseconds.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Why the API server was not reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotForwarded {
    #[error("no TLS connection to {address} within {CONNECT_DEADLINE:?}")]
    TooSlow { address: SocketAddr },
    #[error("no TLS connection to {address}")]
    NotConnected {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the connection broke before the answer")]
    NotAnswered(#[source] hyper::Error),
}

/// Where the API server is and how to trust it.
#[derive(Clone)]
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    pub(super) tls: Arc<ClientConfig>,
}

impl Upstream {
    async fn connect(&self) -> Result<SendRequest<RequestBody>, NotForwarded> {
        let address = self.address;
        let not_connected = |source| NotForwarded::NotConnected { address, source };
        let connected = timeout(CONNECT_DEADLINE, async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([127, 0, 0, 1])));
            TlsConnector::from(self.tls.clone())
                .connect(name, stream)
                .await
        });
        let stream = connected
            .await
            .map_err(|_| NotForwarded::TooSlow { address })?
            .map_err(not_connected)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(NotForwarded::NotAnswered)?;
        // Ends when the sender and the last body are gone; its errors reach whoever reads those.
        tokio::spawn(connection.with_upgrades());
        Ok(sender)
    }
}

/// One caller's way to the API server.
pub(super) struct Lane {
    upstream: Upstream,
    idle: Mutex<Option<SendRequest<RequestBody>>>,
}

impl Lane {
    pub(super) fn new(upstream: Upstream) -> Self {
        Self {
            upstream,
            idle: Mutex::new(None),
        }
    }

    /// Forwards one request; the answer's body streams.
    pub(super) async fn send(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, NotForwarded> {
        let mut idle = self.idle.lock().await;
        let mut kept = idle.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_err()
        {
            kept = None;
        }
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.upstream.connect().await?,
        };
        let answer = sender
            .send_request(request)
            .await
            .map_err(NotForwarded::NotAnswered)?;
        *idle = Some(sender);
        Ok(answer)
    }
}
