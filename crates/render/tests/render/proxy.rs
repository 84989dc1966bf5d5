//! The proxy in every TLS state: its configuration, its arguments, and what that does to the pod.

use keelson_api::SeiNode;
use keelson_render::platform::{Right, follows_files};
use keelson_render::{Node, Platform, proxy_config};
use serde_json::{Value, json};

use super::world::{container, original_proxy, platform, pod_of, tls_states, with};

fn config(object: &SeiNode, platform: &Platform) -> Value {
    let node = Node::read(object).expect("a node");
    let map = proxy_config::config_map(&node, platform);
    let text = &map.data.expect("data")["config.yaml"];
    serde_saphyr::from_str(text).expect("YAML")
}

fn arguments(object: &SeiNode, platform: &Platform) -> Vec<String> {
    let pod = pod_of(object, platform);
    container(&pod, "kube-rbac-proxy")
        .args
        .clone()
        .expect("arguments")
}

#[test]
fn a_caller_needs_the_right_to_the_tasks_of_this_node() {
    for platform in [platform(), original_proxy()] {
        let config = config(&with("sidecar", json!({})), &platform);
        assert_eq!(
            config["authorization"],
            json!({"resourceAttributes": {
                "apiGroup": "sei.io",
                "resource": "seinodetasks",
                "namespace": "chain",
                "name": "node-0",
            }})
        );
    }
}

#[test]
fn a_platform_may_ask_callers_for_another_right() {
    for mut platform in [platform(), original_proxy()] {
        platform.proxy.right = Right {
            resource: "seinodes".to_owned(),
            subresource: Some("sidecar".to_owned()),
        };
        let config = config(&with("sidecar", json!({})), &platform);
        assert_eq!(
            config["authorization"],
            json!({"resourceAttributes": {
                "apiGroup": "sei.io",
                "resource": "seinodes",
                "subresource": "sidecar",
                "namespace": "chain",
                "name": "node-0",
            }})
        );
    }
}

#[test]
fn the_mode_is_in_the_file_of_a_proxy_that_follows_it() {
    let files =
        json!({"mode": "required", "certFile": "/etc/tls/tls.crt", "keyFile": "/etc/tls/tls.key"});
    for (state, sidecar) in tls_states() {
        let expected = if state == "off" {
            json!({"mode": "off"})
        } else {
            files.clone()
        };
        let node = with("sidecar", sidecar);
        assert_eq!(config(&node, &platform())["tls"], expected, "{state}");
        assert_eq!(config(&node, &original_proxy()).get("tls"), None, "{state}");
    }
}

#[test]
fn a_name_that_is_a_number_or_a_truth_to_yaml_stays_a_name() {
    for name in ["on", "1e3", "null", "0x10"] {
        let mut node = with("sidecar", json!({}));
        node.metadata.name = Some(name.to_owned());
        let config = config(&node, &platform());
        assert_eq!(config["authorization"]["resourceAttributes"]["name"], name);
        assert_eq!(config["tls"]["mode"], "off");
    }
}

#[test]
fn the_metrics_are_open_unless_the_platform_says_otherwise() {
    let open = json!(["/v0/healthz", "/v0/startupz", "/v0/livez", "/v0/metrics"]);
    let node = with("sidecar", json!({}));
    let mut platform = platform();
    assert_eq!(config(&node, &platform)["paths"]["ignore"], open);
    platform.proxy.open_metrics = false;
    let closed = json!(["/v0/healthz", "/v0/startupz", "/v0/livez"]);
    assert_eq!(config(&node, &platform)["paths"]["ignore"], closed);
}

#[test]
fn our_proxy_is_told_ports_audiences_and_to_be_strict() {
    assert_eq!(
        arguments(&with("sidecar", json!({})), &platform()),
        [
            "--listen-address=0.0.0.0:8443",
            "--health-listen-address=0.0.0.0:8444",
            "--upstream=http://127.0.0.1:7777/",
            "--config-file=/etc/kube-rbac-proxy/config.yaml",
            "--strict-config",
            "--auth-header-fields-enabled=true",
            "--auth-token-audiences=keelson-sidecar/chain/node-0,https://kubernetes.default.svc",
            "--v=0",
        ]
    );
}

#[test]
fn tls_by_issuer_leaves_the_pod_of_our_proxy_as_it_is() {
    let [off, issuer, secret] =
        tls_states().map(|(_, it)| pod_of(&with("sidecar", it), &platform()));
    assert_eq!(off, issuer);
    assert_ne!(off, secret, "another Secret is another volume");
    let mut volumes = off.volumes.iter().flatten();
    let volume = volumes
        .find(|it| it.name == "sidecar-tls")
        .expect("a volume");
    let source = volume.secret.as_ref().expect("a Secret");
    assert_eq!(source.secret_name.as_deref(), Some("node-0-sidecar-tls"));
    assert_eq!(source.optional, Some(true));
}

#[test]
fn the_originals_proxy_gets_tls_as_flags_and_needs_its_secret() {
    let [off, issuer, _] = tls_states().map(|(_, it)| with("sidecar", it));
    let plain = arguments(&off, &original_proxy());
    let open = "--ignore-paths=/v0/healthz,/v0/startupz,/v0/livez,/v0/metrics";
    assert_eq!(
        plain,
        [
            "--insecure-listen-address=0.0.0.0:8443",
            "--upstream=http://127.0.0.1:7777/",
            "--config-file=/etc/kube-rbac-proxy/config.yaml",
            open,
            "--auth-header-fields-enabled=true",
            "--v=0",
        ]
    );
    let secure = arguments(&issuer, &original_proxy());
    assert_eq!(secure[0], "--secure-listen-address=0.0.0.0:8443");
    assert_eq!(secure[3], "--tls-cert-file=/etc/tls/tls.crt");
    assert_eq!(secure[4], "--tls-private-key-file=/etc/tls/tls.key");
    let text = |node| serde_json::to_string(&pod_of(node, &original_proxy())).expect("JSON");
    assert!(!text(&off).contains("sidecar-tls"));
    assert!(text(&issuer).contains(r#""secretName":"node-0-sidecar-tls"}"#));
}

#[test]
fn another_policy_is_another_pod_only_for_a_proxy_that_reads_it_once() {
    let node = with("sidecar", json!({}));
    let view = Node::read(&node).expect("a node");
    let annotations = |platform: &Platform| {
        let kind = keelson_render::pod::Kind::Node;
        let pod = keelson_render::pod::template(&view, platform, kind).expect("a pod");
        pod.metadata
            .expect("metadata")
            .annotations
            .expect("annotations")
    };
    assert!(!annotations(&platform()).contains_key("sei.io/proxy-config-hash"));
    let hash = &annotations(&original_proxy())["sei.io/proxy-config-hash"];
    assert_eq!(hash.len(), 64);
}

#[test]
fn whether_a_proxy_follows_its_files_is_known_by_its_name_or_said() {
    let ours = "registry.example:5000/a/keelson-proxy:1@sha256:00";
    let original = "quay.io/brancz/kube-rbac-proxy:v0.19.1";
    let other = "registry.example/mirror:keelson-proxy";
    let follows = |image, wish| follows_files(image, wish).ok();
    assert_eq!(follows(ours, None), Some(true));
    assert_eq!(follows(ours, Some(true)), Some(true));
    assert_eq!(follows(original, None), Some(false));
    assert_eq!(follows(original, Some(false)), Some(false));
    assert_eq!(follows(other, None), Some(false));
    assert_eq!(follows(other, Some(true)), Some(true));
    assert_eq!(follows(ours, Some(false)), None);
    let refused = follows_files(original, Some(true)).expect_err("a refusal");
    assert_eq!(
        refused.to_string(),
        "proxyReloads is true, but the image \"quay.io/brancz/kube-rbac-proxy:v0.19.1\" is \
         kube-rbac-proxy, for which it is false: leave proxyReloads out"
    );
}
