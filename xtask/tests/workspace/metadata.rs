//! The workspace as cargo sees it, reduced to what the rules look at.
//!
//! What crates declare is taken from `cargo metadata`, what they are built with from `cargo tree`:
//! the graph of the former has edges for optional dependencies that no feature turns on.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Deserialize;

use crate::rules::{Kind, Use, Workspace};

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    features: Vec<String>,
}

/// Asks cargo.
pub(crate) fn read() -> Workspace {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Metadata = serde_json::from_str(&metadata).expect("cargo writes JSON");
    let target = "x86_64-unknown-linux-gnu";
    let tree = cargo(&[
        "tree",
        "--workspace",
        "--target",
        target,
        "--edges",
        "normal,build,dev",
        "--prefix",
        "depth",
        "--format",
        " {p}",
    ]);
    Workspace {
        members: members(metadata),
        edges: edges(&tree),
    }
}

fn cargo(args: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(args)
        .arg("--locked")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

fn members(metadata: Metadata) -> BTreeMap<String, Vec<Use>> {
    let ours = |package: &Package| metadata.workspace_members.contains(&package.id);
    let packages = metadata.packages.iter().filter(|package| ours(package));
    packages
        .map(|package| {
            (
                package.name.clone(),
                package.dependencies.iter().map(declared).collect(),
            )
        })
        .collect()
}

fn declared(dependency: &Dependency) -> Use {
    let kind = match dependency.kind.as_deref() {
        Some("dev") => Kind::Test,
        _ => Kind::Normal,
    };
    Use {
        name: dependency.name.clone(),
        kind,
        features: dependency.features.clone(),
    }
}

/// Reads lines of the form `2 name v1.0.0`, where the number is the depth in the tree. Several
/// versions of one crate count as one: the rules ban names, not versions.
pub(crate) fn edges(tree: &str) -> BTreeMap<String, Vec<String>> {
    let mut edges: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut above: Vec<String> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let depth: usize = words
            .next()
            .and_then(|word| word.parse().ok())
            .expect("a depth first");
        let name = words.next().expect("a name after it").to_owned();
        above.truncate(depth);
        if let Some(user) = above.last() {
            edges.entry(user.clone()).or_default().push(name.clone());
        }
        edges.entry(name.clone()).or_default();
        above.push(name);
    }
    edges
}
