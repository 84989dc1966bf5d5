//! What the three accounts may do, as rules; what an API server makes of them is tested elsewhere.

use keelson_render::host::Object;
use serde_json::{Value, json};

use super::world::{find, openshift, plain, pod, rendered, spec, vanilla};

/// Names of the roles an account is bound to, with the roles.
fn roles<'a>(objects: &'a [Object], account: &str) -> Vec<&'a Value> {
    let bindings = objects.iter().filter(|it| {
        it.identity.kind.kind.ends_with("Binding") && it.value["subjects"][0]["name"] == account
    });
    bindings
        .map(|it| {
            let role = &it.value["roleRef"];
            let text = |field: &str| role[field].as_str().expect("a reference");
            let found = objects.iter().find(|role| {
                role.identity.kind.kind == text("kind")
                    && role.identity.name == text("name")
                    && role.identity.namespace == it.identity.namespace
            });
            &found.expect("a role").value
        })
        .collect()
}

fn resources(roles: &[&Value]) -> Vec<String> {
    let rules = roles
        .iter()
        .filter_map(|it| it["rules"].as_array())
        .flatten();
    let resources = rules.filter_map(|it| it["resources"].as_array()).flatten();
    resources
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_webhook_has_no_rights_and_no_token() {
    let asked = plain();
    for install in [vanilla(&asked), openshift(&asked)] {
        let objects = rendered(&install);
        assert!(roles(&objects, "nmstate-webhook").is_empty());
        let account = find(&objects, "ServiceAccount", "nmstate-webhook");
        assert_eq!(account["automountServiceAccountToken"], false);
        let pod = &pod(&objects, "nmstate-webhook")["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["serviceAccountName"], "nmstate-webhook");
    }
}

#[test]
fn metrics_reads_and_reviews() {
    let asked = plain();
    let objects = rendered(&openshift(&asked));
    let roles = roles(&objects, "nmstate-metrics");
    let mut found = resources(&roles);
    found.sort();
    let expected = [
        "nodenetworkconfigurationenactments",
        "nodenetworkconfigurationpolicies",
        "nodenetworkstates",
        "subjectaccessreviews",
        "tokenreviews",
    ];
    assert_eq!(found, expected);
    for rule in roles[0]["rules"].as_array().expect("rules") {
        let reads = rule["apiGroups"][0] == "nmstate.io";
        let verbs = if reads {
            json!(["get", "list", "watch"])
        } else {
            json!(["create"])
        };
        assert_eq!(rule["verbs"], verbs);
    }
}

#[test]
fn a_handler_has_no_secrets_and_no_webhook_configurations_and_only_reads_policies() {
    let asked = plain();
    for install in [vanilla(&asked), openshift(&asked)] {
        let objects = rendered(&install);
        let roles = roles(&objects, "nmstate-handler");
        assert_eq!(roles.len(), 3);
        let found = resources(&roles);
        for barred in [
            "secrets",
            "webhook",
            "reviews",
            "apiservers",
            "leases",
            "policies/",
        ] {
            assert!(
                !found.iter().any(|it| it.contains(barred)),
                "{barred}: {found:?}"
            );
        }
        let rules = roles
            .iter()
            .filter_map(|it| it["rules"].as_array())
            .flatten();
        for rule in rules {
            if rule["resources"] == json!(["nodenetworkconfigurationpolicies"]) {
                assert_eq!(rule["verbs"], json!(["get", "list", "watch"]));
            }
            if rule["resources"] == json!(["configmaps"]) {
                assert_eq!(rule["resourceNames"], json!(["nmstate-claims"]));
            }
            let verbs = rule["verbs"].to_string();
            assert!(
                !verbs.contains('*') && !verbs.contains("deletecollection"),
                "{rule}"
            );
        }
    }
}

#[test]
fn only_where_pods_need_a_security_context_constraints_may_a_handler_use_one() {
    let asked = plain();
    let uses = |install| {
        let objects = rendered(&install);
        let found = resources(&roles(&objects, "nmstate-handler"));
        found.iter().any(|it| it == "securitycontextconstraints")
    };
    assert!(uses(openshift(&asked)));
    assert!(!uses(vanilla(&asked)));
}

#[test]
fn nobody_but_the_operator_reads_the_clusters_profile() {
    let asked = plain();
    let objects = rendered(&openshift(&asked));
    for object in &objects {
        assert!(
            !object.value.to_string().contains("apiservers"),
            "{}",
            object.identity
        );
    }
}

#[test]
fn the_usual_scraper_may_find_and_read_metrics() {
    let asked = plain();
    for (install, namespace) in [
        (vanilla(&asked), "monitoring"),
        (openshift(&asked), "openshift-monitoring"),
    ] {
        let objects = rendered(&install);
        let binding = find(&objects, "ClusterRoleBinding", "nmstate-metrics-reader");
        let subject = json!([{
            "kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": namespace,
        }]);
        assert_eq!(binding["subjects"], subject);
        let role = find(&objects, "ClusterRole", "nmstate-metrics-reader");
        assert_eq!(
            role["rules"],
            json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])
        );
        assert_eq!(roles(&objects, "prometheus-k8s").len(), 2);
    }
}

#[test]
fn the_rule_against_dispatch_scripts_is_there_unless_the_nmstate_allows_them() {
    let said = |asked| {
        let asked = spec(asked);
        let objects = rendered(&vanilla(&asked));
        let rules = find(
            &objects,
            "ValidatingAdmissionPolicy",
            "nncp-validation-policy",
        );
        rules["spec"]["validations"]
            .to_string()
            .contains("dispatch")
    };
    assert!(said(json!({})));
    assert!(said(json!({"dispatchScripts": "Refused"})));
    assert!(!said(json!({"dispatchScripts": "Allowed"})));
}

#[test]
fn no_rule_asks_whether_a_policy_is_still_in_progress() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let rules = find(
        &objects,
        "ValidatingAdmissionPolicy",
        "nncp-validation-policy",
    );
    assert!(!rules.to_string().contains("status"));
}
