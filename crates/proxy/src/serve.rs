//! Taking connections: one socket, plaintext or TLS as the configuration says, and a switch
//! between the two that loses nobody.
//!
//! What new connections get is a [`Posture`], told through a channel; the socket is never closed
//! for a change of it. A connection made under the other mode ends with its next answer (HTTP/1.1),
//! with GOAWAY (HTTP/2), or when its patience is over. One that is idle for too long, or does not finish
//! a head, ends by `patience`. What is answered is the [`Respond`]er's.

mod accept;
mod connection;
mod patience;
mod posture;
mod sensed;
mod tunnels;

pub use accept::{Http2, Limits, Listener};
pub use connection::Origin;
pub use posture::{Mode, Posture};
pub use tunnels::Tunnels;

use http::{Request, Response};
use hyper::body::{Body, Bytes, Incoming};
use std::error::Error;
use std::future::Future;
use std::sync::Arc;

/// Whoever answers requests.
pub trait Respond: Send + Sync + 'static {
    /// The body of an answer.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static;
    /// What ends a connection without an answer.
    type Unanswered: Into<Box<dyn Error + Send + Sync>>;

    /// Answers one request that came from there.
    fn respond(
        self: Arc<Self>,
        origin: Arc<Origin>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Self::Unanswered>> + Send;
}
