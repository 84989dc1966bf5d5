//! Plans as the tests ask for them. Each is linted before anybody looks at it.

use keelson_api::task::PlanKind;
use keelson_plan::{Memory, Observed, Plan, Stage, Start, Target, Tls, lint};

use crate::history::{Edit, Operator};
use crate::targets::s3;

/// The plan a change asks of a settled node, linted.
pub(crate) fn update(change: impl FnOnce(&mut Operator)) -> Plan {
    updated(true, None, change)
}

/// The same of a node that has this TLS, under a proxy that reloads or does not.
pub(crate) fn updated(reloads: bool, tls: Option<Tls>, change: impl FnOnce(&mut Operator)) -> Plan {
    let mut operator = Operator::new(s3(), reloads);
    operator.edit(&edit(tls));
    assert!(operator.settle(), "a new node settles");
    change(&mut operator);
    planned(&operator, &operator.world.observe())
}

/// The plan of a node nobody has seen before, linted.
pub(crate) fn init(start: Start, tls: Option<Tls>) -> Plan {
    let mut operator = Operator::new(start, true);
    operator.edit(&edit(tls));
    planned(&operator, &operator.world.observe())
}

/// The plan an operator makes of what was seen, linted.
pub(crate) fn planned(operator: &Operator, have: &Observed) -> Plan {
    let (want, generation) = (&operator.want, operator.generation);
    linted(want, have, generation, &Memory::default())
}

/// The plan that brings a target about, linted.
pub(crate) fn linted(want: &Target, have: &Observed, generation: i64, memory: &Memory) -> Plan {
    let plan = Plan::new(want, have, generation, memory).expect("a plan");
    assert_eq!(lint(&plan, have), Vec::<String>::new());
    plan
}

/// A spec with this TLS.
pub(crate) fn edit(tls: Option<Tls>) -> Edit {
    Edit {
        image: "a",
        sidecar: "a",
        tls,
        settings: "1",
        peers: "1",
        rest: "1",
        made_by: "1",
    }
}

/// The same with another image.
pub(crate) fn image_b(tls: Option<Tls>) -> Edit {
    Edit {
        image: "b",
        ..edit(tls)
    }
}

/// Whether a plan is of this kind, and these are its tasks of a stage.
pub(crate) fn assert_list(plan: &Plan, kind: PlanKind, stage: Stage, expected: &str) {
    let names: Vec<&str> = plan
        .entries
        .iter()
        .filter(|entry| entry.step.stage == stage)
        .map(|entry| entry.step.task.type_().as_str())
        .collect();
    assert_eq!(
        names,
        expected.split_whitespace().collect::<Vec<_>>(),
        "{stage:?}"
    );
    assert_eq!(plan.kind, kind);
}
