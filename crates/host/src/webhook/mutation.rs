//! The three changes to a policy, each as a JSON patch.
//!
//! Pure: what little of the object matters and a time in, operations out. A patch touches nothing
//! but what it names, and a field that is `null` counts as absent.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::host::{
    POLICY_MUTATE_PATH, POLICY_STATUS_MUTATE_PATH, POLICY_TIMESTAMP_MUTATE_PATH,
};
use keelson_api::host_condition::PolicyCondition;
use keelson_api::names::Annotation;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// A policy that is written begins with no conditions.
    EmptyConditions,
    /// A status without conditions has them all, unknown.
    UnknownConditions,
    /// An annotation says when.
    Timestamp,
}

/// Of an object, what decides about a patch.
#[derive(Debug, Default, Deserialize)]
pub struct Object {
    metadata: Option<Metadata>,
    status: Option<Status>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    annotations: Option<Annotations>,
}

/// That there are annotations, whatever they are.
#[derive(Debug, Deserialize)]
struct Annotations {}

#[derive(Debug, Deserialize)]
struct Status {
    conditions: Option<Vec<IgnoredAny>>,
}

/// One operation of a patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    op: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

impl Operation {
    fn add(path: impl Into<String>, value: Value) -> Self {
        Self {
            op: "add",
            path: path.into(),
            value: Some(value),
        }
    }

    fn remove(path: impl Into<String>) -> Self {
        Self {
            op: "remove",
            path: path.into(),
            value: None,
        }
    }
}

impl Mutation {
    /// What is done at this path.
    pub fn at(path: &str) -> Option<Self> {
        match path {
            POLICY_MUTATE_PATH => Some(Self::EmptyConditions),
            POLICY_STATUS_MUTATE_PATH => Some(Self::UnknownConditions),
            POLICY_TIMESTAMP_MUTATE_PATH => Some(Self::Timestamp),
            _ => None,
        }
    }

    /// The operations that change this object.
    pub fn patch(self, object: &Object, now: Timestamp) -> Vec<Operation> {
        let conditions = object.status.as_ref().map(|it| it.conditions.as_deref());
        match self {
            Self::EmptyConditions => match conditions {
                Some(Some([_, ..])) => vec![Operation::remove("/status/conditions")],
                _ => Vec::new(),
            },
            Self::UnknownConditions => match conditions {
                Some(Some([_, ..])) => Vec::new(),
                Some(_) => vec![Operation::add("/status/conditions", unknown(now))],
                None => {
                    let status = json!({ "conditions": unknown(now) });
                    vec![Operation::add("/status", status)]
                }
            },
            Self::Timestamp => {
                let (name, text) = (
                    Annotation::MutatedAt.as_str(),
                    now.as_nanosecond().to_string(),
                );
                let metadata = object.metadata.as_ref();
                vec![match metadata.map(|it| it.annotations.is_some()) {
                    Some(true) => {
                        let path = format!("/metadata/annotations/{}", escaped(name));
                        Operation::add(path, text.into())
                    }
                    Some(false) => Operation::add("/metadata/annotations", json!({ name: text })),
                    None => Operation::add("/metadata", json!({ "annotations": { name: text } })),
                }]
            }
        }
    }
}

fn unknown(now: Timestamp) -> Value {
    let at = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let conditions = PolicyCondition::ALL.iter().map(|kind| {
        let condition = HostCondition::new(*kind, Truth::Unknown, None, None, Time(at));
        serde_json::to_value(condition).unwrap_or_default()
    });
    conditions.collect()
}

/// A key as a part of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(mutation: Mutation, object: Value) -> Value {
        let object: Object = serde_json::from_value(object).expect("an object");
        let now = Timestamp::new(1_700_000_000, 123_456_789).expect("a time");
        json!(mutation.patch(&object, now))
    }

    #[test]
    fn conditions_of_a_written_policy_are_taken_away_and_nothing_else() {
        let emptied = |object| patch(Mutation::EmptyConditions, object);
        let full = json!({"spec": {"x": 1}, "status": {"other": 1, "conditions": [{"type": "Available"}]}});
        assert_eq!(
            emptied(full),
            json!([{"op": "remove", "path": "/status/conditions"}])
        );
        for nothing in [
            json!({"spec": {}}),
            json!({"status": null}),
            json!({"status": {}}),
            json!({"status": {"conditions": null}}),
            json!({"status": {"conditions": []}}),
        ] {
            assert_eq!(emptied(nothing.clone()), json!([]), "{nothing}");
        }
    }

    #[test]
    fn a_status_without_conditions_gets_all_four_unknown_without_a_reason() {
        let at = "2023-11-14T22:13:20Z";
        let kinds = ["Available", "Degraded", "Progressing", "Ignored"];
        let all: Value = kinds
            .map(|kind| json!({"type": kind, "status": "Unknown", "lastHeartbeatTime": at, "lastTransitionTime": at}))
            .into_iter()
            .collect();
        for (object, path, value) in [
            (json!({}), "/status", json!({"conditions": all.clone()})),
            (
                json!({"status": null}),
                "/status",
                json!({"conditions": all.clone()}),
            ),
            (
                json!({"status": {"x": 1}}),
                "/status/conditions",
                all.clone(),
            ),
            (
                json!({"status": {"conditions": []}}),
                "/status/conditions",
                all.clone(),
            ),
            (
                json!({"status": {"conditions": null}}),
                "/status/conditions",
                all.clone(),
            ),
        ] {
            let expected = json!([{"op": "add", "path": path, "value": value}]);
            assert_eq!(
                patch(Mutation::UnknownConditions, object.clone()),
                expected,
                "{object}"
            );
        }
    }

    #[test]
    fn conditions_that_are_there_are_left_alone_by_the_status_webhook() {
        let object = json!({"status": {"conditions": [{"type": "Degraded"}]}});
        assert_eq!(patch(Mutation::UnknownConditions, object), json!([]));
    }

    #[test]
    fn the_time_of_writing_is_an_annotation_in_nanoseconds_beside_the_others() {
        let (key, at) = (
            "nmstate.io/webhook-mutating-timestamp",
            "1700000000123456789",
        );
        for (object, path, value) in [
            (
                json!({"metadata": {"annotations": {"a": "b", key: "1"}}}),
                "/metadata/annotations/nmstate.io~1webhook-mutating-timestamp",
                json!(at),
            ),
            (
                json!({"metadata": {"annotations": {}}}),
                "/metadata/annotations/nmstate.io~1webhook-mutating-timestamp",
                json!(at),
            ),
            (
                json!({"metadata": {"annotations": null}}),
                "/metadata/annotations",
                json!({key: at}),
            ),
            (
                json!({"metadata": {}}),
                "/metadata/annotations",
                json!({key: at}),
            ),
            (json!({}), "/metadata", json!({"annotations": {key: at}})),
        ] {
            let expected = json!([{"op": "add", "path": path, "value": value}]);
            assert_eq!(
                patch(Mutation::Timestamp, object.clone()),
                expected,
                "{object}"
            );
        }
    }

    #[test]
    fn each_mutation_has_the_originals_path() {
        let at =
            |word: &str| Mutation::at(&format!("/nodenetworkconfigurationpolicies{word}-mutate"));
        assert_eq!(at(""), Some(Mutation::EmptyConditions));
        assert_eq!(at("-status"), Some(Mutation::UnknownConditions));
        assert_eq!(at("-timestamp"), Some(Mutation::Timestamp));
        assert_eq!(at("-other"), None);
    }
}
