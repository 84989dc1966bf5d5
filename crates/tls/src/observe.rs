//! One verified handshake, to learn which certificate a server presents.
//!
//! Nothing is sent but the handshake. A server that cannot be reached is unknown, not changed; what
//! follows from either is for the operator.

use jiff::Timestamp;
use rustls::InvalidMessage;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::certificate::Leaf;
use crate::client::{Accepted, Pins, Untrusted, pinned, untrusted};

/// Who answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The certificate presented: fingerprint, expiry, issuer, names.
    pub leaf: Leaf,
    /// Why it was accepted.
    pub accepted: Accepted,
}

/// Why nobody could be observed.
#[derive(Debug, thiserror::Error)]
pub enum Unobserved {
    /// No connection, or one that broke: says nothing about the server's certificate.
    #[error("the server cannot be reached")]
    Unreachable(#[source] io::Error),
    /// The deadline passed.
    #[error("the handshake was not over after {0:?}")]
    TimedOut(Duration),
    /// The server answers something that is not TLS.
    #[error("the server does not speak TLS")]
    NotTls(#[source] rustls::Error),
    /// The server presents a certificate that the pins do not cover.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The handshake failed for another reason.
    #[error("the handshake failed")]
    Failed(#[source] rustls::Error),
}

impl Unobserved {
    /// Whether nothing was learned: neither a certificate nor its absence.
    pub fn unknown(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::TimedOut(_))
    }
}

/// Dials an address and observes who answers, all within the deadline.
pub async fn observe(
    address: SocketAddr,
    pins: &Pins,
    deadline: Duration,
) -> Result<Peer, Unobserved> {
    let observation = async {
        let stream = TcpStream::connect(address)
            .await
            .map_err(Unobserved::Unreachable)?;
        shake(stream, pins).await
    };
    tokio::time::timeout(deadline, observation)
        .await
        .unwrap_or(Err(Unobserved::TimedOut(deadline)))
}

/// Observes who is at the other end of a connection, within the deadline.
pub async fn observe_on<S>(stream: S, pins: &Pins, deadline: Duration) -> Result<Peer, Unobserved>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::time::timeout(deadline, shake(stream, pins))
        .await
        .unwrap_or(Err(Unobserved::TimedOut(deadline)))
}

async fn shake<S>(stream: S, pins: &Pins) -> Result<Peer, Unobserved>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = pinned(pins.clone(), &[]).map_err(Unobserved::Failed)?;
    let name = pins
        .server_name()
        .ok_or_else(|| Unobserved::Failed(rustls::Error::General("no name".to_owned())))?;
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.map_err(failure)?;
    let peer = {
        let (_, session) = stream.get_ref();
        let chain = session.peer_certificates().unwrap_or_default();
        let (leaf, rest) = chain
            .split_first()
            .ok_or(Unobserved::Failed(rustls::Error::NoCertificatesPresented))?;
        Peer {
            accepted: pins.judge(leaf, rest, Timestamp::now())?,
            leaf: Leaf::read(leaf).map_err(Untrusted::from)?,
        }
    };
    // A clean end spares the server a line in its log; whether it arrives changes nothing.
    let _ = stream.shutdown().await;
    Ok(peer)
}

/// tokio-rustls hands rustls' error on inside an I/O error.
fn failure(error: io::Error) -> Unobserved {
    let Some(inner) = error
        .get_ref()
        .and_then(|it| it.downcast_ref::<rustls::Error>())
    else {
        return Unobserved::Unreachable(error);
    };
    if let Some(untrusted) = untrusted(inner) {
        return Unobserved::Untrusted(untrusted.clone());
    }
    match inner {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            Unobserved::NotTls(inner.clone())
        }
        other => Unobserved::Failed(other.clone()),
    }
}
