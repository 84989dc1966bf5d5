//! The one door to all proxies: it tells TLS from plaintext by the first byte, and nodes by the name
//! they are called by.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::LazyConfigAcceptor;

use super::answer::{self, Body, Reply};
use super::place::Target;
use super::proxy::Serving;
use super::script::Fault;
use super::shared::Shared;

/// The first byte of every TLS connection.
const HANDSHAKE: u8 = 0x16;

const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

/// How a connection came in.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// In plaintext. The pod that has answered on it, if any has, is known by the cell: a mode that
    /// comes later does not change what an older connection is.
    Plain { pod: Arc<OnceLock<String>> },
    /// Over TLS, with this pod.
    Tls { pod: String },
}

/// Lets everyone in, for ever.
pub(crate) async fn open(listener: TcpListener, client: Client, shared: Arc<Shared>) {
    loop {
        // A connection that ended before it was taken is nobody's loss.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let (client, shared) = (client.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            // How a connection ends is its caller's to see.
            let _ = receive(stream, client, shared).await;
        });
    }
}

/// A port on loopback.
pub(crate) async fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

async fn receive(stream: TcpStream, client: Client, shared: Arc<Shared>) -> io::Result<()> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Ok(());
    }
    if first == [HANDSHAKE] {
        return receive_tls(stream, client, shared).await;
    }
    let pod = Arc::default();
    serve(stream, Origin::Plain { pod }, client, shared).await
}

async fn receive_tls(stream: TcpStream, client: Client, shared: Arc<Shared>) -> io::Result<()> {
    let mut start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let name = start.client_hello().server_name().map(str::to_owned);
    let Some(target) = name.as_deref().and_then(Target::read) else {
        return Ok(());
    };
    // The fault of one request only is for whoever gets as far as a request.
    let fault = shared.look(|world| world.script.of(&target.node).fault);
    match fault {
        Some(Fault::BlackHole) => return std::future::pending().await,
        Some(Fault::Refuse) => return Ok(()),
        _ => {}
    }
    let (pod, tls) = match shared.look(|world| world.serving(&target.node)) {
        (Some(pod), Serving::Tls(tls)) => (pod, tls),
        // A server of plain HTTP does not understand, and says so.
        (Some(_), serving) if serving.word() == "off" => {
            return start.io.write_all(BAD_REQUEST).await;
        }
        _ => return Ok(()),
    };
    let stream = start.into_stream(tls.config).await?;
    shared.happen(|world| {
        world.tls_was_served(&pod);
        Vec::new()
    });
    serve(stream, Origin::Tls { pod }, client, shared).await
}

async fn serve<S>(stream: S, origin: Origin, client: Client, shared: Arc<Shared>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (origin, client, shared) = (origin.clone(), client.clone(), Arc::clone(&shared));
        async move { reply(request, &origin, client, &shared).await }
    });
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    served.await.map_err(io::Error::other)
}

/// Gives an answer, or ends the connection without one.
async fn reply(
    request: Request<Incoming>,
    origin: &Origin,
    client: Client,
    shared: &Shared,
) -> Result<Response<Body>, io::Error> {
    match answer::answer(request, origin, client, shared).await {
        Reply::Answer(response) => Ok(response),
        Reply::Hang => {
            let never: Infallible = std::future::pending().await;
            match never {}
        }
        Reply::Close => Err(io::ErrorKind::ConnectionReset.into()),
    }
}
