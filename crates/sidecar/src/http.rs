//! The API over HTTP/1: what is asked becomes a call of the engine, and what comes back a status and
//! JSON. Limits and deadlines of connections are [`listener`]'s.
//!
//! Paths are compared to the letter, in one place, by the same text the authentication looks at: no
//! spelling of a path is open to one and closed to the other.

mod answer;
pub mod listener;
mod patience;

pub use answer::Answer;

use crate::authn::{self, Mode};
use crate::engine::{Engine, Rejection};
use crate::gate::Gate;
use crate::home::Home;
use crate::metrics::Metrics;
use crate::node_id::node_id;
use crate::rpc::{GLANCE, Rpc};
use crate::store::{Incoming, Store, StoreError};
use ::http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes};
use jiff::Timestamp;
use keelson_wire::{
    NodeIdResponse, Readiness, StatusResponse, Submission, TaskSubmitResponse, route,
};
use prometheus_client::registry::Registry;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::timeout;
use uuid::Uuid;

/// The largest body.
const BODY: usize = 1 << 20;
/// How much of a body that is too large is read, so that its sender gets to read the answer.
const DRAIN: usize = 16 << 20;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);
/// How long the store may take before the caller is told to come back.
const STORE_TIME: Duration = Duration::from_secs(10);
/// How long a submission or deletion may take before the caller is told so. It goes on.
const CHANGE_TIME: Duration = Duration::from_secs(20);
/// How long a heartbeat may take, and how long it stands for others.
const BEAT_TIME: Duration = Duration::from_secs(2);
const BEAT_AGE: Duration = Duration::from_secs(1);

type Beat = Option<(Instant, Result<(), StoreError>)>;

/// What answers.
pub struct Api {
    /// How callers are authenticated.
    pub authn: Mode,
    /// The node's home.
    pub home: Home,
    /// The node's own RPC.
    pub node: Rpc,
    /// The tasks.
    pub engine: Arc<Engine>,
    /// The start gate.
    pub gate: Arc<Gate>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What a scrape is told.
    pub registry: Registry,
    store: Store,
    beat: Mutex<Beat>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// What answers for these.
    pub fn new(
        site: &crate::site::Site,
        engine: Arc<Engine>,
        store: Store,
        registry: Registry,
    ) -> Self {
        Self {
            authn: site.settings.authn,
            home: site.home.clone(),
            node: Rpc::new(&site.settings.seid_rpc, GLANCE),
            engine,
            gate: Arc::clone(&site.gate),
            metrics: Arc::clone(&site.metrics),
            registry,
            store,
            beat: Mutex::default(),
        }
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = request.uri().path().to_owned();
        let by = match authn::caller(self.authn, &path, request.headers()) {
            Ok(by) => by,
            Err(unknown) => {
                self.metrics.refused(unknown);
                return answer::error(StatusCode::UNAUTHORIZED, unknown.sentence());
            }
        };
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let id = path.strip_prefix("/v0/tasks/");
        let id = id.filter(|id| !id.is_empty() && !id.contains('/'));
        match (path.as_str(), id) {
            (route::HEALTHZ | route::STARTUPZ, _) if reads => self.healthz(),
            (route::LIVEZ, _) if reads => self.livez(request.uri().query()).await,
            (route::METRICS, _) if reads => answer::metrics(&self.registry),
            (route::STATUS, _) if reads => self.status(),
            (route::NODE_ID, _) if reads => self.node_id().await,
            (route::TASKS, _) if reads => self.list().await,
            (route::TASKS, _) if request.method() == Method::POST => {
                self.submit(request.into_body(), by).await
            }
            (_, Some(id)) if reads => self.get(id).await,
            (_, Some(id)) if request.method() == Method::DELETE => self.delete(id).await,
            (route::TASKS, _) => answer::method_not_allowed("GET, HEAD, POST"),
            (_, Some(_)) => answer::method_not_allowed("DELETE, GET, HEAD"),
            (path, _) if route::ALL.iter().any(|route| route.path == path) => {
                answer::method_not_allowed("GET, HEAD")
            }
            _ => answer::not_found(),
        }
    }

    fn healthz(&self) -> Answer {
        answer::empty(match self.gate.is_open() {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        })
    }

    fn status(&self) -> Answer {
        let status = match self.gate.is_open() {
            true => Readiness::Ready,
            false => Readiness::Initializing,
        };
        answer::json(StatusCode::OK, &StatusResponse { status })
    }

    async fn livez(&self, query: Option<&str>) -> Answer {
        let verbose = query.is_some_and(|query| query.split('&').any(|it| it == "verbose=1"));
        match self.alive().await {
            Ok(()) => answer::empty(StatusCode::OK),
            Err(error) if verbose => {
                answer::error(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
            }
            Err(_) => answer::empty(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    /// Whether the store can be written. Anyone may ask, so many who ask at once get one write.
    async fn alive(&self) -> Result<(), StoreError> {
        let mut last = self.beat.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < BEAT_AGE
        {
            return result.clone();
        }
        let result = within(BEAT_TIME, self.store.beat()).await;
        *last = Some((Instant::now(), result.clone()));
        result
    }

    /// Who the node is by its own word, and by the key on the volume where it does not run: a key
    /// that is mounted is mounted for the node alone, and then the volume has another one.
    async fn node_id(&self) -> Answer {
        if let Ok(status) = self.node.status().await {
            let node_id = status.node_id.to_ascii_lowercase();
            return answer::json(StatusCode::OK, &NodeIdResponse { node_id });
        }
        let home = self.home.clone();
        let reading = tokio::task::spawn_blocking(move || node_id(&home));
        match reading.await {
            Ok(Ok(node_id)) => answer::json(StatusCode::OK, &NodeIdResponse { node_id }),
            Ok(Err(none)) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, &none.to_string()),
            Err(error) => answer::error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    async fn list(&self) -> Answer {
        match within(STORE_TIME, self.engine.list(route::LIST_LIMIT)).await {
            Ok(tasks) => answer::json(StatusCode::OK, &tasks),
            Err(error) => answer::unavailable(&error.to_string()),
        }
    }

    async fn get(&self, id: &str) -> Answer {
        match within(STORE_TIME, self.engine.get(id)).await {
            Ok(Some(task)) => answer::json(StatusCode::OK, &task),
            Ok(None) => answer::error(StatusCode::NOT_FOUND, "task not found"),
            Err(error) => answer::unavailable(&error.to_string()),
        }
    }

    async fn delete(&self, id: &str) -> Answer {
        match within(CHANGE_TIME, self.engine.delete(id)).await {
            Ok(true) => answer::empty(StatusCode::NO_CONTENT),
            Ok(false) => answer::error(StatusCode::NOT_FOUND, "task not found"),
            Err(error) => answer::unavailable(&error.to_string()),
        }
    }

    async fn submit<B>(&self, body: B, by: Option<String>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let body = match read(body).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        let submission = match Submission::read(&body) {
            Ok(submission) => submission,
            Err(refusal) => return answer::error(StatusCode::BAD_REQUEST, &refusal.to_string()),
        };
        let id = submission.id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let incoming = Incoming {
            id: id.clone(),
            type_: submission.type_,
            params: submission.params,
            by,
            at: Timestamp::now(),
        };
        match timeout(CHANGE_TIME, self.engine.submit(incoming)).await {
            Ok(Ok(())) => answer::json(StatusCode::CREATED, &TaskSubmitResponse { id }),
            Ok(Err(Rejection::Conflict(conflict))) => {
                answer::error(StatusCode::CONFLICT, &conflict.to_string())
            }
            Ok(Err(rejection)) => answer::unavailable(&format!("persist task: {rejection}")),
            Err(_) => {
                let late = StoreError::Late(CHANGE_TIME.as_secs());
                answer::unavailable(&format!("persist task: {late}"))
            }
        }
    }
}

async fn within<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answered = timeout(limit, asked).await;
    answered.unwrap_or(Err(StoreError::Late(limit.as_secs())))
}

/// The whole of a body that is not too large and arrives in time.
async fn read<B>(body: B) -> Result<Bytes, Answer>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let reading = async {
        let mut body = pin!(Limited::new(body, DRAIN));
        let mut bytes = Vec::new();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| size > BODY)?;
            let data = frame.into_data().unwrap_or_default();
            size += data.len();
            if size <= BODY {
                bytes.extend_from_slice(&data);
            }
        }
        match size > BODY {
            true => Err(true),
            false => Ok(Bytes::from(bytes)),
        }
    };
    match timeout(BODY_TIME, reading).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(true)) => Err(answer::error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request body is larger than 1 MiB",
        )),
        Ok(Err(false)) => Err(answer::error(
            StatusCode::BAD_REQUEST,
            "invalid request body",
        )),
        Err(_) => Err(answer::error(
            StatusCode::REQUEST_TIMEOUT,
            "the request body did not arrive within 10 s",
        )),
    }
}
