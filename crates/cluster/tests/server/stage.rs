//! What every test here needs: a namespace, a proxy, clients as the operator makes them.

use k8s_openapi::api::core::v1::ConfigMap;
use keelson_api::names::FieldManager;
use keelson_cluster::{Calls, connect};
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, Namespace, until};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::future::Future;
use std::time::Duration;
use tokio::time::timeout;

/// Long enough for anything that is going to happen on one machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

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
            faults: cluster.faults().expect("a fault proxy"),
            namespace: cluster.namespace(test).await,
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.namespace.name()
    }

    /// A client through the proxy, as the operator makes it.
    pub(crate) fn client(&self) -> Client {
        connect(self.faults.config()).expect("a client")
    }

    /// Calls through the proxy.
    pub(crate) fn calls(&self) -> Calls {
        Calls::new(self.client(), FieldManager::Node)
    }

    /// ConfigMaps through the proxy.
    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), self.name())
    }

    /// Somebody else writes a ConfigMap, past the proxy.
    pub(crate) async fn put(&self, name: &str, value: &str) -> ConfigMap {
        let api: Api<ConfigMap> = Api::namespaced(self.cluster.client(), self.name());
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name },
            "data": { "value": value },
        });
        let how = PatchParams::apply("somebody").force();
        let written = api.patch(name, &how, &Patch::Apply(&map)).await;
        written.expect("a ConfigMap")
    }

    /// Somebody else deletes a ConfigMap, past the proxy.
    pub(crate) async fn remove(&self, name: &str) {
        let api: Api<ConfigMap> = Api::namespaced(self.cluster.client(), self.name());
        let gone = api.delete(name, &Default::default()).await;
        gone.expect("a ConfigMap to delete");
    }
}

/// What is waited for, with a deadline and a name.
pub(crate) async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    match timeout(DEADLINE, wait).await {
        Ok(it) => it,
        Err(_) => panic!("{what} did not come within {DEADLINE:?}"),
    }
}

/// A small ConfigMap as JSON.
pub(crate) fn map(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": namespace },
        "data": { "value": value },
    })
}

/// Looks until this holds.
pub(crate) async fn holds(what: &str, look: impl Fn() -> bool) {
    let look = async || look().then_some(()).ok_or_else(|| "it does not".to_owned());
    until(what, DEADLINE, look).await.expect("in time");
}
