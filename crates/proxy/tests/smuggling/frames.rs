//! HTTP/2 by hand, for what no client would send: frames, and headers as literals.

use super::row::Said;
use std::io::{Read, Write};
use std::net::TcpStream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// A client's first bytes.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header block of literals that are not to be remembered.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            bytes.push(u8::try_from(text.len()).expect("a short text"));
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

/// A request without a body, on stream 1.
pub(crate) fn request(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(fields))
}

/// A request with a body, on stream 1.
pub(crate) fn request_with(fields: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, 1, &block(fields));
    bytes.extend(frame(DATA, END_STREAM, 1, body.as_bytes()));
    bytes
}

/// A request with a body and trailers, on stream 1.
pub(crate) fn request_trailed(
    fields: &[(&str, &str)],
    body: &str,
    trailers: &[(&str, &str)],
) -> Vec<u8> {
    let mut bytes = frame(HEADERS, END_HEADERS, 1, &block(fields));
    bytes.extend(frame(DATA, 0, 1, body.as_bytes()));
    bytes.extend(frame(
        HEADERS,
        END_STREAM | END_HEADERS,
        1,
        &block(trailers),
    ));
    bytes
}

/// Sends frames of stream 1, waits for what is said to them, and then asks for something harmless on
/// stream 3.
pub(crate) fn converse(stream: &mut TcpStream, frames: &[u8], witness: &str) -> Vec<Said> {
    let mut opening = PREFACE.to_vec();
    opening.extend(frame(SETTINGS, 0, 0, &[]));
    opening.extend(frames);
    stream.write_all(&opening).expect("a request");
    let mut said = vec![outcome(stream, 1)];
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", witness),
        (":authority", "node"),
    ];
    let last = frame(HEADERS, END_STREAM | END_HEADERS, 3, &block(&fields));
    let sent = stream.write_all(&last);
    said.push(match sent {
        Ok(()) => outcome(stream, 3),
        Err(_) => Said::Closed,
    });
    said
}

/// What becomes of a stream.
fn outcome(socket: &mut TcpStream, stream: u32) -> Said {
    let mut status = None;
    loop {
        let mut head = [0; 9];
        if socket.read_exact(&mut head).is_err() {
            return Said::Closed;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).expect("a small frame")];
        if socket.read_exact(&mut payload).is_err() {
            return Said::Closed;
        }
        let (kind, flags) = (head[3], head[4]);
        let about = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let code = |at: usize| {
            let bytes = payload.get(at..at + 4).expect("a code");
            u32::from_be_bytes(bytes.try_into().expect("four bytes"))
        };
        match kind {
            SETTINGS | PING if flags & ACK == 0 => {
                let answer = if kind == PING { &payload[..] } else { &[] };
                let _ = socket.write_all(&frame(kind, ACK, 0, answer));
            }
            GOAWAY => return Said::GoAway(code(4)),
            RESET if about == stream => return Said::Reset(code(0)),
            HEADERS if about == stream => status = status.or(Some(status_in(&payload))),
            _ => {}
        }
        let over = about == stream && matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        if let (true, Some(status)) = (over, status) {
            return Said::Status(status);
        }
    }
}

/// The status at the front of a header block: from HPACK's static table, or a literal in its Huffman
/// code. 0 for one not expected here.
fn status_in(block: &[u8]) -> u16 {
    let size_updates = block.iter().take_while(|byte| **byte & 0xe0 == 0x20);
    match block[size_updates.count()..] {
        [0x88, ..] => 200,
        [0x8c, ..] => 400,
        [0x48, 0x82, 0x68, 0x01, ..] => 401,
        _ => 0,
    }
}
