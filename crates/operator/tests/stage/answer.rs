//! What played proxies and sidecars answer.

use std::io;

use futures::stream;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use keelson_api::SeiNode;
use keelson_wire::{
    ErrorResponse, NodeIdResponse, Readiness, Refusal, StatusResponse, Submission,
    TaskSubmitResponse, TaskType, route,
};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::door::Origin;
use super::place::{Place, Target};
use super::proxy::Serving;
use super::script::Fault;
use super::shared::Shared;

pub(crate) type Body = BoxBody<Bytes, io::Error>;

/// What becomes of a request.
pub(crate) enum Reply {
    Answer(Response<Body>),
    /// The connection ends.
    Close,
    /// Nothing, for ever.
    Hang,
}

impl Reply {
    fn json(status: StatusCode, body: &impl Serialize) -> Self {
        let text = serde_json::to_string(body).unwrap_or_default();
        Self::typed(status, "application/json", text)
    }

    fn text(status: StatusCode, body: &str) -> Self {
        Self::typed(status, "text/plain; charset=utf-8", body.to_owned())
    }

    fn error(status: StatusCode, error: &str) -> Self {
        let error = error.to_owned();
        Self::json(status, &ErrorResponse { error })
    }

    fn typed(status: StatusCode, kind: &'static str, body: String) -> Self {
        let mut response = Response::new(Full::from(body).map_err(|never| match never {}).boxed());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        Self::Answer(response)
    }
}

/// One request, as far as its head.
struct Asked {
    target: Target,
    pod: String,
    plaintext: bool,
    token: Option<String>,
    audiences: Vec<String>,
}

/// Answers one request as the proxy of its node would, and then as the sidecar behind it.
pub(crate) async fn answer(
    request: Request<Incoming>,
    origin: &Origin,
    client: Client,
    shared: &Shared,
) -> Reply {
    let authority = request.headers().get(HOST).and_then(|it| it.to_str().ok());
    let Some(target) = authority.and_then(Target::read) else {
        return Reply::Close;
    };
    let fault = shared.look(|world| world.script.next_fault(&target.node));
    match fault {
        Some(Fault::BlackHole) => return Reply::Hang,
        Some(Fault::Refuse) => return Reply::Close,
        Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
        _ => {}
    }
    let (pod, serving) = shared.look(|world| world.serving(&target.node));
    let Some(pod) = pod else {
        return Reply::Close;
    };
    if target.health {
        return health(request.uri().path(), &pod, &serving, shared);
    }
    let stale = match (origin, &serving) {
        (_, Serving::Nothing | Serving::Shut) => return Reply::Close,
        // Connections end with the pod they were made to.
        (Origin::Tls { pod: first }, _) if *first != pod => return Reply::Close,
        (Origin::Plain { pod: first }, _) if first.get().is_some_and(|it| *it != pod) => {
            return Reply::Close;
        }
        (Origin::Plain { pod: first }, Serving::Tls(_)) if first.get().is_none() => {
            let sentence = "Client sent an HTTP request to an HTTPS server.\n";
            return Reply::text(StatusCode::BAD_REQUEST, sentence);
        }
        (Origin::Plain { pod: first }, Serving::Plain) => {
            first.get_or_init(|| pod.clone());
            false
        }
        (Origin::Plain { .. }, Serving::Tls(_)) | (Origin::Tls { .. }, Serving::Plain) => true,
        (Origin::Tls { .. }, Serving::Tls(_)) => false,
    };
    let asked = Asked {
        plaintext: matches!(origin, Origin::Plain { .. }),
        token: bearer(&request),
        audiences: shared
            .look(|world| audiences(world.answering(&target.node)?.proxy_arguments()))
            .unwrap_or_default(),
        target,
        pod,
    };
    let reply = admitted(request, &asked, fault, client, shared).await;
    finish(reply, stale, fault == Some(Fault::Cut))
}

/// A connection of the other mode ends with its next answer, and some answers end in their middle.
fn finish(reply: Reply, stale: bool, cut: bool) -> Reply {
    let Reply::Answer(mut response) = reply else {
        return reply;
    };
    if stale {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    if cut {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from_static("4096"));
        let half = Ok(Frame::data(Bytes::from_static(b"{\"id\": \"")));
        let end = Err(io::Error::from(io::ErrorKind::ConnectionReset));
        *response.body_mut() = StreamBody::new(stream::iter([half, end])).boxed();
    }
    Reply::Answer(response)
}

async fn admitted(
    request: Request<Incoming>,
    asked: &Asked,
    fault: Option<Fault>,
    client: Client,
    shared: &Shared,
) -> Reply {
    let path = request.uri().path().to_owned();
    let open = route::OPEN.contains(&path.as_str());
    let downgraded = is_downgraded(asked, client.clone(), shared).await;
    shared.happen(|world| {
        let token = asked.token.as_deref();
        world.asked(&asked.target.node, &asked.pod, token, asked.plaintext);
        if downgraded {
            world.downgraded(&asked.target.node, &asked.pod);
        }
        Vec::new()
    });
    match fault {
        Some(Fault::UnauthorizedOnce) => return unauthorized(),
        Some(Fault::Status(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Reply::error(status, "scripted");
        }
        _ => {}
    }
    if !open && !is_known(asked, client, shared).await {
        return unauthorized();
    }
    sidecar(request, &path, asked, shared).await
}

fn unauthorized() -> Reply {
    Reply::text(StatusCode::UNAUTHORIZED, "Unauthorized\n")
}

fn bearer(request: &Request<Incoming>) -> Option<String> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let token = value.strip_prefix("Bearer ")?;
    (!token.is_empty()).then(|| token.to_owned())
}

fn audiences(arguments: &[String]) -> Option<Vec<String>> {
    let mut all = arguments.iter();
    let list = all.find_map(|it| it.strip_prefix("--auth-token-audiences="))?;
    Some(list.split(',').map(str::to_owned).collect())
}

/// Whether a token comes in plaintext to a pod that has served TLS, and nobody asked for that: the
/// node's spec wants TLS.
async fn is_downgraded(asked: &Asked, client: Client, shared: &Shared) -> bool {
    let in_the_clear = asked.plaintext && asked.token.is_some();
    if !in_the_clear || !shared.look(|world| world.has_served_tls(&asked.pod)) {
        return false;
    }
    let Place { namespace, name } = &asked.target.node;
    let nodes = Api::<SeiNode>::namespaced(client, namespace);
    let node = nodes.get_opt(name).await;
    // A node that cannot be read has asked for nothing.
    let sidecar = node.ok().flatten().map(|node| node.spec.sidecar);
    sidecar.is_none_or(|sidecar| sidecar.is_some_and(|it| it.tls.is_some()))
}

/// Whether the caller shows a token, and a good one where tokens are looked at.
async fn is_known(asked: &Asked, client: Client, shared: &Shared) -> bool {
    let Some(token) = &asked.token else {
        return false;
    };
    if !shared.look(|world| world.script.of(&asked.target.node).reviews) {
        return true;
    }
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: Some(token.clone()),
            audiences: (!asked.audiences.is_empty()).then(|| asked.audiences.clone()),
        },
        ..TokenReview::default()
    };
    let reviewed = Api::all(client)
        .create(&PostParams::default(), &review)
        .await;
    let status = reviewed.ok().and_then(|it: TokenReview| it.status);
    status.and_then(|it| it.authenticated).unwrap_or(false)
}

/// The proxy's own port.
fn health(path: &str, pod: &str, serving: &Serving, shared: &Shared) -> Reply {
    match path {
        "/healthz" | "/livez" => Reply::text(StatusCode::OK, "ok"),
        "/readyz" => match serving {
            Serving::Nothing | Serving::Shut => Reply::text(StatusCode::SERVICE_UNAVAILABLE, ""),
            Serving::Plain | Serving::Tls(_) => Reply::text(StatusCode::OK, "ok"),
        },
        "/loaded" => {
            let config = shared
                .look(|world| world.proxy_config(pod))
                .unwrap_or_default();
            let mut loaded = json!({
                "schema": 1,
                "configHash": hex(&Sha256::digest(config.as_bytes())),
                "tlsMode": serving.word(),
            });
            if let Serving::Tls(tls) = serving {
                loaded["fingerprint"] = tls.fingerprint.clone().into();
                loaded["notAfter"] = tls.not_after.clone().into();
            }
            Reply::json(StatusCode::OK, &loaded)
        }
        _ => Reply::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// The sidecar behind the proxy.
async fn sidecar(request: Request<Incoming>, path: &str, asked: &Asked, shared: &Shared) -> Reply {
    let Some(open) = shared.look(|world| world.gate(&asked.pod)) else {
        return Reply::text(StatusCode::BAD_GATEWAY, "");
    };
    let id = path.strip_prefix("/v0/tasks/");
    let method = request.method().clone();
    let empty = |status| Reply::text(status, "");
    match (path, id) {
        (route::HEALTHZ | route::STARTUPZ, _) if open => empty(StatusCode::OK),
        (route::HEALTHZ | route::STARTUPZ, _) => empty(StatusCode::SERVICE_UNAVAILABLE),
        (route::LIVEZ | route::METRICS, _) => empty(StatusCode::OK),
        (route::STATUS, _) => {
            let status = if open {
                Readiness::Ready
            } else {
                Readiness::Initializing
            };
            Reply::json(StatusCode::OK, &StatusResponse { status })
        }
        (route::NODE_ID, _) => {
            let node_id = node_id(&asked.target.node);
            Reply::json(StatusCode::OK, &NodeIdResponse { node_id })
        }
        (route::TASKS, _) if method == Method::POST => submit(request, asked, shared).await,
        (route::TASKS, _) => {
            let mut tasks = shared.look(|world| world.tasks(&asked.pod));
            tasks.reverse();
            tasks.truncate(route::LIST_LIMIT);
            Reply::json(StatusCode::OK, &tasks)
        }
        (_, Some(id)) if method == Method::DELETE => {
            match shared.look(|world| world.delete_task(&asked.pod, id)) {
                true => empty(StatusCode::NO_CONTENT),
                false => Reply::error(StatusCode::NOT_FOUND, "task not found"),
            }
        }
        (_, Some(id)) => {
            let tasks = shared.look(|world| world.tasks(&asked.pod));
            match tasks.iter().find(|it| it.id == id) {
                Some(task) => Reply::json(StatusCode::OK, task),
                None => Reply::error(StatusCode::NOT_FOUND, "task not found"),
            }
        }
        _ => Reply::text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

async fn submit(request: Request<Incoming>, asked: &Asked, shared: &Shared) -> Reply {
    let Ok(body) = request.into_body().collect().await else {
        return Reply::Close;
    };
    let submission = match read(&body.to_bytes()) {
        Ok(submission) => submission,
        Err(refusal) => return Reply::error(StatusCode::BAD_REQUEST, &refusal.to_string()),
    };
    let drawn = || Uuid::new_v4().to_string();
    let id = submission.id.clone().unwrap_or_else(drawn);
    match shared.act(|world| world.submit(&asked.pod, &id, &submission)) {
        Ok(id) => Reply::json(StatusCode::CREATED, &TaskSubmitResponse { id }),
        Err(conflict) => Reply::error(StatusCode::CONFLICT, &conflict),
    }
}

/// Reads a submission. Parts of a ceremony are played too, though our own sidecar knows none of them.
fn read(body: &[u8]) -> Result<Submission, Refusal> {
    let name = match Submission::read(body) {
        Err(Refusal::UnknownType(name)) => name,
        read => return read,
    };
    let ceremony = [
        TaskType::GenerateIdentity,
        TaskType::GenerateGentx,
        TaskType::UploadGenesisArtifacts,
        TaskType::SetGenesisPeers,
    ];
    let mut body: Value = serde_json::from_slice(body).map_err(|_| Refusal::InvalidBody)?;
    let type_ = ceremony.into_iter().find(|it| it.as_str() == name);
    let type_ = type_.ok_or(Refusal::UnknownType(name))?;
    Ok(Submission {
        id: body["id"].as_str().map(str::to_owned),
        type_,
        params: body["params"]
            .as_object_mut()
            .map(std::mem::take)
            .unwrap_or_default(),
    })
}

/// The identity of a node among peers: 40 digits that are always the same for the same node.
pub(crate) fn node_id(node: &Place) -> String {
    hex(&Sha256::digest(node.to_string().as_bytes())[..20])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
