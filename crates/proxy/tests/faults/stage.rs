//! A namespace with a permitted account, an API server behind a fault proxy, and programs that ask
//! through it.

use crate::common::greeter::hello;
use crate::common::line::{Line, Lost};
use crate::common::program::{Proxy, get};
use crate::common::rights;
use futures::stream::{StreamExt, iter};
use keelson_testbed::Cluster;
use keelson_testbed::faults::FaultProxy;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What the namespace's account may.
pub(crate) const MAY: &str = "GET /v0/tasks";
/// What it may not.
pub(crate) const MAY_NOT: &str = "POST /v0/tasks";
/// What everybody may.
pub(crate) const OPEN: &str = "GET /v0/healthz";

pub(crate) struct Stage {
    pub(crate) faults: FaultProxy,
    pub(crate) namespace: String,
    upstream: SocketAddr,
}

impl Stage {
    pub(crate) async fn new(name: &str) -> Self {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace(name).await.name().to_owned();
        rights::permit(&namespace, &rights::account(&namespace), "get").await;
        Self {
            faults: cluster.faults().expect("a proxy"),
            namespace,
            upstream: hello().await,
        }
    }

    /// A program that asks through the fault proxy.
    pub(crate) async fn program(&self, name: &str, flags: &[&str]) -> Proxy {
        let config = format!(
            "authorization:\n  resourceAttributes:\n    apiGroup: sei.io\n    resource: seinodetasks\n    namespace: {}\n",
            self.namespace
        );
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let name = format!("{}-{name}", self.namespace);
        let kubeconfig = self.faults.kubeconfig();
        let proxy = Proxy::with(&name, &kubeconfig, &config, self.upstream, &flags);
        proxy.healthy().await;
        proxy
    }

    /// So many tokens of the account, each different.
    pub(crate) async fn tokens(&self, count: usize) -> Vec<String> {
        let client = Cluster::shared().await.client();
        let made = iter(0..count).map(|_| rights::token(&client, &self.namespace, &[]));
        made.buffer_unordered(16).collect().await
    }
}

/// The status of one request on a connection of its own, and how long it took.
pub(crate) async fn ask(proxy: &Proxy, line: &str, token: &str) -> (u16, Duration) {
    let began = Instant::now();
    let mut connection = Line::open(proxy.requests).await.expect("a connection");
    connection.patience = Duration::from_secs(30);
    match connection.ask(line, token).await {
        Ok(status) => (status, began.elapsed()),
        Err(Lost::Unanswered) => panic!("{line} got no answer"),
        Err(Lost::Broken(why)) => panic!("{line} got {why}"),
    }
}

/// How often the program has called the API server, by its own count: calls that are refused or
/// swallowed never reach the fault proxy's.
pub(crate) fn calls(proxy: &Proxy) -> u64 {
    let metrics = get(proxy.health, "/metrics", "").expect("metrics");
    let name = "keelson_proxy_apiserver_requests_total{";
    let series = metrics.lines().filter(|line| line.starts_with(name));
    let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}
