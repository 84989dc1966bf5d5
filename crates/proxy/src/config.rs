//! The configuration file: kube-rbac-proxy's `authorization`, and the `tls` and `paths` we add.
//!
//! [`load`] is the only way in: what it returns has been read as the reference reads it (YAML 1.1,
//! keys in any case), its templates and patterns compiled, its rules found consistent. What the
//! reference drops in silence becomes a [`Warning`], or an error when asked to be strict. Reading the
//! file and keeping the last good one is left to the caller.

mod decode;
mod hash;
mod nearest;
mod scalar;
mod schema;
pub(crate) mod yaml;

pub use nearest::nearest;
pub use scalar::Scalar;

use crate::glob::Glob;
use crate::golang::{one_line, quote};
use crate::template::Template;

/// The number of the keys we know. A writer that knows ours writes no key of a later one.
pub const SCHEMA: u32 = 1;

/// A loaded configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Who may do what.
    pub authorization: Authorization,
    /// Whether the listener of `--listen-address` speaks TLS.
    pub tls: Option<Tls>,
    /// Paths in addition to those of the flags.
    pub paths: Paths,
}

/// Who may do what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorization {
    /// The resource that stands for the upstream; without it requests are non-resource requests.
    pub resource: Option<Attributes<Template>>,
    /// Where values for the templates come from.
    pub rewrites: Option<Rewrites>,
    /// What is allowed without asking.
    pub rules: Vec<StaticRule>,
}

/// The attributes of a resource, as text or as templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes<T> {
    /// Namespace; empty for all.
    pub namespace: T,
    /// API group; empty for the core group.
    pub api_group: T,
    /// API version.
    pub api_version: T,
    /// Plural of the resource.
    pub resource: T,
    /// Subresource.
    pub subresource: T,
    /// Name of the object; empty for all.
    pub name: T,
}

impl<T> Attributes<T> {
    /// The same attributes, each made into something else.
    pub fn map<U>(&self, mut change: impl FnMut(&T) -> U) -> Attributes<U> {
        Attributes {
            namespace: change(&self.namespace),
            api_group: change(&self.api_group),
            api_version: change(&self.api_version),
            resource: change(&self.resource),
            subresource: change(&self.subresource),
            name: change(&self.name),
        }
    }

    /// The attributes with the keys they have in the file.
    pub fn entries(&self) -> [(&'static str, &T); 6] {
        [
            ("namespace", &self.namespace),
            ("apiGroup", &self.api_group),
            ("apiVersion", &self.api_version),
            ("resource", &self.resource),
            ("subresource", &self.subresource),
            ("name", &self.name),
        ]
    }
}

/// Where the values for the templates come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrites {
    /// The query parameter; empty for none.
    pub query: String,
    /// The header; empty for none.
    pub header: String,
    /// Whether a form in the body is refused: an upstream may merge it with the query we checked.
    pub reject_form_body: bool,
}

/// What is allowed without asking. An empty field matches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticRule {
    /// The user's name.
    pub user: String,
    /// Groups of which the user must have one (deviation A6).
    pub groups: Vec<String>,
    /// The verb.
    pub verb: String,
    /// The namespace.
    pub namespace: String,
    /// The API group.
    pub api_group: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The name of the object.
    pub name: String,
    /// Whether it is about resource requests; then there is no path, otherwise there is one.
    pub resource_request: bool,
    /// The path, exactly.
    pub path: String,
}

/// Whether a listener speaks TLS, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Plaintext.
    Off,
    /// TLS and nothing else: without a usable certificate nothing is served.
    Required {
        /// Certificate chain.
        cert_file: String,
        /// Its key.
        key_file: String,
        /// Authorities of client certificates.
        client_ca_file: Option<String>,
    },
}

impl Config {
    /// The file with the authorities of client certificates.
    pub fn client_ca_file(&self) -> Option<&str> {
        match self.tls.as_ref()? {
            Tls::Required { client_ca_file, .. } => client_ca_file.as_deref(),
            Tls::Off => None,
        }
    }
}

/// Paths in addition to those of the flags; patterns may end in `/**`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Served paths.
    pub allow: Vec<Glob>,
    /// Paths served without authentication.
    pub ignore: Vec<Glob>,
}

/// What to make of keys that mean nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Warn.
    #[default]
    Warn,
    /// Refuse the file (`--strict-config`).
    Refuse,
}

/// Something in the file that is probably not what its author meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// A key without a meaning.
    #[error(
        "{} (line {line}) is not a key of the configuration and has no effect{}",
        one_line(key),
        nearest.map(|key| format!("; did you mean {key}?")).unwrap_or_default()
    )]
    UnknownKey {
        /// With the keys above it.
        key: String,
        /// Counted from one.
        line: usize,
        /// The key it looks like.
        nearest: Option<&'static str>,
    },
    /// A key that is there twice, perhaps in another case.
    #[error(
        "{} (line {line}) is given more than once; only one of them has an effect",
        one_line(key)
    )]
    Repeated {
        /// With the keys above it.
        key: String,
        /// Counted from one.
        line: usize,
    },
    /// An unquoted value that YAML 1.1 reads as something else.
    #[error(
        "{}: {} (line {line}) is read as {}; quote it if that text is meant",
        one_line(key),
        one_line(written),
        quote(read)
    )]
    Coerced {
        /// With the keys above it.
        key: String,
        /// Counted from one.
        line: usize,
        /// As it stands there.
        written: String,
        /// What it means.
        read: String,
    },
    /// A part that does nothing as things are.
    #[error("{0}")]
    Idle(String),
}

/// Why a file is not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLoaded {
    /// It cannot be read; all that is wrong with it.
    #[error("failed to read the config file: {}", .0.join("; "))]
    File(Vec<String>),
    /// A static rule contradicts itself. The words, rules and all, are the reference's.
    #[error(
        "failed to create static authorizer: invalid configuration: resource requests must not include a path: {0}"
    )]
    StaticRules(String),
}

/// Reads the text of a configuration file.
pub fn load(text: &str, strictness: Strictness) -> Result<(Config, Vec<Warning>), NotLoaded> {
    let file = |problems: Vec<String>| {
        NotLoaded::File(problems.iter().map(|problem| one_line(problem)).collect())
    };
    let document = yaml::parse(text).map_err(|problem| file(vec![problem]))?;
    let mut decoder = decode::Decoder::default();
    let config = schema::config(&mut decoder, document.as_ref());
    if strictness == Strictness::Refuse {
        decoder.refuse_meaningless();
    }
    if !decoder.problems.is_empty() {
        return Err(file(decoder.problems));
    }
    let inconsistent = |rule: &StaticRule| rule.resource_request != rule.path.is_empty();
    if config.authorization.rules.iter().any(inconsistent) {
        let rules: Vec<String> = config.authorization.rules.iter().map(printed).collect();
        return Err(NotLoaded::StaticRules(format!("[{}]", rules.join(" "))));
    }
    Ok((config, decoder.warnings))
}

/// A rule as Go prints the structure.
fn printed(rule: &StaticRule) -> String {
    format!(
        "{{{{{} [{}]}} {} {} {} {} {} {} {} {}}}",
        rule.user,
        rule.groups.join(" "),
        rule.verb,
        rule.namespace,
        rule.api_group,
        rule.resource,
        rule.subresource,
        rule.name,
        rule.resource_request,
        rule.path
    )
}
