//! The CustomResourceDefinitions, complete: what is committed, installed and tested.
//!
//! The derive gives one definition per type; this adds what it cannot say (further versions,
//! defaults of a whole spec) and takes away what we do not want: no field of ours may be `null`,
//! because a `null` counts as present for the rules of admission; and types of the Kubernetes API
//! are documented where they belong, not again in every definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, JSON, JSONSchemaProps,
    JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::{
    NMState, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
    SeiNode, SeiNodeDeployment,
};

/// Version that is still served for those who write it.
const DEPRECATED_VERSION: &str = "v1beta1";

/// Every definition, both API groups, sorted by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        definition::<SeiNode>(),
        definition::<SeiNodeDeployment>(),
        nmstate(),
        policy(),
        definition::<NodeNetworkConfigurationEnactment>(),
        definition::<NodeNetworkState>(),
    ];
    crds.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    crds
}

/// NMState: `v1` and `v1beta1`.
fn nmstate() -> CustomResourceDefinition {
    let mut crd = definition::<NMState>();
    default_spec(&mut crd);
    deprecate(
        &mut crd,
        "nmstate/v1beta1 deprecated, use nmstate/v1 instead",
    );
    crd
}

/// NodeNetworkConfigurationPolicy: `v1` and `v1beta1`.
fn policy() -> CustomResourceDefinition {
    let mut crd = definition::<NodeNetworkConfigurationPolicy>();
    default_spec(&mut crd);
    deprecate(
        &mut crd,
        "nmstate.io/v1beta1 NodeNetworkConfigurationPolicy is deprecated, use nmstate.io/v1 instead",
    );
    crd
}

/// The definition the derive gives, tidied.
fn definition<T: CustomResourceExt>() -> CustomResourceDefinition {
    let mut crd = T::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) = schema(version) {
            tidy(schema);
        }
    }
    crd
}

/// Serves the storage version under its old name too. Both have one schema, so the API server
/// converts by changing the name.
fn deprecate(crd: &mut CustomResourceDefinition, warning: &str) {
    let old = crd
        .spec
        .versions
        .first()
        .map(|current| CustomResourceDefinitionVersion {
            name: DEPRECATED_VERSION.to_owned(),
            deprecated: Some(true),
            deprecation_warning: Some(warning.to_owned()),
            storage: false,
            ..current.clone()
        });
    crd.spec.versions.extend(old);
}

/// Gives an absent spec the value `{}`, so that the defaults inside it apply.
fn default_spec(crd: &mut CustomResourceDefinition) {
    for version in &mut crd.spec.versions {
        if let Some(spec) = spec(version) {
            spec.default = Some(JSON(json!({})));
        }
        if let Some(root) = schema(version) {
            root.required = None;
        }
    }
}

fn schema(version: &mut CustomResourceDefinitionVersion) -> Option<&mut JSONSchemaProps> {
    version.schema.as_mut()?.open_api_v3_schema.as_mut()
}

fn spec(version: &mut CustomResourceDefinitionVersion) -> Option<&mut JSONSchemaProps> {
    property(schema(version)?, "spec")
}

fn property<'a>(schema: &'a mut JSONSchemaProps, name: &str) -> Option<&'a mut JSONSchemaProps> {
    schema.properties.as_mut()?.get_mut(name)
}

/// Removes every trace of `null` from a schema, and line breaks that only the source has.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    if let Some(text) = &mut schema.description {
        *text = text
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect::<Vec<_>>()
            .join("\n");
    }
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| value.0 != Value::Null);
    }
    if schema
        .default
        .as_ref()
        .is_some_and(|default| default.0 == Value::Null)
    {
        schema.default = None;
    }
    children(schema).for_each(tidy);
}

fn children(schema: &mut JSONSchemaProps) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let properties = schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut());
    let items = match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => std::slice::from_mut(&mut **item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.as_mut_slice(),
        None => &mut [],
    };
    let values = match &mut schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(value)) => Some(&mut **value),
        _ => None,
    };
    let unions = [&mut schema.one_of, &mut schema.any_of, &mut schema.all_of];
    properties
        .chain(items)
        .chain(values)
        .chain(unions.into_iter().flatten().flatten())
}

/// Schema of a type of the Kubernetes API, without its descriptions: with them one NMState would be
/// larger than `kubectl apply` can handle.
pub(crate) fn undescribed<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    struct Undescribed;
    impl Transform for Undescribed {
        fn transform(&mut self, schema: &mut Schema) {
            schema.remove("description");
            transform_subschemas(self, schema);
        }
    }
    let mut schema = T::json_schema(generator);
    Undescribed.transform(&mut schema);
    schema
}
