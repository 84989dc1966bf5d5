//! The values of all flags as they were given, before anyone asks whether they make sense.

use crate::golang::Duration;

/// Which version was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// None: run.
    #[default]
    Unasked,
    /// One line.
    Plain,
    /// Everything known about the build.
    Raw,
}

/// All flags, grouped by what they are about. The default of each is the flag's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// `--help`.
    pub help: bool,
    /// `--version`.
    pub version: Version,
    /// `--check`.
    pub check: bool,
    /// `--config-file`.
    pub config_file: String,
    /// `--strict-config`.
    pub strict_config: bool,
    /// Where to listen.
    pub listen: ListenFlags,
    /// What to proxy to.
    pub upstream: UpstreamFlags,
    /// Serving certificates and policy.
    pub tls: TlsFlags,
    /// Which paths are served, and which without authentication.
    pub paths: PathFlags,
    /// Who may pass.
    pub auth: AuthFlags,
    /// OpenID Connect.
    pub oidc: OidcFlags,
    /// What the upstream is told about the caller.
    pub headers: HeaderFlags,
    /// What else is changed on the way to the upstream.
    pub forward: ForwardFlags,
    /// The API server.
    pub api: ApiFlags,
    /// How long answers are kept.
    pub cache: CacheFlags,
    /// HTTP/2 towards clients.
    pub http2: Http2Flags,
    /// Timeouts, sizes, shutdown.
    pub limits: LimitFlags,
    /// Logging.
    pub log: LogFlags,
}

macro_rules! group {
    ($(#[$about:meta])* $name:ident { $($field:ident: $kind:ty = $flag:literal $default:expr;)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(#[doc = concat!("`--", $flag, "`.")] pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default.into(),)* }
            }
        }
    };
}

group! {
    /// Where to listen.
    ListenFlags {
        either: String = "listen-address" "";
        insecure: String = "insecure-listen-address" "";
        secure: String = "secure-listen-address" "";
        endpoints_port: i64 = "proxy-endpoints-port" 0;
        health: String = "health-listen-address" "";
    }
}

group! {
    /// What to proxy to.
    UpstreamFlags {
        url: String = "upstream" "";
        force_h2c: bool = "upstream-force-h2c" false;
        ca_file: String = "upstream-ca-file" "";
        client_cert_file: String = "upstream-client-cert-file" "";
        client_key_file: String = "upstream-client-key-file" "";
        max_idle: u32 = "upstream-max-idle-connections" 256u32;
        idle_timeout: Duration = "upstream-idle-timeout" Duration::seconds(50);
        connect_timeout: Duration = "upstream-connect-timeout" Duration::seconds(5);
    }
}

group! {
    /// Serving certificates and policy.
    TlsFlags {
        cert_file: String = "tls-cert-file" "";
        key_file: String = "tls-private-key-file" "";
        min_version: String = "tls-min-version" "VersionTLS12";
        cipher_suites: Vec<String> = "tls-cipher-suites" [];
        reload_interval: Duration = "tls-reload-interval" Duration::seconds(60);
        client_ca_file: String = "client-ca-file" "";
        profile_file: String = "tls-profile-file" "";
        curves: Vec<String> = "tls-curve-preferences" [];
        self_signed_san: Vec<String> = "self-signed-san" [];
    }
}

group! {
    /// Which paths are served, and which without authentication.
    PathFlags {
        allow: Vec<String> = "allow-paths" [];
        ignore: Vec<String> = "ignore-paths" [];
        allow_and_ignore: bool = "allow-and-ignore-paths" false;
        lenient: bool = "lenient-paths" false;
        options_star: bool = "compat-options-star" false;
    }
}

group! {
    /// Who may pass.
    AuthFlags {
        audiences: Vec<String> = "auth-token-audiences" [];
        allow_empty_audience: bool = "allow-empty-audience" false;
        order: Vec<String> = "authn-order" [];
        review_expired_tokens: bool = "review-expired-tokens" false;
        verb_mapping: String = "verb-mapping" "krp";
        static_ignore_groups: bool = "static-ignore-groups" false;
        max_rewrite_values: u32 = "max-rewrite-values" 64u32;
        unavailable_status: u32 = "unavailable-status" 0u32;
    }
}

group! {
    /// OpenID Connect.
    OidcFlags {
        issuer: String = "oidc-issuer" "";
        client_id: String = "oidc-clientID" "";
        groups_claim: String = "oidc-groups-claim" "groups";
        username_claim: String = "oidc-username-claim" "email";
        groups_prefix: String = "oidc-groups-prefix" "";
        username_prefix: String = "oidc-username-prefix" "";
        sign_algs: Vec<String> = "oidc-sign-alg" ["RS256".to_owned()];
        ca_file: String = "oidc-ca-file" "";
    }
}

group! {
    /// What the upstream is told about the caller.
    HeaderFlags {
        enabled: bool = "auth-header-fields-enabled" false;
        user: String = "auth-header-user-field-name" "x-remote-user";
        groups: String = "auth-header-groups-field-name" "x-remote-groups";
        separator: String = "auth-header-groups-field-separator" "|";
        uid: String = "auth-header-uid-field-name" "";
        extra_prefix: String = "auth-header-extra-prefix" "";
        separator_conflict: String = "groups-separator-conflict" "drop";
        trust_inbound: bool = "trust-inbound-identity-headers" false;
    }
}

group! {
    /// What else is changed on the way to the upstream.
    ForwardFlags {
        upgrades: Vec<String> = "allow-upgrade" ["websocket".to_owned(), "SPDY/3.1".to_owned()];
        upgrades_on_ignored: bool = "allow-upgrade-on-ignored" false;
        raw_query: bool = "raw-query" false;
        strict_query: bool = "strict-query" false;
        forwarded_for: String = "forwarded-for" "append";
        bearer: bool = "forward-bearer-token" false;
        bearer_on_ignored: bool = "forward-bearer-on-ignored" false;
    }
}

group! {
    /// The API server.
    ApiFlags {
        kubeconfig: String = "kubeconfig" "";
        qps: f32 = "kube-api-qps" 0.0f32;
        burst: i64 = "kube-api-burst" 0;
        max_token_reviews: u32 = "max-tokenreviews-inflight" 64u32;
        max_access_reviews: u32 = "max-subjectaccessreviews-inflight" 64u32;
    }
}

group! {
    /// How long answers are kept.
    CacheFlags {
        authn_ttl: Duration = "authn-cache-ttl" Duration::seconds(120);
        authn_negative_ttl: Duration = "authn-negative-ttl" Duration::seconds(2);
        authn_size: u32 = "authn-cache-size" 4096u32;
        authz_allow_ttl: Duration = "authz-allow-ttl" Duration::seconds(300);
        authz_deny_ttl: Duration = "authz-deny-ttl" Duration::seconds(30);
        authz_size: u32 = "authz-cache-size" 8192u32;
        refresh_window: f32 = "auth-refresh-window" 0.25f32;
        stale_if_error: Duration = "auth-stale-if-error" Duration::seconds(0);
    }
}

group! {
    /// HTTP/2 towards clients.
    Http2Flags {
        disable: bool = "http2-disable" false;
        max_streams: u32 = "http2-max-concurrent-streams" 100u32;
        max_size: u32 = "http2-max-size" 262_144u32;
    }
}

group! {
    /// Timeouts, sizes, shutdown.
    LimitFlags {
        header_timeout: Duration = "read-header-timeout" Duration::seconds(10);
        idle_timeout: Duration = "idle-timeout" Duration::seconds(120);
        max_header_bytes: u32 = "max-header-bytes" 65_536u32;
        max_headers: u32 = "max-headers" 1024u32;
        max_connections: u32 = "max-connections" 0u32;
        shutdown_delay: Duration = "shutdown-delay" Duration::seconds(0);
        shutdown_timeout: Duration = "shutdown-timeout" Duration::seconds(25);
    }
}

group! {
    /// Logging.
    LogFlags {
        level: i32 = "v" 0;
        levels_by_file: String = "vmodule" "";
        flush_frequency: Duration = "log-flush-frequency" Duration::seconds(5);
        format: String = "logging-format" "text";
        access: bool = "access-log" false;
    }
}
