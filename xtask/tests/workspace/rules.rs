//! The rules as a table, and a function that applies them to a workspace as a plain value.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a crate uses another for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In what is shipped, or in building it.
    Normal,
    /// In tests alone.
    Test,
}

/// One use of a crate by another, as declared.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) features: Vec<String>,
}

impl Use {
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            features: Vec::new(),
        }
    }
}

/// What the rules look at.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    /// Crates of the workspace, and what each declares to use.
    pub(crate) members: BTreeMap<String, Vec<Use>>,
    /// Every crate, and those it is built with on Linux, as resolved.
    pub(crate) edges: BTreeMap<String, Vec<String>>,
}

/// Rules for one crate of the workspace.
struct Row {
    name: &'static str,
    /// Crates of the workspace it may use.
    may_use: &'static [&'static str],
    /// Other crates it may not use itself.
    never: &'static [&'static str],
}

/// A client, or the runtime a client needs.
const CLIENT: &[&str] = &[
    "kube",
    "kube-client",
    "kube-runtime",
    "tokio",
    "reqwest",
    "hyper",
];
const API: &str = "keelson-api";
const TESTBED: &str = "keelson-testbed";

/// Who may use whom, for the whole workspace as it is planned.
const TABLE: &[Row] = &[
    // `api` uses kube for its derive; that it asks for no client is a rule of its own.
    Row {
        name: API,
        may_use: &[],
        never: &["kube-client", "kube-runtime", "tokio", "reqwest", "hyper"],
    },
    Row {
        name: "keelson-plan",
        may_use: &[API],
        never: CLIENT,
    },
    Row {
        name: "keelson-render",
        may_use: &[API, "keelson-seid-config", "keelson-wire"],
        never: CLIENT,
    },
    Row {
        name: "keelson-seid-config",
        may_use: &[],
        never: CLIENT,
    },
    Row {
        name: "keelson-wire",
        may_use: &[API],
        never: CLIENT,
    },
    Row {
        name: "keelson-tls",
        may_use: &[API],
        never: &["kube"],
    },
    Row {
        name: "keelson-cluster",
        may_use: &[API],
        never: &[],
    },
    Row {
        name: "keelson-operator",
        may_use: &[
            API,
            "keelson-cluster",
            "keelson-plan",
            "keelson-render",
            "keelson-seid-config",
            "keelson-tls",
            "keelson-wire",
        ],
        never: &[],
    },
    // The proxy and the sidecar have no use for the whole of the Kubernetes API.
    Row {
        name: "keelson-proxy",
        may_use: &["keelson-tls", "keelson-wire"],
        never: &["kube"],
    },
    Row {
        name: "keelson-sidecar",
        may_use: &["keelson-seid-config", "keelson-tls", "keelson-wire"],
        never: &["kube"],
    },
    Row {
        name: "keelson-host",
        // The proxy's listener and its engine of decisions, as a library.
        may_use: &[API, "keelson-cluster", "keelson-proxy", "keelson-tls"],
        never: &[],
    },
    Row {
        name: "keelson-cli",
        may_use: &[API, "keelson-cluster", "keelson-plan", "keelson-wire"],
        never: &[],
    },
    Row {
        name: TESTBED,
        may_use: &[],
        never: &[],
    },
    // The benches measure what is shipped and are not: they may stand on the testbed, and play those
    // whom a program talks to.
    Row {
        name: "keelson-bench",
        may_use: &[
            API,
            "keelson-cluster",
            "keelson-render",
            TESTBED,
            "keelson-wire",
        ],
        never: &[],
    },
    Row {
        name: "keelson-bare-nmstate",
        may_use: &[],
        never: &["kube"],
    },
    Row {
        name: "keelson-raw-hyper",
        may_use: &[],
        never: &["kube"],
    },
    // The operator's roles and settings are tables of its own, and written out from them.
    Row {
        name: "xtask",
        may_use: &[
            API,
            "keelson-cluster",
            "keelson-operator",
            "keelson-plan",
            "keelson-proxy",
            "keelson-render",
            "keelson-wire",
        ],
        never: &["kube-client", "tokio"],
    },
];

/// Crates that may be in nothing we build: other TLS and crypto libraries than the one we chose, and
/// a YAML library that is no longer maintained.
const BANNED: &[&str] = &["native-tls", "openssl", "openssl-sys", "ring", "serde_yaml"];

/// Uses of others that nobody can do without. nmstate reads YAML with it; we hand nmstate JSON.
const EXCUSED: &[(&str, &str)] = &[("nmstate", "serde_yaml")];

/// Every rule that is broken, each as a sentence.
pub(crate) fn violations(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for (name, uses) in &workspace.members {
        match TABLE.iter().find(|row| row.name == name) {
            Some(row) => found.extend(uses.iter().filter_map(|used| broken(row, used, workspace))),
            None => found.push(format!(
                "{name} has no row in the table of xtask/tests/workspace/rules.rs: add one"
            )),
        }
    }
    found.extend(
        BANNED
            .iter()
            .filter_map(|banned| path_to(workspace, banned))
            .map(|path| {
                format!(
                    "{} is banned and used: {}",
                    path[path.len() - 1],
                    path.join(" -> ")
                )
            }),
    );
    found
}

/// What is wrong with one use, if anything.
fn broken(row: &Row, used: &Use, workspace: &Workspace) -> Option<String> {
    let (name, other) = (row.name, used.name.as_str());
    let member = workspace.members.contains_key(other);
    // Tests may use what they like of the outside, and the testbed's may use anyone.
    match (used.kind, member) {
        (Kind::Test, false) => None,
        (Kind::Test, true) if other == TESTBED || name == TESTBED => None,
        (Kind::Normal, true) if other == TESTBED && !row.may_use.contains(&other) => {
            Some(format!("{name} may not use {other} but in tests"))
        }
        (_, true) if !row.may_use.contains(&other) => Some(format!("{name} may not use {other}")),
        (Kind::Normal, false) if row.never.contains(&other) => {
            Some(format!("{name} may not use {other}"))
        }
        (Kind::Normal, false) if name == API && other == "kube" => {
            let extra: Vec<_> = used
                .features
                .iter()
                .filter(|f| *f != "derive")
                .cloned()
                .collect();
            (!extra.is_empty())
                .then(|| format!("{name} may not use kube with {}", extra.join(", ")))
        }
        _ => None,
    }
}

/// The shortest way from a crate of the workspace to this one.
fn path_to(workspace: &Workspace, wanted: &str) -> Option<Vec<String>> {
    let mut queue: VecDeque<Vec<String>> = workspace
        .members
        .keys()
        .map(|name| vec![name.clone()])
        .collect();
    let mut seen: BTreeSet<String> = workspace.members.keys().cloned().collect();
    while let Some(path) = queue.pop_front() {
        let last = &path[path.len() - 1];
        if last == wanted {
            return Some(path);
        }
        for next in workspace.edges.get(last).into_iter().flatten() {
            let excused = EXCUSED.contains(&(last.as_str(), next.as_str()));
            if !excused && seen.insert(next.clone()) {
                queue.push_back([path.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}
