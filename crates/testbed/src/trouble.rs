//! Why pods and nodes do not come up: a sentence for each, and what helps, read from what pods and
//! events say. Pure; who asks for them, and for logs, is [`crate::install`].

use serde_json::{Value, json};

/// What keeps one pod from running, or one node from making blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The pod, or the node.
    pub(crate) of: String,
    /// The container whose log may say more.
    pub(crate) log_of: Option<String>,
    /// What is wrong, in the cluster's words.
    pub(crate) why: String,
    /// What to do.
    pub(crate) help: String,
    /// Waiting longer will not mend it.
    pub(crate) lasts: bool,
}

const IMAGE: &str = "bring the image into the cluster: `make images` writes it, a registry the cluster reaches serves it, and `make up KUBECONFIG=… REGISTRY=…` names that registry";
const CONFIGURATION: &str =
    "create what it names, or correct the settings in ConfigMap keelson-system/keelson-platform";
const CRASHES: &str =
    "read the end of its log, correct what it complains of, and run `make up` again";
const PLACE: &str = "give the cluster a node with room and the label karpenter.sh/nodepool=local, and volumes of a class that STORAGE_CLASS=… names";
const EVENTS: &str = "see what the cluster says of it, correct it, and run `make up` again";

/// How often a container may end before nobody waits for it any more.
const OFTEN: u64 = 5;

/// What is wrong with a node none of whose pods are in trouble: it says so itself, or makes no blocks.
pub(crate) fn of_node(namespace: &str, name: &str, says: &str) -> Trouble {
    Trouble {
        of: name.to_owned(),
        log_of: None,
        why: says.to_owned(),
        help: format!(
            "read `kubectl --namespace {namespace} describe seinode {name}`, correct what it names, and run `make up` again"
        ),
        lasts: false,
    }
}

/// Without the pods of Deployments that ask for other images by now: those are about to go, and what
/// kept them from running may be what was changed.
pub(crate) fn current(pods: &Value, deployments: &Value) -> Value {
    let images = |spec: &Value| -> Vec<String> {
        let containers = spec["containers"].as_array().into_iter().flatten();
        containers.map(|it| text(&it["image"])).collect()
    };
    let deployments = deployments["items"].as_array();
    let is_current = |pod: &&Value| {
        let name = text(&pod["metadata"]["name"]);
        let of = deployments.into_iter().flatten().find(|it| {
            let prefix = format!("{}-", text(&it["metadata"]["name"]));
            name.starts_with(&prefix)
        });
        of.is_none_or(|it| images(&it["spec"]["template"]["spec"]) == images(&pod["spec"]))
    };
    let pods = pods["items"].as_array().into_iter().flatten();
    let kept: Vec<&Value> = pods.filter(is_current).collect();
    json!({ "items": kept })
}

/// What keeps the pods of a namespace from running; nothing where they run.
pub(crate) fn troubles(pods: &Value, events: &Value) -> Vec<Trouble> {
    let pods = pods["items"].as_array();
    let mut found: Vec<_> = pods
        .into_iter()
        .flatten()
        .filter_map(|pod| of_pod(pod, events))
        .collect();
    // A pod that was not even made is only in events.
    if found.is_empty() && pods.is_none_or(Vec::is_empty) {
        found.extend(warning(events, None).map(|why| Trouble {
            of: "no pod".to_owned(),
            log_of: None,
            why,
            help: EVENTS.to_owned(),
            lasts: false,
        }));
    }
    found
}

fn of_pod(pod: &Value, events: &Value) -> Option<Trouble> {
    let name = text(&pod["metadata"]["name"]);
    let status = &pod["status"];
    let lists = ["initContainerStatuses", "containerStatuses"];
    let mut containers = lists
        .iter()
        .flat_map(|list| status[list].as_array())
        .flatten();
    let trouble = |log_of, why, help: &str, lasts| Trouble {
        of: name.clone(),
        log_of,
        why,
        help: help.to_owned(),
        lasts,
    };
    if let Some(found) = containers.find_map(|it| of_container(it, &trouble)) {
        return Some(found);
    }
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let unplaced = conditions.find(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    if let Some(unplaced) = unplaced {
        let why = format!("it has no node: {}", text(&unplaced["message"]));
        return Some(trouble(None, why, PLACE, false));
    }
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
    let why = warning(events, Some(&name)).filter(|_| !ready)?;
    Some(trouble(None, why, EVENTS, false))
}

fn of_container(
    container: &Value,
    trouble: &impl Fn(Option<String>, String, &'static str, bool) -> Trouble,
) -> Option<Trouble> {
    let name = text(&container["name"]);
    let waiting = &container["state"]["waiting"];
    let code = |state: &str| container[state]["terminated"]["exitCode"].as_i64();
    let often = container["restartCount"].as_u64() >= Some(OFTEN);
    let reason = match code("state") {
        // It is not always in the pause before its next start that it is looked at.
        Some(failed) if failed != 0 => "CrashLoopBackOff".to_owned(),
        None if often && container["ready"] == false => "CrashLoopBackOff".to_owned(),
        _ => text(&waiting["reason"]),
    };
    let why = format!(
        "container {name} cannot start: {reason}: {}",
        text(&waiting["message"])
    );
    match reason.as_str() {
        "ErrImagePull" => Some(trouble(None, why, IMAGE, false)),
        "ImagePullBackOff" | "ErrImageNeverPull" | "InvalidImageName" => {
            Some(trouble(None, why, IMAGE, true))
        }
        "CreateContainerConfigError" | "CreateContainerError" => {
            Some(trouble(None, why, CONFIGURATION, false))
        }
        "CrashLoopBackOff" => {
            let code = code("state").or(code("lastState")).unwrap_or_default();
            let why = format!("container {name} ends again and again, with code {code}");
            // Once may be bad luck with what it needs, and that often is not.
            Some(trouble(Some(name), why, CRASHES, often))
        }
        _ => None,
    }
}

/// The last warning about an object, or about any.
fn warning(events: &Value, about: Option<&str>) -> Option<String> {
    let events = events["items"].as_array().into_iter().flatten();
    let mut warnings = events.filter(|it| {
        let name = it["involvedObject"]["name"].as_str();
        it["type"] == "Warning" && (about.is_none() || name == about)
    });
    let last = warnings.next_back()?;
    let object = &last["involvedObject"];
    let (kind, name) = (text(&object["kind"]), text(&object["name"]));
    let (reason, message) = (text(&last["reason"]), text(&last["message"]));
    Some(format!("{kind} {name}: {reason}: {message}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: Value) -> Value {
        json!({ "items": [{ "metadata": { "name": "p" }, "status": status }] })
    }

    fn event(object: &str, kind: &str, message: &str) -> Value {
        json!({
            "type": kind, "reason": "Failed", "message": message,
            "involvedObject": { "kind": "Pod", "name": object },
        })
    }

    #[test]
    fn an_image_that_cannot_be_pulled_is_named_with_where_images_come_from() {
        let waiting =
            json!({ "reason": "ImagePullBackOff", "message": "Back-off pulling \"x:1\"" });
        let pods =
            pod(json!({ "containerStatuses": [{ "name": "c", "state": { "waiting": waiting } }] }));
        let found = troubles(&pods, &Value::Null);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].why,
            "container c cannot start: ImagePullBackOff: Back-off pulling \"x:1\""
        );
        assert!(found[0].lasts && found[0].help.contains("make images"));
    }

    #[test]
    fn a_container_that_ends_again_and_again_is_one_whose_log_is_read() {
        let status = json!({ "initContainerStatuses": [{
            "name": "c", "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            "lastState": { "terminated": { "exitCode": 2 } },
        }] });
        let found = troubles(&pod(status), &Value::Null);
        assert_eq!(found[0].log_of.as_deref(), Some("c"));
        assert!(found[0].why.ends_with("with code 2"), "{found:?}");
        assert!(!found[0].lasts, "it may come up yet");
        let ended = |code: u8| {
            let ended = json!({ "terminated": { "exitCode": code } });
            let status = json!({ "containerStatuses": [{ "name": "c", "state": ended }] });
            troubles(&pod(status), &Value::Null)
        };
        assert!(ended(1)[0].why.ends_with("with code 1"));
        assert_eq!(ended(0), [], "it has done its work");
    }

    #[test]
    fn a_container_that_has_ended_often_is_not_waited_for() {
        let ended = |times: u64| {
            let status = json!({ "containerStatuses": [{
                "name": "c", "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                "restartCount": times,
            }] });
            troubles(&pod(status), &Value::Null)[0].lasts
        };
        assert!(!ended(OFTEN - 1) && ended(OFTEN));
        let running = |ready: bool| {
            let status = json!({ "containerStatuses": [{
                "name": "c", "state": { "running": {} }, "ready": ready, "restartCount": OFTEN,
            }] });
            troubles(&pod(status), &Value::Null)
        };
        assert!(running(false)[0].lasts, "it will end once more");
        assert_eq!(running(true), [], "it has come up");
    }

    #[test]
    fn a_pod_with_an_image_its_deployment_does_not_ask_for_any_more_does_not_count() {
        let with = |image: &str| json!({ "containers": [{ "image": image }] });
        let pods = json!({ "items": [
            { "metadata": { "name": "web-1" }, "spec": with("old") },
            { "metadata": { "name": "web-2" }, "spec": with("new") },
            { "metadata": { "name": "alone" }, "spec": with("other") },
        ] });
        let web = json!({ "metadata": { "name": "web" }, "spec": { "template": { "spec": with("new") } } });
        let left = current(&pods, &json!({ "items": [web] }));
        let left = left["items"].as_array().expect("a list");
        let names: Vec<_> = left
            .iter()
            .map(|it| text(&it["metadata"]["name"]))
            .collect();
        assert_eq!(names, ["web-2", "alone"]);
    }

    #[test]
    fn a_pod_without_a_node_is_told_why_it_has_none() {
        let condition =
            json!({ "type": "PodScheduled", "status": "False", "message": "0/1 nodes" });
        let found = troubles(&pod(json!({ "conditions": [condition] })), &Value::Null);
        assert_eq!(found[0].why, "it has no node: 0/1 nodes");
    }

    #[test]
    fn the_last_warning_of_a_pod_counts_where_nothing_else_is_known_and_not_once_it_is_ready() {
        let events = json!({ "items": [
            event("p", "Warning", "first"), event("p", "Warning", "last"),
            event("q", "Warning", "of another"), event("p", "Normal", "no trouble"),
        ] });
        let found = troubles(&pod(json!({})), &events);
        assert_eq!(found[0].why, "Pod p: Failed: last");
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        assert_eq!(troubles(&pod(ready), &events), []);
        let none = json!({ "items": [] });
        assert_eq!(troubles(&none, &events)[0].why, "Pod q: Failed: of another");
    }
}
