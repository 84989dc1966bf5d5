//! A client's connection, kept for many requests, that tells a lost request from a connection that
//! ended between two.

use super::program::SOON;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The connection ended before a byte of an answer: nothing is known about the request.
    Unanswered,
    /// An answer was begun and not finished, or nothing happened in time.
    Broken(String),
}

/// An open connection.
pub(crate) struct Line<S> {
    stream: S,
    /// Whether the last answer said that it is the last.
    pub(crate) over: bool,
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

impl Line<TcpStream> {
    /// Connects from this address of the machine.
    pub(crate) async fn from(source: IpAddr, to: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(source, 0))?;
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self::new(stream))
    }

    /// Connects.
    pub(crate) async fn open(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self::new(stream))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Line<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            over: false,
            patience: SOON,
        }
    }

    /// One request with this token; the status of its answer.
    pub(crate) async fn ask(&mut self, line: &str, token: &str) -> Result<u16, Lost> {
        let patience = self.patience;
        let asked = timeout(patience, self.exchange(line, token)).await;
        asked.unwrap_or_else(|_| Err(Lost::Broken(format!("nothing within {patience:?}"))))
    }

    async fn exchange(&mut self, line: &str, token: &str) -> Result<u16, Lost> {
        let credential = match token {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        let request = format!("{line} HTTP/1.1\r\nHost: node\r\n{credential}\r\n");
        // A connection that has ended may say so only when it is read.
        let _ = self.stream.write_all(request.as_bytes()).await;
        let _ = self.stream.flush().await;
        let mut read = Vec::new();
        let head = loop {
            let mut buffer = [0; 2048];
            match self.stream.read(&mut buffer).await {
                Ok(0) | Err(_) if read.is_empty() => return Err(Lost::Unanswered),
                Ok(0) => return Err(broken(&read)),
                Err(error) => return Err(Lost::Broken(error.to_string())),
                Ok(count) => read.extend_from_slice(&buffer[..count]),
            }
            if let Some(at) = read.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
        self.over = text.contains("\r\nconnection: close");
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        let missing = (head + length.unwrap_or(0)).saturating_sub(read.len());
        let mut rest = vec![0; missing];
        let rest = self.stream.read_exact(&mut rest).await;
        rest.map_err(|_| broken(&read))?;
        let code = text.split(' ').nth(1).and_then(|it| it.parse().ok());
        code.ok_or_else(|| broken(&read))
    }
}

fn broken(read: &[u8]) -> Lost {
    Lost::Broken(format!(
        "an answer that is not whole: {:?}",
        String::from_utf8_lossy(read)
    ))
}
