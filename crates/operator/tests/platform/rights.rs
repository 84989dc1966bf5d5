//! The table of rights, and what the API server makes of it.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use keelson_operator::platform::Account;
use keelson_operator::rights::{
    self, NAMESPACE, NEEDED, OPERATOR, PROXY, ROLES, Reach, SIDECAR_CLIENT,
};
use keelson_testbed::until;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::deployed::{OBJECTS, apply};
use crate::install::{SOON, account, attributes, installed, may, of, operator, until_may};

/// What is denied to the operator: group, resource, verb, namespace.
const DENIED: &[(&str, &str, &str, Option<&str>)] = &[
    ("", "secrets", "create", Some("default")),
    ("", "secrets", "update", Some("default")),
    ("", "secrets", "patch", Some("default")),
    ("", "secrets", "deletecollection", Some("default")),
    ("", "pods", "create", Some("default")),
    ("", "pods", "update", Some("default")),
    ("", "pods", "deletecollection", Some("default")),
    ("", "pods/exec", "create", Some("default")),
    ("", "pods/exec", "get", Some("default")),
    ("", "pods/ephemeralcontainers", "patch", Some("default")),
    ("", "pods/status", "patch", Some("default")),
    ("", "pods/portforward", "create", Some("default")),
    ("", "configmaps", "delete", Some("default")),
    ("", "configmaps", "update", Some("default")),
    ("", "persistentvolumeclaims", "delete", Some("default")),
    ("", "persistentvolumes", "patch", None),
    ("", "persistentvolumes", "delete", None),
    ("", "nodes", "get", None),
    ("", "nodes", "patch", None),
    ("", "events", "create", Some("default")),
    ("", "namespaces", "get", None),
    ("", "namespaces", "delete", None),
    ("", "serviceaccounts", "create", Some(NAMESPACE)),
    ("", "serviceaccounts", "impersonate", Some(NAMESPACE)),
    ("", "serviceaccounts/token", "create", None),
    ("", "serviceaccounts/token", "create", Some(NAMESPACE)),
    ("", "users", "impersonate", None),
    ("apps", "statefulsets", "delete", Some("default")),
    ("apps", "deployments", "create", Some("default")),
    ("apps", "deployments", "patch", Some(NAMESPACE)),
    ("apps", "daemonsets", "create", Some("default")),
    ("sei.io", "seinodes", "create", Some("default")),
    ("sei.io", "seinodes", "delete", Some("default")),
    ("sei.io", "seinodetasks", "create", Some("default")),
    ("cert-manager.io", "clusterissuers", "create", None),
    ("cert-manager.io", "issuers", "patch", Some("default")),
    (
        "coordination.k8s.io",
        "leases",
        "update",
        Some("kube-system"),
    ),
    ("coordination.k8s.io", "leases", "update", Some(NAMESPACE)),
    ("coordination.k8s.io", "leases", "delete", Some(NAMESPACE)),
    ("rbac.authorization.k8s.io", "clusterroles", "create", None),
    ("rbac.authorization.k8s.io", "clusterroles", "patch", None),
    ("rbac.authorization.k8s.io", "clusterroles", "bind", None),
    (
        "rbac.authorization.k8s.io",
        "clusterroles",
        "escalate",
        None,
    ),
    (
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        "delete",
        None,
    ),
    (
        "rbac.authorization.k8s.io",
        "rolebindings",
        "create",
        Some("default"),
    ),
    (
        "rbac.authorization.k8s.io",
        "roles",
        "create",
        Some(NAMESPACE),
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        "delete",
        None,
    ),
    ("authentication.k8s.io", "tokenreviews", "create", None),
];

#[tokio::test]
async fn the_operator_is_given_what_its_table_says() {
    let cluster = installed().await;
    let client = operator(cluster).await;
    let role = ROLES.iter().filter(|role| role.name.starts_with(OPERATOR));
    let asks: Vec<_> = role.flat_map(|role| rights::of(role, NAMESPACE)).collect();
    assert!(asks.len() > 60, "{}", asks.len());
    until_may(&client, of(&asks[asks.len() - 1])).await;
    for ask in &asks {
        assert!(may(&client, of(ask)).await, "{}", ask.refused());
    }
}

#[tokio::test]
async fn the_operator_is_given_nothing_else() {
    let cluster = installed().await;
    let client = operator(cluster).await;
    for (group, resource, verb, namespace) in DENIED {
        let attributes = attributes(group, resource, verb, *namespace);
        assert!(
            !may(&client, attributes).await,
            "{verb} {resource} {group} {namespace:?}"
        );
    }
}

/// One right as the API server tells it: verb, group, resource or path, name.
type Told = (String, String, String, String);

/// Everything a client may do in a namespace.
async fn told(client: &Client, namespace: &str) -> BTreeSet<Told> {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(namespace.to_owned()),
        },
        ..SelfSubjectRulesReview::default()
    };
    let api = Api::<SelfSubjectRulesReview>::all(client.clone());
    let review = api.create(&PostParams::default(), &review).await;
    let status = review.expect("an answer").status.expect("an answer");
    let mut told = BTreeSet::new();
    for rule in status.resource_rules {
        let names = rule.resource_names.filter(|names| !names.is_empty());
        let names = names.unwrap_or_else(|| vec![String::new()]);
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let rights = rule.verbs.iter().flat_map(|verb| {
                    let right = |name: &String| {
                        (verb.clone(), group.clone(), resource.clone(), name.clone())
                    };
                    names.iter().map(right)
                });
                told.extend(rights);
            }
        }
    }
    for rule in status.non_resource_rules {
        for path in rule.non_resource_urls.iter().flatten() {
            let right = |verb: &String| (verb.clone(), String::new(), path.clone(), String::new());
            told.extend(rule.verbs.iter().map(right));
        }
    }
    told
}

#[tokio::test]
async fn all_the_operator_may_do_is_its_table_and_what_any_account_may() {
    let cluster = installed().await;
    let nobody = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "nobody", "namespace": NAMESPACE},
    });
    apply(&cluster.client(), &nobody).await;
    let nobody = account(cluster, NAMESPACE, "nobody").await;
    let client = operator(cluster).await;
    for namespace in [NAMESPACE, "default"] {
        let roles = ROLES.iter().filter(|role| role.name.starts_with(OPERATOR));
        let here = roles.filter(|role| role.reach == Reach::Cluster || namespace == NAMESPACE);
        let asks = here.flat_map(|role| rights::of(role, NAMESPACE));
        let asks = asks.map(|ask| {
            let name = ask.name.unwrap_or_default();
            let (verb, group) = (ask.verb.to_owned(), ask.group.to_owned());
            (verb, group, ask.path.to_owned(), name)
        });
        let mut expected: BTreeSet<Told> = asks.collect();
        assert!(expected.len() > 60, "{}", expected.len());
        let any = told(&nobody, namespace).await;
        assert!(!any.is_empty() && any.is_disjoint(&expected), "{any:?}");
        expected.extend(any);
        // Bindings count some moments after they are written.
        until("what the table says", SOON, async || {
            let told = told(&client, namespace).await;
            let more: Vec<_> = told.difference(&expected).collect();
            let less: Vec<_> = expected.difference(&told).collect();
            let same = more.is_empty() && less.is_empty();
            same.then_some(())
                .ok_or_else(|| format!("in {namespace} more: {more:?}, less: {less:?}"))
        })
        .await
        .expect("nothing else");
    }
}

#[tokio::test]
async fn the_account_for_sidecars_is_good_for_sidecars_alone() {
    let cluster = installed().await;
    let client = account(cluster, NAMESPACE, SIDECAR_CLIENT).await;
    let task = |verb| attributes("sei.io", "seinodetasks", verb, Some("default"));
    for verb in ["get", "create", "delete"] {
        until_may(&client, task(verb)).await;
    }
    for verb in ["list", "watch", "patch", "update", "deletecollection"] {
        assert!(!may(&client, task(verb)).await, "{verb}");
    }
    for (group, resource) in [
        ("sei.io", "seinodes"),
        ("", "pods"),
        ("", "secrets"),
        ("", "configmaps"),
    ] {
        for verb in ["get", "list", "create", "delete"] {
            let attributes = attributes(group, resource, verb, Some("default"));
            assert!(!may(&client, attributes).await, "{verb} {resource}");
        }
    }
}

#[test]
fn no_right_is_said_twice_or_without_bounds() {
    for role in &ROLES {
        let mut seen = BTreeSet::new();
        for ask in rights::of(role, NAMESPACE) {
            let row = (
                ask.group,
                ask.resource,
                ask.subresource,
                ask.verb,
                ask.name.clone(),
            );
            assert!(
                ![ask.group, ask.resource, ask.verb].contains(&"*"),
                "{row:?}"
            );
            assert!(seen.insert(row.clone()), "{row:?}");
        }
    }
}

#[test]
fn a_right_that_is_missing_is_named_with_what_needs_it_and_what_to_do() {
    let client = |namespace: &str, name: &str| Account {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let asks = rights::asks(NAMESPACE, &client(NAMESPACE, SIDECAR_CLIENT));
    let told: Vec<_> = asks.iter().map(rights::Ask::refused).collect();
    for expected in [
        "the operator may not watch secrets in the whole cluster, which it needs to check keys and certificates; a policy limits delete to certificates it ordered: apply deploy/operator/roles.yaml and bindings.yaml (role keelson-operator)",
        "the operator may not patch seinodes/status of sei.io in the whole cluster, which it needs to say how nodes are: apply deploy/operator/roles.yaml and bindings.yaml (role keelson-operator)",
        "the operator may not create serviceaccounts/token named keelson-sidecar-client in namespace keelson-system, which it needs to call sidecars with a token that is good for nothing else: apply deploy/operator/roles.yaml and bindings.yaml (role keelson-operator)",
    ] {
        assert!(
            told.iter().any(|it| it == expected),
            "{expected}\n{told:#?}"
        );
    }
    let own = asks.iter().filter(|ask| ask.namespace.is_some()).count();
    assert_eq!(own, 4, "leases and the token");

    // A platform may have an account of its own for this.
    let elsewhere = rights::asks(NAMESPACE, &client("accounts", "caller"));
    let elsewhere: Vec<_> = elsewhere.iter().map(rights::Ask::refused).collect();
    let token =
        "the operator may not create serviceaccounts/token named caller in namespace accounts, ";
    let changed: Vec<_> = elsewhere.iter().filter(|it| !told.contains(it)).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert!(changed[0].starts_with(token), "{changed:?}");
}

#[test]
fn what_the_operator_needs_is_part_of_what_is_installed() {
    for needed in &NEEDED {
        let kind = match needed.reach {
            Reach::Cluster => "ClusterRole",
            Reach::Own => "Role",
        };
        let bound = OBJECTS.iter().any(|it| {
            it["kind"] == format!("{kind}Binding")
                && it["roleRef"]["kind"] == kind
                && it["roleRef"]["name"] == needed.name
                && it["subjects"][0]["name"] == OPERATOR
                && it["subjects"][0]["namespace"] == NAMESPACE
        });
        assert!(bound, "{kind} {}", needed.name);
    }
    let proxies = OBJECTS.iter().any(|it| it["roleRef"]["name"] == PROXY);
    assert!(
        !proxies,
        "which accounts proxies run as is not known to the install"
    );
}
