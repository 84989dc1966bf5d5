//! The sidecars of all nodes, played by one server that answers at once.
//!
//! They are told apart by the name they are called by. What a sidecar approved it remembers with the
//! start fingerprint of the pod it approved, as a real one does on its volume. A caller that speaks
//! TLS is answered as any plain server answers it. Requests and connections are counted.

use anyhow::Context;
use http::header::HOST;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use keelson_api::task::TaskType;
use keelson_render::names;
use keelson_wire::{ErrorResponse, Submission, TaskSubmitResponse, route};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long the operator may take until it calls a sidecar whose pod is there.
const SOON: Duration = Duration::from_secs(60);

/// What callers did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    pub(crate) connections: u64,
}

impl Traffic {
    /// What was done since an earlier look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            connections: self.connections - before.connections,
        }
    }
}

/// One sidecar.
#[derive(Debug, Default)]
struct Sidecar {
    /// What its pod was made from, as far as the start of the process goes.
    fingerprint: String,
    approved: Option<String>,
    submitted: HashSet<String>,
    hangs: bool,
}

/// All of them.
#[derive(Clone, Debug)]
pub(crate) struct Sidecars {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// By the name their pods are called by.
    sidecars: Mutex<HashMap<String, Sidecar>>,
    requests: AtomicU64,
    connections: AtomicU64,
    held: watch::Sender<u64>,
}

impl Shared {
    fn sidecars(&self) -> MutexGuard<'_, HashMap<String, Sidecar>> {
        self.sidecars.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sidecars {
    /// Begins to serve on loopback, on the runtime this is called on.
    pub(crate) async fn serve() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("there is no port for the sidecars")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { address, shared })
    }

    /// A pod of a node came up, made from this.
    pub(crate) fn came_up(&self, namespace: &str, node: &str, fingerprint: &str) {
        let mut sidecars = self.shared.sidecars();
        let sidecar = sidecars.entry(called(namespace, node)).or_default();
        fingerprint.clone_into(&mut sidecar.fingerprint);
    }

    /// From now on this one takes requests and answers none.
    pub(crate) fn hang(&self, namespace: &str, node: &str) {
        let mut sidecars = self.shared.sidecars();
        sidecars.entry(called(namespace, node)).or_default().hangs = true;
    }

    /// Waits until a request is held that is never answered.
    pub(crate) async fn held(&self) -> anyhow::Result<()> {
        let mut held = self.shared.held.subscribe();
        let met = timeout(SOON, held.wait_for(|held| *held > 0)).await;
        met.with_context(|| format!("no hanging sidecar was called within {SOON:?}"))??;
        Ok(())
    }

    /// What callers did so far.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.shared.requests.load(Ordering::Relaxed),
            connections: self.shared.connections.load(Ordering::Relaxed),
        }
    }
}

/// What a node's pod is called by.
fn called(namespace: &str, node: &str) -> String {
    let [_service, pod] = names::dns(node, namespace);
    pod
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // A connection that broke before it was taken is its caller's business.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        shared.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(converse(stream, shared.clone()));
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(request, &shared).await) }
    });
    // Whoever speaks TLS here is told in HTTP that this is none, and hung up on.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let host = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    let host = host.unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.to_owned();
    let hangs = {
        let sidecars = shared.sidecars();
        sidecars.get(&name).is_some_and(|it| it.hangs)
    };
    if hangs {
        shared.held.send_modify(|held| *held += 1);
        std::future::pending::<()>().await;
    }
    let path = request.uri().path().to_owned();
    if request.method() == Method::POST {
        let body = request.into_body().collect().await;
        let body = body.map(|it| it.to_bytes()).unwrap_or_default();
        return submit(&body, &name, shared);
    }
    let sidecars = shared.sidecars();
    let Some(sidecar) = sidecars.get(&name) else {
        return text(StatusCode::BAD_GATEWAY);
    };
    match path.strip_prefix("/v0/tasks/") {
        Some(_) if request.method() == Method::DELETE => text(StatusCode::NO_CONTENT),
        Some(id) if sidecar.submitted.contains(id) => completed(id),
        Some(_) => error(StatusCode::NOT_FOUND, "task not found"),
        None if path != route::HEALTHZ => text(StatusCode::NOT_FOUND),
        None if sidecar.approved.as_ref() == Some(&sidecar.fingerprint) => text(StatusCode::OK),
        None => text(StatusCode::SERVICE_UNAVAILABLE),
    }
}

fn submit(body: &[u8], name: &str, shared: &Shared) -> Response<Full<Bytes>> {
    let submission = match Submission::read(body) {
        Ok(submission) => submission,
        Err(refusal) => return error(StatusCode::BAD_REQUEST, &refusal.to_string()),
    };
    let Some(id) = submission.id else {
        return error(
            StatusCode::BAD_REQUEST,
            "a task of the operator's has an id",
        );
    };
    let mut sidecars = shared.sidecars();
    let sidecar = sidecars.entry(name.to_owned()).or_default();
    if submission.type_ == TaskType::MarkReady {
        sidecar.approved = Some(sidecar.fingerprint.clone());
    }
    sidecar.submitted.insert(id.clone());
    said(StatusCode::CREATED, &TaskSubmitResponse { id })
}

fn completed(id: &str) -> Response<Full<Bytes>> {
    let now = jiff::Timestamp::now();
    let task = json!({
        "id": id, "type": "played", "status": "completed", "submittedAt": now, "completedAt": now,
    });
    said(StatusCode::OK, &task)
}

fn error(status: StatusCode, error: &str) -> Response<Full<Bytes>> {
    let error = error.to_owned();
    said(status, &ErrorResponse { error })
}

fn said(status: StatusCode, body: &impl serde::Serialize) -> Response<Full<Bytes>> {
    let mut response = text(status);
    *response.body_mut() = Full::from(serde_json::to_vec(body).unwrap_or_default());
    response
}

fn text(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
