//! The description of the API against the routes and the types.

use std::collections::BTreeSet;

use keelson_wire::route::{self, Route};
use keelson_wire::{Task, openapi};
use serde_json::{Value, json};

fn operation(document: &Value, route: Route) -> Value {
    document["paths"][route.path][route.method.to_lowercase()].clone()
}

fn statuses(operation: &Value) -> Vec<String> {
    let answers = operation["responses"].as_object().expect("answers");
    answers.keys().cloned().collect()
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let document = openapi();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    let described: BTreeSet<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods");
            methods
                .keys()
                .map(move |method| (path.clone(), method.to_uppercase()))
        })
        .collect();
    let served: BTreeSet<_> = route::ALL
        .iter()
        .map(|route| (route.path.to_owned(), route.method.to_owned()))
        .collect();
    assert_eq!(described, served);
    assert_eq!(served.len(), 10);
}

#[test]
fn each_route_has_its_answers() {
    let document = openapi();
    for (method, path, expected) in [
        ("GET", "/v0/healthz", vec!["200", "503"]),
        ("GET", "/v0/startupz", vec!["200", "503"]),
        ("GET", "/v0/livez", vec!["200", "503"]),
        ("GET", "/v0/metrics", vec!["200"]),
        ("GET", "/v0/status", vec!["200", "401"]),
        ("GET", "/v0/node-id", vec!["200", "401", "500"]),
        (
            "POST",
            "/v0/tasks",
            vec!["201", "400", "401", "409", "413", "503"],
        ),
        ("GET", "/v0/tasks", vec!["200", "401", "503"]),
        ("GET", "/v0/tasks/{id}", vec!["200", "401", "404", "503"]),
        ("DELETE", "/v0/tasks/{id}", vec!["204", "401", "404", "503"]),
    ] {
        let operation = operation(&document, Route { method, path });
        assert_eq!(statuses(&operation), expected, "{method} {path}");
        for (status, answer) in operation["responses"].as_object().expect("answers") {
            let schema = &answer["content"]["application/json"]["schema"]["$ref"];
            let refused = status.starts_with('4') || status == "500";
            if refused {
                assert_eq!(
                    schema, "#/components/schemas/ErrorResponse",
                    "{path} {status}"
                );
            }
        }
    }
    let delete = operation(
        &document,
        Route {
            method: "DELETE",
            path: route::TASK,
        },
    );
    assert_eq!(
        delete["responses"]["503"]["headers"]["Retry-After"]["schema"]["const"],
        1
    );
}

#[test]
fn what_is_open_is_said_to_be_open_and_the_rest_needs_an_identity() {
    let document = openapi();
    let mut open: Vec<&str> = Vec::new();
    for route in route::ALL {
        let security = &operation(&document, route)["security"];
        if *security == json!([]) {
            open.push(route.path);
        } else {
            assert_eq!(*security, json!([{"remoteUser": []}]), "{}", route.path);
        }
    }
    open.sort_unstable();
    assert_eq!(
        open,
        ["/v0/healthz", "/v0/livez", "/v0/metrics", "/v0/startupz"]
    );
    assert_eq!(open, route::OPEN);
    let scheme = &document["components"]["securitySchemes"]["remoteUser"];
    assert_eq!(
        (&scheme["in"], &scheme["name"]),
        (&json!("header"), &json!("X-Remote-User"))
    );
    assert_eq!(route::task("x"), "/v0/tasks/x");
}

#[test]
fn every_type_of_task_has_a_shape() {
    let document = openapi();
    let shapes = document["components"]["schemas"]["TaskRequest"]["oneOf"].clone();
    let shapes = shapes.as_array().expect("shapes");
    let types: Vec<_> = shapes
        .iter()
        .map(|shape| shape["properties"]["type"]["const"].clone())
        .collect();
    let expected: Vec<_> = Task::TYPES
        .iter()
        .map(|type_| json!(type_.as_str()))
        .collect();
    assert_eq!(types, expected);
}

#[test]
fn what_tasks_bring_back_is_described() {
    let document = openapi();
    for (name, fields) in [
        ("ResetDataResult", vec!["wipedBytes"]),
        (
            "SnapshotUploadResult",
            vec!["outcome", "noopReason", "height", "key"],
        ),
        ("Failure", vec!["retryable", "operation"]),
    ] {
        let schema = &document["components"]["schemas"][name]["properties"];
        let described: Vec<_> = schema.as_object().expect(name).keys().collect();
        assert_eq!(described, fields, "{name}");
    }
}

#[test]
fn a_task_is_described_with_every_field_and_those_that_are_always_there() {
    let document = openapi();
    let task = &document["components"]["schemas"]["TaskResult"];
    let fields: Vec<_> = task["properties"]
        .as_object()
        .expect("fields")
        .keys()
        .collect();
    let expected = [
        "id",
        "type",
        "status",
        "run",
        "params",
        "result",
        "error",
        "submittedBy",
        "submittedAt",
        "completedAt",
    ];
    assert_eq!(fields, expected);
    for field in ["id", "type", "status", "submittedAt"] {
        let required = task["required"].as_array().expect("required");
        assert!(required.contains(&json!(field)), "{field}");
    }
    assert_eq!(task["properties"]["completedAt"]["format"], "date-time");
    assert_eq!(task["properties"]["submittedBy"]["type"], "string");
}

#[test]
fn every_reference_leads_somewhere_and_nothing_may_be_null() {
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let pointer = reference.strip_prefix('#').expect("a local reference");
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                fields.values().for_each(|field| walk(field, document));
            }
            Value::Array(entries) => entries.iter().for_each(|entry| walk(entry, document)),
            Value::String(text) => assert_ne!(text, "null"),
            Value::Null => panic!("a null in the description"),
            _ => {}
        }
    }
    let document = openapi();
    walk(&document, &document);
}
