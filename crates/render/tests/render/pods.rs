//! Both kinds of pod: who runs, how large, how probed, and for how long it may end.

use keelson_render::{Node, bootstrap, stateful_set};
use serde_json::json;

use super::world::{
    MODES, bootstrap_pod_of, container, containers, node, platform, pod_of, variable, with,
};

fn both() -> Vec<(String, k8s_openapi::api::core::v1::PodSpec)> {
    let mut pods = Vec::new();
    for mode in MODES {
        pods.push((mode.to_owned(), pod_of(&node(mode), &platform())));
        if mode != "archive" {
            let pod = bootstrap_pod_of(&node(mode), &platform());
            pods.push((format!("bootstrap of {mode}"), pod));
        }
    }
    pods
}

#[test]
fn every_container_is_confined_and_asks_for_the_memory_it_may_take() {
    for (name, pod) in both() {
        for it in containers(&pod) {
            let at = format!("{name}: {}", it.name);
            let resources = it.resources.as_ref().expect("resources");
            let limit = &resources.limits.as_ref().expect("limits")["memory"];
            let request = &resources.requests.as_ref().expect("requests")["memory"];
            assert_eq!(limit, request, "{at}");
            let security = it.security_context.as_ref().expect("a security context");
            assert_eq!(security.run_as_non_root, Some(true), "{at}");
            assert_eq!(security.allow_privilege_escalation, Some(false), "{at}");
            let sealed = security.read_only_root_filesystem == Some(true);
            assert_eq!(sealed, !it.name.starts_with("seid"), "{at}");
        }
        let security = pod.security_context.as_ref().expect("a security context");
        assert_eq!(security.fs_group, Some(65532), "{name}");
        assert_eq!(pod.share_process_namespace, Some(true), "{name}");
        assert_eq!(pod.termination_grace_period_seconds, Some(300), "{name}");
    }
}

#[test]
fn a_sidecar_is_told_of_another_s3_server_and_gets_its_keys_from_a_secret() {
    let mut other = platform();
    other.object_store.endpoint = Some("http://s3.storage.svc:7070".to_owned());
    other.object_store.secret = Some("bucket-keys".to_owned());
    let told = |pod: &k8s_openapi::api::core::v1::PodSpec, name: &str| {
        let in_one = |it: &k8s_openapi::api::core::v1::Container| {
            let found = it.env.iter().flatten().find(|it| it.name == name)?;
            Some((it.name.clone(), found.clone()))
        };
        let all: Vec<_> = containers(pod).into_iter().filter_map(in_one).collect();
        all
    };
    for pod in [
        pod_of(&node("fullNode"), &other),
        bootstrap_pod_of(&node("fullNode"), &other),
    ] {
        let endpoint = told(&pod, "SEI_OBJECT_STORE_ENDPOINT");
        let [(at, endpoint)] = endpoint.as_slice() else {
            panic!("{endpoint:?}")
        };
        assert_eq!(at, "sei-sidecar");
        assert_eq!(
            endpoint.value.as_deref(),
            Some("http://s3.storage.svc:7070")
        );
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
            let keys = told(&pod, name);
            let [(at, key)] = keys.as_slice() else {
                panic!("{keys:?}")
            };
            assert_eq!(at, "sei-sidecar");
            let from = key.value_from.as_ref().expect("no value of its own");
            let from = from.secret_key_ref.as_ref().expect("a Secret");
            assert_eq!(
                (from.name.as_str(), from.key.as_str()),
                ("bucket-keys", name)
            );
        }
    }
    let pod = pod_of(&node("fullNode"), &platform());
    assert!(told(&pod, "SEI_OBJECT_STORE_ENDPOINT").is_empty());
    assert!(told(&pod, "AWS_ACCESS_KEY_ID").is_empty());
}

#[test]
fn sizes_and_machines_are_those_of_the_role_in_both_kinds_of_pod() {
    for (name, pod) in both() {
        let archive = name == "archive";
        let (memory, pool) = match archive {
            true => ("448Gi", "sei-archive"),
            false => ("32Gi", "sei-node"),
        };
        let seid = container(&pod, "seid")
            .resources
            .as_ref()
            .expect("resources");
        let limits = seid.limits.as_ref().expect("limits");
        assert_eq!(limits["memory"].0, memory, "{name}");
        let tolerations = pod.tolerations.as_ref().expect("tolerations");
        assert_eq!(tolerations[0].value.as_deref(), Some(pool), "{name}");
        let affinity = serde_json::to_string(&pod.affinity).expect("JSON");
        assert!(
            affinity.contains(&format!("[\"{pool}\"]")),
            "{name}: {affinity}"
        );
    }
}

#[test]
fn no_size_is_written_into_the_program() {
    let mut platform = platform();
    let size = keelson_render::platform::Size {
        cpu: k8s_openapi::apimachinery::pkg::api::resource::Quantity("7".to_owned()),
        memory: k8s_openapi::apimachinery::pkg::api::resource::Quantity("7Gi".to_owned()),
    };
    platform.default.size = size.clone();
    platform.sidecar.size = size.clone();
    platform.exporter.size = size.clone();
    platform.proxy.program.size = size;
    for it in containers(&pod_of(&node("fullNode"), &platform)) {
        let resources = serde_json::to_value(&it.resources).expect("a value");
        let expected =
            json!({"limits": {"memory": "7Gi"}, "requests": {"cpu": "7", "memory": "7Gi"}});
        assert_eq!(resources, expected, "{}", it.name);
    }
}

#[test]
fn nothing_probes_the_proxys_port_and_the_sidecar_is_asked_from_inside() {
    for (name, pod) in both() {
        let mut found = Vec::new();
        for it in containers(&pod) {
            for (kind, probe) in [
                ("startup", &it.startup_probe),
                ("liveness", &it.liveness_probe),
                ("readiness", &it.readiness_probe),
            ] {
                let Some(probe) = probe else { continue };
                let probe = serde_json::to_value(probe).expect("a value");
                assert_ne!(probe["httpGet"]["port"], 8443, "{name}");
                assert_eq!(probe.get("tcpSocket"), None, "{name}");
                let asked = match probe.get("exec") {
                    Some(exec) => exec["command"][2].as_str().expect("a word").to_owned(),
                    None => format!("{}", probe["httpGet"]["port"]),
                };
                found.push(format!("{} {kind} {asked}", it.name));
            }
        }
        let mut expected = vec![
            "sei-sidecar liveness livez",
            "sei-sidecar readiness healthz",
            "kube-rbac-proxy startup 8444",
            "kube-rbac-proxy liveness 8444",
        ];
        if !name.starts_with("bootstrap") {
            expected.push("seid readiness 26657");
        }
        assert_eq!(found, expected, "{name}");
        let liveness = container(&pod, "sei-sidecar").liveness_probe.as_ref();
        let grace = liveness.expect("a probe").termination_grace_period_seconds;
        assert!(grace.expect("a grace") < 30, "{name}");
    }
}

#[test]
fn sidecar_and_proxy_start_before_the_node_and_stay_and_the_exporter_does_not_hold_it_up() {
    for (name, pod) in both() {
        let init: Vec<_> = pod.init_containers.iter().flatten().collect();
        let order: Vec<_> = init
            .iter()
            .map(|it| (it.name.as_str(), it.restart_policy.as_deref()))
            .collect();
        let expected = [
            ("seid-init", None),
            ("sei-sidecar", Some("Always")),
            ("kube-rbac-proxy", Some("Always")),
        ];
        assert_eq!(order, expected, "{name}");
        let main: Vec<_> = pod.containers.iter().map(|it| it.name.as_str()).collect();
        match name.starts_with("bootstrap") {
            true => assert_eq!(main, ["seid"], "{name}"),
            false => assert_eq!(main, ["seid", "cosmos-exporter"], "{name}"),
        }
    }
}

#[test]
fn the_sidecar_is_told_what_pod_it_is_in() {
    for (name, pod) in both() {
        let sidecar = container(&pod, "sei-sidecar");
        let told = |name| variable(sidecar, name);
        let kind = if name.starts_with("bootstrap") {
            "bootstrap"
        } else {
            "node"
        };
        assert_eq!(told("KEELSON_POD_KIND"), Some(kind), "{name}");
        assert_eq!(
            told("KEELSON_NODE_UID"),
            node("fullNode").metadata.uid.as_deref()
        );
        assert_eq!(told("KEELSON_START_FINGERPRINT").map(str::len), Some(64));
        assert_eq!(told("SEI_SIDECAR_AUTHN_MODE"), Some("trusted-header"));
        for required in [
            "SEI_CHAIN_ID",
            "SEI_GENESIS_BUCKET",
            "SEI_GENESIS_REGION",
            "SEI_SNAPSHOT_BUCKET",
            "SEI_SNAPSHOT_REGION",
        ] {
            assert!(
                told(required).is_some_and(|it| !it.is_empty()),
                "{required}"
            );
        }
    }
}

#[test]
fn what_the_node_wishes_for_its_sidecar_is_what_it_gets() {
    let sidecar =
        json!({"image": "own:2", "port": 7000, "resources": {"limits": {"memory": "1Gi"}}});
    let pod = pod_of(&with("sidecar", sidecar), &platform());
    let sidecar = container(&pod, "sei-sidecar");
    assert_eq!(sidecar.image.as_deref(), Some("own:2"));
    assert_eq!(variable(sidecar, "SEI_SIDECAR_PORT"), Some("7000"));
    assert_eq!(
        sidecar.ports.as_ref().expect("ports")[0].container_port,
        7000
    );
    let resources = serde_json::to_value(&sidecar.resources).expect("a value");
    assert_eq!(resources, json!({"limits": {"memory": "1Gi"}}));
    let proxy = container(&pod, "kube-rbac-proxy")
        .args
        .as_ref()
        .expect("arguments");
    assert!(proxy.contains(&"--upstream=http://127.0.0.1:7000/".to_owned()));
    let script = &container(&pod, "seid").command.as_ref().expect("a command")[2];
    assert!(script.contains("/dev/tcp/127.0.0.1/7000"));
}

#[test]
fn our_labels_win_and_only_the_nodes_name_selects() {
    let object = node("validator");
    let view = Node::read(&object).expect("a node");
    let set = stateful_set::stateful_set(&view, &platform()).expect("a StatefulSet");
    let labels = json!({
        "sei.io/chain": "atlantic-2",
        "sei.io/node": "node-0",
        "sei.io/role": "validator",
        "team": "rpc",
    });
    let set = serde_json::to_value(set).expect("a value");
    assert_eq!(set["metadata"]["labels"], labels);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(
        set["spec"]["selector"],
        json!({"matchLabels": {"sei.io/node": "node-0"}})
    );
    assert_eq!(set["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
}

#[test]
fn a_bootstrap_pod_is_called_by_the_nodes_name_and_has_no_label_a_fleet_selects_by() {
    let object = node("fullNode");
    let view = Node::read(&object).expect("a node");
    let job = bootstrap::job(&view, &platform()).expect("a Job");
    let job = serde_json::to_value(job).expect("a value");
    let pod = &job["spec"]["template"];
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"sei.io/node": "node-0", "sei.io/component": "bootstrap"})
    );
    assert_eq!(pod["spec"]["hostname"], "node-0-0");
    assert_eq!(pod["spec"]["subdomain"], "node-0");
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(
        pod["spec"]["containers"][0]["image"],
        "registry.example/seid:v5.9.0"
    );
}
