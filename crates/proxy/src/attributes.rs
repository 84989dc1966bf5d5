//! From a request to what its caller must be permitted to do.
//!
//! A request becomes one or more [`Check`]s, all of which must be allowed. Static rules allow some
//! without a question ([`allowed_statically`]); the others are put to the API server by whoever holds
//! a client.

use std::borrow::Cow;
use std::fmt;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method};

use crate::config::{Attributes, Authorization, Rewrites, StaticRule};
use crate::outcome::Subject;
use crate::query::Query;
use crate::review::Identity;
use crate::template::Template;

/// Which verb a method is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerbMapping {
    /// As kube-rbac-proxy: five methods have a verb, the others `*`, for resources and paths alike.
    #[default]
    KubeRbacProxy,
    /// As Kubernetes: HEAD is `get` on a resource, and on a path the verb is the method in lower case.
    Kubernetes,
}

/// What a caller must be permitted to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// The verb.
    pub verb: Cow<'static, str>,
    /// To what.
    pub object: Object,
}

/// What a verb is applied to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// A resource.
    Resource(Attributes<String>),
    /// A path, decoded.
    Path(String),
}

/// A request, as far as permissions depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, decoded.
    pub path: &'a str,
    /// The query.
    pub query: &'a Query,
    /// The headers as the client sent them.
    pub headers: &'a HeaderMap,
}

/// Why no checks can be made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Rewrites are configured and the request has no value.
    #[error("the request has no value for the configured rewrites")]
    NoValue,
    /// It has more than we are willing to ask about.
    #[error("the request has more than {0} different values for the configured rewrites")]
    TooMany(usize),
    /// It has a form in the body, which the upstream may merge with the query.
    #[error("the request has a form in its body")]
    Form,
}

/// How requests become checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which verb a method is.
    pub verbs: VerbMapping,
    /// Most values of one request.
    pub most_values: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            verbs: VerbMapping::default(),
            most_values: 64,
        }
    }
}

/// The checks of a request: at least one, no two the same, in the order of the values.
pub fn checks(
    authorization: &Authorization,
    asked: Asked<'_>,
    policy: Policy,
) -> Result<Vec<Check>, Malformed> {
    let Some(resource) = &authorization.resource else {
        let verb = path_verb(asked.method, policy.verbs);
        let object = Object::Path(asked.path.to_owned());
        return Ok(vec![Check { verb, object }]);
    };
    let verb = resource_verb(asked.method, policy.verbs);
    let check = |value: &str| Check {
        verb: verb.clone(),
        object: Object::Resource(rendered(resource, value)),
    };
    let Some(rewrites) = &authorization.rewrites else {
        return Ok(vec![check("")]);
    };
    if rewrites.reject_form_body && has_form(asked.headers) {
        return Err(Malformed::Form);
    }
    let values = values(rewrites, asked, policy.most_values)?;
    let mut checks: Vec<Check> = Vec::with_capacity(values.len());
    for value in &values {
        let check = check(value);
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    Ok(checks)
}

fn rendered(resource: &Attributes<Template>, value: &str) -> Attributes<String> {
    resource.map(|template| template.render(value))
}

/// The different values: those of the query in order, then those of the header.
fn values(rewrites: &Rewrites, asked: Asked<'_>, most: usize) -> Result<Vec<String>, Malformed> {
    let query = asked
        .query
        .values(&rewrites.query)
        .filter(|_| !rewrites.query.is_empty())
        .map(Cow::Borrowed);
    // Every line is a value; commas do not part them.
    let header = asked
        .headers
        .get_all(rewrites.header.as_str())
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()));
    let mut values: Vec<String> = Vec::new();
    for value in query.chain(header) {
        if values.iter().any(|known| *known == value) {
            continue;
        }
        if values.len() == most {
            return Err(Malformed::TooMany(most));
        }
        values.push(value.into_owned());
    }
    match values.is_empty() {
        true => Err(Malformed::NoValue),
        false => Ok(values),
    }
}

fn has_form(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_TYPE).iter().any(|value| {
        let value = value.as_bytes().to_ascii_lowercase();
        let kind = value.split(|byte| *byte == b';').next().unwrap_or_default();
        matches!(
            kind.trim_ascii(),
            b"application/x-www-form-urlencoded" | b"multipart/form-data"
        )
    })
}

fn resource_verb(method: &Method, mapping: VerbMapping) -> Cow<'static, str> {
    Cow::Borrowed(match (method.as_str(), mapping) {
        ("POST", _) => "create",
        ("GET", _) | ("HEAD", VerbMapping::Kubernetes) => "get",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        _ => "*",
    })
}

fn path_verb(method: &Method, mapping: VerbMapping) -> Cow<'static, str> {
    match mapping {
        VerbMapping::KubeRbacProxy => resource_verb(method, mapping),
        VerbMapping::Kubernetes => Cow::Owned(method.as_str().to_ascii_lowercase()),
    }
}

/// What a static rule's groups mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleGroups {
    /// The user must have one of them (deviation A6).
    #[default]
    Enforced,
    /// Nothing (`--static-ignore-groups`).
    Ignored,
}

/// Whether a static rule allows the check. Rules never deny.
pub fn allowed_statically(
    rules: &[StaticRule],
    check: &Check,
    identity: &Identity,
    groups: RuleGroups,
) -> bool {
    rules
        .iter()
        .any(|rule| applies(rule, check) && admits(rule, identity, groups))
}

fn admits(rule: &StaticRule, identity: &Identity, groups: RuleGroups) -> bool {
    let named = rule.user.is_empty() || rule.user == identity.user;
    let member = rule.groups.is_empty()
        || groups == RuleGroups::Ignored
        || rule
            .groups
            .iter()
            .any(|group| identity.groups.contains(group));
    named && member
}

fn applies(rule: &StaticRule, check: &Check) -> bool {
    let any_or = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    if !any_or(&rule.verb, &check.verb) {
        return false;
    }
    match &check.object {
        Object::Resource(attributes) => {
            rule.resource_request
                && any_or(&rule.namespace, &attributes.namespace)
                && any_or(&rule.api_group, &attributes.api_group)
                && any_or(&rule.resource, &attributes.resource)
                && any_or(&rule.subresource, &attributes.subresource)
                && any_or(&rule.name, &attributes.name)
        }
        Object::Path(path) => {
            // A path has no namespace, so a rule that asks for one does not match.
            let resource = [
                &rule.namespace,
                &rule.api_group,
                &rule.resource,
                &rule.subresource,
                &rule.name,
            ];
            !rule.resource_request
                && any_or(&rule.path, path)
                && resource.iter().all(|field| field.is_empty())
        }
    }
}

impl Check {
    /// What a refusal of this check says.
    pub fn subject(&self, identity: &Identity) -> Subject {
        let (resource, subresource) = match &self.object {
            Object::Resource(attributes) => {
                (attributes.resource.clone(), attributes.subresource.clone())
            }
            Object::Path(_) => Default::default(),
        };
        Subject {
            user: identity.user.clone(),
            verb: self.verb.to_string(),
            resource,
            subresource,
        }
    }
}

impl fmt::Display for Check {
    /// Everything, for the log: what the reply must not say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "verb={}", self.verb)?;
        match &self.object {
            Object::Path(path) => write!(f, " path={path:?}"),
            Object::Resource(attributes) => attributes
                .entries()
                .iter()
                .filter(|(_, text)| !text.is_empty())
                .try_for_each(|(key, text)| write!(f, " {key}={text:?}")),
        }
    }
}
