//! What a pod says of the TLS profile it serves, asked at its health port.
//!
//! A kubelet may give a new pod an old file, and a pod swaps a new one by itself; so what holds is
//! what the pod says, not what was written. Whether it matters is for the controller.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use keelson_api::host::{HEALTH_PORT, TLS_REPORT_PATH};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a pod has to answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// No answer is longer than this.
const LONGEST: usize = 16 * 1024;

/// What a pod says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Loaded {
    /// Hash of the profile it serves.
    pub loaded: String,
    /// Hash of the one it was made for.
    #[serde(default)]
    pub stamped: String,
    /// Why it does not serve what its file says.
    #[serde(default)]
    pub error: Option<String>,
}

impl Loaded {
    /// What is to be said where a pod does not serve the profile with this hash.
    pub fn lacks(&self, hash: &str) -> Option<String> {
        match &self.error {
            _ if self.loaded == hash => None,
            Some(error) => Some(format!("serves another profile: {error}")),
            None => Some("serves another profile".to_owned()),
        }
    }
}

/// Asks a pod.
pub async fn ask(address: IpAddr) -> Result<Loaded, String> {
    let asked = timeout(DEADLINE, get(SocketAddr::from((address, HEALTH_PORT)))).await;
    let body = asked.unwrap_or_else(|_| Err(format!("no answer within {DEADLINE:?}")))?;
    serde_json::from_slice(&body).map_err(|error| format!("its answer is not understood: {error}"))
}

async fn get(address: SocketAddr) -> Result<Bytes, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let stream = TcpStream::connect(address).await.map_err(|it| said(&it))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|it| said(&it))?;
    let request = http::Request::get(TLS_REPORT_PATH)
        .header(http::header::HOST, address.to_string())
        .body(Empty::<Bytes>::new())
        .map_err(|it| said(&it))?;
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|it| said(&it))?;
        if !answer.status().is_success() {
            return Err(format!("it answered {}", answer.status()));
        }
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        body.map(|it| it.to_bytes()).map_err(|it| said(&it))
    };
    tokio::pin!(answered);
    tokio::select! {
        answer = &mut answered => answer,
        ended = connection => match ended {
            Ok(()) => answered.await,
            Err(error) => Err(said(&error)),
        },
    }
}
