//! Which policy is looked at, when, and what stands in its way.

use jiff::{SignedDuration, Timestamp};
use keelson_host::handler::records::{Enacted, Policy, Record};
use keelson_host::handler::turn::{Settled, among, in_the_way, next_due, pause, rival};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::state as given;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// A policy made at a time.
fn record(name: &str, made: i64, desired: Value) -> Record {
    let spec = json!({"desiredState": desired});
    Record::new(Policy {
        uid: format!("uid-{name}"),
        name: name.to_owned(),
        generation: 1,
        created: Some(at(made)),
        revert_on_delete: false,
        unreadable: None,
        spec: serde_json::from_value(spec).expect("a spec"),
    })
}

fn bridge(name: &str, made: i64, port: Option<&str>) -> Record {
    let port: Vec<Value> = port.iter().map(|it| json!({"name": it})).collect();
    let described = json!({"name": name, "type": "linux-bridge", "bridge": {"port": port}});
    record(
        &format!("{name}-{made}"),
        made,
        json!({"interfaces": [described]}),
    )
}

#[test]
fn of_two_policies_for_one_interface_the_younger_gives_way() {
    let (older, younger) = (bridge("br1", 1, None), bridge("br1", 2, None));
    let all = [&older, &younger];
    assert_eq!(rival(&older, &all), None);
    let (policy, about) = rival(&younger, &all).expect("a rival");
    let said = format!("{policy}: {about}");
    assert_eq!(said, "br1-1: both configure interface br1");
    let (one, other) = (
        bridge("br1", 1, Some("eth1")),
        bridge("br2", 2, Some("eth1")),
    );
    let (_, about) = rival(&other, &[&one, &other]).expect("a rival");
    assert_eq!(
        about.to_string(),
        "this one makes interface eth1 a port of br2, the other a port of br1"
    );
    let apart = bridge("br3", 3, Some("eth3"));
    assert_eq!(rival(&apart, &[&one, &other, &apart]), None);
}

#[test]
fn a_way_back_is_barred_by_what_was_enacted_later_on_the_same_interface() {
    let enacted = |second| {
        let desired = given(json!({}));
        Some(Enacted {
            generation: 1,
            desired,
            at: at(second),
        })
    };
    let mut first = bridge("br1", 1, None);
    let mut route = record(
        "route",
        2,
        json!({"routes": {"config": [{"destination": "0.0.0.0/0", "next-hop-interface": "br1"}]}}),
    );
    first.enacted = enacted(10);
    assert_eq!(in_the_way(&first, &[&first, &route]), Vec::<&str>::new());
    route.enacted = enacted(9);
    assert_eq!(in_the_way(&first, &[&first, &route]), Vec::<&str>::new());
    route.enacted = enacted(11);
    assert_eq!(in_the_way(&first, &[&first, &route]), ["route"]);
}

#[test]
fn a_policy_is_looked_at_once_and_again_after_an_edit_or_when_what_it_gave_way_to_is_gone() {
    let (older, mut younger) = (bridge("br1", 1, None), bridge("br1", 2, None));
    let mut settled = Settled::default();
    let both = among(&[&older, &younger]);
    let none = BTreeSet::new();
    assert!(settled.is_due(&younger, &both, at(10)));
    settled.settle(&younger);
    assert!(!settled.is_due(&younger, &both, at(10)));
    assert!(!settled.is_due(&younger, &none, at(10)));
    settled.settle_among(&younger, &both);
    assert!(!settled.is_due(&younger, &both, at(10)));
    assert!(settled.is_due(&younger, &among(&[&younger]), at(10)));
    younger.policy.generation = 2;
    assert!(settled.is_due(&younger, &both, at(10)));
    younger.again = Some(at(11));
    assert!(!settled.is_due(&younger, &both, at(10)));
    assert!(settled.is_due(&younger, &both, at(11)));
}

#[test]
fn what_was_due_when_all_were_looked_at_is_not_waited_for() {
    let (mut one, mut other) = (bridge("br1", 1, None), bridge("br2", 1, None));
    assert_eq!(next_due(&[&one, &other], at(10)), None);
    one.again = Some(at(9));
    assert_eq!(next_due(&[&one, &other], at(10)), None);
    other.again = Some(at(12));
    assert_eq!(next_due(&[&one, &other], at(10)), Some(at(12)));
    one.again = Some(at(11));
    assert_eq!(next_due(&[&one, &other], at(10)), Some(at(11)));
}

#[test]
fn who_asks_in_vain_asks_less_and_less_often() {
    let (first, longest) = (SignedDuration::from_secs(1), SignedDuration::from_secs(30));
    let pauses = [0, 1, 2, 5, 1000].map(|asked| pause(asked, first, longest).as_secs());
    assert_eq!(pauses, [1, 2, 4, 30, 30]);
}

#[test]
fn an_edit_that_was_not_enacted_is_left_out_of_what_is_repaired() {
    let mut record = bridge("br1", 1, None);
    assert_eq!(record.as_enacted(), None);
    let desired = given(json!({"interfaces": [{"name": "br1", "mtu": 1400}]}));
    let at = at(10);
    record.enacted = Some(Enacted {
        generation: 1,
        desired: desired.clone(),
        at,
    });
    assert_eq!(record.as_enacted(), Some(record.policy.clone()));
    record.policy.generation = 2;
    record.policy.unreadable = Some("nobody can read it".to_owned());
    let repaired = record.as_enacted().expect("a policy");
    assert_eq!((repaired.generation, repaired.unreadable), (1, None));
    assert_eq!(repaired.spec.desired_state, Some(desired));
}
