//! A stream and a body that tell the connection's [`Pulse`] what passes.

use super::patience::{Begun, Pulse};
use hyper::body::{Body, Frame, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How a connection of HTTP/2 begins, as far as no request of HTTP/1.1 does.
const HTTP2: &[u8] = b"PRI * HTTP/2";

/// A stream that is listened to.
#[derive(Debug)]
pub(super) struct Sensed<S> {
    inner: S,
    pulse: Arc<Pulse>,
    /// How much of the beginning of HTTP/2 has been seen; nothing when that is decided.
    opening: Option<usize>,
}

impl<S> Sensed<S> {
    pub(super) fn new(inner: S, pulse: Arc<Pulse>) -> Self {
        Self {
            inner,
            pulse,
            opening: Some(0),
        }
    }

    fn heard(&mut self, bytes: &[u8]) {
        self.pulse.read();
        let Some(seen) = self.opening else {
            return;
        };
        let expected = HTTP2.iter().skip(seen);
        let same = expected.zip(bytes).all(|(one, other)| one == other);
        self.opening = Some(seen + bytes.len()).filter(|seen| same && *seen < HTTP2.len());
        if same && self.opening.is_none() {
            self.pulse.speaks_http2();
        }
    }

    fn wrote(&self, polled: &Poll<io::Result<usize>>) {
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.pulse.wrote();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sensed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if let Some(bytes @ [_, ..]) = buffer.filled().get(before..) {
            self.heard(bytes);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sensed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.wrote(&polled);
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.wrote(&polled);
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// The body of an answer; its request is under way as long as it is there.
#[derive(Debug)]
pub(super) struct Awaited<B> {
    pub(super) inner: B,
    pub(super) _begun: Begun,
}

impl<B: Body + Unpin> Body for Awaited<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
