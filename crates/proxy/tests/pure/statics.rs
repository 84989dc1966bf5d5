//! Static rules (§1.4, deviation A6), and what is said about a check.

use keelson_proxy::attributes::{Check, Object, RuleGroups, allowed_statically};
use keelson_proxy::config::Attributes;
use keelson_proxy::review::Identity;

use super::checks::authorization;

fn on_path(verb: &'static str, path: &str) -> Check {
    Check {
        verb: verb.into(),
        object: Object::Path(path.into()),
    }
}

fn on_resource(verb: &'static str, resource: &str) -> Check {
    let resource = resource.to_owned();
    Check {
        verb: verb.into(),
        object: Object::Resource(Attributes {
            resource,
            ..Attributes::default()
        }),
    }
}

fn user(name: &str, groups: &[&str]) -> Identity {
    Identity {
        user: name.into(),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..Identity::default()
    }
}

#[test]
fn a_static_rule_allows_what_it_names() {
    let anyone = user("u", &[]);
    for (rule, check, caller, allowed) in [
        (
            "{path: /metrics}",
            on_path("get", "/metrics"),
            &anyone,
            true,
        ),
        (
            "{path: /metrics}",
            on_path("create", "/metrics"),
            &anyone,
            true,
        ),
        ("{path: /metrics}", on_path("get", "/api"), &anyone, false),
        (
            "{path: /metrics}",
            on_path("get", "/metrics/x"),
            &anyone,
            false,
        ),
        (
            "{path: /metrics, verb: get}",
            on_path("get", "/metrics"),
            &anyone,
            true,
        ),
        (
            "{path: /metrics, verb: get}",
            on_path("create", "/metrics"),
            &anyone,
            false,
        ),
        (
            "{path: /metrics, resourceRequest: false}",
            on_resource("get", "x"),
            &anyone,
            false,
        ),
        (
            "{path: /metrics, namespace: n}",
            on_path("get", "/metrics"),
            &anyone,
            false,
        ),
        (
            "{resource: namespaces, verb: get, resourceRequest: true}",
            on_resource("get", "namespaces"),
            &anyone,
            true,
        ),
        (
            "{resource: namespaces, verb: get, resourceRequest: true}",
            on_resource("get", "namespaces"),
            &user("", &[]),
            true,
        ),
        (
            "{resource: namespaces, verb: get, resourceRequest: true}",
            on_resource("get", "services"),
            &anyone,
            false,
        ),
        (
            "{resource: namespaces, resourceRequest: true}",
            on_path("get", "/"),
            &anyone,
            false,
        ),
        (
            "{user: {name: u}, resourceRequest: true}",
            on_resource("get", "x"),
            &anyone,
            true,
        ),
        (
            "{user: {name: v}, resourceRequest: true}",
            on_resource("get", "x"),
            &anyone,
            false,
        ),
        (
            "{user: {name: u}, resourceRequest: true}",
            on_resource("get", "x"),
            &user("", &[]),
            false,
        ),
    ] {
        let rules = authorization(&format!("{{static: [{rule}]}}")).rules;
        let got = allowed_statically(&rules, &check, caller, RuleGroups::Enforced);
        assert_eq!(got, allowed, "{rule} {check}");
    }
}

#[test]
fn a_static_rules_groups_are_enforced() {
    let rules = authorization("{static: [{path: /m, user: {groups: [ops, dev]}}]}").rules;
    let named = authorization("{static: [{path: /m, user: {name: u, groups: [ops]}}]}").rules;
    for (rules, caller, enforced, ignored) in [
        (&rules, user("u", &[]), false, true),
        (&rules, user("u", &["other"]), false, true),
        (&rules, user("u", &["x", "dev"]), true, true),
        (&named, user("u", &["ops"]), true, true),
        (&named, user("v", &["ops"]), false, false),
        (&named, user("u", &["dev"]), false, true),
    ] {
        let check = on_path("get", "/m");
        assert_eq!(
            allowed_statically(rules, &check, &caller, RuleGroups::Enforced),
            enforced
        );
        assert_eq!(
            allowed_statically(rules, &check, &caller, RuleGroups::Ignored),
            ignored
        );
    }
}

#[test]
fn a_check_is_logged_whole_and_told_in_part() {
    let check = Check {
        verb: "get".into(),
        object: Object::Resource(Attributes {
            namespace: "n".into(),
            resource: "pods".into(),
            subresource: "log".into(),
            ..Attributes::default()
        }),
    };
    assert_eq!(
        check.to_string(),
        r#"verb=get namespace="n" resource="pods" subresource="log""#
    );
    assert_eq!(on_path("*", "/a b").to_string(), r#"verb=* path="/a b""#);
    let subject = check.subject(&user("u", &[]));
    assert_eq!(
        subject.to_string(),
        "(user=u, verb=get, resource=pods, subresource=log)"
    );
    let subject = on_path("get", "/m").subject(&user("u", &[]));
    assert_eq!(
        subject.to_string(),
        "(user=u, verb=get, resource=, subresource=)"
    );
}
