//! Validation of what the reference does not have: everything wrong is gathered and said at once.

use std::time::Duration;

use http::header::HeaderName;

use super::{Api, Authenticator, Authn, Cache, Log, Oidc, Unavailable, given_text};
use crate::attributes::{self, VerbMapping};
use crate::flags::Flags;
use crate::headers::{self, Bearer, Conflict, ForwardedFor, IdentityHeaders, Upgrades};
use crate::refusal::Refusal;
use crate::review::Audiences;
use crate::{golang, query};

/// Gathers what is wrong.
#[derive(Default)]
pub(super) struct Ours {
    faults: Vec<String>,
}

/// Headers that mean something else to somebody on the way.
const RESERVED: [&str; 12] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
];

impl Ours {
    pub(super) fn refuse(self) -> Result<(), Refusal> {
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Flags(self.faults)),
        }
    }

    pub(super) fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(golang::one_line(&fault.into()));
    }

    /// One of a few words.
    fn word<T: Copy>(&mut self, flag: &str, given: &str, words: &[(&str, T)]) -> Option<T> {
        let found = words.iter().find(|(word, _)| *word == given);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let given = golang::quote(given);
            self.fault(format!(
                "--{flag} must be one of {}, not {given}",
                names.join(", ")
            ));
        }
        found.map(|(_, value)| *value)
    }

    /// A span of time that may be zero.
    pub(super) fn span(&mut self, flag: &str, given: golang::Duration) -> Duration {
        given.positive().unwrap_or_else(|| {
            self.fault(format!("--{flag} must not be negative"));
            Duration::ZERO
        })
    }

    /// A timeout, zero for none.
    pub(super) fn timeout(&mut self, flag: &str, given: golang::Duration) -> Option<Duration> {
        Some(self.span(flag, given)).filter(|span| !span.is_zero())
    }

    /// A number of at least one.
    pub(super) fn count(&mut self, flag: &str, given: u32) -> usize {
        if given == 0 {
            self.fault(format!("--{flag} must be at least 1"));
        }
        usize::try_from(given).unwrap_or(usize::MAX)
    }

    /// Two files that need each other.
    pub(super) fn pair(
        &mut self,
        cert: (&str, &str),
        key: (&str, &str),
    ) -> Option<(String, String)> {
        match (cert.1.is_empty(), key.1.is_empty()) {
            (true, true) => None,
            (false, false) => Some((cert.1.to_owned(), key.1.to_owned())),
            _ => {
                self.fault(format!("--{} and --{} need each other", cert.0, key.0));
                None
            }
        }
    }

    pub(super) fn query(&mut self, flags: &Flags) -> query::Policy {
        match (flags.forward.raw_query, flags.forward.strict_query) {
            (true, true) => {
                self.fault("--raw-query and --strict-query contradict each other");
                query::Policy::Strict
            }
            (true, false) => query::Policy::Raw,
            (false, true) => query::Policy::Strict,
            (false, false) => query::Policy::Cleaned,
        }
    }

    pub(super) fn headers(&mut self, flags: &Flags, notices: &mut Vec<String>) -> headers::Policy {
        let bearer = |passed| match passed {
            true => Bearer::Passed,
            false => Bearer::Dropped,
        };
        let forward = &flags.forward;
        let forwarded_for = self.word(
            "forwarded-for",
            &forward.forwarded_for,
            &[
                ("append", ForwardedFor::Append),
                ("replace", ForwardedFor::Replace),
                ("off", ForwardedFor::Off),
            ],
        );
        headers::Policy {
            identity: self.identity(flags, notices),
            upgrades: Upgrades {
                names: forward.upgrades.clone(),
                on_exempt: forward.upgrades_on_ignored,
            },
            forwarded_for: forwarded_for.unwrap_or_default(),
            bearer: bearer(forward.bearer),
            bearer_on_exempt: bearer(forward.bearer_on_ignored),
        }
    }

    fn identity(&mut self, flags: &Flags, notices: &mut Vec<String>) -> IdentityHeaders {
        let default = IdentityHeaders::default();
        let given = &flags.headers;
        let conflict = self.word(
            "groups-separator-conflict",
            &given.separator_conflict,
            &[
                ("drop", Conflict::Drop),
                ("reject", Conflict::Reject),
                ("keep", Conflict::Keep),
            ],
        );
        if given.enabled && given.separator.is_empty() {
            notices.push(
                "--auth-header-groups-field-separator is empty: each group gets a line of its own"
                    .to_owned(),
            );
        }
        let mut header = |flag: &str, name: &str| match given.enabled {
            true => self.header(flag, name),
            // Only to be stripped; a name that cannot be is none the reference minds.
            false => HeaderName::from_bytes(name.as_bytes())
                .ok()
                .filter(|name| !RESERVED.contains(&name.as_str())),
        };
        let user = header("auth-header-user-field-name", &given.user);
        let groups = header("auth-header-groups-field-name", &given.groups);
        let uid = match given.uid.as_str() {
            "" => None,
            uid => header("auth-header-uid-field-name", uid),
        };
        let prefix = given.extra_prefix.to_ascii_lowercase();
        if !prefix.is_empty() && HeaderName::from_bytes(prefix.as_bytes()).is_err() {
            self.fault("--auth-header-extra-prefix cannot begin a header's name");
        }
        let names: Vec<&HeaderName> = [&user, &groups, &uid].into_iter().flatten().collect();
        let mut places = names.iter().enumerate();
        if given.enabled && places.any(|(at, name)| names[..at].contains(name)) {
            self.fault("the headers for user, groups and uid must be different ones");
        }
        IdentityHeaders {
            enabled: given.enabled,
            user: user.unwrap_or(default.user),
            groups: groups.unwrap_or(default.groups),
            separator: given.separator.clone(),
            uid,
            extra_prefix: Some(prefix).filter(|prefix| !prefix.is_empty()),
            conflict: conflict.unwrap_or_default(),
            trust_inbound: given.trust_inbound,
        }
    }

    fn header(&mut self, flag: &str, given: &str) -> Option<HeaderName> {
        match HeaderName::from_bytes(given.as_bytes()) {
            Ok(name) if !RESERVED.contains(&name.as_str()) => Some(name),
            Ok(_) => {
                self.fault(format!("--{flag}: {given} has a meaning of its own"));
                None
            }
            Err(_) => {
                let given = golang::quote(given);
                self.fault(format!("--{flag}: {given} is not the name of a header"));
                None
            }
        }
    }

    pub(super) fn checks(&mut self, flags: &Flags) -> attributes::Policy {
        let verbs = self.word(
            "verb-mapping",
            &flags.auth.verb_mapping,
            &[
                ("krp", VerbMapping::KubeRbacProxy),
                ("kubernetes", VerbMapping::Kubernetes),
            ],
        );
        attributes::Policy {
            verbs: verbs.unwrap_or_default(),
            most_values: self.count("max-rewrite-values", flags.auth.max_rewrite_values),
        }
    }

    pub(super) fn authn(&mut self, flags: &Flags, oidc: Option<Oidc>) -> Authn {
        let words = [
            ("x509", Authenticator::X509),
            ("tokenreview", Authenticator::TokenReview),
            ("oidc", Authenticator::Oidc),
        ];
        let mut order: Vec<Authenticator> = Vec::new();
        for name in &flags.auth.order {
            match self.word("authn-order", name, &words) {
                Some(found) if order.contains(&found) => {
                    self.fault(format!("--authn-order names {name} twice"));
                }
                found => order.extend(found),
            }
        }
        match (&oidc, order.is_empty()) {
            (Some(_), true) => order = vec![Authenticator::Oidc],
            (None, true) => order = vec![Authenticator::X509, Authenticator::TokenReview],
            (Some(_), false) if !order.contains(&Authenticator::Oidc) => {
                self.fault("--authn-order leaves out oidc though --oidc-issuer is set");
            }
            (None, false) if order.contains(&Authenticator::Oidc) => {
                self.fault("--authn-order names oidc though --oidc-issuer is not set");
            }
            _ => {}
        }
        Authn {
            order,
            audiences: Audiences {
                wanted: flags.auth.audiences.clone(),
                accept_unnamed: flags.auth.allow_empty_audience,
            },
            review_expired_tokens: flags.auth.review_expired_tokens,
            oidc,
        }
    }

    pub(super) fn unavailable(&mut self, flags: &Flags) -> Unavailable {
        match flags.auth.unavailable_status {
            0 => Unavailable::AsReference,
            503 => Unavailable::ServiceUnavailable,
            _ => {
                self.fault("--unavailable-status must be 503, or 0 for the reference's");
                Unavailable::AsReference
            }
        }
    }

    pub(super) fn api(&mut self, flags: &Flags, throttle: Option<(f32, u32)>) -> Api {
        let api = &flags.api;
        Api {
            kubeconfig: given_text(&api.kubeconfig),
            throttle,
            max_token_reviews: self.count("max-tokenreviews-inflight", api.max_token_reviews),
            max_access_reviews: self
                .count("max-subjectaccessreviews-inflight", api.max_access_reviews),
        }
    }

    pub(super) fn cache(&mut self, flags: &Flags) -> Cache {
        let cache = &flags.cache;
        if !(0.0..1.0).contains(&cache.refresh_window) {
            self.fault("--auth-refresh-window must be from 0 to below 1");
        }
        let stale_if_error = self.span("auth-stale-if-error", cache.stale_if_error);
        if stale_if_error > Duration::from_secs(3600) {
            self.fault("--auth-stale-if-error must be at most 1h");
        }
        Cache {
            authn_ttl: self.span("authn-cache-ttl", cache.authn_ttl),
            authn_negative_ttl: self.span("authn-negative-ttl", cache.authn_negative_ttl),
            authn_size: self.count("authn-cache-size", cache.authn_size),
            authz_allow_ttl: self.span("authz-allow-ttl", cache.authz_allow_ttl),
            authz_deny_ttl: self.span("authz-deny-ttl", cache.authz_deny_ttl),
            authz_size: self.count("authz-cache-size", cache.authz_size),
            refresh_window: cache.refresh_window,
            stale_if_error,
        }
    }

    pub(super) fn log(&mut self, flags: &Flags) -> Log {
        let formats = [("text", false), ("json", true)];
        let json = self.word("logging-format", &flags.log.format, &formats);
        Log {
            level: flags.log.level,
            json: json.unwrap_or_default(),
            access: flags.log.access,
        }
    }
}
