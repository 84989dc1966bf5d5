//! A node's RPC behind TLS on port 443, as public ones are.

use crate::node::{Node, RPC};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

/// Stands before a node at an address of its own until the process ends; the certificate it shows, as
/// PEM.
pub(crate) fn front(address: Ipv4Addr, node: &Node) -> String {
    let made = rcgen::generate_simple_self_signed([address.to_string()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key))
        .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind((address, 443)).expect("port 443");
    let behind = node.address;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            // Whoever speaks plainly is not answered.
            let _ = pass(StreamOwned::new(connection, stream), behind);
        }
    });
    made.cert.pem()
}

fn pass(
    mut stream: StreamOwned<ServerConnection, TcpStream>,
    behind: Ipv4Addr,
) -> std::io::Result<()> {
    let mut asked = Vec::new();
    let mut byte = [0];
    while !asked.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        asked.push(byte[0]);
    }
    let mut node = TcpStream::connect((behind, RPC))?;
    node.write_all(&asked)?;
    let mut said = Vec::new();
    node.read_to_end(&mut said)?;
    stream.write_all(&said)?;
    stream.conn.send_close_notify();
    stream.flush()
}
