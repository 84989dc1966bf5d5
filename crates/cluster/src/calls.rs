//! The calls a controller makes, each with a deadline, a name and a field manager.
//!
//! What is expected of a busy cluster is an answer, not an error: an object that is not there, one
//! that exists already, one that is gone. What to call, and when, is the controller's; whether an
//! apply is needed at all is decided by [`owned`](crate::owned) without a call.

use crate::client::within;
use crate::error::Error;
use crate::mirror::Key;
use crate::owned::drop_nulls;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_api::names::FieldManager;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams,
    PostParams, Preconditions, PropagationPolicy,
};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;

/// How long a call may take. Reconciles wait for calls, so this is short; a write that takes longer
/// may still happen, and the next look shows it.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// What the calls ask of a type: an object with a namespace that can be read.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
{
}

/// Which object a delete is about, beyond its name. Where it is another, that is a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// Only the object with this uid, not a later one of the same name.
    pub uid: Option<String>,
    /// Only as it was when it had this resource version.
    pub version: Option<String>,
}

/// What becomes of the objects that an object owns when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

impl From<Propagation> for PropagationPolicy {
    fn from(how: Propagation) -> Self {
        match how {
            Propagation::Background => Self::Background,
            Propagation::Foreground => Self::Foreground,
            Propagation::Orphan => Self::Orphan,
        }
    }
}

/// A client whose calls have a deadline, and who writes under one name.
#[derive(Clone)]
pub struct Calls {
    client: Client,
    manager: FieldManager,
}

impl Calls {
    /// Calls through this client, with writes under the name of this field manager.
    pub fn new(client: Client, manager: FieldManager) -> Self {
        Self { client, manager }
    }

    /// The client, for watches.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The name writes are made under.
    pub fn manager(&self) -> FieldManager {
        self.manager
    }

    /// Reads an object; none where there is none.
    pub async fn get<K: Object>(&self, namespace: &str, name: &str) -> Result<Option<K>, Error> {
        let api = self.api::<K>(namespace);
        let doing = doing::<K>("reading", namespace, name);
        within(doing, DEADLINE, api.get_opt(name)).await
    }

    /// Reads the objects of a namespace whose fields are as this selector says.
    pub async fn select<K: Object>(&self, namespace: &str, fields: &str) -> Result<Vec<K>, Error> {
        let api = self.api::<K>(namespace);
        let doing = format!("listing {} of {namespace} with {fields}", K::kind(&()));
        let how = ListParams::default().fields(fields);
        let listed = within(doing, DEADLINE, api.list(&how)).await?;
        Ok(listed.items)
    }

    /// Server-side apply, forced: afterwards the fields of `object` are as it says and ours. Gives
    /// the object as it is now.
    pub async fn apply<K: Object + Serialize>(&self, object: &K) -> Result<K, Error> {
        let wanted = value(object, || format!("applying a {}", K::kind(&())))?;
        let at = place(&wanted, &K::kind(&()))?;
        let api = self.api::<K>(&at.namespace);
        let doing = doing::<K>("applying", &at.namespace, &at.name);
        let (how, patch) = (self.forced(), Patch::Apply(&wanted));
        within(doing, DEADLINE, api.patch(&at.name, &how, &patch)).await
    }

    /// [`apply`](Self::apply) for an object whose type this program only writes down, such as a
    /// Certificate: where it goes is said by `resource`. One without a namespace is one of the whole
    /// cluster.
    pub async fn apply_as(
        &self,
        resource: &ApiResource,
        object: &impl Serialize,
    ) -> Result<DynamicObject, Error> {
        let wanted = value(object, || format!("applying a {}", resource.kind))?;
        let at = named(&wanted, &resource.kind)?;
        let doing = format!("applying {} {at}", resource.kind);
        let (how, patch) = (self.forced(), Patch::Apply(&wanted));
        let api = self.api_as(resource, &at.namespace);
        within(doing, DEADLINE, api.patch(&at.name, &how, &patch)).await
    }

    /// Server-side apply, forced, of the status of an object that `object` names. None where the
    /// object is gone.
    pub async fn apply_status_as(
        &self,
        resource: &ApiResource,
        object: &impl Serialize,
    ) -> Result<Option<DynamicObject>, Error> {
        let wanted = value(object, || {
            format!("writing the status of a {}", resource.kind)
        })?;
        let at = named(&wanted, &resource.kind)?;
        let doing = format!("writing the status of {} {at}", resource.kind);
        let (how, patch) = (self.forced(), Patch::Apply(&wanted));
        let api = self.api_as(resource, &at.namespace);
        let call = async { unless_gone(api.patch_status(&at.name, &how, &patch).await) };
        within(doing, DEADLINE, call).await
    }

    /// Creates an object; none where one of its name exists already.
    pub async fn create<K: Object + Serialize>(&self, object: &K) -> Result<Option<K>, Error> {
        let (namespace, name) = (
            object.meta().namespace.as_deref().unwrap_or_default(),
            object.meta().name.as_deref().unwrap_or_default(),
        );
        let api = self.api::<K>(namespace);
        let how = PostParams {
            dry_run: false,
            field_manager: Some(self.manager.to_string()),
        };
        let create = async {
            match api.create(&how, object).await {
                Ok(created) => Ok(Some(created)),
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
                Err(error) => Err(error),
            }
        };
        within(doing::<K>("creating", namespace, name), DEADLINE, create).await
    }

    /// A merge patch; none where the object is gone.
    pub async fn merge<K: Object>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Option<K>, Error> {
        self.patch(namespace, name, Patch::Merge(patch)).await
    }

    /// A strategic merge patch, which changes single entries of a list by their names; none where the
    /// object is gone.
    pub async fn strategic<K: Object>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Option<K>, Error> {
        self.patch(namespace, name, Patch::Strategic(patch)).await
    }

    async fn patch<K: Object>(
        &self,
        namespace: &str,
        name: &str,
        patch: Patch<&Value>,
    ) -> Result<Option<K>, Error> {
        let (api, how) = (self.api::<K>(namespace), self.plain());
        let call = async { unless_gone(api.patch(name, &how, &patch).await) };
        within(doing::<K>("patching", namespace, name), DEADLINE, call).await
    }

    /// A merge patch of the status; none where the object is gone. With `metadata.resourceVersion`
    /// in the patch it is written only over that version, otherwise it is a conflict.
    pub async fn merge_status<K: Object>(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Option<K>, Error> {
        let api = self.api::<K>(namespace);
        let (how, patch) = (self.plain(), Patch::Merge(patch));
        let call = async { unless_gone(api.patch_status(name, &how, &patch).await) };
        let doing = doing::<K>("writing the status of", namespace, name);
        within(doing, DEADLINE, call).await
    }

    /// The same for an object whose type this program only writes down; one without a namespace is one
    /// of the whole cluster.
    pub async fn merge_status_as(
        &self,
        resource: &ApiResource,
        at: &Key,
        patch: &Value,
    ) -> Result<Option<DynamicObject>, Error> {
        let api = self.api_as(resource, &at.namespace);
        let (how, patch) = (self.plain(), Patch::Merge(patch));
        let call = async { unless_gone(api.patch_status(&at.name, &how, &patch).await) };
        let doing = format!("writing the status of {} {at}", resource.kind);
        within(doing, DEADLINE, call).await
    }

    /// What an object of any kind is, and not what it says; none where there is none.
    pub async fn metadata_as(
        &self,
        resource: &ApiResource,
        at: &Key,
    ) -> Result<Option<ObjectMeta>, Error> {
        let api = self.api_as(resource, &at.namespace);
        let doing = format!("looking for {} {at}", resource.kind);
        let found = within(doing, DEADLINE, api.get_metadata_opt(&at.name)).await?;
        Ok(found.map(|it| it.metadata))
    }

    /// The same of all objects of a kind, in the whole cluster.
    pub async fn list_metadata_as(&self, resource: &ApiResource) -> Result<Vec<ObjectMeta>, Error> {
        let api = self.api_as(resource, "");
        let doing = format!("looking for every {}", resource.kind);
        let found = within(doing, DEADLINE, api.list_metadata(&ListParams::default())).await?;
        Ok(found.items.into_iter().map(|it| it.metadata).collect())
    }

    /// Deletes an object; false where it is already gone.
    pub async fn delete<K: Object>(
        &self,
        namespace: &str,
        name: &str,
        only: Only,
        how: Propagation,
    ) -> Result<bool, Error> {
        let api = self.api::<K>(namespace);
        let how = deletion(only, how);
        let call = async { unless_gone(api.delete(name, &how).await) };
        let gone = within(doing::<K>("deleting", namespace, name), DEADLINE, call).await?;
        Ok(gone.is_some())
    }

    /// [`delete`](Self::delete) for an object whose type this program only writes down; an empty
    /// namespace is the whole cluster.
    pub async fn delete_as(
        &self,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
        only: Only,
    ) -> Result<bool, Error> {
        let at = Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let api = self.api_as(resource, namespace);
        let how = deletion(only, Propagation::Background);
        let call = async { unless_gone(api.delete(name, &how).await) };
        let doing = format!("deleting {} {at}", resource.kind);
        Ok(within(doing, DEADLINE, call).await?.is_some())
    }

    /// A token of a ServiceAccount for these audiences, and when it ends. The server may grant
    /// another lifetime than was asked for.
    pub async fn token(
        &self,
        namespace: &str,
        service_account: &str,
        audiences: &[String],
        seconds: i64,
    ) -> Result<(String, Timestamp), Error> {
        let api = self.api::<ServiceAccount>(namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: audiences.to_vec(),
                expiration_seconds: Some(seconds),
                bound_object_ref: None,
            },
            ..TokenRequest::default()
        };
        let doing = format!("asking for a token of ServiceAccount {namespace}/{service_account}");
        let how = PostParams::default();
        let call = api.create_token_request(service_account, &how, &request);
        match within(&doing, DEADLINE, call).await?.status {
            Some(status) => Ok((status.token, status.expiration_timestamp.0)),
            None => Err(Error::Malformed {
                doing,
                reason: "the answer has no token in it".to_owned(),
            }),
        }
    }

    fn api<K: Object>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn api_as(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        match namespace {
            "" => Api::all_with(self.client.clone(), resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, resource),
        }
    }

    fn forced(&self) -> PatchParams {
        PatchParams::apply(self.manager.as_str()).force()
    }

    fn plain(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.manager.to_string()),
            ..PatchParams::default()
        }
    }
}

fn deletion(only: Only, how: Propagation) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(how.into()),
        preconditions: Some(Preconditions {
            resource_version: only.version,
            uid: only.uid,
        }),
        ..DeleteParams::default()
    }
}

fn doing<K: Object>(what: &str, namespace: &str, name: &str) -> String {
    format!("{what} {} {namespace}/{name}", K::kind(&()))
}

fn unless_gone<T>(answer: kube::Result<T>) -> kube::Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is sent for an apply.
fn value(object: &impl Serialize, doing: impl Fn() -> String) -> Result<Value, Error> {
    let mut value = serde_json::to_value(object).map_err(|error| Error::Malformed {
        doing: doing(),
        reason: format!("it is no JSON: {error}"),
    })?;
    drop_nulls(&mut value);
    Ok(value)
}

/// Namespace and name of an object to be applied.
fn place(wanted: &Value, kind: &str) -> Result<Key, Error> {
    let at = named(wanted, kind)?;
    match at.namespace.is_empty() {
        true => Err(missing(kind, "namespace")),
        false => Ok(at),
    }
}

/// The same of one that may have no namespace.
fn named(wanted: &Value, kind: &str) -> Result<Key, Error> {
    let of = |field: &str| wanted["metadata"][field].as_str().unwrap_or_default();
    match of("name") {
        "" => Err(missing(kind, "name")),
        name => Ok(Key {
            namespace: of("namespace").to_owned(),
            name: name.to_owned(),
        }),
    }
}

fn missing(kind: &str, field: &str) -> Error {
    Error::Malformed {
        doing: format!("applying a {kind}"),
        reason: format!("metadata.{field} is missing"),
    }
}
