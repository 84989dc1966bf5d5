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
mod traffic;

pub use connections::{Answer, NotAnswered};
pub use credentials::NotAuthenticated;
pub use kubeconfig::NotConfigured;
pub use place::Place;
pub use traffic::Traffic;

pub(crate) use connections::Connections;
pub(crate) use place::Pem;

use crate::decision::pace::Pace;
use credentials::Credentials;
use http::{HeaderValue, Request, header};
use hyper::body::Bytes;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A client of the API server.
#[derive(Debug)]
pub struct ApiServer {
    place: Place,
    credentials: Credentials,
    connections: Connections,
    pace: Option<Pace>,
    traffic: Traffic,
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

    /// The same client, called no faster than this.
    #[must_use]
    pub fn paced(mut self, pace: Option<Pace>) -> Self {
        self.pace = pace;
        self
    }

    /// Waits until another call may be made.
    pub async fn turn(&self) {
        if let Some(pace) = &self.pace {
            pace.turn().await;
        }
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
        let began = Instant::now();
        let answered = timeout(deadline, asked).await;
        let answered = answered.unwrap_or_else(|_| {
            // The path may have gone silent: the next call dials anew.
            self.connections.forget();
            Err(NotAnswered::TooSlow { deadline })
        });
        self.traffic.note(path, &answered, began.elapsed());
        answered
    }

    /// What has been called so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
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
            pace: None,
            traffic: Traffic::default(),
        }
    }
}
