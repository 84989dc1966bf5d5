//! An upstream that says hello as often as it is asked, and nothing at all to those who ask for that.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A query that is never answered.
pub(crate) const NEVER: &str = "?never";

/// Starts one on this runtime.
pub(crate) async fn hello() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(greet(stream));
        }
    });
    address
}

async fn greet(mut stream: TcpStream) {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        read.extend_from_slice(&buffer[..count]);
        let never = String::from_utf8_lossy(&read).contains(NEVER);
        if read.ends_with(b"\r\n\r\n") && !never {
            read.clear();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            if stream.write_all(answer).await.is_err() {
                return;
            }
        }
    }
}
