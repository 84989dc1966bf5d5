//! Objects of cert-manager, as a person looks at them and puts them right.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::stage::Scene;
use crate::stage::shared::DEADLINE;

/// Objects of this kind in the scene's namespace.
pub(crate) fn of(scene: &Scene, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("cert-manager.io", "v1", kind);
    let resource = ApiResource::from_gvk(&kind);
    Api::namespaced_with(scene.client(), scene.namespace(), &resource)
}

/// A Certificate, if there is one.
pub(crate) async fn certificate(scene: &Scene, name: &str) -> Option<DynamicObject> {
    let found = of(scene, "Certificate").get_opt(name).await;
    found.expect("an answer")
}

/// Makes an object of cert-manager.
pub(crate) async fn create(scene: &Scene, kind: &str, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": "cert-manager.io/v1", "kind": kind,
        "metadata": { "name": name }, "spec": spec,
    });
    let object = serde_json::from_value(object).expect("an object");
    let created = of(scene, kind)
        .create(&PostParams::default(), &object)
        .await;
    created.expect("its creation");
}

/// Waits until this holds of a Certificate; of one that is gone, too.
pub(crate) async fn until_certificate(
    scene: &Scene,
    name: &str,
    holds: impl Fn(Option<&DynamicObject>) -> bool,
) {
    let certificates = of(scene, "Certificate");
    let waiting = await_condition(certificates, name, |it: Option<&DynamicObject>| holds(it));
    match timeout(DEADLINE, waiting).await {
        Ok(found) => drop(found.expect("a watch")),
        Err(_) => panic!(
            "Certificate {name} is not as awaited within {DEADLINE:?}: {:?}",
            certificate(scene, name).await.map(|it| it.data)
        ),
    }
}
