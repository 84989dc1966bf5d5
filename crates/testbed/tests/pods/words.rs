//! What people read of a node: every condition and every event is a sentence.

use crate::world::Chain;
use serde_json::Value;

/// Sees that all that is said of the nodes of a namespace reads like speech.
pub(crate) async fn read_well(chain: &Chain, nodes: &[&str]) {
    for node in nodes {
        let seen = chain.seen(node).await.expect("a node");
        for condition in seen.status.iter().flat_map(|it| &it.conditions) {
            assert!(is_sentence(&condition.message), "{condition:?}");
        }
    }
    let about = "--field-selector=involvedObject.kind=SeiNode";
    let words = ["--namespace", &chain.name, "events", about];
    let events = chain.world.kubectl.get(&words).expect("events");
    let events = events["items"].as_array().expect("a list");
    let message = |event: &Value| event["message"].as_str().map(str::to_owned);
    let said: Vec<String> = events.iter().filter_map(message).collect();
    assert!(said.len() >= nodes.len(), "nothing was said: {said:?}");
    for message in said {
        println!("event: {message}");
        assert!(is_sentence(&message), "{message:?}");
    }
}

/// Some words, in one line, and nothing of how a program writes its values.
fn is_sentence(text: &str) -> bool {
    let values = ["{", "}", "Some(", "None", "Error(", "\n", "  ", "::"];
    text.split(' ').count() > 2 && !values.iter().any(|it| text.contains(it))
}

#[test]
fn a_sentence_is_told_from_a_value() {
    assert!(is_sentence("the pod is ready and the node serves"));
    assert!(!is_sentence("NotReady"));
    assert!(!is_sentence("the state is Some(Running) by now"));
}
