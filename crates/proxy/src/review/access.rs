//! May this caller do that?

use serde::{Deserialize, Serialize};

use super::{Extra, Identity, METADATA, Metadata, null_is_default, status};
use crate::attributes::{Check, Object};

/// What a SubjectAccessReview said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessVerdict {
    /// Yes.
    Allowed(String),
    /// No; the reason is for the log.
    Denied(String),
    /// Nobody said yes, which is a no.
    NoOpinion(String),
    /// The answer is no answer.
    Error(String),
}

#[derive(Serialize)]
struct Question<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: Metadata,
    spec: Spec<'a>,
    status: EmptyStatus,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_attributes: Option<ResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_resource_attributes: Option<NonResourceAttributes<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    user: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    extra: &'a Extra,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
}

#[derive(Serialize)]
struct ResourceAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    verb: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    subresource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct NonResourceAttributes<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    verb: &'a str,
}

#[derive(Serialize)]
struct EmptyStatus {
    allowed: bool,
}

/// The body of the question.
pub fn access_request(identity: &Identity, check: &Check) -> Vec<u8> {
    let verb = check.verb.as_ref();
    let (resource_attributes, non_resource_attributes) = match &check.object {
        Object::Resource(attributes) => {
            let attributes = ResourceAttributes {
                namespace: &attributes.namespace,
                verb,
                group: &attributes.api_group,
                version: &attributes.api_version,
                resource: &attributes.resource,
                subresource: &attributes.subresource,
                name: &attributes.name,
            };
            (Some(attributes), None)
        }
        Object::Path(path) => (None, Some(NonResourceAttributes { path, verb })),
    };
    let question = Question {
        kind: "SubjectAccessReview",
        api_version: "authorization.k8s.io/v1",
        metadata: METADATA,
        spec: Spec {
            resource_attributes,
            non_resource_attributes,
            user: &identity.user,
            groups: &identity.groups,
            extra: &identity.extra,
            uid: &identity.uid,
        },
        status: EmptyStatus { allowed: false },
    };
    serde_json::to_vec(&question).unwrap_or_default()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "null_is_default")]
    allowed: bool,
    #[serde(deserialize_with = "null_is_default")]
    denied: bool,
    #[serde(deserialize_with = "null_is_default")]
    reason: String,
    #[serde(rename = "evaluationError", deserialize_with = "null_is_default")]
    evaluation_error: String,
}

/// What the body of the answer means.
pub fn access_verdict(body: &[u8]) -> AccessVerdict {
    let status: Status = match status(body, "SubjectAccessReview") {
        Ok(status) => status,
        Err(problem) => return AccessVerdict::Error(problem),
    };
    match (status.allowed, status.denied) {
        (true, true) => AccessVerdict::Error(
            "webhook subject access review returned both allow and deny response".to_owned(),
        ),
        (false, true) => AccessVerdict::Denied(status.reason),
        (true, false) => AccessVerdict::Allowed(status.reason),
        (false, false) if status.reason.is_empty() => {
            AccessVerdict::NoOpinion(status.evaluation_error)
        }
        (false, false) => AccessVerdict::NoOpinion(status.reason),
    }
}
