//! How long a client is waited for: 5 s for the head of a request from its first byte on (and for the
//! first byte of the first one), 60 s between requests, 30 s for it to take what it is sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

const HEAD: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(60);
const WRITE: Duration = Duration::from_secs(30);

const READING: u8 = 0;
const ASKED: u8 = 1;
const ANSWERED: u8 = 2;
const RESTING: u8 = 3;

/// Where a connection is, as those who serve it know.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases(Arc<AtomicU8>);

impl Phases {
    /// The head is here; how long the rest may take is for whoever reads it.
    pub(super) fn asked(&self) {
        self.0.store(ASKED, Ordering::Relaxed);
    }

    /// The answer is made and has to be sent.
    pub(super) fn answered(&self) {
        self.0.store(ANSWERED, Ordering::Relaxed);
    }

    fn now(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Relaxed);
    }
}

/// A connection that ends when its client keeps it waiting.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    phases: Phases,
    reading: Pin<Box<Sleep>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, phases: Phases) -> Self {
        Self {
            stream,
            phases,
            reading: Box::pin(sleep(HEAD)),
            writing: None,
        }
    }

    /// The answer is out: the next request may take its time to begin.
    fn rest(&mut self) {
        if self.phases.now() == ANSWERED {
            self.phases.set(RESTING);
            self.reading.as_mut().reset(Instant::now() + IDLE);
        }
    }
}

fn too_long<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let phase = self.phases.now();
        if read.is_pending() {
            let waiting = matches!(phase, READING | RESTING);
            if waiting && self.reading.as_mut().poll(context).is_ready() {
                return too_long();
            }
        } else if phase == RESTING && buffer.filled().len() > before {
            self.phases.set(READING);
            self.reading.as_mut().reset(Instant::now() + HEAD);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> Patient<S> {
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let timer = self.writing.get_or_insert_with(|| Box::pin(sleep(WRITE)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => too_long(),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            self.rest();
        }
        self.in_time(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
