//! What of the NMState's spec reaches which workload.

use serde_json::{Value, json};

use super::world::{container, find, plain, pod, rendered, spec, vanilla, variable};

#[test]
fn node_selector_and_tolerations_reach_the_handler_alone_and_replace_its_defaults() {
    let tolerations = json!([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}});
    let asked = spec(json!({
        "nodeSelector": {"pool": "hosts"}, "tolerations": tolerations, "affinity": affinity,
    }));
    let changed = rendered(&vanilla(&asked));
    let handler = &pod(&changed, "nmstate-handler")["spec"];
    assert_eq!(handler["nodeSelector"], json!({"pool": "hosts"}));
    assert_eq!(handler["tolerations"], tolerations);
    assert_eq!(handler["affinity"], affinity);

    let default = plain();
    let before = rendered(&vanilla(&default));
    for name in ["nmstate-webhook", "nmstate-metrics"] {
        assert_eq!(pod(&changed, name), pod(&before, name));
    }
    let handler = &pod(&before, "nmstate-handler")["spec"];
    assert_eq!(
        handler["nodeSelector"],
        json!({"kubernetes.io/os": "linux"})
    );
    assert_eq!(handler["tolerations"], json!([{"operator": "Exists"}]));
}

#[test]
fn the_infra_fields_reach_webhook_and_metrics_alone() {
    let tolerations = json!([{"key": "infra", "operator": "Exists"}]);
    let affinity = json!({"podAntiAffinity": {}});
    let asked = spec(json!({
        "infraNodeSelector": {"pool": "infra"},
        "infraTolerations": tolerations,
        "infraAffinity": affinity,
    }));
    let changed = rendered(&vanilla(&asked));
    for name in ["nmstate-webhook", "nmstate-metrics"] {
        let pod = &pod(&changed, name)["spec"];
        assert_eq!(pod["nodeSelector"], json!({"pool": "infra"}), "{name}");
        assert_eq!(pod["tolerations"], tolerations, "{name}");
        assert_eq!(pod["affinity"], affinity, "{name}");
    }
    let default = plain();
    let before = rendered(&vanilla(&default));
    assert_eq!(
        pod(&changed, "nmstate-handler"),
        pod(&before, "nmstate-handler")
    );
    let webhook = &pod(&before, "nmstate-webhook")["spec"];
    assert_eq!(
        webhook["nodeSelector"],
        json!({"kubernetes.io/os": "linux"})
    );
    assert_eq!(webhook["tolerations"].as_array().map(Vec::len), Some(2));
    let preferred =
        &webhook["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        (&preferred[0]["weight"], &preferred[1]["weight"]),
        (&json!(10), &json!(1))
    );
}

#[test]
fn what_an_nmstate_says_of_probes_reaches_the_handler_as_literal_values() {
    let names = [
        "PROBE_DNS_HOST",
        "PROBE_DNS_SERVERS",
        "PROBE_GATEWAYS",
        "PROBE_TIMEOUT_SECONDS",
        "CHECKPOINT_TIMEOUT_SECONDS",
    ];
    let said = |asked: Value| {
        let asked = spec(asked);
        let objects = rendered(&vanilla(&asked));
        names.map(|name| {
            let variable = variable(&objects, "nmstate-handler", name);
            variable.expect("a variable")["value"].clone()
        })
    };
    assert_eq!(said(json!({})), ["root-servers.net", "", "", "120", "240"]);
    let asked = json!({"probeConfiguration": {
        "timeoutSeconds": 30,
        "checkpointSeconds": 60,
        "dns": {"host": "resolver.example", "servers": ["192.0.2.53", "2001:db8::53"]},
        "gateway": {"addresses": ["192.0.2.1"]},
    }});
    let expected = [
        "resolver.example",
        "192.0.2.53,2001:db8::53",
        "192.0.2.1",
        "30",
        "60",
    ];
    assert_eq!(said(asked), expected);
}

#[test]
fn only_a_debugging_handler_is_told_to_log_more() {
    let arguments = |level| {
        let asked = spec(level);
        container(&rendered(&vanilla(&asked)), "nmstate-handler")["args"].clone()
    };
    assert_eq!(
        arguments(json!({"logLevel": "debug"})),
        json!(["handler", "--v", "debug"])
    );
    assert_eq!(arguments(json!({"logLevel": "info"})), json!(["handler"]));
    assert_eq!(arguments(json!({})), json!(["handler"]));
}

#[test]
fn one_webhook_may_be_away_and_of_two_one_stays() {
    let asked = plain();
    for (replicas, stay) in [(1, 0), (2, 1)] {
        let mut install = vanilla(&asked);
        install.webhook_replicas = replicas;
        let objects = rendered(&install);
        let budget = find(&objects, "PodDisruptionBudget", "nmstate-webhook");
        assert_eq!(budget["spec"]["minAvailable"], stay);
        let webhook = find(&objects, "Deployment", "nmstate-webhook");
        assert_eq!(webhook["spec"]["replicas"], replicas);
    }
}

#[test]
fn metrics_are_served_where_the_nmstate_says_and_else_at_8443() {
    let port = |asked| {
        let asked = spec(asked);
        let objects = rendered(&vanilla(&asked));
        let address = variable(&objects, "nmstate-metrics", "METRICS_BIND_ADDRESS");
        let address = address.map(|it| it["value"].clone());
        let port = container(&objects, "nmstate-metrics")["ports"][0]["containerPort"].clone();
        let policy = find(&objects, "NetworkPolicy", "allow-metrics-ingress");
        assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], port);
        let service = find(&objects, "Service", "nmstate-monitor");
        assert_eq!(service["spec"]["ports"][0]["port"], 8443);
        assert_eq!(service["spec"]["ports"][0]["targetPort"], "metrics");
        (address, port)
    };
    let expected = |address: &str, port: u16| (Some(json!(address)), json!(port));
    assert_eq!(port(json!({})), expected(":8443", 8443));
    let default = json!({"metricsConfiguration": {"bindAddress": ":8089"}});
    assert_eq!(port(default), expected(":8443", 8443));
    let other = json!({"metricsConfiguration": {"bindAddress": "0.0.0.0:9000"}});
    assert_eq!(port(other), expected("0.0.0.0:9000", 9000));
}

#[test]
fn who_reads_metrics_is_checked_unless_the_nmstate_says_otherwise() {
    let auth = |asked| {
        let asked = spec(asked);
        let objects = rendered(&vanilla(&asked));
        variable(&objects, "nmstate-metrics", "METRICS_AUTH").map(|it| it["value"].clone())
    };
    assert_eq!(auth(json!({})), Some(json!("TokenReview")));
    assert_eq!(
        auth(json!({"metrics": {"auth": "None"}})),
        Some(json!("None"))
    );
}
