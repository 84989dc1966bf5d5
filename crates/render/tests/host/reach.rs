//! Who reaches whom, and what is scraped.

use serde_json::{Value, json};

use super::world::{find, of_kind, openshift, plain, rendered, vanilla};

#[test]
fn webhook_and_metrics_are_closed_but_for_what_is_named() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let policy = |name| &find(&objects, "NetworkPolicy", name)["spec"];
    let deny = policy("default-deny-labelled-operand");
    assert_eq!(deny["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(
        deny["podSelector"]["matchLabels"],
        json!({"app": "kubernetes-nmstate"})
    );
    assert!(deny["ingress"].is_null() && deny["egress"].is_null());

    let webhook = &policy("allow-webhook-ingress")["ingress"][0];
    assert!(webhook["from"].is_null(), "API servers call from hosts");
    assert_eq!(webhook["ports"][0]["port"], 9443);
    let out: Vec<_> = of_kind(&objects, "NetworkPolicy")
        .into_iter()
        .filter(|it| !it.value["spec"]["egress"].is_null())
        .map(|it| &it.value["spec"]["podSelector"]["matchLabels"]["name"])
        .collect();
    assert_eq!(
        out,
        ["nmstate-metrics", "nmstate-metrics"],
        "the webhook calls nobody"
    );
}

#[test]
fn the_scraper_and_the_operator_reach_metrics_and_the_operator_alone_health() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let from = |name| &find(&objects, "NetworkPolicy", name)["spec"]["ingress"][0]["from"];
    let namespace = |peer: &Value| {
        peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"].clone()
    };
    let readers = from("allow-metrics-ingress");
    assert_eq!(namespace(&readers[0]), "monitoring");
    assert_eq!(namespace(&readers[1]), "keelson-system");
    for name in [
        "allow-webhook-ingress-health",
        "allow-metrics-ingress-health",
    ] {
        let peers = from(name).as_array().expect("peers");
        assert_eq!(peers.len(), 1);
        assert_eq!(namespace(&peers[0]), "keelson-system");
        assert!(!peers[0]["podSelector"].is_null());
    }
}

#[test]
fn metrics_reaches_the_api_server_at_the_ports_it_has() {
    let asked = plain();
    let mut install = vanilla(&asked);
    install.api_ports = &[443, 7443];
    let objects = rendered(&install);
    let policy = find(&objects, "NetworkPolicy", "allow-metrics-egress-api");
    let ports: Vec<_> = policy["spec"]["egress"][0]["ports"]
        .as_array()
        .expect("ports")
        .iter()
        .map(|it| it["port"].clone())
        .collect();
    assert_eq!(ports, [json!(443), json!(7443)]);
}

#[test]
fn monitoring_objects_are_there_where_their_kinds_are() {
    let asked = plain();
    let mut install = vanilla(&asked);
    let count = |install: &_, kind| of_kind(&rendered(install), kind).len();
    assert_eq!(count(&install, "ServiceMonitor"), 0);
    assert_eq!(count(&install, "PrometheusRule"), 0);
    install.capabilities.service_monitors = true;
    assert_eq!(count(&install, "ServiceMonitor"), 1);
    assert_eq!(count(&install, "PrometheusRule"), 0);
    install.capabilities.prometheus_rules = true;
    assert_eq!(count(&install, "PrometheusRule"), 1);
}

#[test]
fn a_scraper_verifies_the_certificate_on_every_platform() {
    let asked = plain();
    let mut plain = vanilla(&asked);
    plain.capabilities.service_monitors = true;
    for install in [plain, openshift(&asked)] {
        let objects = rendered(&install);
        let monitor = find(
            &objects,
            "ServiceMonitor",
            "controller-manager-metrics-monitor",
        );
        let tls = &monitor["spec"]["endpoints"][0]["tlsConfig"];
        assert!(tls["insecureSkipVerify"].is_null());
        let server = format!("nmstate-monitor.{}.svc", install.namespace);
        assert_eq!(tls["serverName"], server);
        if install.capabilities.openshift {
            assert!(
                tls["caFile"]
                    .as_str()
                    .is_some_and(|it| it.ends_with("service-ca.crt"))
            );
        } else {
            let name = tls["ca"]["configMap"]["name"]
                .as_str()
                .expect("a ConfigMap");
            assert!(find(&objects, "ConfigMap", name)["data"]["ca.crt"].is_string());
        }
    }
}

#[test]
fn the_namespace_lets_a_privileged_pod_in_and_is_scraped_on_openshift() {
    let asked = plain();
    for (install, scraped) in [(vanilla(&asked), false), (openshift(&asked), true)] {
        let objects = rendered(&install);
        let namespace = find(&objects, "Namespace", install.namespace);
        let labels = &namespace["metadata"]["labels"];
        assert_eq!(labels["pod-security.kubernetes.io/enforce"], "privileged");
        assert_eq!(labels["openshift.io/cluster-monitoring"] == "true", scraped);
    }
}
