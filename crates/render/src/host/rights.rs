//! What each account may do, written once as rules and bindings.
//!
//! The webhook has no rights at all and is not in the table. Which objects of its kinds a handler may
//! write is not for roles to say; see [`admission`](super::admission).

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use keelson_api::host::{CLAIMS_CONFIG_MAP, HANDLER, METRICS, METRICS_PATH};
use keelson_api::names::NMSTATE_GROUP;

use super::object::Object;
use super::{HostInstall, metadata};

const POLICIES: &str = "nodenetworkconfigurationpolicies";
const STATES: &str = "nodenetworkstates";
const ENACTMENTS: &str = "nodenetworkconfigurationenactments";

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "update", "patch"];
const WRITE_AND_DELETE: &[&str] = &[
    "get", "list", "watch", "create", "update", "patch", "delete",
];
const WRITE_STATUS: &[&str] = &["get", "update", "patch"];
const REPORT: &[&str] = &["create", "patch"];

/// Account and role of the usual scraper, as the Prometheus operator's own manifests have it.
const SCRAPER: &str = "prometheus-k8s";

/// Role for whoever reads metrics.
const METRICS_READER: &str = "nmstate-metrics-reader";

/// Role whose rules are added to OpenShift's `cluster-reader`, where there is one.
const CLUSTER_READER: &str = "nmstate-cluster-reader";

const RBAC: &str = "rbac.authorization.k8s.io";

/// Namespace of events about objects that are in none.
const EVENTS_NAMESPACE: &str = "default";

pub(super) fn objects(install: &HostInstall<'_>) -> Vec<Object> {
    let here = install.namespace;
    let scraper = (SCRAPER, install.monitoring_namespace);
    [
        everywhere(install, HANDLER, (HANDLER, here), handler(install)),
        everywhere(install, METRICS, (METRICS, here), metrics()),
        everywhere(install, METRICS_READER, scraper, metrics_reader()),
        vec![cluster_reader(install)],
        inside(install, here, HANDLER, (HANDLER, here), claims()),
        inside(
            install,
            EVENTS_NAMESPACE,
            HANDLER,
            (HANDLER, here),
            events(),
        ),
        inside(install, here, SCRAPER, scraper, discovery()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Hosts report and read; the status of policies is the operator's.
fn handler(install: &HostInstall<'_>) -> Vec<PolicyRule> {
    let mut rules = vec![
        rule(NMSTATE_GROUP, &[STATES], WRITE),
        rule(NMSTATE_GROUP, &[ENACTMENTS], WRITE_AND_DELETE),
        rule(
            NMSTATE_GROUP,
            &[
                "nodenetworkstates/status",
                "nodenetworkconfigurationenactments/status",
            ],
            WRITE_STATUS,
        ),
        rule(NMSTATE_GROUP, &[POLICIES], READ),
        rule("", &["nodes"], READ),
        // Read after a change, to see that the API server is still reached.
        named("", "namespaces", EVENTS_NAMESPACE, &["get"]),
    ];
    if install.capabilities.security_constraints {
        let constraints = "securitycontextconstraints";
        rules.push(named(
            "security.openshift.io",
            constraints,
            "privileged",
            &["use"],
        ));
    }
    rules
}

fn metrics() -> Vec<PolicyRule> {
    vec![
        rule(NMSTATE_GROUP, &[POLICIES, STATES, ENACTMENTS], READ),
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule(
            "authorization.k8s.io",
            &["subjectaccessreviews"],
            &["create"],
        ),
    ]
}

/// The one object that handlers share. The operator makes it, so that none of them has to.
fn claims() -> Vec<PolicyRule> {
    let verbs = ["get", "list", "watch", "update", "patch"];
    vec![named("", "configmaps", CLAIMS_CONFIG_MAP, &verbs)]
}

fn events() -> Vec<PolicyRule> {
    vec![
        rule("", &["events"], REPORT),
        rule("events.k8s.io", &["events"], REPORT),
    ]
}

fn discovery() -> Vec<PolicyRule> {
    vec![
        rule("", &["services", "endpoints", "pods"], READ),
        rule("discovery.k8s.io", &["endpointslices"], READ),
    ]
}

fn metrics_reader() -> Vec<PolicyRule> {
    vec![PolicyRule {
        non_resource_urls: Some(vec![METRICS_PATH.to_owned()]),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    }]
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(texts(resources)),
        verbs: texts(verbs),
        ..PolicyRule::default()
    }
}

fn named(group: &str, resource: &str, name: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        resource_names: Some(vec![name.to_owned()]),
        ..rule(group, &[resource], verbs)
    }
}

/// A role in the whole cluster, given to one account.
fn everywhere(
    install: &HostInstall<'_>,
    name: &str,
    account: (&str, &str),
    rules: Vec<PolicyRule>,
) -> Vec<Object> {
    vec![
        Object::of(ClusterRole {
            metadata: metadata::cluster(install, name),
            rules: Some(rules),
            aggregation_rule: None,
        }),
        Object::of(ClusterRoleBinding {
            metadata: metadata::cluster(install, name),
            role_ref: refer("ClusterRole", name),
            subjects: Some(vec![subject(account)]),
        }),
    ]
}

/// A role in one namespace, given to one account.
fn inside(
    install: &HostInstall<'_>,
    namespace: &str,
    name: &str,
    account: (&str, &str),
    rules: Vec<PolicyRule>,
) -> Vec<Object> {
    vec![
        Object::of(Role {
            metadata: metadata::within(install, namespace, name),
            rules: Some(rules),
        }),
        Object::of(RoleBinding {
            metadata: metadata::within(install, namespace, name),
            role_ref: refer("Role", name),
            subjects: Some(vec![subject(account)]),
        }),
    ]
}

fn refer(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: RBAC.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

fn subject((name, namespace): (&str, &str)) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(namespace.to_owned()),
        api_group: None,
    }
}

/// Rules for whoever may read the cluster. Given to nobody: where no role gathers them they are idle.
fn cluster_reader(install: &HostInstall<'_>) -> Object {
    let mut metadata = metadata::cluster(install, CLUSTER_READER);
    metadata.labels.get_or_insert_default().insert(
        format!("{RBAC}/aggregate-to-cluster-reader"),
        "true".to_owned(),
    );
    let mut rules = vec![rule(NMSTATE_GROUP, &[POLICIES, STATES, ENACTMENTS], READ)];
    rules.extend(metrics_reader());
    Object::of(ClusterRole {
        metadata,
        rules: Some(rules),
        aggregation_rule: None,
    })
}
