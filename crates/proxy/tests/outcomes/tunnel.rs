//! Both ends of an upgraded connection, byte by byte.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An upstream that agrees to whatever it is asked to become, and then says everything back.
pub(crate) async fn agreeable() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(agree(stream));
        }
    });
    address
}

async fn agree(mut stream: TcpStream) {
    let head = head(&mut stream).await.to_ascii_lowercase();
    let asked = head.lines().find_map(|line| line.strip_prefix("upgrade: "));
    let Some(name) = asked else {
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await;
        return;
    };
    let answer =
        format!("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: {name}\r\n\r\n");
    let _ = stream.write_all(answer.as_bytes()).await;
    let (mut from, mut to) = stream.split();
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

/// What a client has after asking for another protocol.
pub(crate) struct Tunnel {
    pub(crate) head: String,
    stream: TcpStream,
}

impl Tunnel {
    pub(crate) async fn ask(proxy: SocketAddr, path: &str, name: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(proxy).await.expect("a connection");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: {name}\r\n{headers}\r\n"
        );
        stream
            .write_all(request.as_bytes())
            .await
            .expect("a request");
        Self {
            head: head(&mut stream).await,
            stream,
        }
    }

    /// Sends a text through and waits for it to come back.
    pub(crate) async fn echo(&mut self, text: &str) -> String {
        self.stream.write_all(text.as_bytes()).await.expect("sent");
        let mut back = vec![0; text.len()];
        self.stream.read_exact(&mut back).await.expect("an echo");
        String::from_utf8(back).expect("text")
    }
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}
