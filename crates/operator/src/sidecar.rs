//! Calls to sidecars, each with a deadline of its own, and handshakes that tell what a port speaks.
//!
//! A call goes to one pod, through the proxy before its sidecar, over the transport it is given: which
//! one that is, and whether a token may travel over it, is decided by whoever calls. Connections are
//! kept, one for each pod and transport; a sidecar that hangs costs its own callers their deadline
//! and nobody else anything. Which task to submit, and what an answer means for a plan, is for the
//! controllers.

mod call;
mod connection;
mod error;
mod late;
mod pool;
mod spoken;
mod sweep;
mod token;

pub use error::{CallError, Unanswered};
pub use spoken::Spoken;
pub use token::{ACCOUNT, Accounts, Issue, Issued, NoToken, Requested, Token, Tokens};

use http::{Method, StatusCode};
use hyper::body::Bytes;
use keelson_api::names::Port;
use keelson_tls::client::Pins;
use keelson_wire::{NodeIdResponse, Task, TaskRequest, TaskResult, TaskSubmitResponse, route};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

use call::Call;
use connection::CONNECT;
use late::Late;
use pool::Pool;

/// Whom to call: one pod of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whom {
    /// Namespace of the node.
    pub namespace: String,
    /// Name of the node.
    pub node: String,
    /// The pod that is meant. Another pod of the same node is somebody else.
    pub pod_uid: String,
    /// Address of the pod, once it has one.
    pub ip: Option<IpAddr>,
}

impl Whom {
    /// The pod's own name, which its certificate has and the handshake asks for.
    fn name(&self) -> String {
        let [_service, pod] = keelson_render::names::dns(&self.node, &self.namespace);
        pod
    }

    /// What the proxy is addressed as.
    fn host(&self) -> String {
        format!("{}:{}", self.name(), Port::Api.number())
    }
}

/// Where a pod's proxy is reached.
pub trait Dial: Send + Sync {
    /// The address, unless there is none yet.
    fn address(&self, whom: &Whom) -> Option<SocketAddr>;
}

/// In the cluster a proxy is at the pod's own address: a name would have to be looked up, and may
/// lead to the pod before.
#[derive(Clone, Copy, Debug)]
pub struct InCluster;

impl Dial for InCluster {
    fn address(&self, whom: &Whom) -> Option<SocketAddr> {
        whom.ip.map(|ip| SocketAddr::new(ip, Port::Api.number()))
    }
}

/// Every proxy at one address, for tests: they are told apart by the name they are called by.
#[derive(Clone, Copy, Debug)]
pub struct At(pub SocketAddr);

impl Dial for At {
    fn address(&self, _: &Whom) -> Option<SocketAddr> {
        Some(self.0)
    }
}

/// How to talk to a pod.
#[derive(Clone, Debug)]
pub enum Transport {
    /// As anyone on the way can read it.
    Plaintext,
    /// Over TLS, to a server these pins cover.
    Tls(Pins),
}

/// Whom a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    /// The sidecar of this node and no other.
    Node,
    /// The API server, for a proxy that was not told of another audience.
    ApiServer,
}

/// How long a question whether the sidecar is ready may take.
const HEALTH: Duration = Duration::from_secs(2);
/// How long submitting a task may take.
const SUBMIT: Duration = Duration::from_secs(10);
/// How long every other call may take.
const READ: Duration = Duration::from_secs(5);

/// The sidecars of all nodes.
#[derive(Clone)]
pub struct Sidecars {
    dial: Arc<dyn Dial>,
    tokens: Arc<dyn Tokens>,
    pool: Arc<Pool>,
    late: Arc<Late>,
}

impl Sidecars {
    /// A client nobody has called with yet.
    pub fn new(dial: Arc<dyn Dial>, tokens: Arc<dyn Tokens>) -> Self {
        Self {
            dial,
            tokens,
            pool: Arc::default(),
            late: Arc::default(),
        }
    }

    /// Whether the sidecar's gate is open. Anyone may ask, so no token is sent.
    pub async fn health(&self, whom: &Whom, over: &Transport) -> Result<bool, Unanswered> {
        let call = Call::get(
            "asking the sidecar whether it is ready",
            HEALTH,
            route::HEALTHZ,
        );
        let answer = self.answer(whom, over, &call, None).await?;
        match answer.status {
            StatusCode::OK => Ok(true),
            StatusCode::SERVICE_UNAVAILABLE => Ok(false),
            _ => {
                answer.accepted()?;
                Err(answer.garbled("a readiness").into())
            }
        }
    }

    /// What the pod's port speaks, by a handshake on a connection of its own. Without pins TLS is
    /// told from plaintext, and no certificate can be trusted.
    pub async fn speaks(&self, whom: &Whom, pins: Option<&Pins>) -> Spoken {
        match self.address(whom) {
            Ok(address) => {
                let begun = Instant::now();
                let spoken = spoken::at(address, &whom.name(), pins).await;
                self.late.note(whom, begun.elapsed() >= CONNECT);
                spoken
            }
            Err(nowhere) => Spoken::Unknown(nowhere.to_string()),
        }
    }

    /// Whether a pod did not answer in time when it was last asked or greeted.
    pub fn hangs(&self, whom: &Whom) -> bool {
        self.late.is(whom)
    }

    /// Submits a task under this id. An id that was submitted before is submitted no second time.
    pub async fn submit(
        &self,
        whom: &Whom,
        over: &Transport,
        audience: Audience,
        id: Uuid,
        task: &Task,
    ) -> Result<(), CallError> {
        let request = TaskRequest::new(Some(id.to_string()), task);
        self.request(whom, over, audience, &request).await
    }

    /// The same for a task that is not one of [`Task`].
    pub async fn request(
        &self,
        whom: &Whom,
        over: &Transport,
        audience: Audience,
        request: &TaskRequest,
    ) -> Result<(), CallError> {
        let body = serde_json::to_vec(request)
            .map_err(|error| CallError::Garbled(format!("the task is no JSON: {error}")))?;
        let call = Call {
            what: "submitting a task to the sidecar",
            after: SUBMIT,
            method: Method::POST,
            path: route::TASKS.to_owned(),
            body: Bytes::from(body),
        };
        let answer = self.authorized(whom, over, audience, &call).await?;
        answer.accepted()?;
        let submitted: TaskSubmitResponse = answer.read("the id of a task")?;
        match submitted.task_id() {
            Ok(said) if request.id.as_deref().is_none_or(|id| id == said) => Ok(()),
            Ok(other) => Err(CallError::Garbled(format!(
                "the sidecar took another task for {other}"
            ))),
            Err(bad) => Err(CallError::Garbled(bad.to_string())),
        }
    }

    /// A task as the sidecar remembers it; nothing if it does not.
    pub async fn task(
        &self,
        whom: &Whom,
        over: &Transport,
        audience: Audience,
        id: Uuid,
    ) -> Result<Option<TaskResult>, CallError> {
        let path = route::task(&id.to_string());
        let call = Call::get("reading a task from the sidecar", READ, &path);
        let answer = self.authorized(whom, over, audience, &call).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer.accepted()?;
        answer.read("a task").map(Some)
    }

    /// The last tasks the sidecar remembers, whoever submitted them.
    pub async fn tasks(
        &self,
        whom: &Whom,
        over: &Transport,
        audience: Audience,
    ) -> Result<Vec<TaskResult>, CallError> {
        let call = Call::get("listing the tasks of the sidecar", READ, route::TASKS);
        let answer = self.authorized(whom, over, audience, &call).await?;
        answer.accepted()?;
        answer.read("a list of tasks")
    }

    /// Calls a task off. One the sidecar does not know is off already.
    pub async fn call_off(
        &self,
        whom: &Whom,
        over: &Transport,
        audience: Audience,
        id: Uuid,
    ) -> Result<(), CallError> {
        let call = Call {
            what: "calling off a task of the sidecar",
            after: READ,
            method: Method::DELETE,
            path: route::task(&id.to_string()),
            body: Bytes::new(),
        };
        let answer = self.authorized(whom, over, audience, &call).await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(()),
            _ => answer.accepted(),
        }
    }

    /// The node's identity among peers.
    pub async fn node_id(
        &self,
        whom: &Whom,
        over: &Transport,
        audience: Audience,
    ) -> Result<String, CallError> {
        let call = Call::get("asking the sidecar for the node's id", READ, route::NODE_ID);
        let answer = self.authorized(whom, over, audience, &call).await?;
        answer.accepted()?;
        let told: NodeIdResponse = answer.read("a node's id")?;
        Ok(told.node_id)
    }

    /// Lets go of the connections to a pod that is gone.
    pub fn forget(&self, pod_uid: &str) {
        self.pool.forget(pod_uid);
    }

    /// Forgets a node that is gone.
    pub fn forget_node(&self, namespace: &str, node: &str) {
        self.late.forget(namespace, node);
    }

    /// How many connections wait for a call.
    pub fn kept(&self) -> usize {
        self.pool.len()
    }

    fn address(&self, whom: &Whom) -> Result<SocketAddr, CallError> {
        self.dial.address(whom).ok_or_else(|| {
            CallError::Unreachable(format!(
                "the pod of {}/{} has no address yet",
                whom.namespace, whom.node
            ))
        })
    }
}
