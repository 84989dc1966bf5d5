//! What cannot be brought about as it is asked for: refused before anything is touched, in words that
//! say what is wrong.

use crate::member::{Told, condition, message};
use crate::states::bridge;
use crate::world::World;
use futures::future::join_all;
use keelson_api::host_condition::EnactmentCondition::Failing;
use keelson_testbed::DEVICE;
use serde_json::{Value, json};

fn interface(what: Value) -> Value {
    json!({"desiredState": {"interfaces": [what]}})
}

fn with_ports(name: &str, port: &str) -> Value {
    json!({
        "name": name, "type": "linux-bridge", "state": "up",
        "bridge": {"options": {"stp": {"enabled": false}}, "port": [{"name": port, "vlan": {}}]},
    })
}

/// What is asked for, and what is said about it.
fn refusals() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "unknown-field",
            interface(
                json!({"name": "br1", "type": "linux-bridge", "state": "up", "colour": "red"}),
            ),
            "unknown field `colour`, in interfaces[0] (br1)",
        ),
        (
            "unknown-part",
            json!({"desiredState": {"wires": []}}),
            "unknown field `wires`",
        ),
        (
            "unknown-type",
            interface(json!({"name": "warp0", "type": "warp-drive", "state": "up"})),
            "warp",
        ),
        (
            "bad-address",
            interface(json!({
                "name": "br2", "type": "linux-bridge", "state": "up",
                "ipv4": {"enabled": true, "address": [{"ip": "192.0.2.300", "prefix-length": 24}]},
            })),
            "invalid IP address syntax, in interfaces[0] (br2)",
        ),
        (
            "long-prefix",
            interface(json!({
                "name": "br3", "type": "linux-bridge", "state": "up",
                "ipv4": {"enabled": true, "address": [{"ip": "192.0.2.3", "prefix-length": 40}]},
            })),
            "40",
        ),
        (
            "large-packets",
            interface(json!({"name": DEVICE, "type": "ethernet", "state": "up", "mtu": 70000})),
            "70000",
        ),
        ("no-port", interface(with_ports("br4", "eth9")), "eth9"),
        (
            "no-capture",
            json!({
                "capture": {"nic": "interfaces.name="},
                "desiredState": {"interfaces": [bridge("br5", "192.0.2.5")["interfaces"][0]]},
            }),
            "interfaces.name=",
        ),
        (
            "script",
            interface(json!({
                "name": "br6", "type": "linux-bridge", "state": "up",
                "dispatch": {"post-activation": "touch /tmp/was-here"},
            })),
            "scripts of interfaces[].dispatch, as br6 has one, run as root on hosts and are refused",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_valid_is_refused_in_nmstates_words_before_anything_is_touched() {
    let world = World::new("refused").await;
    let host = world.host().await;
    let before = host.snapshot();
    let _handler = host.start(Told {
        attempts: 3,
        ..Told::default()
    });
    let refused = refusals().into_iter().map(async |(what, spec, words)| {
        let policy = world.policy_of(what, spec).await;
        let status = host.comes_to(&policy, Failing).await;
        let said = message(&status, Failing).to_owned();
        let reason = condition(&status, Failing).and_then(|it| it.reason.clone());
        let event = world.event(&policy).await;
        println!("| {what} | {said} |");
        let mut wrong = Vec::new();
        if !said.contains(words) || event != said {
            wrong.push(format!("{what}: {said}; {event}"));
        }
        if reason.as_deref() != Some("FailedToConfigure") || !status.retry_count.is_empty() {
            wrong.push(format!("{what}: {status:#?}"));
        }
        wrong
    });
    let wrong = join_all(refused).await.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(host.journal(), None, "nothing was begun");
    assert_eq!(host.snapshot().differences(&before), Vec::<String>::new());
    assert_eq!(world.claims().await, [], "no turn is held");
}
