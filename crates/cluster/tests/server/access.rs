//! Whether we may do what we will do, by a ServiceAccount that may do little.

use crate::stage::{DEADLINE, Stage};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use keelson_cluster::{Rule, connect, missing};
use keelson_testbed::faults::{Fault, On};
use keelson_testbed::until;
use serde_json::{from_value, json};

fn rule(resource: &'static str, verb: &'static str, namespace: &str) -> Rule {
    Rule {
        group: "",
        resource,
        verb,
        name: None,
        namespace: Some(namespace.to_owned()),
    }
}

#[tokio::test]
async fn what_is_not_granted_is_named_and_what_is_granted_is_not() {
    let stage = Stage::new("access").await;
    let (calls, namespace) = (stage.calls(), stage.name());
    let meta = json!({ "name": "caller", "namespace": namespace });
    let account: ServiceAccount = from_value(json!({ "metadata": meta })).expect("an account");
    calls.create(&account).await.expect("an answer");
    let role: Role = from_value(json!({
        "metadata": meta,
        "rules": [
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"] },
            { "apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"] },
        ],
    }))
    .expect("a role");
    calls.create(&role).await.expect("an answer");
    let binding: RoleBinding = from_value(json!({
        "metadata": meta,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "caller" },
        "subjects": [{ "kind": "ServiceAccount", "name": "caller", "namespace": namespace }],
    }))
    .expect("a binding");
    calls.create(&binding).await.expect("an answer");
    let (token, _) = calls
        .token(namespace, "caller", &[], 600)
        .await
        .expect("a token");
    let mut config = stage.faults.config();
    config.auth_info.token = Some(token.into());
    let client = connect(config).expect("a client");
    let granted = [
        rule("pods", "list", namespace),
        rule("pods", "watch", namespace),
        rule("pods/status", "patch", namespace),
    ];
    // The authorizer learns of a new role by a watch of its own.
    let look = async || match missing(client.clone(), &granted).await {
        Ok(none) if none.is_empty() => Ok(()),
        other => Err(format!("{other:?}")),
    };
    until("the role in force", DEADLINE, look)
        .await
        .expect("in time");
    let asked = [
        rule("pods", "list", namespace),
        rule("pods", "delete", namespace),
        rule("secrets", "list", namespace),
        rule("secrets", "watch", namespace),
        rule("services/status", "patch", namespace),
        Rule {
            group: "apps",
            resource: "statefulsets",
            verb: "watch",
            name: None,
            namespace: None,
        },
    ];
    let said = missing(client.clone(), &asked).await.expect("answers");
    let expected = [
        format!("may not delete pods in namespace {namespace}: "),
        format!("may not list, watch secrets in namespace {namespace}: "),
        format!("may not patch services/status in namespace {namespace}: "),
        "may not watch statefulsets.apps: add watch on statefulsets of the API group apps to the \
         ClusterRole bound to this ServiceAccount"
            .to_owned(),
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (sentence, start) in said.iter().zip(&expected) {
        assert!(sentence.starts_with(start), "{sentence}");
    }
    let _rule = stage.faults.inject(Fault::Unavailable, On::every());
    let error = missing(client, &asked).await.expect_err("no answers");
    assert!(
        error
            .to_string()
            .contains("asking whether we may list pods"),
        "{error}"
    );
}
