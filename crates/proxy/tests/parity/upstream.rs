//! The server behind a proxy: it keeps the bytes of every request, and what it answers depends on
//! the request alone.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";
/// Ends in the middle, after a part that every proxy passes on at once.
const CUT_SHORT: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";

/// Says nothing about its body.
const BARE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
/// Has all a proxy has to look after: an interim answer, headers for one hop, trailers.
const RICH: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 418 Odd\r\nContent-Type: text/plain\r\nServer: teapot\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n";

pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    requests: Mutex<Vec<Vec<u8>>>,
    connections: AtomicUsize,
    /// `/held` is answered when a permit is there.
    gate: Semaphore,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            gate: Semaphore::new(0),
        });
        let told = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                told.connections.fetch_add(1, Ordering::SeqCst);
                let told = Arc::clone(&told);
                tokio::spawn(async move { converse(stream, &told).await });
            }
        });
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// The requests since the last look.
    pub(crate) fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.requests())
    }

    pub(crate) fn arrived(&self) -> usize {
        self.requests().len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Answers this many requests for `/held`.
    pub(crate) fn release(&self, count: usize) {
        self.shared.gate.add_permits(count);
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        let requests = self.shared.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves one connection until its end.
async fn converse(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    loop {
        let request = request(&mut stream).await?;
        let text = String::from_utf8_lossy(&request).into_owned();
        shared
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
        let target = text.split(' ').nth(1).unwrap_or_default();
        if target.starts_with("/held") {
            shared.gate.acquire().await.ok()?.forget();
        }
        let upgrade = header(&text, "upgrade").map(|name| {
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {name}\r\n\r\n"
            )
        });
        let answer = match target {
            "/drops" => "",
            "/dies" => CUT_SHORT,
            "/bare" => BARE,
            "/rich" => RICH,
            "/unchanged" => "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
            _ => upgrade.as_deref().unwrap_or(HELLO),
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
        if matches!(target, "/drops" | "/dies") {
            return None;
        }
    }
}

/// The bytes of one request, its body included.
async fn request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length: usize = header(&head, "content-length").map_or(0, |it| it.parse().unwrap_or(0));
    if header(&head, "transfer-encoding").is_some() {
        while !bytes.ends_with(b"0\r\n\r\n") {
            bytes.push(stream.read_u8().await.ok()?);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    bytes.extend(body);
    Some(bytes)
}

/// The first header of this name.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
