//! The order in which certificates are replaced: the law in a world of names, and with real ones.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use keelson_operator::host::certificates::{
    Intervals, Leaf, Replica, Root, SETTLE, Seen, Server, Step, Trusted, next,
};
use proptest::prelude::*;

const HOUR: Duration = Duration::from_secs(3600);

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a moment of this century")
}

fn after(at: Timestamp, span: Duration) -> Timestamp {
    at.saturating_add(span).expect("a moment of this century")
}

/// A cluster in which only names of authorities exist, and steps do what they say.
struct World {
    now: Timestamp,
    intervals: Intervals,
    founded: u32,
    roots: Vec<Root>,
    /// What clients were told, and when.
    told: Vec<(Timestamp, BTreeSet<String>)>,
    leaves: Vec<Leaf>,
    replicas: Vec<Presenting>,
}

struct Presenting {
    server: Server,
    leaf: Option<Leaf>,
    reachable: bool,
}

impl World {
    fn new() -> Self {
        let replica = |server| Presenting {
            server,
            leaf: None,
            reachable: true,
        };
        Self {
            now: start(),
            intervals: Intervals::default(),
            founded: 0,
            roots: Vec::new(),
            told: Vec::new(),
            leaves: Vec::new(),
            replicas: [Server::Webhook, Server::Webhook, Server::Metrics]
                .map(replica)
                .into(),
        }
    }

    fn seen(&self) -> Seen {
        let told = self.told.last();
        // What clients trust and nobody keeps is an old authority, too: without more facts.
        let mut roots = self.roots.clone();
        for name in told.iter().flat_map(|(_, roots)| roots) {
            if !roots.iter().any(|root| root.name == *name) {
                roots.push(Root {
                    name: name.clone(),
                    made: start(),
                    ends: Timestamp::MAX,
                    signs: false,
                });
            }
        }
        Seen {
            roots,
            trusted: told.map(|(since, roots)| Trusted {
                roots: roots.clone(),
                since: *since,
                first: self.told.len() == 1,
            }),
            leaves: self.leaves.clone(),
            replicas: self.replicas.iter().enumerate().map(seen).collect(),
        }
    }

    fn tell(&mut self, roots: BTreeSet<String>) {
        if self.told.last().map(|(_, told)| told) != Some(&roots) {
            self.told.push((self.now, roots));
        }
    }

    fn step(&mut self) -> Step {
        let seen = self.seen();
        let step = next(&seen, &self.intervals, self.now);
        match &step {
            Step::Found => {
                self.founded += 1;
                let root = Root {
                    name: format!("root {}", self.founded),
                    made: self.now,
                    ends: after(self.now, self.intervals.ca_life()),
                    signs: true,
                };
                for root in &mut self.roots {
                    root.signs = false;
                }
                self.roots.insert(0, root);
            }
            Step::Trust(names) => self.tell(names.iter().cloned().collect()),
            Step::Issue(server) => {
                let root = &self.roots[0];
                assert!(root.signs, "only an authority with a key signs");
                self.leaves.retain(|leaf| leaf.server != *server);
                self.leaves.push(Leaf {
                    server: *server,
                    by: root.name.clone(),
                    made: self.now,
                    ends: after(self.now, self.intervals.cert_rotate).min(root.ends),
                    fits: true,
                });
            }
            Step::Forget(names) => {
                self.roots.retain(|root| !names.contains(&root.name));
                let told = self
                    .told
                    .last()
                    .map(|(_, told)| told.clone())
                    .unwrap_or_default();
                self.tell(
                    told.into_iter()
                        .filter(|name| !names.contains(name))
                        .collect(),
                );
            }
            Step::Wait { .. } | Step::Rest { .. } => {}
        }
        step
    }

    fn load(&mut self, which: usize) {
        let count = self.replicas.len();
        let replica = &mut self.replicas[which % count];
        let leaf = self
            .leaves
            .iter()
            .find(|leaf| leaf.server == replica.server);
        if let Some(leaf) = leaf {
            replica.leaf = Some(leaf.clone());
        }
    }

    /// What clients may trust now: the last they were told, or anything told a moment ago.
    fn heard(&self) -> Vec<&BTreeSet<String>> {
        let mut heard = Vec::new();
        for (position, (_, told)) in self.told.iter().enumerate() {
            let until = self.told.get(position + 1).map(|(at, _)| *at);
            if until.is_none_or(|until| after(until, SETTLE) > self.now) {
                heard.push(told);
            }
        }
        heard
    }

    fn law(&self) -> Result<(), String> {
        for (number, replica) in self.replicas.iter().enumerate() {
            let Some(leaf) = replica.leaf.as_ref().filter(|leaf| leaf.ends > self.now) else {
                continue;
            };
            if let Some(told) = self.heard().iter().find(|told| !told.contains(&leaf.by)) {
                return Err(format!(
                    "replica {number} presents {} and clients trust {told:?}",
                    leaf.by
                ));
            }
        }
        Ok(())
    }

    /// Lets everything happen that can, for a while, in steps of an hour.
    fn settle(&mut self, hours: u32) {
        for _ in 0..hours {
            self.now = after(self.now, HOUR);
            for _ in 0..12 {
                self.step();
                self.law().expect("the law");
                self.now = after(self.now, SETTLE);
                for replica in 0..self.replicas.len() {
                    self.load(replica);
                    self.law().expect("the law");
                }
            }
        }
    }
}

fn seen((number, replica): (usize, &Presenting)) -> Replica {
    let leaf = replica.leaf.as_ref().filter(|_| replica.reachable);
    Replica {
        name: format!("replica {number}"),
        presents: leaf.map(|leaf| leaf.by.clone()),
    }
}

/// What may happen to a cluster.
#[derive(Clone, Debug)]
enum Happening {
    Step,
    Pass(Duration),
    Load(usize),
    Unreachable(usize, bool),
    NewReplica,
    LostAuthority,
    LostCertificate(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    let span = prop_oneof![
        (0..10_u64).prop_map(Duration::from_secs),
        (1..48_u64).prop_map(|hours| HOUR * u32::try_from(hours).expect("a few")),
        (500..5000_u64).prop_map(|hours| HOUR * u32::try_from(hours).expect("a few")),
    ];
    prop_oneof![
        20 => Just(Happening::Step),
        6 => span.prop_map(Happening::Pass),
        8 => (0..6_usize).prop_map(Happening::Load),
        2 => (0..6_usize, any::<bool>()).prop_map(|(which, yes)| Happening::Unreachable(which, yes)),
        1 => Just(Happening::NewReplica),
        1 => Just(Happening::LostAuthority),
        1 => (0..2_usize).prop_map(Happening::LostCertificate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whoever is slow, out of reach, new, or loses what it kept: clients trust what is presented.
    #[test]
    fn at_every_step_clients_trust_what_every_replica_presents(
        happenings in prop::collection::vec(happening(), 0..250),
    ) {
        let mut world = World::new();
        for happening in happenings {
            match happening {
                Happening::Step => drop(world.step()),
                Happening::Pass(span) => world.now = after(world.now, span),
                Happening::Load(which) => world.load(which),
                Happening::Unreachable(which, yes) => {
                    let count = world.replicas.len();
                    world.replicas[which % count].reachable = !yes;
                }
                Happening::NewReplica => {
                    let leaf = world.leaves.first().cloned();
                    let server = leaf.as_ref().map_or(Server::Webhook, |leaf| leaf.server);
                    world.replicas.push(Presenting { server, leaf, reachable: true });
                }
                Happening::LostAuthority => world.roots.clear(),
                Happening::LostCertificate(which) => {
                    world.leaves.retain(|leaf| leaf.server != Server::ALL[which]);
                }
            }
            if let Err(broken) = world.law() {
                prop_assert!(false, "{broken}");
            }
        }
    }

    /// However it got into a state, with everything well again the cluster ends with one authority
    /// that signed everything, and nothing to wait for.
    #[test]
    fn where_everything_is_well_every_rotation_comes_to_its_end(
        happenings in prop::collection::vec(happening(), 0..60),
    ) {
        let mut world = World::new();
        for happening in happenings {
            match happening {
                Happening::Step => drop(world.step()),
                Happening::Pass(span) => world.now = after(world.now, span.min(HOUR)),
                Happening::Load(which) => world.load(which),
                Happening::LostAuthority => world.roots.clear(),
                _ => {}
            }
        }
        world.settle(30);
        let step = world.step();
        prop_assert!(matches!(step, Step::Rest { .. }), "{step:?}");
        prop_assert_eq!(world.seen().roots.len(), 1);
        let newest = &world.roots[0].name;
        prop_assert!(world.leaves.iter().all(|leaf| leaf.by == *newest));
    }
}

#[test]
fn in_three_years_of_days_no_replica_ever_presents_something_out_of_its_time() {
    let mut world = World::new();
    world.settle(1);
    for _ in 0..(3 * 365) {
        world.settle(1);
        world.now = after(world.now, HOUR * 22);
        for replica in &world.replicas {
            let leaf = replica.leaf.as_ref().expect("a certificate");
            assert!(leaf.ends > world.now, "{leaf:?} at {}", world.now);
        }
    }
    assert!(
        world.founded >= 3,
        "{} authorities in three years",
        world.founded
    );
}

#[test]
fn the_steps_of_a_first_certificate_and_of_a_rotation_are_these() {
    let mut world = World::new();
    let names = |numbers: &[u32]| {
        numbers
            .iter()
            .map(|it| format!("root {it}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(world.step(), Step::Found);
    assert_eq!(world.step(), Step::Trust(names(&[1])));
    // Nobody called anybody before: the first is written at once.
    assert_eq!(world.step(), Step::Issue(Server::Webhook));
    assert_eq!(world.step(), Step::Issue(Server::Metrics));
    (0..3).for_each(|replica| world.load(replica));
    let due = after(start(), HOUR * 4380 - HOUR * 24);
    assert_eq!(world.step(), Step::Rest { until: due });
    world.now = after(start(), HOUR * (8760 - 24));
    assert_eq!(world.step(), Step::Found);
    assert_eq!(world.step(), Step::Trust(names(&[2, 1])));
    let heard = after(world.now, SETTLE);
    assert!(matches!(world.step(), Step::Wait { until, .. } if until == heard));
    world.now = after(world.now, SETTLE);
    assert_eq!(world.step(), Step::Issue(Server::Webhook));
    assert_eq!(world.step(), Step::Issue(Server::Metrics));
    world.now = after(world.now, HOUR * 24);
    // All but one replica have it.
    world.load(0);
    world.load(2);
    let Step::Wait { why, .. } = world.step() else {
        panic!("the old authority went too early");
    };
    assert_eq!(why, "replica 1 presents a certificate of the old CA root 1");
    world.load(1);
    assert_eq!(world.step(), Step::Forget(names(&[1])));
}

/// An installation whose configuration was lost, with an operator that never saw it.
#[test]
fn a_first_bundle_waits_too_where_another_authority_signed_what_is_there() {
    let mut world = World::new();
    world.settle(1);
    world.told.clear();
    world.now = after(world.now, HOUR * (8760 - 24));
    assert_eq!(world.step(), Step::Found);
    let both = ["root 2".to_owned(), "root 1".to_owned()];
    assert_eq!(world.step(), Step::Trust(both.into()));
    assert!(world.seen().trusted.is_some_and(|it| it.first));
    assert!(matches!(world.step(), Step::Wait { .. }));
    world.now = after(world.now, SETTLE);
    assert_eq!(world.step(), Step::Issue(Server::Webhook));
}

#[test]
fn a_replica_that_nobody_could_look_at_keeps_the_old_authority() {
    let mut world = World::new();
    world.settle(1);
    world.now = after(start(), HOUR * (8760 - 24));
    world.replicas[0].reachable = false;
    for _ in 0..40 {
        world.step();
        world.now = after(world.now, HOUR);
        (0..3).for_each(|replica| world.load(replica));
    }
    assert_eq!(world.roots.len(), 2);
    world.replicas[0].reachable = true;
    assert!(matches!(world.step(), Step::Forget(_)));
}
