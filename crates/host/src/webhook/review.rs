//! AdmissionReview: the question as the API server puts it, and the answer in the same version.
//!
//! Of the object only what decides about the patch is read; the rest is passed over, so a policy of
//! megabytes costs no more memory than its text.

use super::mutation::{Mutation, Object};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The versions of the question there have ever been.
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    /// Not a question, or one about an object of another shape.
    #[error("the AdmissionReview is not readable (line {line}, column {column})")]
    NotReadable {
        /// Line of the first error.
        line: usize,
        /// Column of the first error.
        column: usize,
    },
    /// Another kind, or a version of after our time.
    #[error("{kind:?} of {version:?} is no AdmissionReview of {}", VERSIONS.join(" or "))]
    OtherKind {
        /// The kind.
        kind: String,
        /// The version.
        version: String,
    },
    /// Nothing is asked.
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    uid: String,
    object: Option<Object>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
}

/// The answer to a question: yes, with a patch where one is needed.
pub fn answer(question: &[u8], mutation: Mutation, now: Timestamp) -> Result<Vec<u8>, NotAsked> {
    let not_readable = |error: serde_json::Error| NotAsked::NotReadable {
        line: error.line(),
        column: error.column(),
    };
    let question: Question = serde_json::from_slice(question).map_err(not_readable)?;
    let (version, kind) = (question.api_version, question.kind);
    if kind != "AdmissionReview" || !VERSIONS.contains(&version.as_str()) {
        return Err(NotAsked::OtherKind { kind, version });
    }
    let asked = question.request.ok_or(NotAsked::NoRequest)?;
    let object = asked.object.as_ref();
    let operations = object.map_or_else(Vec::new, |object| mutation.patch(object, now));
    let patch = (!operations.is_empty())
        .then(|| serde_json::to_vec(&operations).unwrap_or_default())
        .map(|patch| BASE64_STANDARD.encode(patch));
    let review = Review {
        api_version: &version,
        kind: &kind,
        response: Response {
            uid: &asked.uid,
            allowed: true,
            patch_type: patch.is_some().then_some("JSONPatch"),
            patch,
        },
    };
    Ok(serde_json::to_vec(&review).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn asked(question: &Value) -> Result<Value, String> {
        let said = answer(
            question.to_string().as_bytes(),
            Mutation::Timestamp,
            Timestamp::UNIX_EPOCH,
        );
        said.map(|it| serde_json::from_slice(&it).expect("JSON"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_answer_has_the_questions_version_and_uid_and_says_yes() {
        for version in VERSIONS {
            let question = json!({"apiVersion": version, "kind": "AdmissionReview", "request":
                {"uid": "u-1", "operation": "CREATE", "object": {"metadata": {"annotations": {}}}}});
            let said = asked(&question).expect("an answer");
            assert_eq!(said["apiVersion"], version);
            assert_eq!(said["kind"], "AdmissionReview");
            assert_eq!(said["response"]["uid"], "u-1");
            assert_eq!(said["response"]["allowed"], true);
            assert_eq!(said["response"]["patchType"], "JSONPatch");
            let patch = said["response"]["patch"].as_str().expect("a patch");
            let patch = BASE64_STANDARD.decode(patch).expect("base64");
            let expected = json!([{"op": "add", "value": "0",
                "path": "/metadata/annotations/nmstate.io~1webhook-mutating-timestamp"}]);
            let patch: Value = serde_json::from_slice(&patch).expect("JSON");
            assert_eq!(patch, expected);
        }
    }

    #[test]
    fn a_question_without_an_object_is_answered_without_a_patch() {
        let question = json!({"apiVersion": VERSIONS[0], "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "DELETE", "object": null}});
        let said = asked(&question).expect("an answer");
        assert_eq!(said["response"], json!({"uid": "u", "allowed": true}));
    }

    #[test]
    fn what_is_no_question_is_refused_by_name() {
        let refused = |question: Value| asked(&question).expect_err("a refusal");
        assert!(refused(json!([])).contains("line 1"));
        let review = |request: Value| json!({"apiVersion": VERSIONS[0], "kind": "AdmissionReview", "request": request});
        assert!(refused(review(Value::Null)).contains("no request"));
        assert!(refused(review(json!({"uid": "u", "object": {"status": 7}}))).contains("column"));
        let other = json!({"apiVersion": "admission.k8s.io/v2", "kind": "AdmissionReview"});
        assert!(refused(other).contains("admission.k8s.io/v2"));
    }
}
