//! From requests to checks: §1.4 and §4.

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use keelson_proxy::attributes::{Asked, Check, Malformed, Object, Policy, VerbMapping, checks};
use keelson_proxy::config::{self, Attributes, Authorization, Strictness};
use keelson_proxy::query::Query;

pub(super) fn authorization(text: &str) -> Authorization {
    let text = format!("authorization: {text}");
    config::load(&text, Strictness::Warn)
        .expect(&text)
        .0
        .authorization
}

struct Sent<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a str,
    headers: &'a [(&'a str, &'a str)],
}

const GET: Sent<'_> = Sent {
    method: "GET",
    path: "/accounts",
    query: "",
    headers: &[],
};

fn asked(
    authorization: &Authorization,
    sent: &Sent<'_>,
    policy: Policy,
) -> Result<Vec<Check>, Malformed> {
    let mut headers = HeaderMap::new();
    for (name, value) in sent.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).expect(name);
        headers.append(name, HeaderValue::from_str(value).expect(value));
    }
    let asked = Asked {
        method: &Method::from_bytes(sent.method.as_bytes()).expect(sent.method),
        path: sent.path,
        query: &Query::parse(sent.query),
        headers: &headers,
    };
    checks(authorization, asked, policy)
}

fn namespaces(authorization: &Authorization, sent: &Sent<'_>) -> Result<Vec<String>, Malformed> {
    let checks = asked(authorization, sent, Policy::default())?;
    Ok(checks
        .into_iter()
        .map(|check| match check.object {
            Object::Resource(attributes) => attributes.namespace,
            Object::Path(path) => panic!("{path}"),
        })
        .collect())
}

#[test]
fn without_attributes_the_path_is_checked() {
    let expected = Check {
        verb: "get".into(),
        object: Object::Path("/accounts".into()),
    };
    for text in ["{}", "{rewrites: {byQueryParameter: {name: ns}}}"] {
        assert_eq!(
            asked(&authorization(text), &GET, Policy::default()),
            Ok(vec![expected.clone()])
        );
    }
}

#[test]
fn without_rewrites_attributes_are_literal() {
    let authorization = authorization(
        "{resourceAttributes: {namespace: '{{ .Value }}', apiGroup: apps, apiVersion: v1, resource: deployments, subresource: metrics, name: x}}",
    );
    let expected = Check {
        verb: "get".into(),
        object: Object::Resource(Attributes {
            namespace: "{{ .Value }}".into(),
            api_group: "apps".into(),
            api_version: "v1".into(),
            resource: "deployments".into(),
            subresource: "metrics".into(),
            name: "x".into(),
        }),
    };
    assert_eq!(
        asked(&authorization, &GET, Policy::default()),
        Ok(vec![expected])
    );
}

#[test]
fn a_rewrite_makes_one_check_per_value() {
    let query = authorization(
        "{rewrites: {byQueryParameter: {name: namespace}}, resourceAttributes: {namespace: '{{ .Value }}'}}",
    );
    let header = authorization(
        "{rewrites: {byHttpHeader: {name: x-tenant}}, resourceAttributes: {namespace: 'n-{{ .Value }}'}}",
    );
    let both = authorization(
        "{rewrites: {byQueryParameter: {name: ns}, byHttpHeader: {name: X-Tenant}}, resourceAttributes: {namespace: '{{ .Value }}'}}",
    );
    let neither = authorization("{rewrites: {}, resourceAttributes: {namespace: '{{ .Value }}'}}");
    let tenants = &[
        ("X-TENANT", "h1"),
        ("x-tenant", "h2,h3"),
        ("x-tenant", "h1"),
    ][..];
    for (authorization, text, headers, expected) in [
        (&query, "namespace=a", &[][..], Ok(vec!["a"])),
        (
            &query,
            "namespace=a&namespace=b&x=y",
            &[][..],
            Ok(vec!["a", "b"]),
        ),
        (&query, "namespace=a&namespace=a", &[][..], Ok(vec!["a"])),
        (&query, "namespace=", &[][..], Ok(vec![""])),
        (&query, "namespace=a+b%2f", &[][..], Ok(vec!["a b/"])),
        (&query, "Namespace=a", &[][..], Err(Malformed::NoValue)),
        (&query, "namespace=a;b", &[][..], Err(Malformed::NoValue)),
        (&query, "namespace=%zz&namespace=b", &[][..], Ok(vec!["b"])),
        (&query, "", tenants, Err(Malformed::NoValue)),
        (&header, "x-tenant=a", &[][..], Err(Malformed::NoValue)),
        (&header, "", tenants, Ok(vec!["n-h1", "n-h2,h3"])),
        (&both, "ns=q", tenants, Ok(vec!["q", "h1", "h2,h3"])),
        (&both, "ns=h1", tenants, Ok(vec!["h1", "h2,h3"])),
        (&neither, "namespace=a&=b", tenants, Err(Malformed::NoValue)),
    ] {
        let sent = Sent {
            query: text,
            headers,
            ..GET
        };
        let expected =
            expected.map(|values| values.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(
            namespaces(authorization, &sent),
            expected,
            "{text} {headers:?}"
        );
    }
}

#[test]
fn too_many_values_are_refused() {
    let authorization = authorization(
        "{rewrites: {byQueryParameter: {name: n}}, resourceAttributes: {namespace: '{{ .Value }}'}}",
    );
    let query = |count: usize| {
        (0..count)
            .map(|i| format!("n={i}&n={i}"))
            .collect::<Vec<_>>()
            .join("&")
    };
    let sent = query(64);
    // `name: n` is `false` to YAML 1.1.
    let sent = sent.replace("n=", "false=");
    assert_eq!(
        namespaces(
            &authorization,
            &Sent {
                query: &sent,
                ..GET
            }
        )
        .unwrap()
        .len(),
        64
    );
    let sent = query(65).replace("n=", "false=");
    assert_eq!(
        namespaces(
            &authorization,
            &Sent {
                query: &sent,
                ..GET
            }
        ),
        Err(Malformed::TooMany(64))
    );
}

#[test]
fn a_form_in_the_body_can_be_refused() {
    let text = |reject| {
        format!(
            "{{rewrites: {{byQueryParameter: {{name: ns}}, rejectFormBody: {reject}}}, resourceAttributes: {{namespace: '{{{{ .Value }}}}'}}}}"
        )
    };
    for (kind, form) in [
        ("application/x-www-form-urlencoded", true),
        ("Application/X-WWW-Form-Urlencoded ; charset=utf-8", true),
        ("multipart/form-data; boundary=x", true),
        ("application/json", false),
    ] {
        let headers = &[("content-type", kind)][..];
        let sent = Sent {
            method: "POST",
            query: "ns=a",
            headers,
            ..GET
        };
        assert!(namespaces(&authorization(&text("no")), &sent).is_ok());
        let refused = namespaces(&authorization(&text("yes")), &sent) == Err(Malformed::Form);
        assert_eq!(refused, form, "{kind}");
    }
}

#[test]
fn methods_become_verbs() {
    let resource = authorization("{resourceAttributes: {resource: x}}");
    let path = authorization("{}");
    let verb = |authorization: &Authorization, method: &str, verbs| {
        let policy = Policy {
            verbs,
            ..Policy::default()
        };
        let checks = asked(authorization, &Sent { method, ..GET }, policy).unwrap();
        checks[0].verb.to_string()
    };
    for (method, reference, kubernetes, kubernetes_path) in [
        ("POST", "create", "create", "post"),
        ("GET", "get", "get", "get"),
        ("PUT", "update", "update", "put"),
        ("PATCH", "patch", "patch", "patch"),
        ("DELETE", "delete", "delete", "delete"),
        ("HEAD", "*", "get", "head"),
        ("OPTIONS", "*", "*", "options"),
        ("TRACE", "*", "*", "trace"),
        ("CONNECT", "*", "*", "connect"),
        ("PURGE", "*", "*", "purge"),
        ("get", "*", "*", "get"),
    ] {
        assert_eq!(
            verb(&resource, method, VerbMapping::KubeRbacProxy),
            reference
        );
        assert_eq!(verb(&path, method, VerbMapping::KubeRbacProxy), reference);
        assert_eq!(verb(&resource, method, VerbMapping::Kubernetes), kubernetes);
        assert_eq!(
            verb(&path, method, VerbMapping::Kubernetes),
            kubernetes_path
        );
    }
}
