//! `healthcheck`: what the kubelet runs inside the container, because the sidecar listens on the
//! pod's own loopback address only.

use crate::cli::Question;
use keelson_wire::route;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long the sidecar may take to answer.
pub const DEADLINE: Duration = Duration::from_secs(4);

/// Asks, and says what is wrong.
pub fn ask(question: Question, port: u16) -> Result<(), String> {
    let (path, no) = match question {
        Question::Livez => (
            route::LIVEZ,
            "the store cannot be written: ask /v0/livez?verbose=1 why",
        ),
        Question::Healthz => (
            route::HEALTHZ,
            "the gate is closed: a mark-ready task opens it",
        ),
    };
    let line = status_line(path, port)
        .map_err(|error| format!("the sidecar on port {port} does not answer {path}: {error}"))?;
    match line.split(' ').nth(1) {
        Some("200") => Ok(()),
        Some("503") => Err(no.to_owned()),
        _ => Err(format!("{path} answers {line:?}")),
    }
}

fn status_line(path: &str, port: u16) -> std::io::Result<String> {
    let until = Instant::now() + DEADLINE;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE)?;
    stream.set_write_timeout(Some(DEADLINE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut chunk = [0; 512];
    while !answer.contains(&b'\n') && answer.len() < 4096 {
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of zero would mean none.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut chunk)? {
            0 => break,
            read => answer.extend_from_slice(&chunk[..read]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
