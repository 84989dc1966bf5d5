//! The ConfigMap of the proxy: what callers must be permitted to do, and whether it speaks TLS.
//!
//! kube-rbac-proxy knows the first part only, and reads it once; the other keys are written for a
//! proxy that follows its files.

use k8s_openapi::api::core::v1::ConfigMap;
use keelson_api::names::SEI_GROUP;
use serde_json::{Value, json};

use crate::node::Node;
use crate::platform::Platform;
use crate::{metadata, names, tls};

/// Key of the ConfigMap, and name of the file in the pod.
pub const FILE: &str = "config.yaml";

/// The ConfigMap.
pub fn config_map(node: &Node<'_>, platform: &Platform) -> ConfigMap {
    let name = names::proxy_config(node.name);
    ConfigMap {
        metadata: metadata::owned(node, name, metadata::labels(node)),
        data: Some([(FILE.to_owned(), text(node, platform))].into()),
        ..ConfigMap::default()
    }
}

/// Paths anyone may ask for who reaches the port: health, and the metrics unless the platform says
/// otherwise.
pub(crate) fn open_paths(platform: &Platform) -> Vec<&'static str> {
    let metrics = platform.proxy.open_metrics.then_some("/v0/metrics");
    ["/v0/healthz", "/v0/startupz", "/v0/livez"]
        .into_iter()
        .chain(metrics)
        .collect()
}

/// Hash of the configuration, in hexadecimal.
pub(crate) fn hash(node: &Node<'_>, platform: &Platform) -> String {
    keelson_seid_config::of_parts([text(node, platform).as_bytes()].into_iter())
}

fn text(node: &Node<'_>, platform: &Platform) -> String {
    let right = &platform.proxy.right;
    let mut config = json!({
        "authorization": {
            "resourceAttributes": {
                "apiGroup": SEI_GROUP,
                "resource": right.resource,
                "namespace": node.namespace,
                "name": node.name,
            },
        },
    });
    if let Some(subresource) = &right.subresource {
        config["authorization"]["resourceAttributes"]["subresource"] = json!(subresource);
    }
    if platform.proxy.reloads {
        config["paths"] = json!({ "ignore": open_paths(platform) });
        config["tls"] = mode(node);
    }
    yaml(&config, 0)
}

fn mode(node: &Node<'_>) -> Value {
    match tls::wanted(node) {
        false => json!({ "mode": "off" }),
        true => json!({
            "mode": "required",
            "certFile": tls::CERT_FILE,
            "keyFile": tls::KEY_FILE,
        }),
    }
}

/// Block YAML of maps and lists of texts. Every text is quoted: `off`, a node called `on` or `1e3`,
/// would be something else to a reader of YAML 1.1. JSON's quotes are YAML's.
fn yaml(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match value {
                Value::Object(_) | Value::Array(_) => {
                    format!("{indent}{key}:\n{}", yaml(value, depth + 1))
                }
                scalar => format!("{indent}{key}: {scalar}\n"),
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| format!("{indent}- {item}\n"))
            .collect(),
        scalar => format!("{indent}{scalar}\n"),
    }
}
