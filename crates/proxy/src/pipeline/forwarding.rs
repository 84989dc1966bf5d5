//! The last step: to the upstream and back, with a tunnel where both sides agree on one.

use super::AnswerBody;
use crate::headers::{announced_trailers, strip_hop_by_hop};
use crate::metrics::Counts;
use crate::outcome::Outcome;
use crate::serve::Tunnels;
use crate::target::Place;
use crate::upstream::Upstream;
use http::header::{CONNECTION, HOST, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

/// The upstream sees the host the client named, wherever it named it: in the target, without a user
/// before it, or in its line, even where `Connection` has that line removed. HTTP/1.0 may name none;
/// then it is the upstream's own.
pub(super) fn host(request: &Request<Incoming>, upstream: &Place) -> Option<HeaderValue> {
    let named = request.uri().authority().map(|authority| {
        let text = authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, host)| host)
    });
    match (named, request.headers().get(HOST)) {
        (Some(named), _) => HeaderValue::from_str(named).ok(),
        (None, Some(line)) => Some(line.clone()),
        (None, None) => match upstream {
            Place::Http(at) | Place::Https(at) => HeaderValue::from_str(at).ok(),
            Place::Unix(_) | Place::Nowhere(_) => Some(HeaderValue::from_static("localhost")),
        },
    }
}

/// Where a request can go from here.
pub(super) struct Ways<'a> {
    pub(super) upstream: &'a Upstream,
    pub(super) tunnels: &'a Tunnels,
    pub(super) counts: &'a Counts,
}

/// The upstream's answer, without what is between it and us.
pub(super) async fn forwarded(
    ways: Ways<'_>,
    mut request: Request<Incoming>,
    upgrade: Option<String>,
) -> Result<Response<AnswerBody>, Outcome> {
    let client = upgrade.as_ref().map(|_| hyper::upgrade::on(&mut request));
    let answer = ways.upstream.send(request).await;
    let mut answer = answer.map_err(|error| {
        if error.is_clients() {
            tracing::debug!(%error, "the client's body could not be read to its end");
            return Outcome::Ambiguous;
        }
        tracing::warn!(%error, "the upstream gave no answer");
        Outcome::BadGateway
    })?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let agreed = agreed(&answer, upgrade.as_deref());
        let (Some(client), Some(name)) = (client, agreed) else {
            return Err(Outcome::BadGateway);
        };
        let tunnel = tunnel(client, hyper::upgrade::on(&mut answer));
        let present = ways.counts.tunnel();
        ways.tunnels.open(async move {
            let _present = present;
            tunnel.await;
        });
        strip_hop_by_hop(answer.headers_mut());
        answer
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        answer.headers_mut().insert(UPGRADE, name);
    } else {
        let trailers = announced_trailers(answer.headers());
        strip_hop_by_hop(answer.headers_mut());
        answer.headers_mut().extend(trailers);
    }
    Ok(answer.map(Either::Right))
}

/// The protocol both sides named.
fn agreed<B>(answer: &Response<B>, asked: Option<&str>) -> Option<HeaderValue> {
    let name = answer.headers().get(UPGRADE)?;
    let same = name.to_str().ok()?.eq_ignore_ascii_case(asked?);
    same.then(|| name.clone())
}

/// Bytes both ways until one side has enough.
async fn tunnel(client: OnUpgrade, upstream: OnUpgrade) {
    if let (Ok(client), Ok(upstream)) = tokio::join!(client, upstream) {
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        let _ = copy_bidirectional(&mut client, &mut upstream).await;
    }
}
