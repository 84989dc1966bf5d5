//! The shape of the workspace: who may use whom, and what nobody may use.

#[path = "workspace/metadata.rs"]
mod metadata;
#[path = "workspace/rules.rs"]
mod rules;

use rules::{Kind, Use, Workspace, violations};

#[test]
fn the_workspace_keeps_its_shape() {
    let found = violations(&metadata::read());
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_workspace_was_really_read() {
    let workspace = metadata::read();
    assert!(workspace.members.contains_key("keelson-api"));
    let api = &workspace.members["keelson-api"];
    assert!(
        api.iter()
            .any(|used| used.name == "kube" && used.features == ["derive"]),
        "{api:?}"
    );
    let reachable = workspace.edges.values().map(Vec::len).sum::<usize>();
    assert!(reachable > 100, "only {reachable} edges");
}

/// A workspace of these crates and uses.
fn of(members: &[(&str, &[(&str, Kind)])]) -> Workspace {
    let mut workspace = Workspace::default();
    for (name, uses) in members {
        let uses = uses.iter().map(|(used, kind)| Use::new(used, *kind));
        workspace.members.insert((*name).to_owned(), uses.collect());
        workspace.edges.insert((*name).to_owned(), Vec::new());
    }
    workspace
}

fn only(workspace: &Workspace) -> String {
    let found = violations(workspace);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.concat()
}

#[test]
fn a_use_against_the_direction_is_found() {
    let workspace = of(&[
        ("keelson-api", &[("keelson-plan", Kind::Normal)]),
        ("keelson-plan", &[]),
    ]);
    assert_eq!(only(&workspace), "keelson-api may not use keelson-plan");
}

#[test]
fn a_use_along_the_direction_is_fine() {
    let workspace = of(&[
        (
            "keelson-operator",
            &[
                ("keelson-plan", Kind::Normal),
                ("keelson-testbed", Kind::Test),
            ],
        ),
        ("keelson-plan", &[("keelson-api", Kind::Normal)]),
        ("keelson-api", &[]),
        ("keelson-testbed", &[]),
    ]);
    assert_eq!(violations(&workspace), Vec::<String>::new());
}

#[test]
fn the_testbed_is_for_tests_only() {
    let workspace = of(&[
        ("keelson-host", &[("keelson-testbed", Kind::Normal)]),
        ("keelson-testbed", &[]),
    ]);
    assert_eq!(
        only(&workspace),
        "keelson-host may not use keelson-testbed but in tests"
    );
}

#[test]
fn the_benches_may_stand_on_the_testbed() {
    let workspace = of(&[
        ("keelson-bench", &[("keelson-testbed", Kind::Normal)]),
        ("keelson-testbed", &[]),
    ]);
    assert_eq!(violations(&workspace), Vec::<String>::new());
}

#[test]
fn a_crate_without_a_row_is_asked_for_one() {
    let workspace = of(&[("keelson-helper", &[])]);
    assert_eq!(
        only(&workspace),
        "keelson-helper has no row in the table of xtask/tests/workspace/rules.rs: add one"
    );
}

#[test]
fn the_plan_knows_neither_client_nor_runtime() {
    let workspace = of(&[(
        "keelson-plan",
        &[("tokio", Kind::Normal), ("kube", Kind::Normal)],
    )]);
    let found = violations(&workspace);
    assert_eq!(
        found,
        [
            "keelson-plan may not use tokio",
            "keelson-plan may not use kube"
        ]
    );
}

#[test]
fn the_types_have_no_client() {
    let mut workspace = of(&[("keelson-api", &[])]);
    let mut kube = Use::new("kube", Kind::Normal);
    kube.features = vec!["derive".into(), "client".into()];
    workspace.members.insert("keelson-api".into(), vec![kube]);
    assert_eq!(only(&workspace), "keelson-api may not use kube with client");
}

#[test]
fn a_banned_crate_is_found_however_deep_it_lies() {
    let mut workspace = of(&[("keelson-api", &[("http", Kind::Normal)])]);
    workspace
        .edges
        .insert("keelson-api".into(), vec!["http".into()]);
    workspace
        .edges
        .insert("http".into(), vec!["tls".into(), "keelson-api".into()]);
    workspace.edges.insert("tls".into(), vec!["ring".into()]);
    assert_eq!(
        only(&workspace),
        "ring is banned and used: keelson-api -> http -> tls -> ring"
    );
}

#[test]
fn a_tree_gives_the_edges_of_its_crates() {
    let tree = "0 a v1.0.0\n1 b v1.0.0\n2 c v2.0.0\n1 d v1.0.0 (*)\n\n0 d v1.0.0\n1 c v1.0.0\n";
    let edges = metadata::edges(tree);
    assert_eq!(edges["a"], ["b", "d"]);
    assert_eq!(edges["b"], ["c"]);
    assert_eq!(edges["d"], ["c"]);
}
