//! What the handler decides, without a host: functions of values, and laws over random histories of a
//! small model of one.

mod back;
mod claims;
mod decide;
mod enactment;
mod journal;
mod outstanding;
mod place;
mod recovery;
mod rollout;
mod selection;
mod state;
mod turn;
mod world;

use keelson_api::policy::State;
use serde_json::Value;

/// A state, from JSON.
fn state(value: Value) -> State {
    value.as_object().expect("a state is an object").clone()
}
