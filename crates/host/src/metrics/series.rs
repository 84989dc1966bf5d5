//! The series: names and labels as the original has them, counted when they are asked for.
//!
//! What has never been listed is not counted at all: a nought would be a lie. How old the rest is
//! stands beside it.

use super::seen::{Enactment, Policy, Routes, State};
use super::sources::Sources;
use keelson_api::host_condition::{EnactmentCondition, PolicyCondition};
use keelson_cluster::{Key, Mirror};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A family of series: its name and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    name: &'static str,
    help: &'static str,
}

const FEATURES: Family = Family {
    name: "kubernetes_nmstate_features_applied",
    help: "Features of nmstate that some enactment uses, 1 for each",
};
const INTERFACES: Family = Family {
    name: "kubernetes_nmstate_network_interfaces",
    help: "Network interfaces of a node by type",
};
const ROUTES: Family = Family {
    name: "kubernetes_nmstate_routes",
    help: "Running routes of a node by IP stack, static ones and dynamic ones",
};
const POLICIES: Family = Family {
    name: "kubernetes_nmstate_policies_status",
    help: "Policies by the condition they are in",
};
const ENACTMENTS: Family = Family {
    name: "kubernetes_nmstate_enactments_status",
    help: "Enactments of a node by the condition they are in",
};
const AGE: Family = Family {
    name: "keelson_host_source_age_seconds",
    help: "How long ago the API server was last known to confirm what is counted",
};
const SYNCED: Family = Family {
    name: "keelson_host_source_synced",
    help: "Whether what is counted has been listed completely once",
};

/// Every family, in the order they are written.
const ALL: [Family; 7] = [
    FEATURES, INTERFACES, ROUTES, POLICIES, ENACTMENTS, AGE, SYNCED,
];

/// The families there are, as the original's `--dump-metric-families` prints them.
pub fn families_as_json() -> Value {
    let families = ALL.iter();
    families
        .map(|it| json!({"name": it.name, "help": it.help, "type": "gauge"}))
        .collect()
}

/// A series of a family: labels and a value.
type Sample<const N: usize> = ([(&'static str, Box<str>); N], i64);

/// 1 for each feature that some enactment uses.
pub fn features<'a>(enactments: impl Iterator<Item = &'a Enactment>) -> Vec<Sample<1>> {
    let names: BTreeSet<&str> = enactments
        .flat_map(|it| it.features.iter().map(AsRef::as_ref))
        .collect();
    let names = names.into_iter();
    names.map(|name| ([("name", name.into())], 1)).collect()
}

/// How many enactments of each node are in each condition; noughts for nodes that have any.
pub fn enactments<'a>(enactments: impl Iterator<Item = &'a Enactment>) -> Vec<Sample<2>> {
    let mut nodes = BTreeMap::<&str, Vec<EnactmentCondition>>::new();
    for enactment in enactments {
        let held = nodes.entry(&enactment.node).or_default();
        held.extend(enactment.status);
    }
    let sample = |node: &str, held: &[EnactmentCondition], status: EnactmentCondition| {
        let count = held.iter().filter(|it| **it == status).count();
        let labels = [("node", node.into()), ("status", status.as_str().into())];
        (labels, number(count))
    };
    let all = EnactmentCondition::ALL.iter().copied();
    nodes
        .iter()
        .flat_map(|(node, held)| all.clone().map(move |status| sample(node, held, status)))
        .collect()
}

/// How many policies are in each condition.
pub fn policies<'a>(policies: impl Iterator<Item = &'a Policy> + Clone) -> Vec<Sample<1>> {
    let all = PolicyCondition::ALL.iter().copied();
    all.map(|status| {
        let count = policies.clone().filter(|it| it.0 == Some(status)).count();
        ([("status", status.as_str().into())], number(count))
    })
    .collect()
}

/// How many interfaces of each type a node has.
pub fn interfaces<'a>(states: impl Iterator<Item = (&'a str, &'a State)>) -> Vec<Sample<2>> {
    states
        .flat_map(|(node, state)| {
            let types = state.interfaces.iter();
            types
                .map(move |(kind, count)| ([("type", kind.clone()), ("node", node.into())], *count))
        })
        .collect()
}

/// How many routes of each sort a node has.
pub fn routes<'a>(states: impl Iterator<Item = (&'a str, &'a State)>) -> Vec<Sample<3>> {
    let sorts = |state: &State| {
        let of = |stack, Routes { fixed, dynamic }| {
            [(stack, "static", fixed), (stack, "dynamic", dynamic)]
        };
        let both = [of("ipv4", state.ipv4), of("ipv6", state.ipv6)];
        both.into_iter()
            .flatten()
            .filter(|(_, _, count)| *count > 0)
    };
    states
        .flat_map(|(node, state)| {
            sorts(state).map(move |(stack, kind, count)| {
                let labels = [
                    ("node", node.into()),
                    ("ip_stack", stack.into()),
                    ("type", kind.into()),
                ];
                (labels, count)
            })
        })
        .collect()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The series of these sources, whenever they are asked for.
#[derive(Debug)]
pub struct Series(pub Sources);

impl Series {
    /// Of every source: its label, whether it was listed once, and its age.
    fn standing(&self) -> [(&'static str, bool, f64); 3] {
        fn of<V: Send + Sync + 'static>(
            name: &'static str,
            mirror: &Mirror<V>,
        ) -> (&'static str, bool, f64) {
            let age = mirror.last_event().as_secs_f64();
            (name, mirror.is_synced(), age)
        }
        let Sources {
            policies,
            enactments,
            states,
        } = &self.0;
        [
            of("policies", policies),
            of("enactments", enactments),
            of("states", states),
        ]
    }
}

impl Collector for Series {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(known) = listed(&self.0.enactments) {
            let each = || known.iter().map(|(_, it)| &**it);
            write(&mut encoder, FEATURES, &features(each()))?;
            write(&mut encoder, ENACTMENTS, &enactments(each()))?;
        }
        if let Some(known) = listed(&self.0.states) {
            let each = || known.iter().map(|(key, it)| (key.name.as_str(), &**it));
            write(&mut encoder, INTERFACES, &interfaces(each()))?;
            write(&mut encoder, ROUTES, &routes(each()))?;
        }
        if let Some(known) = listed(&self.0.policies) {
            let each = known.iter().map(|(_, it)| &**it);
            write(&mut encoder, POLICIES, &policies(each))?;
        }
        let standing = self.standing();
        let synced =
            standing.map(|(name, synced, _)| ([("source", name.into())], i64::from(synced)));
        write(&mut encoder, SYNCED, &synced)?;
        let mut family = begin(&mut encoder, AGE)?;
        for (name, _, age) in standing {
            let labels = [("source", name)];
            let series = family.encode_family(&labels)?;
            ConstGauge::new(age).encode(series)?;
        }
        Ok(())
    }
}

/// Everything that is known, in order, if it has ever been listed.
fn listed<V: Send + Sync + 'static>(mirror: &Mirror<V>) -> Option<Vec<(Key, Arc<V>)>> {
    mirror.is_synced().then(|| {
        let mut all = mirror.all();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    })
}

fn begin<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    family: Family,
) -> Result<prometheus_client::encoding::MetricEncoder<'a>, std::fmt::Error> {
    encoder.encode_descriptor(family.name, family.help, None, MetricType::Gauge)
}

fn write<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    family: Family,
    samples: &[Sample<N>],
) -> Result<(), std::fmt::Error> {
    let mut family = begin(encoder, family)?;
    for (labels, value) in samples {
        let labels = labels.each_ref().map(|(name, text)| (*name, &**text));
        let series = family.encode_family(&labels)?;
        ConstGauge::new(*value).encode(series)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<const N: usize>(samples: &[Sample<N>]) -> Vec<String> {
        let shown = samples.iter().map(|(labels, value)| {
            let labels: Vec<_> = labels
                .iter()
                .map(|(name, text)| format!("{name}={text}"))
                .collect();
            format!("{} {value}", labels.join(","))
        });
        shown.collect()
    }

    fn enactment(node: &str, status: Option<EnactmentCondition>, features: &[&str]) -> Enactment {
        Enactment {
            node: node.into(),
            status,
            features: features.iter().map(|it| (*it).into()).collect(),
        }
    }

    #[test]
    fn a_feature_is_one_however_many_enactments_use_it() {
        let all = [
            enactment("a", None, &["lldp", "sriov"]),
            enactment("b", None, &["lldp"]),
            enactment("c", None, &[]),
        ];
        assert_eq!(
            shown(&features(all.iter())),
            ["name=lldp 1", "name=sriov 1"]
        );
    }

    #[test]
    fn enactments_are_counted_by_node_with_noughts_for_the_nodes_that_have_any() {
        use EnactmentCondition::{Available, Failing};
        let all = [
            enactment("b", None, &[]),
            enactment("a", Some(Failing), &[]),
            enactment("a", Some(Available), &[]),
            enactment("a", Some(Failing), &[]),
        ];
        assert_eq!(
            shown(&enactments(all.iter())),
            [
                "node=a,status=Available 1",
                "node=a,status=Failing 2",
                "node=a,status=Progressing 0",
                "node=a,status=Pending 0",
                "node=a,status=Aborted 0",
                "node=b,status=Available 0",
                "node=b,status=Failing 0",
                "node=b,status=Progressing 0",
                "node=b,status=Pending 0",
                "node=b,status=Aborted 0",
            ]
        );
        assert!(enactments([].iter()).is_empty());
    }

    #[test]
    fn policies_are_counted_with_noughts() {
        use PolicyCondition::{Degraded, Ignored};
        let all = [Some(Degraded), None, Some(Ignored), Some(Degraded)].map(Policy);
        assert_eq!(
            shown(&policies(all.iter())),
            [
                "status=Available 0",
                "status=Degraded 2",
                "status=Progressing 0",
                "status=Ignored 1"
            ]
        );
    }

    #[test]
    fn interfaces_and_routes_are_those_a_node_has() {
        let state = State {
            interfaces: Box::new([("bond".into(), 2), ("vlan".into(), 1)]),
            ipv4: Routes {
                fixed: 3,
                dynamic: 0,
            },
            ipv6: Routes {
                fixed: 0,
                dynamic: 4,
            },
        };
        let states = || [("n", &state)].into_iter();
        assert_eq!(
            shown(&interfaces(states())),
            ["type=bond,node=n 2", "type=vlan,node=n 1"]
        );
        assert_eq!(
            shown(&routes(states())),
            [
                "node=n,ip_stack=ipv4,type=static 3",
                "node=n,ip_stack=ipv6,type=dynamic 4"
            ]
        );
    }
}
