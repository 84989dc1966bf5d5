//! Fetching the two documents of an issuer: where its keys are, and the keys.

use super::signature::{KeySet, NotAKeySet};
use crate::apiserver::{Connections, NotAnswered, Pem, Place};
use http::{Request, StatusCode, Uri, header};
use hyper::body::Bytes;
use serde::Deserialize;
use std::error::Error;
use std::time::Duration;
use tokio::time::timeout;

/// Where every issuer says where its keys are.
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Why the issuer's keys are not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotFound {
    #[error("{0} is not an https URL: {1}")]
    NotAUrl(String, String),
    #[error("{url} was not fetched: {}", causes(.source))]
    NotFetched { url: String, source: NotAnswered },
    #[error("{0} was answered with {1} and not with 200")]
    Status(String, StatusCode),
    #[error("{0} is not a discovery document of OpenID Connect")]
    NotADocument(String),
    #[error("the discovery document is of the issuer {found:?} and not of {wanted:?}")]
    OtherIssuer { wanted: String, found: String },
    #[error(transparent)]
    Keys(#[from] NotAKeySet),
}

/// An error and what led to it, in one line.
fn causes(error: &NotAnswered) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    jwks_uri: String,
}

/// Where this issuer's keys are.
pub(super) async fn key_address(
    issuer: &str,
    authority: &Pem,
    within: Duration,
) -> Result<String, NotFound> {
    let url = format!("{}{WELL_KNOWN}", issuer.trim_end_matches('/'));
    let body = get(&url, authority, within).await?;
    let document: Document =
        serde_json::from_slice(&body).map_err(|_| NotFound::NotADocument(url))?;
    match document.issuer == issuer {
        true => Ok(document.jwks_uri),
        false => Err(NotFound::OtherIssuer {
            wanted: issuer.to_owned(),
            found: document.issuer,
        }),
    }
}

/// The keys that are there.
pub(super) async fn keys(
    address: &str,
    authority: &Pem,
    within: Duration,
) -> Result<KeySet, NotFound> {
    Ok(KeySet::read(&get(address, authority, within).await?)?)
}

/// One document, on a connection of its own: they are minutes apart. Redirects are not followed.
async fn get(url: &str, authority: &Pem, within: Duration) -> Result<Bytes, NotFound> {
    let not_a_url = |why: String| NotFound::NotAUrl(url.to_owned(), why);
    let place = Place::site(url, authority.clone()).map_err(not_a_url)?;
    let uri: Uri = url
        .parse()
        .map_err(|_| not_a_url("it cannot be read".into()))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(header::ACCEPT, "application/json")
        .body(Bytes::new().into())
        .map_err(|_| not_a_url("its path cannot be asked for".into()))?;
    let connections = Connections::default();
    let answered = timeout(within, connections.send(&place, request)).await;
    let answered = answered.unwrap_or(Err(NotAnswered::TooSlow { deadline: within }));
    let answer = answered.map_err(|source| NotFound::NotFetched {
        url: url.to_owned(),
        source,
    })?;
    match answer.status {
        StatusCode::OK => Ok(answer.body),
        status => Err(NotFound::Status(url.to_owned(), status)),
    }
}
