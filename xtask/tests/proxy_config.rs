//! What the operator writes for a proxy is what the proxy reads: the real renderer, the real reader.

use keelson_api::SeiNode;
use keelson_operator::platform::read;
use keelson_proxy::config::{Strictness, load};
use keelson_render::platform::Right;
use keelson_render::{Node, Platform, proxy_config};
use serde_json::{Value, json};

/// The platform of the install, as it is shipped.
fn platform() -> Platform {
    let text = include_str!("../../deploy/operator/platform.yaml");
    let shipped: Value = serde_saphyr::from_str(text).expect("a ConfigMap");
    let settings = shipped["data"].as_object().expect("settings");
    let mut environment: std::collections::BTreeMap<String, String> = settings
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    for name in ["POD_NAME", "POD_NAMESPACE"] {
        environment.insert(name.to_owned(), "keelson".to_owned());
    }
    match read(&environment, None) {
        Ok(settings) => settings.render,
        Err(problems) => panic!("{problems}"),
    }
}

#[test]
fn the_proxy_reads_every_configuration_the_operator_writes() {
    for tls in [
        json!(null),
        json!({ "issuerName": "ca" }),
        json!({ "secretName": "mine" }),
    ] {
        for (reloads, open_metrics) in [(true, true), (true, false), (false, true)] {
            let node: SeiNode = serde_json::from_value(json!({
                "apiVersion": "sei.io/v1alpha1", "kind": "SeiNode",
                "metadata": { "name": "on", "namespace": "1e3", "uid": "u" },
                "spec": {
                    "chainId": "pacific-1", "image": "seid:1", "fullNode": {},
                    "sidecar": { "tls": tls },
                },
            }))
            .expect("a node");
            let mut platform = platform();
            platform.proxy.reloads = reloads;
            platform.proxy.open_metrics = open_metrics;
            let node = Node::read(&node).expect("a complete node");
            let written = proxy_config::config_map(&node, &platform);
            let text = &written.data.expect("data")[proxy_config::FILE];
            let (config, warnings) = load(text, Strictness::Refuse).expect(text);
            assert!(warnings.is_empty(), "{warnings:?} for {text}");
            let read = format!("{config:?}");
            for word in ["sei.io", "seinodetasks", "\"1e3\"", "\"on\""] {
                assert!(read.contains(word), "{word} is not in {read}");
            }
            platform.proxy.right = Right {
                resource: "seinodes".to_owned(),
                subresource: Some("sidecar".to_owned()),
            };
            let written = proxy_config::config_map(&node, &platform);
            let text = &written.data.expect("data")[proxy_config::FILE];
            let (config, warnings) = load(text, Strictness::Refuse).expect(text);
            assert!(warnings.is_empty(), "{warnings:?} for {text}");
            let read = format!("{config:?}");
            assert!(read.contains("\"sidecar\""), "{read}");
        }
    }
}
