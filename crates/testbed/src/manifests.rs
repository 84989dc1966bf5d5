//! The few objects the testbed itself writes: types from YAML files, namespaces, and the Service
//! before a test's own listener.

use crate::error::{Doing, Error};
use crate::wait::until;
use k8s_openapi::api::core::v1::{Namespace, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

/// Who wrote it, for server-side apply.
const FIELD_MANAGER: &str = "keelson-testbed";

/// Applies every CRD of a folder and waits until each is served.
pub(crate) async fn apply_crds(client: &Client, folder: &Path) -> Result<(), Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let crds = read_folder(folder)?;
    for crd in &crds {
        apply(&api, crd).await?;
    }
    for crd in &crds {
        let name = crd.name_any();
        let served = await_condition(api.clone(), &name, is_crd_established());
        let deadline = Duration::from_secs(30);
        let last = match tokio::time::timeout(deadline, served).await {
            Ok(Ok(_)) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it is not Established".into(),
        };
        return Err(Error::Deadline {
            what: format!("type {name}"),
            after: deadline,
            last,
        });
    }
    Ok(())
}

/// Makes a namespace that is ready for pods.
pub(crate) async fn ensure_namespace(client: &Client, name: &str) -> Result<(), Error> {
    let namespace = object(json!({ "metadata": { "name": name } }));
    apply(&Api::<Namespace>::all(client.clone()), &namespace).await?;
    let what = format!("the service account of namespace {name}");
    until(&what, Duration::from_secs(30), async || {
        takes_pods(client, name).await
    })
    .await
}

/// Whether a namespace has the service account its first pod needs; the controller manager makes
/// it.
pub(crate) async fn takes_pods(client: &Client, namespace: &str) -> Result<(), String> {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    let found = accounts.get("default").await;
    found.map(drop).map_err(|error| error.to_string())
}

/// A Service on port 443 whose only endpoint is `address:port`.
pub(crate) async fn expose(
    client: &Client,
    namespace: &str,
    name: &str,
    address: &str,
    port: u16,
) -> Result<(), Error> {
    let service = object::<Service>(json!({
        "metadata": { "name": name },
        "spec": { "ports": [{ "name": "https", "port": 443, "targetPort": port }] },
    }));
    apply(&Api::namespaced(client.clone(), namespace), &service).await?;
    let slice = object::<EndpointSlice>(json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/service-name": name } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
        "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
    }));
    apply(&Api::namespaced(client.clone(), namespace), &slice).await
}

/// Server-side apply, forced: these objects are the testbed's own.
pub(crate) async fn apply<K>(api: &Api<K>, object: &K) -> Result<(), Error>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
{
    let name = object.name_any();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
    applied
        .map(drop)
        .doing(|| format!("{} {name} could not be applied", K::kind(&())))
}

/// An object written as JSON where the code stands.
pub(crate) fn object<K: DeserializeOwned>(value: serde_json::Value) -> K {
    serde_json::from_value(value).expect("an object of our own making")
}

/// Every object in the YAML files of a folder, in the order of their names.
pub(crate) fn read_folder<K: DeserializeOwned>(folder: &Path) -> Result<Vec<K>, Error> {
    let entries =
        std::fs::read_dir(folder).doing(|| format!("{} could not be read", folder.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let mut objects = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .doing(|| format!("{} could not be read", file.display()))?;
        let parsed: Vec<K> =
            serde_saphyr::from_multiple(&text).map_err(|error| Error::Manifest {
                path: file,
                why: error.to_string(),
            })?;
        objects.extend(parsed);
    }
    Ok(objects)
}
