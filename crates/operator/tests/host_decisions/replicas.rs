//! How many webhooks a cluster gets, by its nodes.

use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration,
};
use keelson_operator::host::replicas::{Place, Placement, webhooks};

fn node(name: &str, labels: &[(&str, &str)], taints: &[&str]) -> Place {
    let taint = |key: &&str| Taint {
        key: (*key).to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    Place {
        name: name.to_owned(),
        labels: labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        taints: taints.iter().map(taint).collect(),
        ..Place::default()
    }
}

const MASTER: &str = "node-role.kubernetes.io/master";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const LINUX: (&str, &str) = ("kubernetes.io/os", "linux");

fn usual() -> Placement {
    let tolerated = |key: &str| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoSchedule".to_owned()),
        ..Toleration::default()
    };
    Placement {
        selector: [(LINUX.0.to_owned(), LINUX.1.to_owned())].into(),
        tolerations: [MASTER, CONTROL_PLANE].map(tolerated).into(),
        required: None,
    }
}

#[test]
fn nodes_are_counted_and_not_pairs_of_taint_and_toleration() {
    let both = node("one", &[LINUX], &[MASTER, CONTROL_PLANE]);
    assert_eq!(webhooks([&both], &usual(), 1), 1);
    let plain = [node("a", &[LINUX], &[]), node("b", &[LINUX], &[])];
    assert_eq!(webhooks(&plain, &usual(), 1), 2);
    let tainted = [
        node("a", &[LINUX], &[MASTER]),
        node("b", &[LINUX], &[MASTER]),
    ];
    assert_eq!(webhooks(&tainted, &usual(), 1), 2);
    assert_eq!(webhooks([], &usual(), 1), 1);
}

#[test]
fn a_node_that_pods_may_not_run_on_does_not_count() {
    let good = node("a", &[LINUX], &[]);
    let others = [
        node("b", &[("kubernetes.io/os", "windows")], &[]),
        node("b", &[], &[]),
        node("b", &[LINUX], &["dedicated"]),
        node("b", &[LINUX], &[MASTER, "dedicated"]),
    ];
    for other in others {
        assert_eq!(webhooks([&good, &other], &usual(), 1), 1, "{other:?}");
    }
}

#[test]
fn a_taint_is_borne_where_a_toleration_matches_its_key_value_and_effect() {
    let taint = |value: &str, effect: &str| Taint {
        key: "dedicated".to_owned(),
        value: Some(value.to_owned()),
        effect: effect.to_owned(),
        ..Taint::default()
    };
    let tolerating = |operator: &str, key: &str, value: &str, effect: &str| Placement {
        tolerations: vec![Toleration {
            operator: Some(operator.to_owned()),
            key: Some(key.to_owned()),
            value: Some(value.to_owned()),
            effect: Some(effect.to_owned()),
            toleration_seconds: None,
        }],
        ..Placement::default()
    };
    let rows = [
        (
            tolerating("Equal", "dedicated", "infra", "NoSchedule"),
            "infra",
            "NoSchedule",
            2,
        ),
        (
            tolerating("Equal", "dedicated", "infra", ""),
            "infra",
            "NoExecute",
            2,
        ),
        (
            tolerating("Equal", "dedicated", "infra", "NoSchedule"),
            "db",
            "NoSchedule",
            1,
        ),
        (
            tolerating("Equal", "dedicated", "infra", "NoSchedule"),
            "infra",
            "NoExecute",
            1,
        ),
        (
            tolerating("Exists", "dedicated", "", ""),
            "db",
            "NoExecute",
            2,
        ),
        (tolerating("Exists", "", "", ""), "db", "NoExecute", 2),
        (
            tolerating("Equal", "other", "db", ""),
            "db",
            "NoSchedule",
            1,
        ),
        (Placement::default(), "db", "PreferNoSchedule", 2),
    ];
    for (placement, value, effect, expected) in rows {
        let nodes = ["a", "b"].map(|name| Place {
            taints: vec![taint(value, effect)],
            ..node(name, &[], &[])
        });
        assert_eq!(
            webhooks(&nodes, &placement, 1),
            expected,
            "{placement:?} {value} {effect}"
        );
    }
}

#[test]
fn a_drain_and_a_sick_node_change_nothing_and_a_cordoned_node_is_no_reason_for_a_second() {
    let mut nodes = [node("a", &[LINUX], &[]), node("b", &[LINUX], &[])];
    nodes[1].taints.push(Taint {
        key: "node.kubernetes.io/unreachable".to_owned(),
        effect: "NoExecute".to_owned(),
        ..Taint::default()
    });
    assert_eq!(webhooks(&nodes, &usual(), 2), 2);
    assert_eq!(webhooks(&nodes, &usual(), 1), 2);
    nodes[0].cordoned = true;
    assert_eq!(webhooks(&nodes, &usual(), 2), 2);
    assert_eq!(webhooks(&nodes, &usual(), 1), 1);
    assert_eq!(webhooks(&nodes[1..], &usual(), 2), 1);
}

#[test]
fn what_an_affinity_requires_of_a_node_counts_as_for_the_scheduler() {
    let asks = |key: &str, operator: &str, values: &[&str]| NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: Some(values.iter().map(|it| (*it).to_owned()).collect()),
    };
    let placed = |term: NodeSelectorTerm| Placement {
        required: Some(NodeSelector {
            node_selector_terms: vec![term],
        }),
        ..Placement::default()
    };
    let by_label = |asked: NodeSelectorRequirement| {
        placed(NodeSelectorTerm {
            match_expressions: Some(vec![asked]),
            match_fields: None,
        })
    };
    let nodes = [
        node("a", &[("zone", "1")], &[]),
        node("b", &[("zone", "2")], &[]),
    ];
    let rows = [
        (by_label(asks("zone", "In", &["1", "2"])), 2),
        (by_label(asks("zone", "In", &["1"])), 1),
        (by_label(asks("zone", "NotIn", &["3"])), 2),
        (by_label(asks("zone", "NotIn", &["2"])), 1),
        (by_label(asks("zone", "Exists", &[])), 2),
        (by_label(asks("zone", "DoesNotExist", &[])), 1),
        (by_label(asks("zone", "Gt", &["0"])), 2),
        (by_label(asks("zone", "Lt", &["2"])), 1),
        (placed(NodeSelectorTerm::default()), 1),
        (
            placed(NodeSelectorTerm {
                match_expressions: None,
                match_fields: Some(vec![asks("metadata.name", "In", &["a", "b"])]),
            }),
            2,
        ),
    ];
    for (placement, expected) in rows {
        assert_eq!(webhooks(&nodes, &placement, 1), expected, "{placement:?}");
    }
}
