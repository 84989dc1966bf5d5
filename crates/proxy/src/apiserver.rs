//! The way to the API server: two kinds of POST, and nothing else of Kubernetes.
//!
//! Where the server is and who we are comes from the pod's own files or from a kubeconfig
//! (`kubeconfig`, `credentials`); connections are kept and shared (`connections`). What is asked,
//! what an answer means, when to ask again and for how long to believe it are for `review` and
//! `decision`. Nothing is retried here.

mod connections;
mod credentials;
mod kubeconfig;
mod place;

pub use connections::{Answer, NotAnswered};
pub use credentials::NotAuthenticated;
pub use kubeconfig::NotConfigured;
pub use place::Place;

use connections::Connections;
use credentials::Credentials;
use http::{HeaderValue, Request, header};
use hyper::body::Bytes;
use std::time::Duration;
use tokio::time::timeout;

/// A client of the API server.
#[derive(Debug)]
pub struct ApiServer {
    place: Place,
    credentials: Credentials,
    connections: Connections,
}

impl ApiServer {
    /// The client a pod has by its service account.
    pub fn in_cluster() -> Result<Self, NotConfigured> {
        kubeconfig::in_cluster().map(Self::from)
    }

    /// The client a kubeconfig describes.
    pub fn from_kubeconfig(text: &str, beside: &std::path::Path) -> Result<Self, NotConfigured> {
        kubeconfig::parse(text, beside).map(Self::from)
    }

    /// Sends one JSON document and returns what came back, whatever its status, within the
    /// deadline.
    pub async fn post(
        &self,
        path: &str,
        body: Bytes,
        deadline: Duration,
    ) -> Result<Answer, NotAnswered> {
        let asked = async {
            let mut request = Request::post(self.place.path(path))
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json")
                .header(
                    header::USER_AGENT,
                    concat!("keelson-proxy/", env!("CARGO_PKG_VERSION")),
                );
            if let Some(authorization) = self.authorization().await? {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            let request = request
                .body(body.into())
                .map_err(|_| NotAnswered::PathNotUsable {
                    path: path.to_owned(),
                })?;
            self.connections.send(&self.place, request).await
        };
        let answered = timeout(deadline, asked).await;
        answered.unwrap_or_else(|_| {
            // The path may have gone silent: the next call dials anew.
            self.connections.forget();
            Err(NotAnswered::TooSlow { deadline })
        })
    }

    async fn authorization(&self) -> Result<Option<HeaderValue>, NotAnswered> {
        Ok(self.credentials.authorization().await?)
    }
}

impl From<(Place, Credentials)> for ApiServer {
    fn from((place, credentials): (Place, Credentials)) -> Self {
        Self {
            place,
            credentials,
            connections: Connections::default(),
        }
    }
}
