//! An object of the API, with no more of it than is counted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// An object of kind `K`, of which status `S` is read. Who wrote which field, and the spec, are
/// passed over: together they are most of an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "S: Deserialize<'de> + Default")]
pub struct Slim<K, S> {
    #[serde(default, deserialize_with = "name_and_labels")]
    metadata: ObjectMeta,
    /// Its status.
    #[serde(default)]
    pub status: S,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Few {
    name: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

fn name_and_labels<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let few = Few::deserialize(from)?;
    Ok(ObjectMeta {
        name: few.name,
        resource_version: few.resource_version,
        labels: few.labels,
        ..ObjectMeta::default()
    })
}

impl<K: Resource<DynamicType = ()>, S> Resource for Slim<K, S> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
