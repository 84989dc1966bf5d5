//! What every test here needs: a namespace, a proxy, a look past the proxy, and waits with names.

use k8s_openapi::api::core::v1::ConfigMap;
use keelson_testbed::{
    Cluster, Namespace,
    faults::{Call, FaultProxy},
};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use std::{error::Error, fmt::Display, future::Future, io, time::Duration};
use tokio::time::timeout;

/// Long enough for anything that is going to happen on one machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Long enough to tell an answer from none: a call through the proxy takes milliseconds.
const SILENCE: Duration = Duration::from_millis(300);

pub(crate) struct Stage {
    pub(crate) cluster: &'static Cluster,
    pub(crate) faults: FaultProxy,
    pub(crate) namespace: Namespace<'static>,
}

impl Stage {
    pub(crate) async fn new(test: &str) -> Self {
        let cluster = Cluster::shared().await;
        Self {
            cluster,
            faults: cluster.faults().expect("the fault proxy starts"),
            namespace: cluster.namespace(test).await,
        }
    }

    /// ConfigMaps of the test's namespace by way of a client.
    pub(crate) fn maps(&self, client: kube::Client) -> Api<ConfigMap> {
        Api::namespaced(client, self.namespace.name())
    }

    /// ConfigMaps through the proxy, over connections of their own.
    pub(crate) fn through(&self) -> Api<ConfigMap> {
        self.maps(self.faults.client())
    }

    /// ConfigMaps past the proxy.
    pub(crate) fn past(&self) -> Api<ConfigMap> {
        self.maps(self.cluster.client())
    }

    /// What the API server has.
    pub(crate) async fn stored(&self, name: &str) -> bool {
        let found = self.past().get_opt(name).await;
        found.expect("the API server answers").is_some()
    }

    /// The calls as text, without the test's namespace.
    pub(crate) fn calls(&self) -> Vec<String> {
        let own = |call: &Call| {
            let namespace = self.namespace.name();
            let text = call.to_string();
            text.replace(&format!("{namespace}/ "), "")
                .replace(&format!("{namespace}/"), "")
        };
        self.faults.calls().iter().map(own).collect()
    }
}

pub(crate) fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

pub(crate) async fn create(maps: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    maps.create(&PostParams::default(), &map(name)).await
}

/// A call that runs beside the test.
pub(crate) fn begin_create(maps: &Api<ConfigMap>, name: &'static str) -> Running {
    let maps = maps.clone();
    tokio::spawn(async move { create(&maps, name).await })
}

pub(crate) type Running = tokio::task::JoinHandle<kube::Result<ConfigMap>>;

/// Awaits something that is to happen.
pub(crate) async fn soon<T>(what: impl Display, future: impl Future<Output = T>) -> T {
    match timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not happen within {DEADLINE:?}"),
    }
}

/// Whether nothing comes of it for as long as an answer would take many times over.
pub(crate) async fn silent<T>(future: impl Future<Output = T>) -> bool {
    timeout(SILENCE, future).await.is_err()
}

/// The status code of an answer that is a refusal; none if it is no answer.
pub(crate) fn code<T>(result: kube::Result<T>) -> Option<u16> {
    match result {
        Err(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// The kind of the innermost I/O error.
pub(crate) fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let below = error.source().and_then(io_kind);
    below.or_else(|| Some(error.downcast_ref::<io::Error>()?.kind()))
}

/// The error with everything below it.
pub(crate) fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
