//! The API described for others: an OpenAPI document made from the types.

use keelson_api::names::Port;
use keelson_api::task::TaskType;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::answer::{ErrorResponse, NodeIdResponse, StatusResponse, TaskSubmitResponse};
use crate::params::{
    AwaitCondition, ConfigApply, ConfigPatch, ConfigureGenesis, ConfigureStateSync, DiscoverPeers,
    SnapshotRestore,
};
use crate::result::{Failure, ResetDataResult, SnapshotUploadResult, TaskResult};
use crate::route::{self, Route};
use crate::{Object, Task};

const ABOUT: &str = "\
The sidecar beside seid runs tasks that whoever calls names by an id of their own, and holds the gate \
that seid's container waits at.

A task is submitted once and then asked for until it is completed or failed. Submitting an id that \
runs or is completed does nothing; submitting one that failed runs it again. Paths are exact; GET \
answers HEAD, too. Another path is answered with 404 and another method with 405, both as plain text. \
Fields nobody knows are ignored on both sides, and null is the same as absent.";

/// The OpenAPI document of the sidecar's API.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut schemas = settings.into_generator();
    let mut paths = Object::new();
    for route in route::ALL {
        let operation = operation(route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_lowercase()] = operation;
    }
    let request = request(&mut schemas);
    // What tasks bring back stands in no answer by itself: it is the value of `result`.
    schemas.subschema_for::<ResetDataResult>();
    schemas.subschema_for::<SnapshotUploadResult>();
    schemas.subschema_for::<Failure>();
    let mut components = schemas.take_definitions(true);
    components.values_mut().for_each(without_null);
    components.insert("TaskRequest".into(), request);
    components.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Keelson sidecar",
            "description": ABOUT,
            "version": "0.8.0",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": format!("http://localhost:{}", Port::Sidecar.number()) }],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "remoteUser": {
                    "type": "apiKey",
                    "in": "header",
                    "name": route::REMOTE_USER,
                    "description": "Set by the authorizing proxy, exactly once, and never empty.",
                },
            },
        },
    })
}

/// What one route does and answers.
fn operation(route: Route, schemas: &mut SchemaGenerator) -> Value {
    let (id, summary, mut answers) = match route.path {
        route::TASKS | route::TASK => about_tasks(route, schemas),
        _ => about_the_node(route, schemas),
    };
    let mut operation = json!({ "operationId": id, "summary": summary });
    if route.path == route::LIVEZ {
        operation["parameters"] = json!([{
            "name": "verbose", "in": "query", "required": false,
            "schema": { "const": "1" }, "description": "Says what is wrong.",
        }]);
    }
    if route.path == route::TASK {
        operation["parameters"] = json!([{
            "name": "id", "in": "path", "required": true,
            "schema": { "type": "string", "format": "uuid" }, "description": "The task's id.",
        }]);
    }
    if route.method == "POST" {
        operation["requestBody"] = json!({
            "required": true,
            "content": json_of(json!({ "$ref": "#/components/schemas/TaskRequest" })),
        });
    }
    if route.is_open() {
        operation["security"] = json!([]);
    } else {
        operation["security"] = json!([{ "remoteUser": [] }]);
        let says = "Who calls is not said, or said twice, or said to be nobody.";
        answers["401"] = error(schemas, says);
    }
    operation["responses"] = sorted(answers);
    operation
}

/// The name of an operation, what it does, and its answers by status.
type About = (&'static str, &'static str, Value);

fn about_the_node(route: Route, schemas: &mut SchemaGenerator) -> About {
    let gate = json!({
        "200": empty("The gate is open: seid may start."),
        "503": empty("The gate is closed."),
    });
    match route.path {
        route::HEALTHZ => ("healthz", "Whether the gate is open.", gate),
        route::STARTUPZ => ("startupz", "Whether the gate is open.", gate),
        route::LIVEZ => {
            let says = "The store does not answer. The body is there with `?verbose=1` only.";
            let answers = json!({
                "200": empty("The store answers."),
                "503": error(schemas, says),
            });
            ("livez", "Whether the sidecar's store works.", answers)
        }
        route::METRICS => {
            let answers = json!({ "200": {
                "description": "Metrics in Prometheus' text format.",
                "content": { "text/plain": { "schema": { "type": "string" } } },
            } });
            ("metrics", "Metrics.", answers)
        }
        route::STATUS => {
            let answers =
                json!({ "200": answer::<StatusResponse>(schemas, "How far the node is.") });
            (
                "getStatus",
                "Whether the node is still being set up.",
                answers,
            )
        }
        _ => {
            let answers = json!({
                "200": answer::<NodeIdResponse>(schemas, "The identity."),
                "500": error(schemas, "The node's key is not there, or is no key."),
            });
            ("getNodeId", "The node's identity among peers.", answers)
        }
    }
}

const AGAIN: &str = "The store does not answer; try again.";
const NO_TASK: &str = "There is no such task.";
const ACCEPTED: &str = "The task is accepted, runs already, is completed, or is run again.";
const REFUSED: &str = "\
The body is not JSON of this shape, the id is no UUID, or the type is unknown. Parameters are not \
looked at: a task with bad ones is accepted and fails.";
const CONFLICT: &str = "The id names a task of another type or with other parameters.";
const NOT_REMOVED: &str = "\
The work is cancelled but the task could not be removed; try again.";

fn about_tasks(route: Route, schemas: &mut SchemaGenerator) -> About {
    match (route.method, route.path) {
        ("POST", _) => {
            let answers = json!({
                "201": answer::<TaskSubmitResponse>(schemas, ACCEPTED),
                "400": error(schemas, REFUSED),
                "409": error(schemas, CONFLICT),
                "413": error(schemas, "The body is too large."),
                "503": error(schemas, AGAIN),
            });
            ("submitTask", "Submits a task.", answers)
        }
        ("DELETE", _) => {
            let answers = json!({
                "204": empty("The task is gone."),
                "404": error(schemas, NO_TASK),
                "503": retry(error(schemas, NOT_REMOVED)),
            });
            (
                "deleteTask",
                "Cancels a task that runs, and forgets it.",
                answers,
            )
        }
        (_, route::TASK) => {
            let answers = json!({
                "200": answer::<TaskResult>(schemas, "The task."),
                "404": error(schemas, NO_TASK),
                "503": error(schemas, AGAIN),
            });
            ("getTask", "One task.", answers)
        }
        _ => {
            let says = "The tasks; an empty list where there are none.";
            let answers = json!({
                "200": answer::<Vec<TaskResult>>(schemas, says),
                "503": error(schemas, AGAIN),
            });
            let summary = "The latest tasks, newest first, at most 100.";
            ("listTasks", summary, answers)
        }
    }
}

/// One shape for each type of task.
fn request(schemas: &mut SchemaGenerator) -> Value {
    let shapes: Vec<Value> = Task::TYPES
        .into_iter()
        .map(|type_| {
            json!({
                "title": type_.as_str(),
                "type": "object",
                "required": ["type"],
                "properties": {
                    "id": {
                        "type": "string",
                        "format": "uuid",
                        "description": "The caller's id of the task; without one the sidecar draws one.",
                    },
                    "type": { "const": type_.as_str() },
                    "params": params(type_, schemas),
                },
            })
        })
        .collect();
    json!({ "description": "A task to run.", "oneOf": shapes })
}

fn params(type_: TaskType, schemas: &mut SchemaGenerator) -> Value {
    match type_ {
        TaskType::SnapshotRestore => reference::<SnapshotRestore>(schemas),
        TaskType::ConfigureGenesis => reference::<ConfigureGenesis>(schemas),
        TaskType::ConfigApply => reference::<ConfigApply>(schemas),
        TaskType::ConfigPatch => reference::<ConfigPatch>(schemas),
        TaskType::DiscoverPeers => reference::<DiscoverPeers>(schemas),
        TaskType::ConfigureStateSync => reference::<ConfigureStateSync>(schemas),
        TaskType::AwaitCondition => reference::<AwaitCondition>(schemas),
        _ => json!({ "type": "object", "description": "Takes no parameters." }),
    }
}

fn reference<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

fn answer<T: JsonSchema>(schemas: &mut SchemaGenerator, says: &str) -> Value {
    json!({ "description": says, "content": json_of(reference::<T>(schemas)) })
}

fn error(schemas: &mut SchemaGenerator, says: &str) -> Value {
    answer::<ErrorResponse>(schemas, says)
}

fn json_of(schema: Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn empty(says: &str) -> Value {
    json!({ "description": says })
}

/// An answer that says when to try again.
fn retry(mut answer: Value) -> Value {
    answer["headers"] = json!({ "Retry-After": {
        "description": "Seconds to wait.", "schema": { "type": "integer", "const": 1 },
    } });
    answer
}

/// Takes `null` out of what a value may be: what is absent is left out, on both sides.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    fields["type"] = only.clone();
                }
            }
            if let Some(Value::Array(shapes)) = fields.get_mut("anyOf") {
                shapes.retain(|shape| shape["type"] != "null");
                if let [Value::Object(only)] = shapes.as_mut_slice() {
                    let mut only = std::mem::take(only);
                    fields.shift_remove("anyOf");
                    only.append(fields);
                    *fields = only;
                }
            }
            fields.values_mut().for_each(without_null);
        }
        Value::Array(entries) => entries.iter_mut().for_each(without_null),
        _ => {}
    }
}

fn sorted(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.sort_keys();
    }
    value
}
