//! The three accounts, each as itself: what it may, and what it may not.

use crate::install::{account, attributes, may, until_may};
use crate::stage::{NAMESPACE, installed};

/// Group, resource, verb, namespace.
type Ask = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

const NMSTATE: &str = "nmstate.io";
const STATES: &str = "nodenetworkstates";
const ENACTMENTS: &str = "nodenetworkconfigurationenactments";
const POLICIES: &str = "nodenetworkconfigurationpolicies";
const HERE: Option<&str> = Some(NAMESPACE);

/// Denied to all three.
const NOBODY: &[Ask] = &[
    ("", "secrets", "get", HERE),
    ("", "secrets", "list", HERE),
    ("", "secrets", "list", None),
    ("", "secrets", "create", HERE),
    ("", "configmaps", "get", HERE),
    ("", "configmaps", "list", HERE),
    ("", "configmaps", "create", HERE),
    ("", "configmaps", "patch", HERE),
    ("", "pods", "list", HERE),
    ("", "pods", "create", HERE),
    ("", "pods/exec", "create", HERE),
    ("", "nodes", "patch", None),
    ("", "nodes/proxy", "get", None),
    ("", "namespaces", "list", None),
    ("", "namespaces", "get", None),
    ("", "serviceaccounts/token", "create", HERE),
    ("", "users", "impersonate", None),
    ("apps", "deployments", "patch", HERE),
    ("apps", "daemonsets", "patch", HERE),
    (NMSTATE, POLICIES, "create", None),
    (NMSTATE, POLICIES, "update", None),
    (NMSTATE, POLICIES, "patch", None),
    (NMSTATE, POLICIES, "delete", None),
    (
        NMSTATE,
        "nodenetworkconfigurationpolicies/status",
        "update",
        None,
    ),
    (
        NMSTATE,
        "nodenetworkconfigurationpolicies/status",
        "patch",
        None,
    ),
    (NMSTATE, STATES, "delete", None),
    (NMSTATE, STATES, "deletecollection", None),
    (NMSTATE, ENACTMENTS, "deletecollection", None),
    (NMSTATE, "nmstates", "get", None),
    (NMSTATE, "nmstates", "patch", None),
    ("config.openshift.io", "apiservers", "get", None),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        "get",
        None,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        "update",
        None,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        "get",
        None,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        "patch",
        None,
    ),
    ("rbac.authorization.k8s.io", "clusterroles", "bind", None),
    (
        "rbac.authorization.k8s.io",
        "clusterroles",
        "escalate",
        None,
    ),
    ("rbac.authorization.k8s.io", "rolebindings", "create", HERE),
    (
        "coordination.k8s.io",
        "leases",
        "update",
        Some("kube-system"),
    ),
    ("coordination.k8s.io", "leases", "get", HERE),
    ("coordination.k8s.io", "leases", "create", HERE),
    ("coordination.k8s.io", "leases", "update", HERE),
    ("coordination.k8s.io", "leases", "delete", HERE),
];

const REVIEWS: &[Ask] = &[
    ("authentication.k8s.io", "tokenreviews", "create", None),
    (
        "authorization.k8s.io",
        "subjectaccessreviews",
        "create",
        None,
    ),
];

const READS: &[Ask] = &[
    (NMSTATE, STATES, "get", None),
    (NMSTATE, STATES, "list", None),
    (NMSTATE, STATES, "watch", None),
    (NMSTATE, ENACTMENTS, "get", None),
    (NMSTATE, ENACTMENTS, "list", None),
    (NMSTATE, ENACTMENTS, "watch", None),
    (NMSTATE, POLICIES, "get", None),
    (NMSTATE, POLICIES, "list", None),
    (NMSTATE, POLICIES, "watch", None),
];

const WRITES: &[Ask] = &[
    (NMSTATE, STATES, "create", None),
    (NMSTATE, STATES, "update", None),
    (NMSTATE, STATES, "patch", None),
    (NMSTATE, "nodenetworkstates/status", "update", None),
    (NMSTATE, "nodenetworkstates/status", "patch", None),
    (NMSTATE, ENACTMENTS, "create", None),
    (NMSTATE, ENACTMENTS, "update", None),
    (NMSTATE, ENACTMENTS, "patch", None),
    (NMSTATE, ENACTMENTS, "delete", None),
    (
        NMSTATE,
        "nodenetworkconfigurationenactments/status",
        "update",
        None,
    ),
    (
        NMSTATE,
        "nodenetworkconfigurationenactments/status",
        "patch",
        None,
    ),
    ("", "nodes", "get", None),
    ("", "nodes", "list", None),
    ("", "nodes", "watch", None),
    ("", "events", "create", Some("default")),
    ("", "events", "patch", Some("default")),
    ("events.k8s.io", "events", "create", Some("default")),
];

/// Asks as an account: the first lists are allowed, the second denied.
async fn holds(name: &str, allowed: &[&[Ask]], denied: &[&[Ask]]) {
    let stage = installed().await;
    let client = account(stage.cluster, NAMESPACE, name).await;
    let question =
        |(group, resource, verb, namespace): &Ask| attributes(group, resource, verb, *namespace);
    // Roles count some moments after they are written.
    if let Some(ask) = allowed.last().and_then(|asks| asks.last()) {
        until_may(&client, question(ask)).await;
    }
    let mut wrong = Vec::new();
    for (asks, expected) in [(allowed, true), (denied, false)] {
        for ask in asks.iter().copied().flatten() {
            if may(&client, question(ask)).await != expected {
                wrong.push(format!("{ask:?} is not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_webhooks_account_may_nothing() {
    holds("nmstate-webhook", &[], &[NOBODY, REVIEWS, READS, WRITES]).await;
}

#[tokio::test]
async fn the_account_of_metrics_may_read_and_review_and_nothing_else() {
    holds("nmstate-metrics", &[READS, REVIEWS], &[NOBODY, WRITES]).await;
}

#[tokio::test]
async fn the_handlers_account_may_report_about_hosts_and_nothing_else() {
    holds("nmstate-handler", &[READS, WRITES], &[NOBODY, REVIEWS]).await;
}

#[tokio::test]
async fn the_handlers_account_may_read_the_namespace_it_probes_with_and_no_other() {
    let stage = installed().await;
    let client = account(stage.cluster, NAMESPACE, "nmstate-handler").await;
    let namespace = |name: &str| {
        let mut question = attributes("", "namespaces", "get", Some(name));
        question.name = Some(name.to_owned());
        question
    };
    until_may(&client, namespace("default")).await;
    assert!(!may(&client, namespace("kube-system")).await);
}
