//! Bytes on their way from one thread to the next: a few pieces, in order, and an end that is told.
//!
//! A way that ends without the word was cut, and reads as an error, never as the end of the bytes.

use bytes::Bytes;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::mpsc;

/// Pieces of the compressed archive on the way. They are as large as the network makes them, half a
/// megabyte at most.
const COMPRESSED: usize = 12;
/// Pieces of the plain archive on the way, and their size.
const PLAIN: usize = 4;
const PIECE: usize = 512 * 1024;

/// Nobody takes the bytes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody takes the bytes any more")]
pub struct Gone;

/// Where the bytes of an archive are brought to.
#[derive(Debug)]
pub struct Feed(mpsc::Sender<Option<Bytes>>);

impl Feed {
    /// Brings a piece, and waits while there are enough.
    pub async fn bring(&self, bytes: Bytes) -> Result<(), Gone> {
        self.0.send(Some(bytes)).await.map_err(|_| Gone)
    }

    /// Says that this was all. A feed that is dropped without the word stops the unpacking.
    pub async fn end(self) -> Result<(), Gone> {
        self.0.send(None).await.map_err(|_| Gone)
    }
}

/// The way of the compressed bytes.
pub(super) fn incoming() -> (Feed, Pieces<Bytes>) {
    let (sender, receiver) = mpsc::channel(COMPRESSED);
    (Feed(sender), Pieces::of(receiver))
}

/// A buffer that goes back to where it was filled.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    filled: usize,
    home: Sender<Vec<u8>>,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Nobody fills it again when all is done.
        let _ = self.home.send(std::mem::take(&mut self.bytes));
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

/// The end of the way at which plain bytes are filled in.
#[derive(Debug)]
pub(super) struct Plain {
    sender: mpsc::Sender<Option<Buffer>>,
    home: Sender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
}

/// The way of the plain bytes.
pub(super) fn between() -> (Plain, Pieces<Buffer>) {
    let (sender, receiver) = mpsc::channel(PLAIN);
    let (home, empty) = channel();
    // One is being filled and one written while the others wait.
    for _ in 0..PLAIN + 2 {
        let _ = home.send(vec![0; PIECE]);
    }
    let plain = Plain {
        sender,
        home,
        empty,
    };
    (plain, Pieces::of(receiver))
}

impl Plain {
    /// Has a buffer filled, and sends it on. Says whether anything was filled in.
    pub(super) fn pass<E: From<Gone>>(
        &self,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let mut bytes = self.empty.recv().map_err(|_| Gone)?;
        let filled = fill(&mut bytes)?;
        if filled == 0 {
            return Ok(false);
        }
        let home = self.home.clone();
        let buffer = Buffer {
            bytes,
            filled,
            home,
        };
        self.sender.blocking_send(Some(buffer)).map_err(|_| Gone)?;
        Ok(true)
    }

    /// Says that this was all.
    pub(super) fn end(&self) -> Result<(), Gone> {
        self.sender.blocking_send(None).map_err(|_| Gone)
    }
}

/// The end of a way at which bytes are read.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    receiver: mpsc::Receiver<Option<T>>,
    piece: Option<T>,
    at: usize,
    ended: bool,
}

/// What a read says where the way was cut.
pub(super) fn is_cut(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted
}

impl<T: AsRef<[u8]>> Pieces<T> {
    fn of(receiver: mpsc::Receiver<Option<T>>) -> Self {
        Self {
            receiver,
            piece: None,
            at: 0,
            ended: false,
        }
    }

    fn left(&self) -> usize {
        self.piece
            .as_ref()
            .map_or(0, |piece| piece.as_ref().len() - self.at)
    }
}

impl<T: AsRef<[u8]>> BufRead for Pieces<T> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.left() == 0 && !self.ended {
            self.piece = None;
            self.at = 0;
            match self.receiver.blocking_recv() {
                Some(Some(piece)) => self.piece = Some(piece),
                Some(None) => self.ended = true,
                None => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
        }
        let at = self.at;
        Ok(self.piece.as_ref().map_or(&[], |it| &it.as_ref()[at..]))
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount;
    }
}

impl<T: AsRef<[u8]>> Read for Pieces<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let read = piece.len().min(buffer.len());
        buffer[..read].copy_from_slice(&piece[..read]);
        self.consume(read);
        Ok(read)
    }
}
