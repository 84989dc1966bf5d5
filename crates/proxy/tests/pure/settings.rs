//! Flags into settings: defaults, the switches of appendix A, and notes.

use std::time::Duration;

use keelson_proxy::config::Strictness;
use keelson_proxy::flags::{self, Invocation};
use keelson_proxy::headers::{Bearer, Conflict, ForwardedFor};
use keelson_proxy::settings::{Authenticator, Http2, Settings, TlsVersion, Unavailable, settle};
use keelson_proxy::{attributes, path, query};

fn settled(words: &[&str]) -> (Settings, Vec<String>) {
    let Ok(Invocation::Run(flags, given)) = flags::parse(words.iter().copied()) else {
        panic!("{words:?}");
    };
    settle(&flags, &given).unwrap_or_else(|refusal| panic!("{words:?}: {refusal}"))
}

fn settings(words: &[&str]) -> Settings {
    settled(words).0
}

#[test]
fn the_removed_log_flags_are_still_accepted_and_noted() {
    let words = [
        "--logtostderr=true",
        "--add_dir_header",
        "--alsologtostderr",
        "--log-backtrace-at=x",
        "--log-dir=x",
        "--log-file=x",
        "--log-file-max-size=1",
        "--one-output",
        "--skip-headers",
        "--skip-log-headers",
        "--stderrthreshold=x",
        "--insecure-listen-address=127.0.0.1:0",
        "--upstream=http://h",
        "--v=10",
    ];
    let (_, notices) = settled(&words);
    assert_eq!(notices.len(), 11);
    assert_eq!(
        notices[0],
        "logtostderr is removed in the k8s upstream and has no effect any more"
    );
}

#[test]
fn the_consumers_arguments_mean_what_they_meant() {
    let words = [
        "--insecure-listen-address=0.0.0.0:8443",
        "--upstream=http://127.0.0.1:7777/",
        "--config-file=/etc/kube-rbac-proxy/config.yaml",
        "--ignore-paths=/v0/healthz,/v0/startupz,/v0/livez,/v0/metrics",
        "--auth-header-fields-enabled=true",
        "--v=0",
    ];
    let (settings, notices) = settled(&words);
    assert_eq!(settings.listeners.insecure.as_deref(), Some("0.0.0.0:8443"));
    assert_eq!(
        settings.config_file.as_deref(),
        Some("/etc/kube-rbac-proxy/config.yaml")
    );
    assert_eq!(settings.rules.ignore.len(), 4);
    assert!(settings.headers.identity.enabled);
    assert_eq!(
        settings.authn.order,
        [Authenticator::X509, Authenticator::TokenReview]
    );
    assert_eq!(
        notices,
        ["0.0.0.0:8443 is served without TLS: tokens are readable on the way"]
    );
    settings.require_listener().unwrap();
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let settings = settings(&[]);
    let seconds = Duration::from_secs;
    assert_eq!(settings.paths, path::Mode::Strict);
    assert_eq!(settings.query, query::Policy::Cleaned);
    assert_eq!(settings.checks, attributes::Policy::default());
    assert_eq!(settings.headers, Default::default());
    assert_eq!(settings.unavailable, Unavailable::AsReference);
    assert_eq!(settings.api.throttle, None);
    assert_eq!(
        (
            settings.api.max_token_reviews,
            settings.api.max_access_reviews
        ),
        (64, 64)
    );
    assert_eq!(settings.cache.authn_ttl, seconds(120));
    assert_eq!(settings.cache.authn_negative_ttl, seconds(2));
    assert_eq!(settings.cache.authz_allow_ttl, seconds(300));
    assert_eq!(settings.cache.authz_deny_ttl, seconds(30));
    assert_eq!(
        (settings.cache.authn_size, settings.cache.authz_size),
        (4096, 8192)
    );
    assert_eq!(settings.cache.stale_if_error, Duration::ZERO);
    assert_eq!(settings.limits.header_timeout, Some(seconds(10)));
    assert_eq!(settings.limits.idle_timeout, Some(seconds(120)));
    assert_eq!(settings.limits.shutdown_timeout, Some(seconds(25)));
    assert_eq!(settings.limits.max_header_bytes, 65_536);
    assert_eq!(settings.upstream.max_idle, 256);
    assert_eq!(settings.upstream.idle_timeout, Some(seconds(50)));
    assert_eq!(settings.upstream.connect_timeout, Some(seconds(5)));
    assert_eq!(settings.tls.min_version, TlsVersion::Tls12);
    let http2 = Http2 {
        max_streams: 100,
        max_frame: 262_144,
        stream_window: 262_144,
        connection_window: 26_214_400,
    };
    assert_eq!(settings.http2, Some(http2));
}

#[test]
fn each_deviation_has_its_switch() {
    let settings = settings(&[
        "--trust-inbound-identity-headers",
        "--allow-upgrade=*",
        "--allow-upgrade-on-ignored",
        "--lenient-paths",
        "--raw-query",
        "--static-ignore-groups",
        "--allow-empty-audience",
        "--forward-bearer-on-ignored",
        "--forward-bearer-token",
        "--strict-config",
        "--read-header-timeout=0",
        "--idle-timeout=0",
        "--shutdown-timeout=0",
        "--kube-api-qps=5",
        "--kube-api-burst=10",
        "--upstream-max-idle-connections=2",
        "--upstream-idle-timeout=90s",
        "--compat-options-star",
        "--authn-negative-ttl=0",
        "--groups-separator-conflict=keep",
        "--forwarded-for=replace",
        "--verb-mapping=kubernetes",
        "--unavailable-status=503",
        "--upstream-client-cert-file=c",
        "--upstream-client-key-file=k",
        "--allow-and-ignore-paths",
        "--allow-paths=/a",
        "--ignore-paths=/b",
    ]);
    assert!(settings.headers.identity.trust_inbound);
    assert_eq!(settings.headers.upgrades.names, ["*"]);
    assert!(settings.headers.upgrades.on_exempt);
    assert_eq!(settings.paths, path::Mode::Lenient);
    assert_eq!(settings.query, query::Policy::Raw);
    assert_eq!(settings.rule_groups, attributes::RuleGroups::Ignored);
    assert!(settings.authn.audiences.accept_unnamed);
    assert_eq!(settings.headers.bearer_on_exempt, Bearer::Passed);
    assert_eq!(settings.headers.bearer, Bearer::Passed);
    assert_eq!(settings.strictness, Strictness::Refuse);
    assert_eq!(settings.limits.header_timeout, None);
    assert_eq!(settings.limits.idle_timeout, None);
    assert_eq!(settings.limits.shutdown_timeout, None);
    assert_eq!(settings.api.throttle, Some((5.0, 10)));
    assert_eq!(settings.upstream.max_idle, 2);
    assert_eq!(
        settings.upstream.idle_timeout,
        Some(Duration::from_secs(90))
    );
    assert!(settings.options_star);
    assert_eq!(settings.cache.authn_negative_ttl, Duration::ZERO);
    assert_eq!(settings.headers.identity.conflict, Conflict::Keep);
    assert_eq!(settings.headers.forwarded_for, ForwardedFor::Replace);
    assert_eq!(settings.checks.verbs, attributes::VerbMapping::Kubernetes);
    assert_eq!(settings.unavailable, Unavailable::ServiceUnavailable);
    assert_eq!(
        settings.upstream.client_pair,
        Some(("c".into(), "k".into()))
    );
    assert_eq!(
        (settings.rules.allow.len(), settings.rules.ignore.len()),
        (1, 1)
    );
}

#[test]
fn what_does_less_than_it_seems_is_noted() {
    for (words, note) in [
        (
            &["--upstream=", "--ignore-paths=/a, /b"][..],
            "--ignore-paths: \" /b\" begins or ends with a blank and matches no path",
        ),
        (
            &["--tls-reload-interval=5s"],
            "--tls-reload-interval is deprecated",
        ),
        (
            &["--proxy-endpoints-port=9"],
            "--proxy-endpoints-port has no effect: it needs a listener, a port from 1 to 65535, and no --health-listen-address unless --secure-listen-address is given",
        ),
        (
            &["--kube-api-burst=9"],
            "--kube-api-burst has no effect without --kube-api-qps",
        ),
        (
            &["--upstream=host"],
            "every request will be answered with 502: --upstream leads nowhere, it has no scheme",
        ),
        (
            &[
                "--secure-listen-address=:1",
                "--tls-min-version=VersionTLS10",
            ],
            "--tls-min-version=VersionTLS10 is taken as VersionTLS12: nothing older is spoken",
        ),
        (
            &[
                "--secure-listen-address=:1",
                "--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            ],
            "--tls-cipher-suites: TLS_RSA_WITH_AES_128_CBC_SHA not used: no forward secrecy or no AEAD",
        ),
        (
            &[
                "--secure-listen-address=:1",
                "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
            ],
            "http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher: some HTTP/2 clients will not connect with TLS 1.2",
        ),
        (
            &[
                "--auth-header-fields-enabled",
                "--auth-header-groups-field-separator=",
            ],
            "--auth-header-groups-field-separator is empty: each group gets a line of its own",
        ),
        (
            &["--listen-address=:1", "--client-ca-file=/ca"],
            "--client-ca-file has no effect, because there is no --secure-listen-address: for --listen-address set tls.clientCAFile in the configuration",
        ),
        (
            &[
                "--secure-listen-address=:1",
                "--client-ca-file=/ca",
                "--oidc-issuer=https://i",
                "--oidc-clientID=c",
            ],
            "--client-ca-file has no effect, because client certificates are not a way to authenticate: name x509 in --authn-order",
        ),
    ] {
        let (_, notices) = settled(words);
        assert!(
            notices.iter().any(|notice| notice == note),
            "{words:?}: {notices:?}"
        );
    }
    for listener in [
        [
            "--insecure-listen-address=127.0.0.1:1",
            "--upstream=http://h",
        ]
        .as_slice(),
        &[
            "--secure-listen-address=:1",
            "--upstream=http://h",
            "--client-ca-file=/ca",
        ],
    ] {
        let (_, notices) = settled(listener);
        assert_eq!(notices, [""; 0]);
    }
}

#[test]
fn what_the_reference_does_not_look_at_does_not_keep_us_from_starting() {
    settled(&[
        "--insecure-listen-address=:1",
        "--tls-min-version=x",
        "--tls-cipher-suites=FOO",
        "--tls-cert-file=x",
        "--tls-reload-interval=0",
        "--proxy-endpoints-port=70000",
        "--auth-header-user-field-name=",
        "--auth-header-groups-field-name=Host",
    ]);
}

#[test]
fn the_endpoints_port_is_at_the_secure_listeners_host() {
    let settings = settings(&[
        "--secure-listen-address=10.0.0.1:8443",
        "--proxy-endpoints-port=8643",
    ]);
    assert_eq!(
        settings.listeners.endpoints.as_deref(),
        Some("10.0.0.1:8643")
    );
}

#[test]
fn the_endpoints_port_beside_plain_listeners_only_is_plain() {
    let health = |words: &[&str]| settings(words).listeners.health;
    let port = "--proxy-endpoints-port=8643";
    let insecure = "--insecure-listen-address=10.0.0.1:8080";
    for (words, wanted) in [
        (&[insecure, port][..], Some("10.0.0.1:8643")),
        (&["--listen-address=:8443", port], Some(":8643")),
        (&[insecure, port, "--health-listen-address=:1"], Some(":1")),
        (&[insecure, port, "--secure-listen-address=:8443"], None),
        (&[insecure, "--proxy-endpoints-port=70000"], None),
        (&[insecure], None),
    ] {
        assert_eq!(health(words).as_deref(), wanted, "{words:?}");
    }
}

#[test]
fn the_sizes_of_http2_overflow_as_in_go() {
    let http2 = |size: &str, streams: &str| {
        let words = [
            format!("--http2-max-size={size}"),
            format!("--http2-max-concurrent-streams={streams}"),
        ];
        settings(&words.each_ref().map(String::as_str))
            .http2
            .unwrap()
    };
    let mib = 1 << 20;
    for (size, streams, frame, stream, connection) in [
        ("262144", "100", 262_144, 262_144, 26_214_400),
        ("16383", "1", mib, 16_383, mib),
        ("16777216", "1", mib, 16_777_216, 16_777_216),
        ("262144", "8192", 262_144, 262_144, mib),
        ("4294967295", "1", mib, mib, mib),
        ("0", "0", mib, mib, mib),
    ] {
        let got = http2(size, streams);
        assert_eq!(
            (got.max_frame, got.stream_window, got.connection_window),
            (frame, stream, connection),
            "{size} {streams}"
        );
    }
    assert_eq!(http2("0", "0").max_streams, 250);
    assert_eq!(settings(&["--http2-disable"]).http2, None);
}
