//! The schemas and the types say the same.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use keelson_api::{
    NMState, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
    SeiNode, SeiNodeDeployment, SeiNodeDeploymentSpec, SeiNodeSpec, crds,
};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

fn crd(name: &str) -> CustomResourceDefinition {
    crds::all()
        .into_iter()
        .find(|crd| crd.metadata.name.as_deref() == Some(name))
        .unwrap()
}

fn schema(crd: &CustomResourceDefinition, version: usize) -> Value {
    let schema = crd.spec.versions[version].schema.as_ref().unwrap();
    serde_json::to_value(schema.open_api_v3_schema.as_ref().unwrap()).unwrap()
}

/// A value with every field its schema knows.
fn full(name: &str, schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|words| words.first()) {
        return first.clone();
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == json!(true) {
        return json!({ "any": { "thing": 1 } });
    }
    match schema["type"].as_str() {
        Some("object") => match schema["properties"].as_object() {
            Some(fields) => fields
                .iter()
                .map(|(key, field)| (key.clone(), full(key, field)))
                .collect(),
            None if schema["additionalProperties"].is_object() => {
                json!({ "key": full("", &schema["additionalProperties"]) })
            }
            None => json!({}),
        },
        Some("array") => json!([full(name, &schema["items"])]),
        Some("integer") => json!(3),
        Some("boolean") => json!(true),
        Some("string") if schema["format"] == "date-time" => json!("2026-01-02T03:04:05Z"),
        _ => json!(open_word(name)),
    }
}

/// A text; a word where the type has words and the schema is open.
fn open_word(field: &str) -> &'static str {
    match field {
        "type" => "mark-ready",
        "kind" => "init",
        "phase" | "targetPhase" | "failedPhase" => "Failed",
        "issuerKind" => "Issuer",
        "servers" | "addresses" => "192.0.2.1",
        _ => "1",
    }
}

/// Generates an object with every field, decodes it, encodes it, and wants it back.
fn agrees<T>(definition: &str)
where
    T: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    let schema = schema(&crd(definition), 0);
    let mut object = Map::new();
    object.insert("apiVersion".into(), T::api_version(&()).into());
    object.insert("kind".into(), T::kind(&()).into());
    object.insert("metadata".into(), json!({ "name": "full" }));
    for field in ["spec", "status"] {
        if schema["properties"][field].is_object() {
            object.insert(field.into(), full("", &schema["properties"][field]));
        }
    }
    let object = Value::Object(object);
    let typed: T = serde_json::from_value(object.clone()).unwrap();
    let back = serde_json::to_value(&typed).unwrap();
    assert_eq!(back, object, "{definition}");
    assert_no_null(&back, definition);
}

fn assert_no_null(value: &Value, path: &str) {
    match value {
        Value::Null => panic!("{path} is null"),
        Value::Array(entries) => entries.iter().for_each(|entry| assert_no_null(entry, path)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, field)| assert_no_null(field, &format!("{path}.{key}"))),
        _ => {}
    }
}

#[test]
fn every_field_of_a_schema_is_a_field_of_its_type() {
    agrees::<SeiNode>("seinodes.sei.io");
    agrees::<SeiNodeDeployment>("seinodedeployments.sei.io");
    agrees::<NMState>("nmstates.nmstate.io");
    agrees::<NodeNetworkConfigurationPolicy>("nodenetworkconfigurationpolicies.nmstate.io");
    agrees::<NodeNetworkConfigurationEnactment>("nodenetworkconfigurationenactments.nmstate.io");
    agrees::<NodeNetworkState>("nodenetworkstates.nmstate.io");
}

#[test]
fn an_object_of_defaults_has_no_null() {
    let encode = |object: &dyn Fn() -> Value| assert_no_null(&object(), "default");
    encode(&|| {
        with_status(SeiNode {
            status: Some(Default::default()),
            ..Default::default()
        })
    });
    let fleet = SeiNodeDeployment::new("f", SeiNodeDeploymentSpec::new(SeiNodeSpec::default()));
    encode(&|| {
        with_status(SeiNodeDeployment {
            status: Some(Default::default()),
            ..fleet.clone()
        })
    });
    encode(&|| {
        with_status(NMState {
            status: Some(Default::default()),
            ..Default::default()
        })
    });
    encode(&|| {
        with_status(NodeNetworkConfigurationPolicy {
            status: Some(Default::default()),
            ..Default::default()
        })
    });
    encode(&|| {
        with_status(NodeNetworkConfigurationEnactment {
            status: Some(Default::default()),
            ..Default::default()
        })
    });
    encode(&|| {
        with_status(NodeNetworkState {
            status: Some(Default::default()),
            ..Default::default()
        })
    });
    encode(&|| with_status(SeiNode::default()));
}

fn with_status(object: impl Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

/// Calls `visit` for every schema inside a schema, with its path.
fn walk(schema: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(field, &format!("{path}.{name}"), visit);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            walk(&schema[inner], &format!("{path}[]"), visit);
        }
    }
}

fn every_schema(mut visit: impl FnMut(&str, &Value)) {
    for crd in crds::all() {
        for version in 0..crd.spec.versions.len() {
            let name = crd.metadata.name.clone().unwrap();
            walk(&schema(&crd, version), &name, &mut visit);
        }
    }
}

#[test]
fn no_field_may_be_null() {
    every_schema(|path, schema| {
        assert!(schema.get("nullable").is_none(), "{path} is nullable");
        let words = schema["enum"].as_array();
        assert!(
            words.is_none_or(|words| !words.contains(&Value::Null)),
            "{path} has a null word"
        );
        assert!(
            schema.get("default") != Some(&Value::Null),
            "{path} defaults to null"
        );
    });
}

/// Every default of every schema; each is a promise, because it is written into objects.
const DEFAULTS: &str = r#"
nmstates.nmstate.io.spec = {}
nmstates.nmstate.io.spec.logLevel = "info"
nmstates.nmstate.io.spec.metrics.auth = "TokenReview"
nmstates.nmstate.io.spec.metricsConfiguration = {}
nmstates.nmstate.io.spec.metricsConfiguration.bindAddress = ":8089"
nmstates.nmstate.io.spec.probeConfiguration = {}
nmstates.nmstate.io.spec.probeConfiguration.checkpointSeconds = 240
nmstates.nmstate.io.spec.probeConfiguration.dns = {}
nmstates.nmstate.io.spec.probeConfiguration.dns.host = "root-servers.net"
nmstates.nmstate.io.spec.probeConfiguration.timeoutSeconds = 120
nmstates.nmstate.io.spec.tls.source = "Auto"
nodenetworkconfigurationpolicies.nmstate.io.spec = {}
nodenetworkconfigurationpolicies.nmstate.io.spec.maxUnavailable = "50%"
seinodedeployments.sei.io.spec.deletionPolicy = "Retain"
seinodedeployments.sei.io.spec.genesis.accountBalance = "1000000000000000000000usei,1000000000000000000000uusdc,1000000000000000000000uatom"
seinodedeployments.sei.io.spec.genesis.stakingAmount = "10000000usei"
seinodedeployments.sei.io.spec.replicas = 1
seinodedeployments.sei.io.spec.template.spec.sidecar.port = 7777
seinodedeployments.sei.io.spec.template.spec.validator.operatorKeyring.secret.keyName = "node_admin"
seinodes.sei.io.spec.sidecar.port = 7777
seinodes.sei.io.spec.validator.operatorKeyring.secret.keyName = "node_admin"
"#;

#[test]
fn defaults_are_these_and_no_others() {
    let mut defaults = BTreeSet::new();
    every_schema(|path, schema| {
        if let Some(default) = schema.get("default") {
            defaults.insert(format!("{path} = {default}"));
        }
    });
    let expected: BTreeSet<_> = DEFAULTS.trim().lines().map(str::to_owned).collect();
    assert_eq!(defaults, expected);
}

#[test]
fn blocks_that_may_be_empty_are_atomic() {
    let node = schema(&crd("seinodes.sei.io"), 0);
    for block in ["fullNode", "archive", "replayer", "validator", "dataVolume"] {
        let field = &node["properties"]["spec"]["properties"][block];
        assert_eq!(field["x-kubernetes-map-type"], "atomic", "{block}");
    }
}

#[test]
fn every_rule_of_admission_says_what_to_do_in_one_sentence() {
    let mut count = 0;
    every_schema(|path, schema| {
        for rule in schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let message = rule["message"].as_str().unwrap_or_default();
            assert!(
                message.ends_with('.'),
                "{path}: {message:?} is not a sentence"
            );
            assert!(
                !message.trim_end_matches('.').contains(". "),
                "{path}: {message:?} is several"
            );
            count += 1;
        }
    });
    assert!(count > 40, "{count}");
}

#[test]
fn conditions_of_sei_are_a_map_by_type() {
    for name in ["seinodes.sei.io", "seinodedeployments.sei.io"] {
        let conditions = &schema(&crd(name), 0)["properties"]["status"]["properties"]["conditions"];
        assert_eq!(conditions["x-kubernetes-list-type"], "map", "{name}");
        assert_eq!(
            conditions["x-kubernetes-list-map-keys"],
            json!(["type"]),
            "{name}"
        );
    }
}

#[test]
fn every_field_of_ours_is_described() {
    every_schema(|path, schema| {
        let foreign = ["ffinity", "olerations", ".resources"]
            .iter()
            .any(|name| path.contains(name));
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            assert!(
                foreign || field["description"].is_string(),
                "{path}.{name} is not described"
            );
        }
    });
}
