//! What tells Prometheus about our metrics, where its operator's kinds are served.

use keelson_api::host::{CA_BUNDLE_CONFIG_MAP, CA_BUNDLE_KEY, METRICS_PATH, METRICS_SERVICE};
use serde_json::{Value, json};

use super::object::{Object, PROMETHEUS_RULE, SERVICE_MONITOR};
use super::{Certificates, HostInstall, metadata, metrics};

/// Where OpenShift's Prometheus finds the CA of service-ca.
const SERVICE_CA: &str = "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt";

const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Labels that say which pod answered; series are about hosts, and there is one exporter.
const DROPPED: &str = "instance|job|pod|container|endpoint";

/// Recording rules: the metric, and what it is summed by.
const SUMS: [(&str, &str); 3] = [
    ("kubernetes_nmstate_features_applied", "name"),
    ("kubernetes_nmstate_network_interfaces", "type"),
    ("kubernetes_nmstate_routes", "ip_stack, type"),
];

pub(super) fn objects(install: &HostInstall<'_>) -> Vec<Object> {
    let can = install.capabilities;
    let monitor = can.service_monitors.then(|| monitor(install));
    let rules = can.prometheus_rules.then(|| rules(install));
    [monitor, rules].into_iter().flatten().collect()
}

fn monitor(install: &HostInstall<'_>) -> Object {
    let mut metadata = metadata::owned(install, "controller-manager-metrics-monitor");
    let labels = metadata.labels.get_or_insert_default();
    labels.extend(metadata::scraped());
    let spec = json!({
        "endpoints": [{
            "bearerTokenFile": TOKEN,
            "metricRelabelings": [{"action": "labeldrop", "regex": DROPPED}],
            "path": METRICS_PATH,
            "port": metrics::PORT,
            "scheme": "https",
            "tlsConfig": trust(install),
        }],
        "namespaceSelector": {"matchNames": [install.namespace]},
        "selector": {"matchLabels": metadata::scraped()},
    });
    Object::written(SERVICE_MONITOR, metadata, spec)
}

/// The certificate is verified on every platform.
fn trust(install: &HostInstall<'_>) -> Value {
    let server = format!("{METRICS_SERVICE}.{}.svc", install.namespace);
    match install.certificates {
        Certificates::ServiceCa => json!({"caFile": SERVICE_CA, "serverName": server}),
        Certificates::Operator { .. } => json!({
            "ca": {"configMap": {"name": CA_BUNDLE_CONFIG_MAP, "key": CA_BUNDLE_KEY}},
            "serverName": server,
        }),
    }
}

fn rules(install: &HostInstall<'_>) -> Object {
    let sum = |(metric, by): (&str, &str)| {
        json!({
            "record": format!("cluster:{metric}:sum"),
            "expr": format!("sum by ({by}) ({metric})"),
        })
    };
    let rules: Vec<_> = SUMS.into_iter().map(sum).collect();
    let spec = json!({"groups": [{"name": "kubernetes-nmstate.rules", "rules": rules}]});
    let metadata = metadata::owned(install, "kubernetes-nmstate-prometheus-rules");
    Object::written(PROMETHEUS_RULE, metadata, spec)
}
