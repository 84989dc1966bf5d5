//! `--check`: the configuration in words.

use keelson_proxy::config::{self, Strictness};
use keelson_proxy::explain::explain;
use keelson_proxy::flags::{self, Invocation};
use keelson_proxy::settings::settle;

fn explained(words: &[&str], text: &str) -> Vec<String> {
    let Ok(Invocation::Run(flags, given)) = flags::parse(words.iter().copied()) else {
        panic!("{words:?}");
    };
    let (settings, _) = settle(&flags, &given).expect("good flags");
    let (config, _) = config::load(text, Strictness::Warn).expect(text);
    explain(&settings, &config)
}

#[test]
fn the_sidecars_policy_is_explained() {
    let words = [
        "--listen-address=0.0.0.0:8443",
        "--health-listen-address=0.0.0.0:8444",
        "--upstream=http://127.0.0.1:7777/",
        "--ignore-paths=/v0/healthz,/v0/metrics",
        "--auth-header-fields-enabled",
    ];
    let text = "authorization: {resourceAttributes: {apiGroup: sei.io, resource: seinodetasks, namespace: sei, name: node-0}}\ntls: {mode: off}\n";
    assert_eq!(
        explained(&words, text),
        [
            "Requests are served on 0.0.0.0:8443 without TLS.",
            "The proxy's own health and metrics are on 0.0.0.0:8444.",
            "What passes goes to http://127.0.0.1:7777/.",
            "Paths like /v0/healthz or /v0/metrics are served to anyone, without any check.",
            "Every other request needs a token the API server accepts; without one it is answered with 401.",
            "Any other request needs permission for seinodetasks named node-0 of the API group sei.io in the namespace sei, with the verb of its method: GET needs get, POST create, PUT update, PATCH patch, DELETE delete, any other method *.",
            "The upstream is told the caller's name in x-remote-user and groups in x-remote-groups; headers clients send about identity are removed on every path.",
        ]
    );
}

#[test]
fn rewrites_and_static_rules_are_explained() {
    let words = [
        "--secure-listen-address=:8443",
        "--upstream=unix:///run/s:/p",
        "--allow-paths=/a,/b,/c",
        "--client-ca-file=/ca",
        "--auth-token-audiences=x,y",
    ];
    let text = "
authorization:
  rewrites: {byQueryParameter: {name: ns}, byHttpHeader: {name: x-tenant}}
  resourceAttributes: {resource: pods, subresource: metrics, namespace: '{{ .Value }}'}
  static:
  - {resourceRequest: true, user: {name: prom, groups: [a, b]}, verb: get, resource: pods, namespace: m}
  - {resourceRequest: true}
";
    assert_eq!(
        explained(&words, text),
        [
            "Requests are served on :8443 with TLS, with a self-signed certificate.",
            "What passes goes to the socket /run/s/p.",
            "Only paths like /a, /b or /c are served; any other is answered with 404.",
            "Every request needs a client certificate signed by /ca or a token the API server accepts for the audience x or y; without one it is answered with 401.",
            "Without asking the API server, the user prom in the group a or b may get pods of any API group in the namespace m.",
            "Without asking the API server, any authenticated user may do anything to every resource of any API group in any namespace.",
            "A request needs permission for pods/metrics of the core API group in the namespace <value>, for every <value> of the query parameter ns and the header x-tenant, with the verb of its method: GET needs get, POST create, PUT update, PATCH patch, DELETE delete, any other method *; without a value, or with more than 64, it is answered with 400.",
            "The upstream is not told who the caller is; headers clients send about identity are removed on every path.",
        ]
    );
}

#[test]
fn every_way_to_authenticate_is_explained_in_its_order() {
    let words = [
        "--listen-address=:1",
        "--secure-listen-address=:2",
        "--client-ca-file=/flag",
        "--oidc-issuer=https://issuer",
        "--oidc-clientID=keelson",
        "--authn-order=oidc,x509,tokenreview",
    ];
    let tls = "tls: {mode: required, certFile: /c, keyFile: /k, clientCAFile: /file}";
    let sentence = |words: &[&str], text| {
        let lines = explained(words, text);
        let found = lines.into_iter().find(|line| line.starts_with("Every "));
        found.expect("a sentence")
    };
    assert_eq!(
        sentence(&words, tls),
        "Every request needs a token of the OpenID Connect issuer https://issuer for keelson, which names the user in email and the groups in groups, on :1 a client certificate signed by /file, on :2 a client certificate signed by /flag or a token the API server accepts; without one it is answered with 401."
    );
    assert_eq!(
        sentence(&["--listen-address=:1"], tls),
        "Every request needs a client certificate signed by /file or a token the API server accepts; without one it is answered with 401."
    );
    assert_eq!(
        sentence(&words[..5], tls),
        "Every request needs a token of the OpenID Connect issuer https://issuer for keelson, which names the user in email and the groups in groups; without one it is answered with 401.",
        "the issuer takes the place of all others"
    );
}

#[test]
fn paths_are_checked_as_themselves_without_a_configuration() {
    let lines = explained(
        &["--insecure-listen-address=:1", "--verb-mapping=kubernetes"],
        "paths: {ignore: [/h/**]}",
    );
    assert!(
        lines.contains(&"Paths like /h/** are served to anyone, without any check.".to_owned())
    );
    assert!(lines.contains(&"Any other request needs permission for its own path as a nonResourceURL, with the verb of its method: the method in lower case.".to_owned()));
    assert!(lines.contains(
        &"What passes goes nowhere and is answered with 502: it has no scheme.".to_owned()
    ));
}

#[test]
fn a_required_certificate_and_a_missing_section_are_told_apart() {
    let first = |text| explained(&["--listen-address=:1"], text).remove(0);
    assert_eq!(
        first("tls: {mode: required, certFile: /c, keyFile: /k}"),
        "Requests are served on :1 with TLS and never without, with the certificate in /c."
    );
    assert_eq!(
        first(""),
        "Requests are served on :1 without TLS, because the configuration has no tls section."
    );
    assert_eq!(
        explained(&[], "")[0],
        "No request is served, because there is no address to listen on."
    );
}
