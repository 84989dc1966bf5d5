//! What a network state says, read from the JSON nmstate makes of it.
//!
//! A state is nmstate's and stays so: a part of an unknown shape is passed over here, because nmstate
//! itself refuses it with a better sentence. [`report`] is what of a host's state is told to others,
//! [`bridge`] what is filled in where a policy says nothing, [`gateway`] where the way out is,
//! [`touch`] which interfaces a policy changes, [`dispatch`] whether it brings scripts,
//! [`outstanding`] what of it a host lacks, [`back`] the way back from it and [`place`] where it cannot
//! be read.

pub mod back;
pub mod bridge;
pub mod dispatch;
pub mod gateway;
pub mod outstanding;
pub mod place;
pub mod report;
pub mod touch;

use keelson_api::policy::State;
use serde_json::{Map, Value};

/// The interfaces of a state; none where it has none.
fn interfaces(state: &State) -> impl Iterator<Item = &Map<String, Value>> {
    list(state.get("interfaces")).filter_map(Value::as_object)
}

/// The entries of a list; none where it is none.
fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The text under a key.
fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}
