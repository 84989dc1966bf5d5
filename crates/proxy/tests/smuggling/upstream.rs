//! An upstream that writes down what arrives, byte for byte, and answers whatever is complete.

use super::row::Arrived;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The requests so far, and a bell.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<(Mutex<Vec<Arrived>>, Condvar)>);

impl Recorder {
    /// Starts one.
    pub(crate) fn start() -> (Self, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        let recorder = Self::default();
        let mine = recorder.clone();
        std::thread::spawn(move || {
            for stream in socket.incoming().flatten() {
                let mine = mine.clone();
                std::thread::spawn(move || mine.listen(stream));
            }
        });
        (recorder, address)
    }

    /// Waits a while for so many requests, then takes what there is up to the one that marks the
    /// end.
    pub(crate) fn take(&self, count: usize, patience: Duration) -> Vec<Arrived> {
        let deadline = Instant::now() + patience;
        let (requests, bell) = &*self.0;
        let mut requests = requests.lock().expect("no panic in the recorder");
        while requests.len() < count {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                break;
            };
            requests = bell
                .wait_timeout(requests, left)
                .expect("no panic in the recorder")
                .0;
        }
        std::mem::take(&mut *requests)
    }

    fn listen(&self, mut stream: TcpStream) {
        let mut read = Vec::new();
        loop {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => read.extend_from_slice(&buffer[..count]),
            }
            while let Some((arrived, length)) = whole(&read) {
                read.drain(..length);
                self.note(arrived);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        }
        if !read.is_empty() {
            self.note(torn(&read));
        }
    }

    fn note(&self, arrived: Arrived) {
        let (requests, bell) = &*self.0;
        requests
            .lock()
            .expect("no panic in the recorder")
            .push(arrived);
        bell.notify_all();
    }
}

/// The request at the front, and how long it is; none while it is not complete. Read as strictly as
/// can be: a line end that is not CRLF stays in its line and is seen.
fn whole(read: &[u8]) -> Option<(Arrived, usize)> {
    let head = find(read, b"\r\n\r\n")?;
    let (line, headers) = lines(&read[..head]);
    let start = head + 4;
    let rest = &read[start..];
    let value = |name: &str| {
        let found = headers.iter().find_map(|line| line.strip_prefix(name));
        found.map(str::to_owned)
    };
    let (body, length) = if value("Transfer-Encoding: ").is_some() {
        unchunked(rest)?
    } else {
        let length = value("Content-Length: ").map_or(0, |it| it.parse().expect("a length"));
        (rest.get(..length)?.to_vec(), length)
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    let arrived = Arrived {
        line,
        headers,
        body,
        whole: true,
    };
    Some((arrived, start + length))
}

fn torn(read: &[u8]) -> Arrived {
    let head = find(read, b"\r\n\r\n").unwrap_or(read.len());
    let (line, headers) = lines(&read[..head]);
    let rest = read.get(head + 4..).unwrap_or_default();
    Arrived {
        line,
        headers,
        body: String::from_utf8_lossy(rest).into_owned(),
        whole: false,
    }
}

fn lines(head: &[u8]) -> (String, Vec<String>) {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n").map(str::to_owned);
    let line = lines.next().expect("a first line");
    let mut headers: Vec<String> = lines.collect();
    headers.sort();
    (line, headers)
}

fn unchunked(rest: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let end = at + find(&rest[at..], b"\r\n")?;
        let size = String::from_utf8_lossy(&rest[at..end]).into_owned();
        let size = usize::from_str_radix(&size, 16).expect("a chunk size of the proxy's own");
        at = end + 2;
        if size == 0 {
            // What stands before the empty line are trailers: seen as part of the body.
            let end = at + find(&rest[at - 2..], b"\r\n\r\n")?;
            body.extend_from_slice(rest.get(at..end)?);
            return Some((body, end + 2));
        }
        body.extend_from_slice(rest.get(at..at + size)?);
        at += size + 2;
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
