//! A client that does not keep a controller waiting.
//!
//! The library's own retries go on for five minutes and its reads have no limit; here a failing
//! call fails at once, a connection comes about in seconds, and each call has a deadline with a
//! name. Watches idle, so there is no limit on reading as such: [`Mirror`](crate::Mirror) has its
//! own.

use crate::error::Error;
use std::fmt::Display;
use std::future::Future;
use std::time::Duration;
use tokio::time::timeout;

/// How long a connection to the API server may take to come about.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client from a configuration, with retries off and short connects: shorter still where the
/// configuration says so.
pub fn connect(mut config: kube::Config) -> Result<kube::Client, Error> {
    config.default_retry = false;
    let asked = config.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    config.connect_timeout = Some(asked.min(CONNECT_TIMEOUT));
    config.read_timeout = None;
    let url = config.cluster_url.clone();
    kube::Client::try_from(config)
        .map_err(|cause| Error::of(format!("making a client for {url}"), cause))
}

/// Makes a call with a deadline. What was `doing` stands in the error, of whichever kind.
pub async fn within<T>(
    doing: impl Display,
    after: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    match timeout(after, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(cause)) => Err(Error::of(doing, cause)),
        Err(_) => Err(Error::Deadline {
            doing: doing.to_string(),
            after,
        }),
    }
}
