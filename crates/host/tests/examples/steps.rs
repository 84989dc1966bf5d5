//! What is done with a policy on a host, each step by a process of its own there: the policy is
//! applied, the host is looked at, and the policy is taken back.

use crate::files;
use keelson_api::NodeNetworkConfigurationPolicy;
use keelson_api::policy::State;
use keelson_host::handler::state::back::way_back;
use keelson_host::handler::state::bridge::with_default_vlans;
use keelson_host::handler::state::outstanding::outstanding;
use nmstate::{NetworkPolicy, NetworkState};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The variable that says which policy the steps are about.
pub(crate) const FILE: &str = "KEELSON_EXAMPLE";

/// What was asked of the host, and what it was like before. The host's own: `/run` is new there.
const ASKED: &str = "/run/asked.json";
const BEFORE: &str = "/run/before.json";

/// How long a host may take to be as it was, once nmstate says that it is.
const LETTING_GO: Duration = Duration::from_secs(5);

/// What a policy asks of a host.
pub(crate) fn asked(
    policy: &NodeNetworkConfigurationPolicy,
    current: &NetworkState,
) -> Result<NetworkState, String> {
    let spec = &policy.spec;
    let policy = json!({ "capture": spec.capture, "desiredState": spec.desired_state });
    let policy: NetworkPolicy =
        serde_json::from_value(policy).map_err(|error| error.to_string())?;
    let captured = policy.capture.execute(current);
    let captured = captured.map_err(|error| error.to_string())?;
    let filled = policy.desired.fill_with_captured_data(&captured);
    let filled = filled.map_err(|error| error.to_string())?;
    Ok(read(with_default_vlans(written(&filled))))
}

#[test]
#[ignore = "a step that is taken on a host"]
fn apply_on_a_host() {
    let Some(example) = example() else { return };
    let before = now();
    let asked = asked(&example.policy(), &before).expect("a state");
    let lacking = lacking(&asked, &before);
    assert!(!lacking.is_empty(), "there is nothing to do");
    asked.apply().expect("an apply");
    keep(ASKED, &asked);
    keep(BEFORE, &before);
}

#[test]
#[ignore = "a step that is taken on a host"]
fn look_on_a_host() {
    if example().is_none() {
        return;
    }
    let lacking = lacking(&kept(ASKED), &now());
    assert!(
        lacking.is_empty(),
        "this is lacking: {}",
        Value::Object(lacking)
    );
}

#[test]
#[ignore = "a step that is taken on a host"]
fn back_on_a_host() {
    if example().is_none() {
        return;
    }
    let (asked, before) = (kept(ASKED), kept(BEFORE));
    let revert = asked.generate_revert(&before).expect("a way back");
    let back = way_back(written(&revert), &written(&asked), &written(&before));
    let back = read(back);
    back.apply().expect("a way back");
    // On a busy machine NetworkManager still lets go of a NIC for a moment when nmstate is done.
    let deadline = Instant::now() + LETTING_GO;
    let (after, lacking) = loop {
        let after = now();
        let lacking = lacking(&back, &after);
        if lacking.is_empty() || Instant::now() > deadline {
            break (after, lacking);
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(
        lacking.is_empty(),
        "this is lacking: {}",
        Value::Object(lacking)
    );
    assert_eq!(essence(&after), essence(&before));
}

/// The policy the process was started for; none where somebody runs every test.
fn example() -> Option<files::Example> {
    std::env::var(FILE).ok().map(|file| files::named(&file))
}

fn now() -> NetworkState {
    let mut state = NetworkState::new();
    state.retrieve().expect("the state of the host");
    state
}

/// What a host lacks of a state.
fn lacking(wanted: &NetworkState, current: &NetworkState) -> State {
    let difference = wanted.gen_diff(current).expect("a difference");
    outstanding(&written(&difference), &written(wanted), &written(current))
}

/// What somebody gave the host: no lease, no route of one, and nothing of profiles.
fn essence(state: &NetworkState) -> Value {
    let state = Value::Object(written(state));
    let interfaces = state["interfaces"].as_array().into_iter().flatten();
    let interfaces: Vec<Value> = interfaces
        .map(|it| {
            let given = |family: &str| -> Vec<Value> {
                let all = it[family]["address"].as_array().into_iter().flatten();
                let given = all.filter(|it| it.get("valid-life-time").is_none());
                given
                    .map(|it| json!([it["ip"], it["prefix-length"]]))
                    .collect()
            };
            json!([
                it["name"],
                it["type"],
                it["state"],
                it["mac-address"],
                it["mtu"],
                it["controller"],
                it["alt-names"],
                it["lldp"]["enabled"] == true,
                given("ipv4"),
                given("ipv6")
            ])
        })
        .collect();
    json!([
        interfaces,
        state["routes"]["config"],
        state["route-rules"],
        state["dns-resolver"]["config"]
    ])
}

fn written(state: &NetworkState) -> State {
    match serde_json::to_value(state) {
        Ok(Value::Object(state)) => state,
        other => panic!("a state that is none: {other:?}"),
    }
}

fn read(state: State) -> NetworkState {
    serde_json::from_value(Value::Object(state)).expect("a state")
}

fn keep(path: &str, state: &NetworkState) {
    let text = serde_json::to_vec(state).expect("a text");
    std::fs::write(path, text).expect(path);
}

fn kept(path: &str) -> NetworkState {
    let text = std::fs::read(path).expect(path);
    serde_json::from_slice(&text).expect(path)
}
