//! An answer's body that gives its connection back when it has been read to the end.
//!
//! A body that is dropped early takes its connection with it: what is left on it belongs to nobody.

use super::Pool;
use super::body::Outgoing;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::SendRequest;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

/// A connection on loan.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Weak<Pool>,
    sender: SendRequest<Outgoing>,
}

impl Lease {
    pub(super) fn new(pool: Weak<Pool>, sender: SendRequest<Outgoing>) -> Self {
        Self { pool, sender }
    }

    fn end(self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(self.sender);
        }
    }
}

/// The body of an upstream's answer.
#[derive(Debug)]
pub struct Leased {
    inner: Incoming,
    lease: Option<Lease>,
}

impl Leased {
    /// An answer without a body gives its connection back at once.
    pub(super) fn new(inner: Incoming, lease: Option<Lease>) -> Self {
        let mut body = Self { inner, lease };
        if body.inner.is_end_stream() {
            body.end();
        }
        body
    }

    fn end(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.end();
        }
    }
}

impl Body for Leased {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        let last = match &polled {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.inner.is_end_stream(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => false,
        };
        if last {
            self.end();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
