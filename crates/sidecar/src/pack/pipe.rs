//! From a thread that writes to a task that reads: a few pieces are on the way, and no more.

use bytes::{Bytes, BytesMut};
use std::io::{self, Write};
use tokio::sync::mpsc;

/// How large a piece is.
const PIECE: usize = 256 * 1024;
/// How many are on the way.
const PIECES: usize = 4;

/// The end that is written to, on a thread that may wait.
#[derive(Debug)]
pub struct Pipe {
    pieces: mpsc::Sender<Bytes>,
    gathered: BytesMut,
}

/// Both ends. Who writes is refused when nobody reads any more.
pub fn pipe() -> (Pipe, mpsc::Receiver<Bytes>) {
    let (pieces, read) = mpsc::channel(PIECES);
    let gathered = BytesMut::new();
    (Pipe { pieces, gathered }, read)
}

impl Pipe {
    /// Hands on what was gathered, and closes.
    pub fn finish(mut self) -> io::Result<()> {
        match self.gathered.is_empty() {
            true => Ok(()),
            false => self.hand_on(),
        }
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let piece = self.gathered.split().freeze();
        let sent = self.pieces.blocking_send(piece);
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gathered.is_empty() {
            // All at once: what grows is copied.
            self.gathered = BytesMut::with_capacity(PIECE);
        }
        let room = PIECE - self.gathered.len();
        let taken = room.min(bytes.len());
        self.gathered.extend_from_slice(&bytes[..taken]);
        if self.gathered.len() == PIECE {
            self.hand_on()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
