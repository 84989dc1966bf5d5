//! One caller's TCP connection, with a hand on it: it can be frozen, closed or reset from outside,
//! and be torn after the first byte of an answer.
//!
//! What is called closed or reset is so when the method returns, whatever the task that serves the
//! connection is doing. Which connection meets what is decided by the door and the script.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Notify,
};

/// The hand on a connection.
pub(super) struct Link {
    state: Mutex<State>,
    ended: Notify,
}

struct State {
    stream: Option<TcpStream>,
    /// How many faults hold it frozen.
    frozen: usize,
    waiting: Vec<Waker>,
    tear: Tear,
}

/// Where an answer is torn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tear {
    No,
    AfterNextByte,
    Now,
}

impl Link {
    pub(super) fn new(stream: TcpStream) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                stream: Some(stream),
                frozen: 0,
                waiting: Vec::new(),
                tear: Tear::No,
            }),
            ended: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops every byte in both directions. The peer sees neither FIN nor reset.
    pub(super) fn freeze(&self) {
        self.state().frozen += 1;
    }

    /// Undoes one [`freeze`](Self::freeze).
    pub(super) fn thaw(&self) {
        let mut state = self.state();
        state.frozen = state.frozen.saturating_sub(1);
        if state.frozen == 0 {
            state.waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// Closes the connection as a program that exits does.
    pub(super) fn close(&self) {
        drop(self.take());
    }

    /// Resets the connection: the peer's next read fails.
    pub(super) fn reset(&self) {
        if let Some(stream) = self.take() {
            // Without it the peer would see an ordinary close, which for most callers is the same.
            let _ = stream.set_zero_linger();
        }
    }

    /// Resets the connection once one more byte of answer is on its way.
    pub(super) fn tear_after_next_byte(&self) {
        self.state().tear = Tear::AfterNextByte;
    }

    /// Whether the connection still exists on this side.
    pub(super) fn open(&self) -> bool {
        self.state().stream.is_some()
    }

    /// Resolves when the connection is gone on this side.
    pub(super) async fn ended(&self) {
        loop {
            let ended = self.ended.notified();
            if !self.open() {
                return;
            }
            ended.await;
        }
    }

    fn take(&self) -> Option<TcpStream> {
        let stream = self.state().stream.take();
        self.ended.notify_waiters();
        stream
    }
}

/// The connection's bytes, as far as the link lets them move.
pub(super) struct Valve(pub(super) Arc<Link>);

impl Valve {
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        action: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.0.state();
        if state.frozen > 0 {
            if !state
                .waiting
                .iter()
                .any(|waker| waker.will_wake(cx.waker()))
            {
                state.waiting.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        match &mut state.stream {
            Some(stream) => action(Pin::new(stream), cx),
            None => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }
}

impl AsyncRead for Valve {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Valve {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_shutdown(cx))
    }
}

/// The link outlives its service in the door's list; the socket must not.
impl Drop for Valve {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The plain side of the TLS session, where an answer's first byte is its first byte.
pub(super) struct Tearable<S> {
    pub(super) inner: S,
    pub(super) link: Arc<Link>,
}

impl<S: AsyncWrite + Unpin> Tearable<S> {
    fn poll_tear<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.link.reset();
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    fn tear(&self) -> Tear {
        self.link.state().tear
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tearable<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tearable<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.tear() {
            Tear::No => Pin::new(&mut self.inner).poll_write(cx, bytes),
            Tear::AfterNextByte => {
                let first = &bytes[..bytes.len().min(1)];
                let written = ready!(Pin::new(&mut self.inner).poll_write(cx, first))?;
                if written == 1 {
                    self.link.state().tear = Tear::Now;
                }
                Poll::Ready(Ok(written))
            }
            Tear::Now => self.poll_tear(cx),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.tear() {
            Tear::Now => self.poll_tear(cx),
            Tear::No | Tear::AfterNextByte => Pin::new(&mut self.inner).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
