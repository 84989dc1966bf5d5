//! Which process is the node, by what is seen of it.

use keelson_sidecar::process::seen::{age, is_nested};
use keelson_sidecar::process::{Kin, Seen, judge};
use std::path::PathBuf;
use std::time::Duration;

fn seen(name: &str, arguments: &[&str]) -> Seen {
    Seen {
        name: name.into(),
        arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
        ..Seen::default()
    }
}

fn judged(seen: &Seen) -> Kin {
    judge(seen, &["/sei".into(), "/volumes/sei".into()])
}

#[test]
fn a_process_named_seid_that_was_called_as_seid_start_is_the_node() {
    for arguments in [
        vec!["seid", "start"],
        vec!["/usr/bin/seid", "start"],
        vec!["./seid", "start", "--halt-height", "9"],
    ] {
        assert_eq!(
            judged(&seen("seid", &arguments)),
            Kin::Node,
            "{arguments:?}"
        );
    }
}

#[test]
fn other_commands_wrappers_and_namesakes_are_not_the_node() {
    for (name, arguments) in [
        ("seid", vec!["seid", "init", "start"]),
        ("seid", vec!["seid", "--home", "/sei", "start"]),
        ("seid", vec!["seid"]),
        ("seid", vec![]),
        ("seid", vec!["notseid", "start"]),
        ("seid", vec!["/bin/seid/other", "start"]),
        (
            "bash",
            vec!["/bin/bash", "-c", "exec seid start --home /sei"],
        ),
        ("bash", vec!["seid", "start"]),
        ("seid-wrapper", vec!["seid", "start"]),
        ("seictl", vec!["seictl", "serve"]),
    ] {
        let kin = judged(&seen(name, &arguments));
        assert_eq!(kin, Kin::Stranger, "{name} {arguments:?}");
    }
}

#[test]
fn a_node_that_names_its_home_is_ours_only_if_it_is_our_home() {
    for (more, wanted) in [
        (vec!["--home", "/sei"], Kin::Node),
        (vec!["--home=/sei/"], Kin::Node),
        (vec!["--x", "--home", "/volumes//sei"], Kin::Node),
        (vec!["--home", "/other"], Kin::Other("/other".into())),
        (vec!["--home=/sei2"], Kin::Other("/sei2".into())),
        (
            vec!["--home", "/sei", "--home", "/b"],
            Kin::Other("/b".into()),
        ),
        (vec!["--home", "sei"], Kin::Node),
        (vec!["--home", "b"], Kin::Other("/b".into())),
    ] {
        let mut process = seen("seid", &[&["/bin/seid", "start"], more.as_slice()].concat());
        process.user_home = Some("/elsewhere".into());
        process.folder = Some("/".into());
        assert_eq!(judged(&process), wanted, "{more:?}");
    }
}

#[test]
fn a_node_that_does_not_name_its_home_has_the_one_of_its_user_and_else_is_ours() {
    let mut process = seen("seid", &["seid", "start"]);
    process.user_home = Some("/home/ada".into());
    assert_eq!(judged(&process), Kin::Other("/home/ada/.sei".into()));
    assert_eq!(
        judge(&process, &[PathBuf::from("/home/ada/.sei")]),
        Kin::Node
    );
    process.user_home = None;
    assert_eq!(judged(&process), Kin::Node);
    // A home that begins nowhere cannot be compared.
    process.arguments.extend(["--home".into(), "b".into()]);
    assert_eq!(judged(&process), Kin::Node);
}

#[test]
fn a_node_of_a_namespace_within_ours_is_somebody_elses() {
    let mut process = seen("seid", &["seid", "start", "--home", "/sei"]);
    process.nested = true;
    assert_eq!(judged(&process), Kin::Stranger);
    assert!(is_nested("Name:\tseid\nNSpid:\t812\t7\nThreads:\t3\n"));
    assert!(!is_nested("Name:\tseid\nNSpid:\t812\nThreads:\t3\n"));
    assert!(
        !is_nested("Name:\tseid\nThreads:\t3\n"),
        "kernels without it"
    );
}

#[test]
fn the_age_of_a_process_is_counted_from_its_start_and_no_name_confuses_it() {
    let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 93 0 0 0 21 34 5 6 20 0 1 0 1050 1 2 3";
    let old = |uptime| age(stat, uptime, 100);
    assert_eq!(old("20.50 33.00\n"), Some(Duration::from_secs(10)));
    assert_eq!(old("10.49 33.00\n"), Some(Duration::ZERO));
    assert_eq!(old("soon"), None);
    assert_eq!(age("7 (a) S 1", "20.50", 100), None);
}
