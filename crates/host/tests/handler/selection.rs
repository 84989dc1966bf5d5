//! Which policies are for a host.

use std::collections::BTreeMap;

use keelson_api::NodeNetworkConfigurationPolicy as Policy;
use keelson_host::handler::selection::{mismatches, selected};

fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = all.iter();
    owned
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn policy(name: &str, selector: &[(&str, &str)]) -> Policy {
    let mut policy = Policy::default();
    policy.metadata.name = Some(name.to_owned());
    policy.spec.node_selector = labels(selector);
    policy
}

#[test]
fn an_empty_selector_is_for_every_node() {
    assert_eq!(mismatches(&labels(&[]), &labels(&[])), []);
    assert_eq!(mismatches(&labels(&[]), &labels(&[("a", "1")])), []);
}

#[test]
fn what_keeps_a_policy_from_a_node_is_named() {
    let node = labels(&[("a", "1"), ("b", "2")]);
    let said = |selector: &[(&str, &str)]| {
        let all = mismatches(&labels(selector), &node);
        all.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(said(&[("a", "1"), ("b", "2")]), [""; 0]);
    assert_eq!(said(&[("c", "3")]), ["label c=3 is missing"]);
    assert_eq!(
        said(&[("a", "1"), ("b", "3"), ("c", "")]),
        ["label b is 2, not 3", "label c= is missing"]
    );
}

#[test]
fn policies_come_in_the_order_of_their_names() {
    let node = labels(&[("a", "1")]);
    let all = [
        policy("p3", &[]),
        policy("p1", &[("a", "1")]),
        policy("p0", &[("a", "2")]),
        policy("p2", &[]),
    ];
    let names: Vec<_> = selected(&all, &node)
        .iter()
        .map(|it| it.metadata.name.clone().expect("a name"))
        .collect();
    assert_eq!(names, ["p1", "p2", "p3"]);
    assert_eq!(selected(&[], &node).len(), 0);
}
