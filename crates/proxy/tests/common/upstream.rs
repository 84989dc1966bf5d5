//! An upstream that tells what it saw.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

/// An upstream that answers everyone with the head it got, and hello.
pub(crate) fn upstream() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            std::thread::spawn(move || hello(stream));
        }
    });
    address
}

/// Says it once, to whatever kind of stream; asked to hold, it never answers; asked to become
/// something else, it says everything back.
pub(crate) fn hello(mut stream: impl Read + Write) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    if head.contains("/hold") {
        let _ = stream.read(&mut byte);
    } else if head.contains("upgrade: websocket") {
        let agreed = "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let _ = stream.write_all(agreed.as_bytes());
        while matches!(stream.read(&mut byte), Ok(1)) && stream.write_all(&byte).is_ok() {}
    } else {
        let length = head.len() + "hello".len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{head}hello"
        );
        let _ = stream.write_all(answer.as_bytes());
        let _ = stream.flush();
    }
}
