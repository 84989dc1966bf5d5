//! Objects the original wrote are found by the names we use, and what cannot change is as it was.
//!
//! The objects are not part of this workspace. Where they are not beside it, the test says so and
//! passes.

use std::fs;
use std::path::Path;

use keelson_api::SeiNode;
use keelson_render::{Node, claim, proxy_config, service, stateful_set};
use serde_json::Value;

use super::world::original_proxy;

fn items(file: &str) -> Option<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/original");
    if !folder.is_dir() {
        println!("skipped: the original's objects are not beside this workspace");
        return None;
    }
    let text = fs::read_to_string(folder.join(file)).expect("a file");
    let list: Value = serde_saphyr::from_str(&text).expect("YAML");
    Some(list["items"].as_array().expect("items").clone())
}

/// The original's object of the same name as ours; a node that bootstraps has no StatefulSet yet.
fn theirs<'a>(all: &'a [Value], ours: &Value) -> Option<&'a Value> {
    let name = &ours["metadata"]["name"];
    all.iter().find(|it| it["metadata"]["name"] == *name)
}

fn value(object: impl serde::Serialize) -> Value {
    serde_json::to_value(object).expect("a value")
}

#[test]
fn names_selectors_ports_and_policies_are_the_originals() {
    let Some(nodes) = items("seinodes.yaml") else {
        return;
    };
    let all = |file| items(file).expect("the folder is there");
    let (sets, services) = (all("statefulsets.yaml"), all("services.yaml"));
    let (claims, configs) = (all("persistentvolumeclaims.yaml"), all("configmaps.yaml"));
    let platform = original_proxy();
    let mut compared = 0;
    for object in nodes {
        let object: SeiNode = serde_json::from_value(object).expect("a SeiNode");
        let node = Node::read(&object).expect("a node");
        let name = node.name;

        let ours = value(proxy_config::config_map(&node, &platform));
        let found = theirs(&configs, &ours).expect("their ConfigMap");
        let policy = |of: &Value| {
            let text = of["data"]["config.yaml"]
                .as_str()
                .expect("a text")
                .to_owned();
            serde_saphyr::from_str::<Value>(&text).expect("YAML")
        };
        assert_eq!(policy(&ours), policy(found), "{name}");

        let ours = value(claim::claim(&node, &platform));
        let found = theirs(&claims, &ours).expect("their claim");
        for field in ["accessModes", "resources", "storageClassName"] {
            assert_eq!(ours["spec"][field], found["spec"][field], "{name}: {field}");
        }

        let ours = value(stateful_set::stateful_set(&node, &platform).expect("a StatefulSet"));
        let Some(found) = theirs(&sets, &ours) else {
            continue;
        };
        compared += 1;
        for field in ["selector", "serviceName", "updateStrategy"] {
            assert_eq!(ours["spec"][field], found["spec"][field], "{name}: {field}");
        }
        assert_eq!(ours["metadata"]["labels"], found["metadata"]["labels"]);
        let (owner, their_owner) = (&ours["metadata"], &found["metadata"]);
        assert_eq!(owner["ownerReferences"], their_owner["ownerReferences"]);
        let pod = |of: &Value| of["spec"]["template"]["spec"].clone();
        for field in [
            "affinity",
            "tolerations",
            "serviceAccountName",
            "securityContext",
        ] {
            assert_eq!(pod(&ours)[field], pod(found)[field], "{name}: {field}");
        }
        let arguments = |of: &Value| pod(of)["initContainers"][2]["args"].clone();
        assert_eq!(arguments(&ours), arguments(found), "{name}");

        let ours = value(service::service(&node));
        let found = theirs(&services, &ours).expect("their Service");
        assert_eq!(ours["spec"]["ports"], found["spec"]["ports"], "{name}");
        assert_eq!(ours["spec"]["selector"], found["spec"]["selector"]);
    }
    assert!(compared >= 6, "only {compared} StatefulSets were compared");
}
