//! The anchor "raw hyper": takes a request, gives it to hyper-util's client, and gives the answer
//! back. It knows no callers, counts nothing, limits nothing, and changes nothing but the target, so
//! what it costs is what the stack costs.

use anyhow::Context;
use clap::Parser;
use http::{Request, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Forwards everything, asks nobody.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where HTTP/1.1 and h2c are served.
    #[arg(long)]
    plain: SocketAddr,
    /// Where TLS is served.
    #[arg(long)]
    tls: SocketAddr,
    /// The certificate of that, PEM.
    #[arg(long)]
    certificate: PathBuf,
    /// Its key, PEM.
    #[arg(long)]
    key: PathBuf,
    /// Where requests go, HTTP/1.1.
    #[arg(long)]
    upstream: SocketAddr,
}

type Upstream = Client<HttpConnector, Incoming>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Upstream = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(1024)
        .build(connector);
    let tls = TlsAcceptor::from(Arc::new(tls(&arguments)?));
    let plain = TcpListener::bind(arguments.plain).await?;
    let secure = TcpListener::bind(arguments.tls).await?;
    loop {
        tokio::select! {
            Ok((stream, _)) = plain.accept() => {
                tokio::spawn(plainly(stream, client.clone(), arguments.upstream));
            }
            Ok((stream, _)) = secure.accept() => {
                tokio::spawn(secretly(stream, tls.clone(), client.clone(), arguments.upstream));
            }
        }
    }
}

fn tls(arguments: &Arguments) -> anyhow::Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(&arguments.certificate)
        .and_then(Iterator::collect)
        .with_context(|| format!("{} is no certificate", arguments.certificate.display()))?;
    let key = PrivateKeyDer::from_pem_file(&arguments.key)
        .with_context(|| format!("{} is no key", arguments.key.display()))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

async fn plainly(stream: TcpStream, client: Upstream, upstream: SocketAddr) {
    if stream.set_nodelay(true).is_ok() {
        serve(stream, client, upstream).await;
    }
}

async fn secretly(stream: TcpStream, tls: TlsAcceptor, client: Upstream, upstream: SocketAddr) {
    if stream.set_nodelay(true).is_ok()
        && let Ok(stream) = tls.accept(stream).await
    {
        serve(stream, client, upstream).await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: Upstream,
    upstream: SocketAddr,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let client = client.clone();
        async move {
            let path = request.uri().path_and_query();
            let path = path.map_or("/", |path| path.as_str());
            *request.uri_mut() = format!("http://{upstream}{path}")
                .parse::<Uri>()
                .expect("a path that was parsed before");
            *request.version_mut() = http::Version::HTTP_11;
            client.request(request).await
        }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    // Whoever hangs up hangs up.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
