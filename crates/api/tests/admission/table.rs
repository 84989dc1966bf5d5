//! Rows of the tables, and how they are run.

use std::collections::BTreeSet;

use futures::StreamExt;
use keelson_api::crds;
use keelson_testbed::Cluster;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Client, CustomResourceExt};
use serde_json::{Value, json};

/// What must come of a row.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// The last object is stored.
    Accepted,
    /// The last object is refused, and the message says this.
    Refused(&'static str),
}

/// One or two objects applied one over the other.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    what: String,
    resource: ApiResource,
    namespaced: bool,
    name: Option<String>,
    before: Option<Value>,
    after: Value,
    verdict: Verdict,
}

impl Row {
    /// Gives the object a name of its own.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

/// A table of one kind.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    resource: fn() -> ApiResource,
    namespaced: bool,
}

impl Table {
    /// A table for a kind.
    pub(crate) fn of<K: CustomResourceExt>(namespaced: bool) -> Self {
        Self {
            resource: K::api_resource,
            namespaced,
        }
    }

    fn row(self, what: &str, before: Option<Value>, after: Value, verdict: Verdict) -> Row {
        let resource = (self.resource)();
        let what = format!("{}: {what}", resource.kind);
        Row {
            what,
            resource,
            namespaced: self.namespaced,
            name: None,
            before,
            after,
            verdict,
        }
    }

    /// A new object is accepted.
    pub(crate) fn accepts(self, what: &str, spec: Value) -> Row {
        self.row(what, None, spec, Verdict::Accepted)
    }

    /// A new object is refused with this in the message.
    pub(crate) fn refuses(self, what: &str, spec: Value, message: &'static str) -> Row {
        self.row(what, None, spec, Verdict::Refused(message))
    }

    /// A change is accepted.
    pub(crate) fn allows(self, what: &str, before: Value, after: Value) -> Row {
        self.row(what, Some(before), after, Verdict::Accepted)
    }

    /// A change is refused with this in the message.
    pub(crate) fn forbids(
        self,
        what: &str,
        before: Value,
        after: Value,
        message: &'static str,
    ) -> Row {
        self.row(what, Some(before), after, Verdict::Refused(message))
    }

    /// All changes among absent and the given states. `forbidden` gives the message of a change
    /// that is refused.
    pub(crate) fn transitions(
        self,
        field: &str,
        states: &[(&str, Value)],
        forbidden: impl Fn(&str, &str) -> Option<&'static str>,
    ) -> Vec<Row> {
        let mut rows = Vec::new();
        for (old, before) in states {
            for (new, after) in states {
                let what = format!("{field} from {old} to {new}");
                let verdict = match forbidden(old, new) {
                    Some(message) => Verdict::Refused(message),
                    None => Verdict::Accepted,
                };
                rows.push(self.row(&what, Some(before.clone()), after.clone(), verdict));
            }
        }
        rows
    }
}

/// For fields that may be given later but never changed.
pub(crate) fn set_once(message: &'static str) -> impl Fn(&str, &str) -> Option<&'static str> {
    move |old, new| (old != new && old != "absent").then_some(message)
}

/// For fields that never change.
pub(crate) fn fixed(message: &'static str) -> impl Fn(&str, &str) -> Option<&'static str> {
    move |old, new| (old != new).then_some(message)
}

/// For fields that change freely.
pub(crate) fn free(_: &str, _: &str) -> Option<&'static str> {
    None
}

/// The value with something set at a dotted path.
pub(crate) fn with(mut value: Value, path: &str, new: Value) -> Value {
    let mut place = &mut value;
    for key in path.split('.') {
        place = &mut place[key];
    }
    *place = new;
    value
}

/// Runs every row, a few at a time, and fails naming all that went wrong.
pub(crate) async fn run(label: &str, rows: Vec<Row>) {
    let cluster = Cluster::shared().await;
    cluster.install_crds().await.unwrap();
    let namespace = cluster.namespace(label).await;
    let client = cluster.client();
    let total = rows.len();
    let outcomes = futures::stream::iter(rows.into_iter().enumerate()).map(|(index, row)| {
        let (client, space) = (client.clone(), namespace.name().to_owned());
        async move { judge(client, &space, &format!("{space}-{index}"), row).await }
    });
    let wrong: Vec<String> = outcomes
        .buffer_unordered(12)
        .filter_map(async |outcome| outcome.err())
        .collect()
        .await;
    assert!(
        wrong.is_empty(),
        "{} of {total} rows went wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{total} rows of {label}");
}

async fn judge(client: Client, space: &str, name: &str, row: Row) -> Result<(), String> {
    let api: Api<DynamicObject> = match row.namespaced {
        true => Api::namespaced_with(client, space, &row.resource),
        false => Api::all_with(client, &row.resource),
    };
    let name = row.name.as_deref().unwrap_or(name);
    if let Some(before) = &row.before {
        let applied = apply(&api, &row.resource, name, before).await;
        applied.map_err(|error| {
            format!(
                "- {}: the object to be changed was refused: {error}",
                row.what
            )
        })?;
    }
    let applied = apply(&api, &row.resource, name, &row.after).await;
    match (row.verdict, applied) {
        (Verdict::Accepted, Ok(())) => Ok(()),
        (Verdict::Accepted, Err(error)) => Err(format!("- {}: refused: {error}", row.what)),
        (Verdict::Refused(_), Ok(())) => Err(format!("- {}: accepted", row.what)),
        (Verdict::Refused(message), Err(error)) if error.contains(message) => Ok(()),
        (Verdict::Refused(message), Err(error)) => Err(format!(
            "- {}: refused, but not with {message:?}: {error}",
            row.what
        )),
    }
}

/// Applies as a person would with `kubectl apply --server-side`, unknown fields refused.
async fn apply(
    api: &Api<DynamicObject>,
    kind: &ApiResource,
    name: &str,
    spec: &Value,
) -> Result<(), String> {
    let object = json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": { "name": name },
        "spec": spec,
    });
    let params = PatchParams::apply("admission-test").validation_strict();
    match api.patch(name, &params, &Patch::Apply(&object)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(other) => panic!("{name}: {other}"),
    }
}

/// Every message of a rule is expected by some row, so that no rule stands untested.
pub(crate) fn assert_every_rule_refuses(rows: &[Row]) {
    let expected: Vec<&str> = rows
        .iter()
        .filter_map(|row| match row.verdict {
            Verdict::Refused(message) => Some(message),
            Verdict::Accepted => None,
        })
        .collect();
    let mut messages = BTreeSet::new();
    for crd in crds::all() {
        collect(&serde_json::to_value(crd).unwrap(), &mut messages);
    }
    assert!(messages.len() > 20, "the rules were not found");
    let untested: Vec<_> = messages
        .iter()
        .filter(|text| !expected.iter().any(|part| text.contains(part)))
        .collect();
    assert!(untested.is_empty(), "no row is refused by: {untested:#?}");
}

fn collect(value: &Value, messages: &mut BTreeSet<String>) {
    for rule in value["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        messages.insert(rule["message"].as_str().unwrap_or_default().to_owned());
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|field| collect(field, messages)),
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, messages)),
        _ => {}
    }
}
