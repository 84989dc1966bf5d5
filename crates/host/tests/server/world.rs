//! Objects in the cluster, made as handlers and people make them.

use crate::common::client::Tls;
use crate::common::program::{Program, SOON, value};
use keelson_api::{
    NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
};
use keelson_testbed::{Cluster, until};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use tokio::sync::OnceCell;

/// The shared cluster, with our types.
pub(crate) async fn cluster() -> &'static Cluster {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await;
    let install = async || cluster.install_crds().await.expect("types");
    INSTALLED.get_or_init(install).await;
    cluster
}

/// What our kinds have in common here.
pub(crate) trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned
{
}
impl Kind for NodeNetworkConfigurationPolicy {}
impl Kind for NodeNetworkConfigurationEnactment {}
impl Kind for NodeNetworkState {}

/// Writes an object and, apart from it as the API has it, its status.
pub(crate) async fn put<K: Kind>(client: &Client, name: &str, labels: Value, status: Value) {
    let api = Api::<K>::all(client.clone());
    let how = PatchParams::apply("a-test").force();
    let frame = |more: Value| {
        let mut object = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name},
        });
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
        Patch::Apply(object)
    };
    let object = frame(json!({"metadata": {"name": name, "labels": labels}}));
    api.patch(name, &how, &object).await.expect("an object");
    let status = frame(json!({ "status": status }));
    let written = api.patch_status(name, &how, &status).await;
    written.expect("a status");
}

/// Deletes an object.
pub(crate) async fn delete<K: Kind>(client: &Client, name: &str) {
    let api = Api::<K>::all(client.clone());
    let deleted = api.delete(name, &DeleteParams::default()).await;
    deleted.expect("an object to delete");
}

/// Conditions of which one holds.
pub(crate) fn holds(kind: &str) -> Value {
    json!([{"type": "Other", "status": "False"}, {"type": kind, "status": "True"}])
}

/// An enactment of a policy on a node.
pub(crate) async fn enact(client: &Client, node: &str, policy: &str, status: Value) {
    let name = format!("{node}.{policy}");
    let labels = json!({"nmstate.io/node": node, "nmstate.io/policy": policy});
    put::<NodeNetworkConfigurationEnactment>(client, &name, labels, status).await;
}

/// Waits until a page of metrics is so, and returns it.
pub(crate) async fn page_is(
    program: &Program,
    tls: &Tls,
    what: &str,
    so: impl Fn(&str) -> bool,
) -> String {
    until(what, SOON, async || {
        let page = tls.get(program.address(), "/metrics", "").await.body;
        match so(&page) {
            true => Ok(page),
            false => Err(page),
        }
    })
    .await
    .expect("a page")
}

/// Whether a series has this value; none for no such series.
pub(crate) fn has(page: &str, series: &str, expected: Option<i64>) -> bool {
    value(page, series) == expected.map(|it| it.to_string())
}
