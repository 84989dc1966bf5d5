//! The proxy between a client and an upstream that tells what it saw.

use crate::common::rights;
use crate::tunnel::{self, Tunnel};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use keelson_proxy::apiserver::ApiServer;
use keelson_proxy::decision::{Authentication, Engine, Keys, Settings};
use keelson_proxy::glob::Glob;
use keelson_proxy::headers::IdentityHeaders;
use keelson_proxy::metrics::Counts;
use keelson_proxy::path::Rules;
use keelson_proxy::pipeline::{Doorkeeper, Habits, Outage, Pipeline, Policy};
use keelson_proxy::reviewers::{AccessReviewer, TokenReviewer};
use keelson_proxy::serve::{Limits, Listener, Mode, Posture};
use keelson_proxy::target::Target;
use keelson_proxy::{config, upstream};
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, Namespace, until};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A request to be made.
pub(crate) struct Ask {
    method: &'static str,
    target: String,
    headers: Vec<(String, String)>,
    body: &'static str,
}

impl Ask {
    pub(crate) fn get(target: &str) -> Self {
        Self {
            method: "GET",
            target: target.into(),
            headers: Vec::new(),
            body: "",
        }
    }

    pub(crate) fn post(target: &str, body: &'static str) -> Self {
        Self {
            method: "POST",
            body,
            ..Self::get(target)
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
    headers: HeaderMap,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// What the upstream saw, which it answers with.
    pub(crate) fn seen(&self) -> Seen {
        assert_eq!(self.status, StatusCode::OK, "{}", self.body);
        let mut lines = self.body.lines().map(str::to_owned);
        Seen {
            target: lines.next().expect("a target"),
            headers: lines.collect(),
        }
    }
}

/// A request as it arrived.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) target: String,
    headers: Vec<String>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.headers
            .iter()
            .find_map(|line| line.strip_prefix(&prefix))
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        let prefix = format!("{name}: ");
        self.headers
            .iter()
            .filter(|line| line.starts_with(&prefix))
            .count()
    }
}

pub(crate) struct Stage {
    pub(crate) faults: FaultProxy,
    namespace: Namespace<'static>,
    address: SocketAddr,
    arrived: Arc<AtomicUsize>,
}

impl Stage {
    pub(crate) async fn new(name: &str) -> Self {
        let (address, arrived) = echo().await;
        Self::before(name, &format!("http://{address}"), arrived).await
    }

    pub(crate) async fn without_upstream(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        Self::before(name, &format!("http://{address}"), Arc::default()).await
    }

    /// Before an upstream that agrees to any upgrade.
    pub(crate) async fn before_a_tunnel(name: &str) -> Self {
        let address = tunnel::agreeable().await;
        Self::before(name, &format!("http://{address}"), Arc::default()).await
    }

    /// Asks for another protocol.
    pub(crate) async fn upgrade(&self, path: &str, name: &str, headers: &str) -> Tunnel {
        Tunnel::ask(self.address, path, name, headers).await
    }

    async fn before(name: &str, upstream: &str, arrived: Arc<AtomicUsize>) -> Self {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace(name).await;
        let faults = cluster.faults().expect("a proxy");
        let pipeline = pipeline(&faults.kubeconfig(), namespace.name(), upstream);
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (_, posture) = watch::channel(Posture::new(Mode::Plain));
        let listener = Listener::new(socket, posture, Limits::default());
        let address = listener.local_addr().expect("an address");
        tokio::spawn(listener.serve(Arc::new(pipeline), CancellationToken::new()));
        faults.forget();
        Self {
            faults,
            namespace,
            address,
            arrived,
        }
    }

    pub(crate) async fn ask(&self, ask: Ask) -> Answer {
        let stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        let io = TokioIo::new(stream);
        let (mut sender, driver) = hyper::client::conn::http1::handshake(io)
            .await
            .expect("HTTP");
        tokio::spawn(driver);
        let mut request = Request::builder()
            .method(ask.method)
            .uri(&ask.target)
            .header("host", "node");
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::<Bytes>::from(ask.body))
            .expect("a request");
        let (parts, body) = sender
            .send_request(request)
            .await
            .expect("an answer")
            .into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    pub(crate) fn upstream_saw(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    /// How often the API server was asked.
    pub(crate) fn reviews(&self) -> usize {
        self.faults.calls().len()
    }

    pub(crate) fn user(&self) -> String {
        rights::account(self.namespace.name())
    }

    pub(crate) async fn token(&self, audiences: &[&str]) -> String {
        let client = Cluster::shared().await.client();
        rights::token(&client, self.namespace.name(), audiences).await
    }

    /// Gives the namespace's account this verb on the node's tasks.
    pub(crate) async fn permit(&self, verb: &str) {
        rights::permit(self.namespace.name(), &self.user(), verb).await;
    }

    /// After an outage an unknown question is answered again within a second of the server's
    /// return.
    pub(crate) async fn right_again(&self, token: &str) {
        until(
            "a decision after the outage",
            Duration::from_secs(2),
            async || {
                let answer = self.ask(Ask::post("/v0/tasks", "{}").bearer(token)).await;
                match answer.status {
                    StatusCode::FORBIDDEN => Ok(()),
                    other => Err(format!("it was {other}")),
                }
            },
        )
        .await
        .expect("the proxy asks again");
    }
}

fn pipeline(kubeconfig: &str, namespace: &str, upstream: &str) -> Pipeline {
    let server =
        Arc::new(ApiServer::from_kubeconfig(kubeconfig, Path::new("/")).expect("a client"));
    let keys = Arc::new(Keys::random().expect("randomness"));
    let deadline = Duration::from_secs(5);
    let tokens = TokenReviewer {
        server: Arc::clone(&server),
        keys: Arc::clone(&keys),
        accept_unnamed: false,
        deadline,
    };
    let doorkeeper = Doorkeeper::new(
        Authentication::new(tokens, Settings::tokens(), Arc::clone(&keys), None),
        Engine::new(AccessReviewer { server, deadline }, Settings::access()),
        keys,
        Arc::from(["keelson-sidecar".to_owned()]),
        Outage::AsReference,
    );
    let text = format!(
        "authorization:\n  resourceAttributes:\n    apiGroup: sei.io\n    resource: seinodetasks\n    namespace: {namespace}\n"
    );
    let (config, warnings) =
        config::load(&text, config::Strictness::Refuse).expect("a configuration");
    assert!(warnings.is_empty(), "{warnings:?}");
    let glob = |pattern: &str| Glob::compile(pattern).expect("a pattern");
    let policy = Policy {
        authorization: config.authorization,
        paths: Rules {
            allow: vec![glob("/v0/*")],
            ignore: vec![glob("/v0/healthz")],
        },
    };
    let mut habits = Habits::default();
    habits.headers.identity = IdentityHeaders {
        enabled: true,
        ..IdentityHeaders::default()
    };
    let target = Target::parse(upstream).expect("a target");
    let place: SocketAddr = upstream
        .trim_start_matches("http://")
        .parse()
        .expect("an address");
    let reached = upstream::Target::Plain {
        host: place.ip().to_string(),
        port: place.port(),
    };
    Pipeline {
        policy: Arc::new(policy).into(),
        habits,
        doorkeeper,
        target,
        upstream: upstream::Upstream::new(reached, upstream::Limits::default()),
        counts: Counts::default(),
    }
}

/// An upstream that answers with what it saw.
async fn echo() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let arrived = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&arrived);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            let service = service_fn(move |request: Request<Incoming>| {
                count.fetch_add(1, Ordering::SeqCst);
                let target = request.uri().to_string();
                let headers = request.headers().iter().map(|(name, value)| {
                    format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
                });
                let lines: Vec<String> = std::iter::once(target).chain(headers).collect();
                async move { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(lines.join("\n")))) }
            });
            let server = hyper::server::conn::http1::Builder::new();
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, arrived)
}
