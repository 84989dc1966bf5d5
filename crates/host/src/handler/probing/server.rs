//! Whether the API server answers, and whether it says that this host's Node is Ready.
//!
//! Each question has a client of its own, made from files that are read anew: a connection from before
//! a change may live on while no new one comes about, and tokens and authorities change.
//!
//! Only success passes. A server that answers 401, 403 or 503 is reached, but who asks cannot know
//! whether that is a token that expired or a way that leads to somebody else; and what failed like that
//! before a change has kept the change from being begun.

use super::{ONE_ATTEMPT, Time};
use crate::connecting::configured;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use keelson_cluster::{connect, within};
use kube::{Api, Client};
use std::path::Path;

/// Something every cluster has and every handler may read.
const NAMESPACE: &str = "default";

/// Asks for something that is always there.
pub(super) async fn answers(kubeconfig: Option<&Path>, time: Time) -> Result<(), String> {
    let server = Server::reach(kubeconfig).await?;
    let request = http::Request::get(format!("/api/v1/namespaces/{NAMESPACE}"))
        .body(Vec::new())
        .map_err(|error| error.to_string())?;
    let call = server.client.request_text(request);
    let text = server.asked(format!("the namespace {NAMESPACE}"), call, time);
    text.await.map(drop)
}

/// Asks for this host's Node, and whether it is Ready.
pub(super) async fn is_node_ready(
    kubeconfig: Option<&Path>,
    name: &str,
    time: Time,
) -> Result<(), String> {
    let server = Server::reach(kubeconfig).await?;
    let nodes = Api::<Node>::all(server.client.clone());
    let call = nodes.get(name);
    let node = server.asked(format!("the node {name}"), call, time).await?;
    let conditions = node.status.and_then(|it| it.conditions);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|it| it.type_ == "Ready");
    match ready {
        Some(ready) if ready.status == "True" => Ok(()),
        Some(ready) => Err(format!("the node {name} is not Ready: {}", why(&ready))),
        None => Err(format!("the node {name} does not say whether it is Ready")),
    }
}

fn why(condition: &NodeCondition) -> &str {
    let texts = [&condition.message, &condition.reason];
    let mut texts = texts.into_iter().flatten().filter(|it| !it.is_empty());
    texts.next().unwrap_or(&condition.status)
}

/// The API server, by a connection that does not exist yet.
struct Server {
    client: Client,
    url: String,
}

impl Server {
    async fn reach(kubeconfig: Option<&Path>) -> Result<Self, String> {
        let no_way = |error: String| format!("there is no way to the API server: {error}");
        let config = configured(kubeconfig).await.map_err(no_way)?;
        let url = config.cluster_url.to_string();
        let client = connect(config).map_err(|error| no_way(error.to_string()))?;
        Ok(Self {
            client,
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    /// What a call comes to, as long as there is time.
    async fn asked<T>(
        &self,
        what: String,
        call: impl Future<Output = kube::Result<T>>,
        time: Time,
    ) -> Result<T, String> {
        let url = &self.url;
        let call = within(
            format!("asking the API server {url} for {what}"),
            ONE_ATTEMPT,
            call,
        );
        let call = async { call.await.map_err(|error| error.to_string()) };
        let missed = || format!("the API server {url} did not answer");
        time.bounded(missed, call).await
    }
}
