//! Laws of every vocabulary: one string each, the same in both directions.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};
use std::fs;
use std::path::Path;
use std::str::FromStr;

use keelson_api::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Checks one vocabulary and returns its name.
fn obeys<T>(name: &'static str, all: &[T], text: fn(T) -> &'static str) -> &'static str
where
    T: Copy
        + Debug
        + Display
        + PartialEq
        + FromStr<Err = UnknownName>
        + Serialize
        + DeserializeOwned,
{
    assert!(!all.is_empty(), "{name} has no words");
    let mut seen = BTreeSet::new();
    for &word in all {
        let expected = text(word);
        assert!(seen.insert(expected), "{name} has {expected:?} twice");
        assert_eq!(word.to_string(), expected, "Display of {name}");
        assert_eq!(expected.parse::<T>(), Ok(word), "FromStr of {name}");
        let json = serde_json::to_value(word).unwrap();
        assert_eq!(json, expected, "Serialize of {name}");
        assert_eq!(
            serde_json::from_value::<T>(json).unwrap(),
            word,
            "Deserialize of {name}"
        );
    }
    let unknown = "no such word".parse::<T>().unwrap_err();
    assert_eq!(unknown.vocabulary, name);
    assert!(
        unknown.to_string().contains(text(all[0])),
        "the error names what is expected: {unknown}"
    );
    name
}

macro_rules! obey {
    ($($path:path),+ $(,)?) => {
        vec![ $( { use $path as Word; obeys(stringify!($path).rsplit("::").next().unwrap().trim(), Word::ALL, Word::as_str) }, )+ ]
    };
}

fn checked() -> Vec<&'static str> {
    obey![
        condition::Truth,
        event::FleetEvent,
        event::PolicyEvent,
        event::NodeEvent,
        event::Severity,
        fleet::DeletionPolicy,
        fleet::StrategyType,
        fleet_condition::FleetCondition,
        fleet_condition::FleetReason,
        fleet_status::FleetPhase,
        host_condition::EnactmentCondition,
        host_condition::EnactmentReason,
        host_condition::StateCondition,
        host_condition::StateReason,
        host_condition::NmstateCondition,
        host_condition::NmstateReason,
        host_condition::PolicyCondition,
        host_condition::PolicyReason,
        names::Annotation,
        names::Component,
        names::FieldManager,
        names::Finalizer,
        names::HostWorkload,
        names::Label,
        names::Lease,
        names::Port,
        names::Role,
        nmstate::DispatchScripts,
        nmstate::LogLevel,
        nmstate::MetricsAuth,
        node::Mode,
        node_condition::NodeCondition,
        node_condition::NodeReason,
        node_status::NodePhase,
        node_status::DataState,
        plan::PlanPhase,
        plan::TaskStatus,
        sidecar::IssuerKind,
        task::Executor,
        task::PlanKind,
        task::TaskType,
        tls::ProfileSource,
        tls::ProfileType,
        tls::TlsVersion,
    ]
}

#[test]
fn every_word_has_one_string_and_reads_back() {
    checked();
}

#[test]
fn no_vocabulary_of_the_sources_is_left_unchecked() {
    let checked: BTreeSet<String> = checked().into_iter().map(str::to_owned).collect();
    let declared = declared();
    assert!(declared.len() > 30, "the sources were not found");
    assert_eq!(declared, checked);
}

/// Names of the enums declared by the macro, from the sources.
fn declared() -> BTreeSet<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(sources).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("vocabulary.rs") {
            continue;
        }
        for block in fs::read_to_string(path)
            .unwrap()
            .split("\nvocabulary! {")
            .skip(1)
        {
            let after = block.split("pub enum ").nth(1).unwrap();
            names.insert(after.split_whitespace().next().unwrap().to_owned());
        }
    }
    names
}

#[test]
fn reasons_and_conditions_are_words_the_api_server_accepts() {
    let conditions = node_condition::NodeCondition::ALL
        .iter()
        .map(|c| c.as_str());
    let reasons = node_condition::NodeReason::ALL.iter().map(|r| r.as_str());
    let of_fleets = fleet_condition::FleetReason::ALL.iter().map(|r| r.as_str());
    for word in conditions.chain(reasons).chain(of_fleets) {
        assert!(word.starts_with(|c: char| c.is_ascii_uppercase()), "{word}");
        assert!(word.chars().all(|c| c.is_ascii_alphanumeric()), "{word}");
    }
}

#[test]
fn names_others_rely_on_are_the_originals() {
    use names::{FieldManager, Finalizer, Label, Lease, Port};
    assert_eq!(FieldManager::Node.as_str(), "seinode-controller");
    assert_eq!(FieldManager::Fleet.as_str(), "seinodedeployment-controller");
    assert_eq!(FieldManager::Nmstate.as_str(), "nmstate-operator");
    assert_eq!(FieldManager::Handler.as_str(), "nmstate-handler");
    assert_eq!(Finalizer::Node.as_str(), "sei.io/seinode-finalizer");
    assert_eq!(Lease::Sei.as_str(), "bc1f5b0a.sei.io");
    assert_eq!(Label::Fleet.as_str(), "sei.io/nodedeployment");
    let ports: Vec<_> = Port::ALL.iter().map(|port| port.number()).collect();
    assert_eq!(
        ports,
        [
            8545, 8546, 9090, 1317, 26656, 26657, 26660, 7777, 8443, 8444, 9300
        ]
    );
}

#[test]
fn each_task_belongs_to_the_side_that_does_it() {
    use task::{Executor, TaskType};
    let side = |of: Executor| TaskType::ALL.iter().filter(|t| t.executor() == of).count();
    assert_eq!(TaskType::TeardownBootstrap.executor(), Executor::Operator);
    assert_eq!(TaskType::SnapshotRestore.executor(), Executor::Sidecar);
    assert_eq!(TaskType::GovParamChange.executor(), Executor::Sidecar);
    assert_eq!(TaskType::UpdateNodeSpecs.executor(), Executor::Fleet);
    assert_eq!(
        [
            side(Executor::Operator),
            side(Executor::Sidecar),
            side(Executor::Fleet)
        ],
        [19, 23, 10]
    );
}
