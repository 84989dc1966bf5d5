//! A way in: a port on the machine's loopback whose connections continue inside the cluster's
//! network, so that an ordinary process reaches the API server without entering anything.

use crate::enclosure::Enclosure;
use crate::error::{Doing, Error};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Listens on a free loopback port and forwards to `target` inside. Ends with the runtime it was
/// started on.
pub(crate) async fn forward(
    enclosure: Weak<Enclosure>,
    target: SocketAddr,
) -> Result<SocketAddr, Error> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .doing(|| "no loopback port could be had for the API server")?;
    let address = listener
        .local_addr()
        .doing(|| "the loopback port of the API server is not known")?;
    tokio::spawn(async move {
        while let Ok((outside, _)) = listener.accept().await {
            let Some(enclosure) = enclosure.upgrade() else {
                return;
            };
            tokio::spawn(carry(enclosure, outside, target));
        }
    });
    Ok(address)
}

/// Where nobody listens inside, the connection is closed: the client sees an API server that is
/// gone, which is the truth.
async fn carry(enclosure: Arc<Enclosure>, mut outside: TcpStream, target: SocketAddr) {
    let Ok(socket) = enclosure.run(TcpSocket::new_v4) else {
        return;
    };
    drop(enclosure);
    let Ok(mut inside) = socket.connect(target).await else {
        return;
    };
    let _ = outside.set_nodelay(true);
    let _ = inside.set_nodelay(true);
    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
}
