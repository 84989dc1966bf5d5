//! Serving one connection: handshake, calls one after the other, faults carried out.
//!
//! Whether a call meets a fault is the script's decision, what its refusal says is `answer`'s, and
//! the bytes move by the leave of the link.

use super::{
    Shared,
    answer::{self, Answer},
    call::{Call, Verb},
    door::{Arrival, Face},
    ledger::{CallId, Running},
    link::{Link, Tearable, Valve},
    script::{Decision, Fault, Pause, RuleId},
    upstream::{Lane, RequestBody},
    watch::Lines,
};
use crate::error::chain;
use futures::{future, stream};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::{io::copy_bidirectional, sync::oneshot, time::timeout};
use tokio_rustls::TlsAcceptor;

type AnswerBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// The caller gets no answer.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("a rule of the script left the call without an answer")]
    Scripted,
    #[error("the request did not arrive in full")]
    RequestNotRead(#[source] hyper::Error),
}

/// Lets callers in until the task is dropped.
pub(super) async fn accept(shared: Arc<Shared>) {
    loop {
        match future::poll_fn(|cx| shared.door().poll_accept(cx)).await {
            Ok(arrival) => drop(tokio::spawn(connection(shared.clone(), arrival))),
            // A caller that left before it was let in, or no file descriptor for now.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

async fn connection(shared: Arc<Shared>, Arrival { link, face }: Arrival) {
    tokio::select! {
        biased;
        () = link.ended() => {}
        () = converse(shared, link.clone(), face) => {}
    }
}

/// Errors end the connection, which is all the caller may know of them.
async fn converse(shared: Arc<Shared>, link: Arc<Link>, face: Face) {
    let tls = match face {
        Face::Trusted => shared.trusted.clone(),
        Face::Foreign => shared.foreign.clone(),
    };
    let Ok(inner) = TlsAcceptor::from(tls).accept(Valve(link.clone())).await else {
        return;
    };
    let io = TokioIo::new(Tearable {
        inner,
        link: link.clone(),
    });
    let caller = Arc::new(Caller {
        lane: Lane::new(shared.upstream.clone()),
        shared,
        link,
    });
    let service = service_fn(move |request| {
        let caller = caller.clone();
        async move { caller.answer(request).await }
    });
    let _ = http1::Builder::new()
        .serve_connection(io, service)
        .with_upgrades()
        .await;
}

/// The other end of one connection.
struct Caller {
    shared: Arc<Shared>,
    link: Arc<Link>,
    lane: Lane,
}

impl Caller {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<AnswerBody>, Unanswered> {
        let (call, request) = read(request).await?;
        let mut received = None;
        self.shared
            .ledger
            .send_modify(|ledger| received = Some(ledger.receive(call.clone())));
        let Some((id, decision)) = received else {
            return Err(Unanswered::Scripted);
        };
        let answer = match decision {
            None => self.forward(id, &call, request).await,
            Some(Decision { rule, fault }) => match fault {
                Fault::BlackHole => {
                    self.cleared(rule).await;
                    self.link.reset();
                    return Err(Unanswered::Scripted);
                }
                Fault::LostAnswer => {
                    self.forward(id, &call, request).await;
                    self.link.close();
                    return Err(Unanswered::Scripted);
                }
                Fault::Reset => {
                    let answer = self.forward(id, &call, request).await;
                    self.link.tear_after_next_byte();
                    return Ok(answer);
                }
                Fault::CutAnswer => cut(self.forward(id, &call, request).await).await?,
                Fault::SlowRequest(pause) => {
                    self.pause(rule, pause).await;
                    self.forward(id, &call, request).await
                }
                Fault::SlowAnswer(pause) => {
                    let answer = self.forward(id, &call, request).await;
                    self.pause(rule, pause).await;
                    answer
                }
                refused => match answer::refusal(&refused, &call) {
                    Some(answer) => made(answer),
                    None => return Err(Unanswered::Scripted),
                },
            },
        };
        let code = answer.status().as_u16();
        self.shared
            .ledger
            .send_modify(|ledger| ledger.answered(id, code));
        Ok(answer)
    }

    /// What the API server says, or the reason why it does not.
    async fn forward(
        &self,
        id: CallId,
        call: &Call,
        mut request: Request<RequestBody>,
    ) -> Response<AnswerBody> {
        let upgrade = request
            .headers()
            .contains_key(header::UPGRADE)
            .then(|| hyper::upgrade::on(&mut request));
        match self.lane.send(request).await {
            Ok(mut answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                if let Some(upgrade) = upgrade {
                    let upstream = hyper::upgrade::on(&mut answer);
                    tokio::spawn(tunnel(self.link.clone(), upgrade, upstream));
                }
                answer.map(|_| Empty::new().map_err(|never| match never {}).boxed_unsync())
            }
            Ok(answer) if call.verb == Verb::Watch && answer.status() == StatusCode::OK => {
                answer.map(|body| self.watch(id, call, body))
            }
            Ok(answer) => answer.map(|body| body.boxed_unsync()),
            Err(error) => made(answer::unreachable(call, &chain(&error))),
        }
    }

    fn watch(&self, id: CallId, call: &Call, body: Incoming) -> AnswerBody {
        let (expire, expired) = oneshot::channel();
        let running = Running {
            call: call.clone(),
            link: self.link.clone(),
            expire,
        };
        self.shared.ledger.send_modify(|ledger| {
            ledger.watches.insert(id, running);
        });
        let over = Over(self.shared.clone(), id);
        Lines::new(body, call, expired, over).boxed_unsync()
    }

    async fn pause(&self, rule: RuleId, pause: Pause) {
        match pause {
            Pause::UntilCleared => self.cleared(rule).await,
            Pause::For(duration) => {
                let _ = timeout(duration, self.cleared(rule)).await;
            }
        }
    }

    /// Ends with the rule. That the proxy ends first shows in the connection, not here.
    async fn cleared(&self, rule: RuleId) {
        let mut ledger = self.shared.ledger.subscribe();
        let _ = ledger.wait_for(|ledger| !ledger.script.holds(rule)).await;
    }
}

/// Takes a watch off the ledger when its stream is dropped.
struct Over(Arc<Shared>, CallId);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.ledger.send_modify(|ledger| {
            ledger.watches.remove(&self.1);
        });
    }
}

/// The call a request makes. Only the body of a creation is read here, for the object's name.
async fn read(request: Request<Incoming>) -> Result<(Call, Request<RequestBody>), Unanswered> {
    let mut call = Call::parse(request.method(), request.uri());
    let (parts, body) = request.into_parts();
    let body = if call.wants_name() {
        let bytes = body
            .collect()
            .await
            .map_err(Unanswered::RequestNotRead)?
            .to_bytes();
        call.named_by(&bytes);
        Full::new(bytes)
            .map_err(|never| match never {})
            .boxed_unsync()
    } else {
        body.boxed_unsync()
    };
    Ok((call, Request::from_parts(parts, body)))
}

/// The first half of an answer that says how long it would have been: its end is then a broken
/// connection.
async fn cut(answer: Response<AnswerBody>) -> Result<Response<AnswerBody>, Unanswered> {
    let (mut parts, body) = answer.into_parts();
    let body = body.collect().await.map_err(|_| Unanswered::Scripted)?;
    let body = body.to_bytes();
    let length = HeaderValue::from(body.len());
    parts.headers.insert(header::CONTENT_LENGTH, length);
    let half = Frame::data(body.slice(..body.len() / 2));
    let half = StreamBody::new(stream::once(future::ready(Ok(half))));
    Ok(Response::from_parts(parts, half.boxed_unsync()))
}

fn made(answer: Answer) -> Response<AnswerBody> {
    let body = Full::new(Bytes::from(answer.body)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() =
        StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if let Some(seconds) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Bytes both ways until one side has enough or the link ends: exec, attach, port-forward.
async fn tunnel(link: Arc<Link>, caller: OnUpgrade, upstream: OnUpgrade) {
    let copy = async {
        if let Ok((caller, upstream)) = future::try_join(caller, upstream).await {
            let _ =
                copy_bidirectional(&mut TokioIo::new(caller), &mut TokioIo::new(upstream)).await;
        }
    };
    tokio::select! {
        biased;
        () = link.ended() => {}
        () = copy => {}
    }
}
