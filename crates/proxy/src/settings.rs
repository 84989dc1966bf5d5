//! What the flags mean together: every value typed, every contradiction found, before anything is
//! opened.
//!
//! [`settle`] refuses in the reference's words and in its order; what only we can get wrong is said
//! in one sentence. Settings hold no file's content: the configuration file is [`crate::config`]'s.

mod ciphers;
mod ours;
mod reference;
mod transport;

use std::time::Duration;

use crate::attributes::{self, RuleGroups};
use crate::config::Strictness;
use crate::flags::{Flags, Given};
use crate::golang::one_line;
use crate::path::{self, Rules};
use crate::refusal::Refusal;
use crate::review::Audiences;
use crate::target::Target;
use crate::{headers, query};

pub use ciphers::{CipherSuite, TlsVersion};

/// Everything the flags say.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The configuration file.
    pub config_file: Option<String>,
    /// What to make of its unknown keys.
    pub strictness: Strictness,
    /// Where to listen.
    pub listeners: Listeners,
    /// What to proxy to.
    pub upstream: Upstream,
    /// Serving certificates and policy.
    pub tls: Tls,
    /// Which paths are served, and which without authentication.
    pub rules: Rules,
    /// How paths are read.
    pub paths: path::Mode,
    /// Whether `OPTIONS *` is answered with 200.
    pub options_star: bool,
    /// What is forwarded of a query.
    pub query: query::Policy,
    /// What is forwarded of the headers.
    pub headers: headers::Policy,
    /// How requests become checks.
    pub checks: attributes::Policy,
    /// What the groups of static rules mean.
    pub rule_groups: RuleGroups,
    /// How callers are authenticated.
    pub authn: Authn,
    /// What a request gets that cannot be decided.
    pub unavailable: Unavailable,
    /// The API server.
    pub api: Api,
    /// How long answers are kept.
    pub cache: Cache,
    /// HTTP/2 towards clients; none when disabled.
    pub http2: Option<Http2>,
    /// Timeouts, sizes, shutdown.
    pub limits: Limits,
    /// Logging.
    pub log: Log,
}

/// Where to listen. Any of them may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// TLS or not, as the configuration file says.
    pub either: Option<String>,
    /// Plain HTTP.
    pub insecure: Option<String>,
    /// HTTPS.
    pub secure: Option<String>,
    /// HTTPS with the proxy's own `/healthz`, at the host of `secure`.
    pub endpoints: Option<String>,
    /// Plain HTTP with the proxy's own endpoints.
    pub health: Option<String>,
}

/// What to proxy to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Where it is.
    pub target: Target,
    /// Whether it speaks HTTP/2 without TLS.
    pub force_h2c: bool,
    /// Authorities of its certificate; the host's own when absent.
    pub ca_file: Option<String>,
    /// Certificate and key to present (deviation A21: with or without `ca_file`).
    pub client_pair: Option<(String, String)>,
    /// Most idle connections.
    pub max_idle: usize,
    /// How long an idle one is kept.
    pub idle_timeout: Option<Duration>,
    /// How long connecting may take.
    pub connect_timeout: Option<Duration>,
}

/// Serving certificates and policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Certificate and key of the secure listener; self-signed when absent.
    pub pair: Option<(String, String)>,
    /// Names of the self-signed certificate.
    pub self_signed_san: Vec<String>,
    /// The lowest version.
    pub min_version: TlsVersion,
    /// The TLS 1.2 suites that are both asked for and possible; all possible ones when absent.
    pub cipher_suites: Option<Vec<CipherSuite>>,
    /// Key exchange groups, as they were named.
    pub curves: Vec<String>,
    /// The profile file.
    pub profile_file: Option<String>,
    /// Authorities of client certificates.
    pub client_ca_file: Option<String>,
    /// How often files are read again.
    pub reload_interval: Duration,
}

/// One way to authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authenticator {
    /// A client certificate.
    X509,
    /// A token the API server knows.
    TokenReview,
    /// A token of an OpenID Connect issuer.
    Oidc,
}

/// How callers are authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authn {
    /// In this order; the first that succeeds wins.
    pub order: Vec<Authenticator>,
    /// Audiences of tokens.
    pub audiences: Audiences,
    /// Whether tokens that say they expired are asked about.
    pub review_expired_tokens: bool,
    /// The issuer, if there is one.
    pub oidc: Option<Oidc>,
}

impl Authn {
    /// Whether this is one of the ways.
    pub fn takes(&self, way: Authenticator) -> bool {
        self.order.contains(&way)
    }
}

/// An OpenID Connect issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oidc {
    /// Its https URL.
    pub issuer: String,
    /// The audience its tokens must have.
    pub client_id: String,
    /// Claim with the groups.
    pub groups_claim: String,
    /// Claim with the name.
    pub username_claim: String,
    /// What is put before every group.
    pub groups_prefix: String,
    /// What is put before the name.
    pub username_prefix: String,
    /// Accepted algorithms.
    pub sign_algs: Vec<String>,
    /// Authorities of its certificate.
    pub ca_file: Option<String>,
}

/// What a request gets that cannot be decided because the API server cannot be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unavailable {
    /// 401 where the token, 500 where the permission is unknown.
    #[default]
    AsReference,
    /// 503 with `Retry-After`.
    ServiceUnavailable,
}

/// The API server.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    /// How to reach it; the pod's own service account when absent.
    pub kubeconfig: Option<String>,
    /// Calls per second and at once; unlimited when absent (deviation A14).
    pub throttle: Option<(f32, u32)>,
    /// Most TokenReviews under way.
    pub max_token_reviews: usize,
    /// Most SubjectAccessReviews under way.
    pub max_access_reviews: usize,
}

/// How long answers are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// An accepted token.
    pub authn_ttl: Duration,
    /// A refused token; zero for not at all.
    pub authn_negative_ttl: Duration,
    /// Most tokens.
    pub authn_size: usize,
    /// An allowed request.
    pub authz_allow_ttl: Duration,
    /// A denied request.
    pub authz_deny_ttl: Duration,
    /// Most decisions.
    pub authz_size: usize,
    /// The last part of a life in which use renews it; zero for none.
    pub refresh_window: f32,
    /// How long past its time an allowing answer may be used in an outage; zero for not at all.
    pub stale_if_error: Duration,
}

/// HTTP/2 towards clients, the reference's arithmetic done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Most streams of a connection.
    pub max_streams: u32,
    /// Largest frame.
    pub max_frame: u32,
    /// Window of a stream.
    pub stream_window: u32,
    /// Window of a connection.
    pub connection_window: u32,
}

/// Timeouts, sizes, shutdown. An absent timeout is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// To send a request's headers.
    pub header_timeout: Option<Duration>,
    /// For an idle client connection.
    pub idle_timeout: Option<Duration>,
    /// Bytes of a request's headers.
    pub max_header_bytes: usize,
    /// Headers of a request.
    pub max_headers: usize,
    /// Client connections.
    pub max_connections: Option<usize>,
    /// To go on accepting before shutting down.
    pub shutdown_delay: Duration,
    /// For requests and tunnels to finish.
    pub shutdown_timeout: Option<Duration>,
}

/// Logging.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Verbosity.
    pub level: i32,
    /// Whether lines are JSON.
    pub json: bool,
    /// Whether every request is logged.
    pub access: bool,
}

/// Settings, and what the log should say about them once.
pub type Settled = (Settings, Vec<String>);

/// Finds out what the flags mean, or the first thing wrong with them.
pub fn settle(flags: &Flags, given: &Given) -> Result<Settled, Refusal> {
    let mut notices = reference::notices(flags, given);
    let rules = reference::rules(flags)?;
    let target = reference::target(flags, &mut notices)?;
    let throttle = reference::throttle(flags, &mut notices)?;
    let oidc = reference::oidc(flags)?;
    let (min_version, cipher_suites) = ciphers::tls_policy(flags, &mut notices)?;
    let mut ours = ours::Ours::default();
    let settings = Settings {
        config_file: given_text(&flags.config_file),
        strictness: match flags.strict_config {
            true => Strictness::Refuse,
            false => Strictness::Warn,
        },
        listeners: ours.listeners(flags, &mut notices),
        upstream: ours.upstream(flags, target),
        tls: ours.tls(flags, min_version, cipher_suites),
        rules,
        paths: match flags.paths.lenient {
            true => path::Mode::Lenient,
            false => path::Mode::Strict,
        },
        options_star: flags.paths.options_star,
        query: ours.query(flags),
        headers: ours.headers(flags, &mut notices),
        checks: ours.checks(flags),
        rule_groups: match flags.auth.static_ignore_groups {
            true => RuleGroups::Ignored,
            false => RuleGroups::Enforced,
        },
        authn: ours.authn(flags, oidc),
        unavailable: ours.unavailable(flags),
        api: ours.api(flags, throttle),
        cache: ours.cache(flags),
        http2: reference::http2(flags),
        limits: ours.limits(flags),
        log: ours.log(flags),
    };
    ours.refuse()?;
    notices.extend(settings.idle_client_ca());
    // Some name what was given, which may hold anything.
    let notices = notices.iter().map(|notice| one_line(notice)).collect();
    Ok((settings, notices))
}

impl Settings {
    /// What to say about a `--client-ca-file` that nobody is checked against.
    fn idle_client_ca(&self) -> Option<String> {
        self.tls.client_ca_file.as_ref()?;
        let why = match (
            self.authn.takes(Authenticator::X509),
            &self.listeners.secure,
        ) {
            (false, _) => {
                "client certificates are not a way to authenticate: name x509 in --authn-order"
            }
            (true, None) => {
                "there is no --secure-listen-address: for --listen-address set tls.clientCAFile in the configuration"
            }
            (true, Some(_)) => return None,
        };
        Some(format!("--client-ca-file has no effect, because {why}"))
    }

    /// Refuses settings without a listener. The reference finds this out last, after it has read
    /// every file, so it is asked apart.
    pub fn require_listener(&self) -> Result<(), Refusal> {
        let Listeners {
            either,
            insecure,
            secure,
            ..
        } = &self.listeners;
        match either.is_none() && insecure.is_none() && secure.is_none() {
            true => Err(Refusal::NoListener),
            false => Ok(()),
        }
    }
}

fn given_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
