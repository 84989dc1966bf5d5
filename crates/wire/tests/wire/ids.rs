//! Names of effects: what is in them, and what is not. The expected ids were computed by another
//! implementation of UUIDv5.

use keelson_api::task::TaskType;
use keelson_wire::id::{Facts, Scope, of_facts, of_plan, params_hash};
use keelson_wire::{Task, params::ConfigApply};

use super::shapes::examples;

const FACTS: Facts<'static> = Facts {
    node_uid: "node",
    generation: 7,
    pod_uid: "pod",
    attempt: 1,
};

fn apply(pairs: [(&str, &str); 2]) -> Task {
    Task::ConfigApply(ConfigApply {
        mode: "full".into(),
        overrides: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..ConfigApply::default()
    })
}

#[test]
fn ids_are_what_any_implementation_computes() {
    let plan = "4b9d6a1e-0000-4000-8000-000000000001";
    assert_eq!(
        of_plan(plan, TaskType::ConfigApply, 2).to_string(),
        "5507254e-60e7-5a64-ace0-3bbd513341ba"
    );
    assert_eq!(
        params_hash(&Task::MarkReady),
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
    let id = |task: &Task, facts: &Facts<'_>| of_facts(task, facts).to_string();
    assert_eq!(
        id(&Task::MarkReady, &FACTS),
        "295151d6-f729-5fd4-94f7-64316ab40b93"
    );
    assert_eq!(
        id(&Task::ResetData, &FACTS),
        "5df0426b-9705-5bd7-b0b2-ad65aa1409d1"
    );
    let second = Facts {
        attempt: 2,
        ..FACTS
    };
    assert_eq!(
        id(&apply([("b", "2"), ("a", "1")]), &second),
        "c5ba737f-1133-5c8d-892a-1d2913fbe71c"
    );
}

#[test]
fn a_fact_counts_for_the_effects_it_matters_to() {
    for (_, task) in examples() {
        let id = of_facts(&task, &FACTS);
        let changed = |facts: Facts<'_>| of_facts(&task, &facts) != id;
        let scope = Scope::of(&task);
        assert!(
            changed(Facts {
                node_uid: "other",
                ..FACTS
            }),
            "{task:?}"
        );
        assert!(
            changed(Facts {
                attempt: 2,
                ..FACTS
            }),
            "{task:?}"
        );
        assert_eq!(
            changed(Facts {
                generation: 8,
                ..FACTS
            }),
            scope != Scope::Data,
            "{task:?}"
        );
        assert_eq!(
            changed(Facts {
                pod_uid: "other",
                ..FACTS
            }),
            scope == Scope::Gate,
            "{task:?}"
        );
        assert!(!changed(FACTS));
    }
    assert_eq!(Scope::of(&Task::ResetData), Scope::Data);
    assert_eq!(Scope::of(&Task::MarkNotReady), Scope::Gate);
    assert_eq!(
        Scope::of(&apply([("a", "1"), ("b", "2")])),
        Scope::Configuration
    );
}

#[test]
fn tasks_that_differ_in_type_or_parameters_have_different_ids() {
    let mut ids: Vec<_> = examples()
        .iter()
        .map(|(_, task)| of_facts(task, &FACTS))
        .collect();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
}
