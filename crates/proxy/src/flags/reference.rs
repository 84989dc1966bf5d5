//! The flags of kube-rbac-proxy, all of them, in its own names and defaults.

use super::table::row::*;
use super::table::{Field, Flag, Removed};

/// In the order help shows them.
pub(super) static FLAGS: &[Flag] = &[
    text(
        "insecure-listen-address",
        |f| &mut f.listen.insecure,
        "Address to serve plain HTTP on (HTTP/1.1 and HTTP/2 with prior knowledge).",
    ),
    text(
        "secure-listen-address",
        |f| &mut f.listen.secure,
        "Address to serve HTTPS on.",
    ),
    int(
        "proxy-endpoints-port",
        |f| &mut f.listen.endpoints_port,
        "Port to serve the proxy's own /healthz on with TLS, at the host of --secure-listen-address; without that address, see --health-listen-address.",
    ),
    text(
        "upstream",
        |f| &mut f.upstream.url,
        "Where requests go once they are authenticated and authorized: http://, https:// or unix:///path[:/prefix].",
    ),
    switch(
        "upstream-force-h2c",
        |f| &mut f.upstream.force_h2c,
        "Speak HTTP/2 without TLS to the upstream, with prior knowledge.",
    ),
    text(
        "upstream-ca-file",
        |f| &mut f.upstream.ca_file,
        "PEM bundle the upstream's certificate must chain to.",
    ),
    text(
        "upstream-client-cert-file",
        |f| &mut f.upstream.client_cert_file,
        "Certificate to present to the upstream; needs --upstream-client-key-file.",
    ),
    text(
        "upstream-client-key-file",
        |f| &mut f.upstream.client_key_file,
        "Key of --upstream-client-cert-file.",
    ),
    text(
        "config-file",
        |f| &mut f.config_file,
        "What callers must be permitted to do; see docs/proxy.md for its keys.",
    ),
    list(
        "allow-paths",
        |f| &mut f.paths.allow,
        "Patterns of the paths to serve; any other is 404. Not together with --ignore-paths, unless --allow-and-ignore-paths.",
    ),
    list(
        "ignore-paths",
        |f| &mut f.paths.ignore,
        "Patterns of the paths to serve without authentication and authorization. Not together with --allow-paths, unless --allow-and-ignore-paths.",
    ),
    text(
        "tls-cert-file",
        |f| &mut f.tls.cert_file,
        "Serving certificate, followed by its intermediates. Without it a self-signed one is made.",
    ),
    text(
        "tls-private-key-file",
        |f| &mut f.tls.key_file,
        "Key of --tls-cert-file.",
    ),
    text(
        "tls-min-version",
        |f| &mut f.tls.min_version,
        "Lowest TLS version: VersionTLS12 or VersionTLS13. VersionTLS10 and VersionTLS11 are taken to mean VersionTLS12.",
    ),
    list(
        "tls-cipher-suites",
        |f| &mut f.tls.cipher_suites,
        "TLS 1.2 cipher suites, in Go's names; those without forward secrecy or AEAD are ignored.",
    ),
    span(
        "tls-reload-interval",
        |f| &mut f.tls.reload_interval,
        "How often certificate and key are read again.",
    ),
    text(
        "client-ca-file",
        |f| &mut f.tls.client_ca_file,
        "PEM bundle of the authorities whose client certificates authenticate a request on --secure-listen-address, as the user in the common name.",
    ),
    switch(
        "auth-header-fields-enabled",
        |f| &mut f.headers.enabled,
        "Tell the upstream who the caller is, in headers.",
    ),
    text(
        "auth-header-user-field-name",
        |f| &mut f.headers.user,
        "Header for the user's name.",
    ),
    text(
        "auth-header-groups-field-name",
        |f| &mut f.headers.groups,
        "Header for the user's groups.",
    ),
    text(
        "auth-header-groups-field-separator",
        |f| &mut f.headers.separator,
        "What stands between two groups; empty for one header line per group.",
    ),
    list(
        "auth-token-audiences",
        |f| &mut f.auth.audiences,
        "Audiences of which a token must have one. Without any, every audience the API server accepts will do.",
    ),
    text(
        "oidc-issuer",
        |f| &mut f.oidc.issuer,
        "https URL of the OpenID Connect issuer whose tokens authenticate a request, and nothing else does unless --authn-order says so.",
    ),
    text(
        "oidc-clientID",
        |f| &mut f.oidc.client_id,
        "Audience an OpenID Connect token must have; needed with --oidc-issuer.",
    ),
    text(
        "oidc-groups-claim",
        |f| &mut f.oidc.groups_claim,
        "Claim with the groups.",
    ),
    text(
        "oidc-username-claim",
        |f| &mut f.oidc.username_claim,
        "Claim with the user's name.",
    ),
    text(
        "oidc-groups-prefix",
        |f| &mut f.oidc.groups_prefix,
        "What is put before every group of the claim.",
    ),
    text(
        "oidc-username-prefix",
        |f| &mut f.oidc.username_prefix,
        "What is put before the user's name of the claim.",
    ),
    array(
        "oidc-sign-alg",
        |f| &mut f.oidc.sign_algs,
        "Signing algorithm to accept; may be given more than once.",
    ),
    text(
        "oidc-ca-file",
        |f| &mut f.oidc.ca_file,
        "PEM bundle the issuer's certificate must chain to; the host's own without it.",
    ),
    text(
        "kubeconfig",
        |f| &mut f.api.kubeconfig,
        "How to reach the API server; the pod's own service account without it.",
    ),
    float32(
        "kube-api-qps",
        |f| &mut f.api.qps,
        "Calls per second to the API server; unlimited without it.",
    ),
    int(
        "kube-api-burst",
        |f| &mut f.api.burst,
        "Calls that may be made at once; needed with --kube-api-qps.",
    ),
    switch(
        "http2-disable",
        |f| &mut f.http2.disable,
        "Do not offer HTTP/2.",
    ),
    uint32(
        "http2-max-concurrent-streams",
        |f| &mut f.http2.max_streams,
        "Most HTTP/2 streams of one connection.",
    ),
    uint32(
        "http2-max-size",
        |f| &mut f.http2.max_size,
        "Largest HTTP/2 frame, and window of one stream, in bytes.",
    ),
    short(
        b'v',
        hidden(other(
            "v",
            Field::Level(|f| &mut f.log.level),
            "Verbosity of the log.",
        )),
    ),
    hidden(other(
        "vmodule",
        Field::LevelsByFile(|f| &mut f.log.levels_by_file),
        "Verbosity by source file; has no effect.",
    )),
    hidden(span(
        "log-flush-frequency",
        |f| &mut f.log.flush_frequency,
        "How often the log is flushed; it always is.",
    )),
    short(b'h', switch("help", |f| &mut f.help, "This text.")),
    other(
        "version",
        Field::Version(|f| &mut f.version),
        "Print the version and exit; =raw for all of it.",
    ),
    removed("logtostderr", Removed::Bool),
    removed("add-dir-header", Removed::Bool),
    removed("alsologtostderr", Removed::Bool),
    removed("log-backtrace-at", Removed::Text),
    removed("log-dir", Removed::Text),
    removed("log-file", Removed::Text),
    removed("log-file-max-size", Removed::Uint64),
    removed("one-output", Removed::Bool),
    removed("skip-headers", Removed::Bool),
    removed("skip-log-headers", Removed::Bool),
    removed("stderrthreshold", Removed::Text),
];
