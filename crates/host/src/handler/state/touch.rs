//! Which interfaces a desired state changes, so that two policies for one interface are seen.
//!
//! Two policies conflict where both describe an interface, or put it under different controllers.
//! A policy that describes a bridge and another that describes its port do not: many are written so.
//! Who undoes a policy asks for more: any touch by another stands in the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use keelson_api::policy::State;
use serde_json::{Map, Value};

use super::{interfaces, list, text};

/// Lists of ports, by the member of an interface they stand under.
const PORTS: [(&str, &str); 5] = [
    ("bridge", "port"),
    ("bridge", "ports"),
    ("link-aggregation", "port"),
    ("link-aggregation", "ports"),
    ("vrf", "port"),
];

/// The interfaces a desired state changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Those it describes.
    pub described: BTreeSet<String>,
    /// Those it puts under another, and under which.
    pub ports: BTreeMap<String, String>,
    /// Those it leads routes through.
    pub routed: BTreeSet<String>,
}

/// What two policies disagree about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conflict {
    /// Both describe this interface.
    Described(String),
    /// They put this interface under different controllers.
    Port {
        /// Which.
        name: String,
        /// What this policy puts it under.
        ours: String,
        /// What the other puts it under.
        theirs: String,
    },
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Described(name) => write!(f, "both configure interface {name}"),
            Self::Port { name, ours, theirs } => write!(
                f,
                "this one makes interface {name} a port of {ours}, the other a port of {theirs}"
            ),
        }
    }
}

/// The interfaces a desired state changes.
pub fn touched(state: &State) -> Touched {
    let mut touched = Touched::default();
    for interface in interfaces(state) {
        let Some(name) = text(interface, "name") else {
            continue;
        };
        touched.described.insert(name.to_owned());
        for port in ports(interface) {
            // A bridge of Open vSwitch is a port of its own.
            if port != name {
                touched.ports.insert(port, name.to_owned());
            }
        }
    }
    let routes = state.get("routes").and_then(|it| it.get("config"));
    let through = list(routes).filter_map(|it| it.get("next-hop-interface")?.as_str());
    touched.routed = through.map(str::to_owned).collect();
    touched
}

/// The ports an interface is given. A port is a name, or an object with one; a bond of Open vSwitch
/// is a port that has ports.
fn ports(interface: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (member, key) in PORTS {
        for port in list(interface.get(member).and_then(|it| it.get(key))) {
            match port {
                Value::String(name) => found.push(name.clone()),
                Value::Object(port) => {
                    found.extend(text(port, "name").map(str::to_owned));
                    found.extend(ports(port));
                }
                _ => {}
            }
        }
    }
    found
}

impl Touched {
    /// What two policies disagree about.
    pub fn conflicts(&self, other: &Self) -> Vec<Conflict> {
        let described = self
            .described
            .intersection(&other.described)
            .map(|name| Conflict::Described(name.clone()));
        let ports = self.ports.iter().filter_map(|(name, ours)| {
            let theirs = other.ports.get(name).filter(|theirs| *theirs != ours)?;
            Some(Conflict::Port {
                name: name.clone(),
                ours: ours.clone(),
                theirs: theirs.clone(),
            })
        });
        described.chain(ports).collect()
    }

    /// Every interface both have to do with, in whatever way.
    pub fn shared(&self, other: &Self) -> BTreeSet<String> {
        let others: BTreeSet<&String> = other.all().collect();
        let both = self.all().filter(|name| others.contains(name));
        both.cloned().collect()
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        let named = self.described.iter().chain(&self.routed);
        named.chain(self.ports.keys())
    }
}
