//! The flags kube-rbac-proxy does not have: what we add, and what restores its ways.

use super::table::Flag;
use super::table::row::*;

/// In the order help shows them.
pub(super) static FLAGS: &[Flag] = &[
    text(
        "listen-address",
        |f| &mut f.listen.either,
        "Address to serve on, with TLS or without as the configuration file's tls.mode says, changeable while running.",
    ),
    text(
        "health-listen-address",
        |f| &mut f.listen.health,
        "Address of a plain HTTP listener with the proxy's own /healthz, /readyz, /metrics and /loaded.",
    ),
    switch(
        "check",
        |f| &mut f.check,
        "Validate flags and configuration, say in words who may do what, and exit.",
    ),
    switch(
        "strict-config",
        |f| &mut f.strict_config,
        "Refuse a configuration file with unknown keys instead of warning about them.",
    ),
    switch(
        "allow-and-ignore-paths",
        |f| &mut f.paths.allow_and_ignore,
        "Let --allow-paths and --ignore-paths be used together: a path must be allowed, and is then also unauthenticated if ignored.",
    ),
    switch(
        "lenient-paths",
        |f| &mut f.paths.lenient,
        "Accept encoded slashes, dots, backslashes and control bytes in paths, as kube-rbac-proxy does.",
    ),
    switch(
        "compat-options-star",
        |f| &mut f.paths.options_star,
        "Answer OPTIONS * with 200 instead of 400.",
    ),
    switch(
        "trust-inbound-identity-headers",
        |f| &mut f.headers.trust_inbound,
        "Pass identity headers a client sends when they are not overwritten.",
    ),
    text(
        "auth-header-uid-field-name",
        |f| &mut f.headers.uid,
        "Header for the user's uid; none without it.",
    ),
    text(
        "auth-header-extra-prefix",
        |f| &mut f.headers.extra_prefix,
        "What headers for the user's extra attributes start with; none without it.",
    ),
    text(
        "groups-separator-conflict",
        |f| &mut f.headers.separator_conflict,
        "What to do with a group that contains the separator: drop it, reject the request, or keep it.",
    ),
    list(
        "allow-upgrade",
        |f| &mut f.forward.upgrades,
        "Protocols a connection may be upgraded to; * for any.",
    ),
    switch(
        "allow-upgrade-on-ignored",
        |f| &mut f.forward.upgrades_on_ignored,
        "Allow upgrades on paths of --ignore-paths too.",
    ),
    switch(
        "raw-query",
        |f| &mut f.forward.raw_query,
        "Forward the query as it came, even where a part of it was not checked.",
    ),
    switch(
        "strict-query",
        |f| &mut f.forward.strict_query,
        "Answer 400 when a query rewrite is active and a part of the query cannot be read.",
    ),
    text(
        "forwarded-for",
        |f| &mut f.forward.forwarded_for,
        "X-Forwarded-For: append the client's address, replace what was sent, or off to leave it alone.",
    ),
    switch(
        "forward-bearer-token",
        |f| &mut f.forward.bearer,
        "Pass the token that authenticated a request on to the upstream.",
    ),
    switch(
        "forward-bearer-on-ignored",
        |f| &mut f.forward.bearer_on_ignored,
        "Pass bearer tokens on to the upstream on paths of --ignore-paths.",
    ),
    switch(
        "allow-empty-audience",
        |f| &mut f.auth.allow_empty_audience,
        "With --auth-token-audiences, accept a review that names no audience.",
    ),
    list(
        "authn-order",
        |f| &mut f.auth.order,
        "How to authenticate, in order: x509, tokenreview, oidc. Without it, oidc alone when an issuer is set, otherwise the other two.",
    ),
    switch(
        "review-expired-tokens",
        |f| &mut f.auth.review_expired_tokens,
        "Ask the API server even about tokens that say they expired more than a minute ago.",
    ),
    text(
        "verb-mapping",
        |f| &mut f.auth.verb_mapping,
        "Verb of a method: krp as kube-rbac-proxy does, or kubernetes (HEAD is get, non-resource verbs are lower-case methods).",
    ),
    switch(
        "static-ignore-groups",
        |f| &mut f.auth.static_ignore_groups,
        "Let static rules apply whatever groups they name.",
    ),
    uint32(
        "max-rewrite-values",
        |f| &mut f.auth.max_rewrite_values,
        "Most values of one request that are checked; more is 400.",
    ),
    uint32(
        "unavailable-status",
        |f| &mut f.auth.unavailable_status,
        "Status when the API server cannot be asked: 503, or 0 for 401 and 500 as kube-rbac-proxy.",
    ),
    uint32(
        "max-tokenreviews-inflight",
        |f| &mut f.api.max_token_reviews,
        "Most TokenReviews under way at once.",
    ),
    uint32(
        "max-subjectaccessreviews-inflight",
        |f| &mut f.api.max_access_reviews,
        "Most SubjectAccessReviews under way at once.",
    ),
    span(
        "authn-cache-ttl",
        |f| &mut f.cache.authn_ttl,
        "How long an accepted token stays accepted, at most until it expires.",
    ),
    span(
        "authn-negative-ttl",
        |f| &mut f.cache.authn_negative_ttl,
        "How long a refused token stays refused; 0 to ask every time.",
    ),
    uint32(
        "authn-cache-size",
        |f| &mut f.cache.authn_size,
        "Most tokens remembered.",
    ),
    span(
        "authz-allow-ttl",
        |f| &mut f.cache.authz_allow_ttl,
        "How long an allowed request stays allowed.",
    ),
    span(
        "authz-deny-ttl",
        |f| &mut f.cache.authz_deny_ttl,
        "How long a denied request stays denied.",
    ),
    uint32(
        "authz-cache-size",
        |f| &mut f.cache.authz_size,
        "Most decisions remembered.",
    ),
    float32(
        "auth-refresh-window",
        |f| &mut f.cache.refresh_window,
        "Last part of an answer's life in which its use asks again in the background; 0 for never.",
    ),
    span(
        "auth-stale-if-error",
        |f| &mut f.cache.stale_if_error,
        "How long past its time an allowing answer is used while the API server fails, at most 1h.",
    ),
    uint32(
        "upstream-max-idle-connections",
        |f| &mut f.upstream.max_idle,
        "Most idle connections kept to the upstream.",
    ),
    span(
        "upstream-idle-timeout",
        |f| &mut f.upstream.idle_timeout,
        "How long an idle connection to the upstream is kept.",
    ),
    span(
        "upstream-connect-timeout",
        |f| &mut f.upstream.connect_timeout,
        "How long connecting to the upstream may take; 0 for no limit.",
    ),
    span(
        "read-header-timeout",
        |f| &mut f.limits.header_timeout,
        "How long a client may take to send a request's headers, from their first byte on, and for the first request from the connection on; 0 for no limit.",
    ),
    span(
        "idle-timeout",
        |f| &mut f.limits.idle_timeout,
        "How long a client connection without a request is kept; 0 for no limit.",
    ),
    uint32(
        "max-header-bytes",
        |f| &mut f.limits.max_header_bytes,
        "Most bytes of a request's headers, up to 1048576.",
    ),
    uint32(
        "max-headers",
        |f| &mut f.limits.max_headers,
        "Most headers of a request.",
    ),
    uint32(
        "max-connections",
        |f| &mut f.limits.max_connections,
        "Most client connections at once; further ones wait. 0 for 16384.",
    ),
    span(
        "shutdown-delay",
        |f| &mut f.limits.shutdown_delay,
        "How long to go on accepting, while reporting unready, before shutting down.",
    ),
    span(
        "shutdown-timeout",
        |f| &mut f.limits.shutdown_timeout,
        "How long requests and tunnels may take to finish at shutdown; 0 for no limit.",
    ),
    text(
        "tls-profile-file",
        |f| &mut f.tls.profile_file,
        "JSON file with ciphers, minTLSVersion and groups, read again when it changes.",
    ),
    list(
        "tls-curve-preferences",
        |f| &mut f.tls.curves,
        "Key exchange groups in order of preference, by name or Go's number.",
    ),
    list(
        "self-signed-san",
        |f| &mut f.tls.self_signed_san,
        "Names and addresses for the self-signed certificate.",
    ),
    text(
        "logging-format",
        |f| &mut f.log.format,
        "Form of the log: text or json.",
    ),
    switch("access-log", |f| &mut f.log.access, "Log every request."),
];
