//! From compressed bytes to plain ones. Both decoders check the checksums they find, go on with the
//! next stream where several follow each other, and refuse what comes after the last.

use super::Problem;
use super::pieces::{Gone, Pieces, Plain, is_cut};
use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use std::io::{self, Read};

/// How an archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `.tar.gz`.
    Gzip,
    /// `.tar.zst`.
    Zstandard,
}

/// How much is decoded at a stroke: the checksum is taken of it while it is in the cache.
const STROKE: usize = 128 * 1024;
/// How far back an archive may refer, as a power of two: memory of that size is needed.
const WINDOW: u32 = 25;

impl From<Gone> for Problem {
    fn from(_: Gone) -> Self {
        Self::Stopped
    }
}

/// Decodes until the last byte, and verifies that it was the last.
pub(super) fn decode(form: Form, from: Pieces<Bytes>, to: &Plain) -> Result<(), Problem> {
    match form {
        Form::Gzip => pass_all(MultiGzDecoder::new(from), to),
        Form::Zstandard => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(from).map_err(damaged)?;
            decoder.window_log_max(WINDOW).map_err(damaged)?;
            pass_all(decoder, to)
        }
    }
}

fn pass_all(mut from: impl Read, to: &Plain) -> Result<(), Problem> {
    while to.pass(|buffer| fill(&mut from, buffer).map_err(damaged))? {}
    Ok(to.end()?)
}

/// Fills a buffer, or as much of it as there is.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        let end = buffer.len().min(filled + STROKE);
        match from.read(&mut buffer[filled..end]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn damaged(error: io::Error) -> Problem {
    if is_cut(&error) {
        return Problem::Stopped;
    }
    Problem::Damaged(match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends in the middle".into(),
        _ => error.to_string(),
    })
}
