//! Why the proxy does not start: every row of §1.3 to the letter, and what only we can say.

use keelson_proxy::config::{self, Strictness};
use keelson_proxy::flags::{self, Invocation};
use keelson_proxy::refusal::{Refusal, listen_fault};
use keelson_proxy::settings::settle;

fn refusal(words: &[&str]) -> String {
    let Ok(Invocation::Run(flags, given)) = flags::parse(words.iter().copied()) else {
        panic!("{words:?}");
    };
    let refused = settle(&flags, &given).and_then(|(settings, _)| settings.require_listener());
    refused.expect_err(&words.join(" ")).to_string()
}

#[test]
fn refusals_of_flags_have_the_references_words() {
    for (words, text) in [
        (
            &["--allow-paths=/a", "--ignore-paths=/b"][..],
            "cannot use --allow-paths and --ignore-paths together",
        ),
        (&["--allow-paths=["], "failed to verify allow path: ["),
        (&["--ignore-paths=[a"], "failed to verify ignored path: [a"),
        (
            &["--allow-paths=/a,[", "--ignore-paths=["],
            "[cannot use --allow-paths and --ignore-paths together, failed to verify allow path: [, failed to verify ignored path: []",
        ),
        (
            &["--upstream=127.0.0.1:80"],
            "failed to parse upstream URL: parse \"127.0.0.1:80\": first path segment in URL cannot contain colon",
        ),
        (
            &["--kube-api-qps=5"],
            "failed to instantiate Kubernetes client: burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0",
        ),
        (
            &["--oidc-issuer=http://x"],
            "failed to instantiate OIDC authenticator: [issuer.url: Invalid value: \"http://x\": URL scheme must be https, issuer.audiences[0]: Required value: audience can't be empty]",
        ),
        (
            &["--oidc-issuer=https://x"],
            "failed to instantiate OIDC authenticator: issuer.audiences[0]: Required value: audience can't be empty",
        ),
        (
            &[
                "--oidc-issuer=https://x",
                "--oidc-clientID=c",
                "--oidc-sign-alg=HS256",
            ],
            "failed to instantiate OIDC authenticator: oidc: unsupported signing alg: \"HS256\"",
        ),
        (
            &["--secure-listen-address=:0", "--tls-min-version=x"],
            "TLS version invalid: unknown tls version \"x\"",
        ),
        (
            &["--secure-listen-address=:0", "--tls-cipher-suites=FOO"],
            "failed to convert TLS cipher suite name to ID: Cipher suite FOO not supported or doesn't exist",
        ),
        (&[], "no listen address provided"),
        (
            &["--health-listen-address=:1"],
            "no listen address provided",
        ),
    ] {
        assert_eq!(refusal(words), text);
    }
}

#[test]
fn refusals_found_later_have_the_references_words() {
    let (file, cause) = ("x".to_owned(), "no such file or directory".to_owned());
    let in_use = "address already in use";
    for (refusal, text) in [
        (Refusal::UpstreamCa, "error parsing upstream CA certificate"),
        (
            Refusal::File { file: file.clone(), cause: cause.clone() },
            "open x: no such file or directory",
        ),
        (
            Refusal::ConfigFile { file, cause },
            "failed to read the config file: failed to read resource-attribute file: open x: no such file or directory",
        ),
        (
            Refusal::NotInCluster("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined".into()),
            "failed to load kubeconfig: cannot find Service Account in pod to build in-cluster rest config: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined",
        ),
        (
            Refusal::Kubeconfig("stat nope: no such file or directory".into()),
            "failed to load kubeconfig: unable to build rest config based on provided path to kubeconfig file: stat nope: no such file or directory",
        ),
        (
            Refusal::Certificate("error loading certificate: open x: no such file or directory".into()),
            "failed to initialize certificate reloader: error loading certificates: error loading certificate: open x: no such file or directory",
        ),
        (
            Refusal::ClientCa("open nope: no such file or directory".into()),
            "failed to instantiate delegating authenticator: open nope: no such file or directory",
        ),
        (
            Refusal::ListenInsecure(listen_fault("127.0.0.1:1", in_use)),
            "failed to listen on insecure address: listen tcp 127.0.0.1:1: bind: address already in use",
        ),
        (
            Refusal::ListenSecure(listen_fault("127.0.0.1:1", in_use)),
            "failed to run groups: failed to listen on secure address: listen tcp 127.0.0.1:1: bind: address already in use",
        ),
        (
            config::load("authorization: {static: [{path: /m, resourceRequest: true}]}", Strictness::Warn).unwrap_err().into(),
            "failed to create static authorizer: invalid configuration: resource requests must not include a path: [{{ []}       true /m}]",
        ),
        (
            config::load("authorization: [x]", Strictness::Warn).unwrap_err().into(),
            "failed to read the config file: authorization (line 1) must be a map",
        ),
    ] {
        assert_eq!(refusal.to_string(), text);
    }
    assert_eq!(
        Refusal::TlsVersion("x".into()).log_message(),
        r#""command failed" err="TLS version invalid: unknown tls version \"x\"""#
    );
}

#[test]
fn the_first_refusal_is_the_references_first() {
    let words = [
        "--secure-listen-address=:0",
        "--tls-cipher-suites=FOO",
        "--tls-min-version=x",
        "--oidc-issuer=http://x",
        "--kube-api-qps=5",
        "--upstream=:x",
        "--allow-paths=[",
        "--verb-mapping=x",
    ];
    let firsts = [
        "failed to verify allow path",
        "failed to parse upstream URL",
        "failed to instantiate Kubernetes client",
        "failed to instantiate OIDC authenticator",
        "TLS version invalid",
        "failed to convert TLS cipher suite",
        "--verb-mapping",
    ];
    let mut left = words.to_vec();
    let removed = [
        "--allow-paths=[",
        "--upstream=:x",
        "--kube-api-qps=5",
        "--oidc-issuer=http://x",
        "--tls-min-version=x",
        "--tls-cipher-suites=FOO",
        "",
    ];
    for (first, next) in firsts.into_iter().zip(removed) {
        let refusal = refusal(&left);
        assert!(refusal.starts_with(first), "{refusal}");
        left.retain(|word| *word != next);
    }
}

#[test]
fn what_only_we_can_get_wrong_is_said_in_one_sentence() {
    for (words, text) in [
        (
            &["--verb-mapping=x"][..],
            "--verb-mapping must be one of krp, kubernetes, not \"x\"",
        ),
        (
            &["--forwarded-for=x"],
            "--forwarded-for must be one of append, replace, off, not \"x\"",
        ),
        (
            &["--groups-separator-conflict=x"],
            "--groups-separator-conflict must be one of drop, reject, keep, not \"x\"",
        ),
        (
            &["--logging-format=x"],
            "--logging-format must be one of text, json, not \"x\"",
        ),
        (
            &["--unavailable-status=500"],
            "--unavailable-status must be 503, or 0 for the reference's",
        ),
        (
            &["--raw-query", "--strict-query"],
            "--raw-query and --strict-query contradict each other",
        ),
        (
            &["--auth-stale-if-error=2h"],
            "--auth-stale-if-error must be at most 1h",
        ),
        (
            &["--auth-refresh-window=1"],
            "--auth-refresh-window must be from 0 to below 1",
        ),
        (
            &["--authn-cache-ttl=-1s"],
            "--authn-cache-ttl must not be negative",
        ),
        (
            &["--max-rewrite-values=0"],
            "--max-rewrite-values must be at least 1",
        ),
        (
            &["--max-header-bytes=2097152"],
            "--max-header-bytes must be at most 1048576",
        ),
        (
            &["--secure-listen-address=:1", "--proxy-endpoints-port=70000"],
            "--proxy-endpoints-port must be a port",
        ),
        (
            &["--secure-listen-address=:1", "--tls-cert-file=x"],
            "--tls-cert-file and --tls-private-key-file need each other",
        ),
        (
            &["--upstream-client-key-file=x"],
            "--upstream-client-cert-file and --upstream-client-key-file need each other",
        ),
        (
            &["--listen-address=:1", "--tls-reload-interval=0"],
            "--tls-reload-interval must be longer than nothing",
        ),
        (
            &[
                "--auth-header-fields-enabled",
                "--auth-header-user-field-name=a b",
            ],
            "--auth-header-user-field-name: \"a b\" is not the name of a header",
        ),
        (
            &[
                "--auth-header-fields-enabled",
                "--auth-header-user-field-name=Host",
            ],
            "--auth-header-user-field-name: Host has a meaning of its own",
        ),
        (
            &[
                "--auth-header-fields-enabled",
                "--auth-header-user-field-name=X-Remote-Groups",
            ],
            "the headers for user, groups and uid must be different ones",
        ),
        (
            &["--auth-header-extra-prefix=a b"],
            "--auth-header-extra-prefix cannot begin a header's name",
        ),
        (
            &["--authn-order=x509,x509"],
            "--authn-order names x509 twice",
        ),
        (
            &["--authn-order=oidc"],
            "--authn-order names oidc though --oidc-issuer is not set",
        ),
        (
            &[
                "--authn-order=x509",
                "--oidc-issuer=https://i",
                "--oidc-clientID=c",
            ],
            "--authn-order leaves out oidc though --oidc-issuer is set",
        ),
        (
            &[
                "--secure-listen-address=:0",
                "--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA",
            ],
            "--tls-cipher-suites names no suite that can be used below TLS 1.3",
        ),
        (
            &["--verb-mapping=x", "--unavailable-status=1"],
            "--verb-mapping must be one of krp, kubernetes, not \"x\"; --unavailable-status must be 503, or 0 for the reference's",
        ),
    ] {
        assert_eq!(refusal(words), text, "{words:?}");
    }
}
