//! The outbox on a real disk, without an API server.

use crate::common::program::Folder;
use crate::world::report;
use keelson_host::handler::enactment::Standing;
use keelson_host::handler::journal::Policy;
use keelson_host::handler::server::Outbox;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn policy(uid: &str, generation: i64) -> Policy {
    Policy {
        uid: uid.to_owned(),
        name: "bridge".to_owned(),
        generation,
    }
}

fn open(folder: &Folder) -> Outbox {
    Outbox::open(&folder.path("outbox")).expect("an outbox")
}

#[test]
fn the_newest_report_of_a_policy_is_there_after_a_restart_for_root_alone() {
    let folder = Folder::new();
    let outbox = open(&folder);
    let first = report(&policy("u", 1), &Standing::Progressing);
    let second = report(&policy("u", 2), &Standing::Configured);
    outbox.put(first.clone()).expect("a disk");
    outbox.put(second.clone()).expect("a disk");
    // An older generation is no news.
    outbox.put(first.clone()).expect("a disk");
    let again = open(&folder);
    assert_eq!(again.due(), 1);
    let last = again.last("bridge", "u").expect("a report");
    assert_eq!(last.policy, second.policy);
    assert_eq!(last.status.policy_generation, Some(2));
    assert_eq!(again.last("bridge", "another"), None);
    let file = folder.path("outbox/bridge.json");
    let rights = fs::metadata(file).expect("a file").permissions();
    assert_eq!(rights.mode() & 0o777, 0o600);
    // A policy made anew begins anew.
    again
        .put(report(&policy("v", 1), &Standing::Progressing))
        .expect("a disk");
    let last = open(&folder).last("bridge", "v").expect("a report");
    assert_eq!(last.policy.generation, 1);
}

#[test]
fn a_withdrawal_takes_the_place_of_a_report_and_a_report_that_of_a_withdrawal() {
    let folder = Folder::new();
    let outbox = open(&folder);
    outbox
        .put(report(&policy("u", 1), &Standing::Configured))
        .expect("a disk");
    outbox.withdraw("bridge").expect("a disk");
    let again = open(&folder);
    assert_eq!((again.due(), again.last("bridge", "u")), (1, None));
    again
        .put(report(&policy("u", 1), &Standing::Configured))
        .expect("a disk");
    let again = open(&folder);
    assert!(again.last("bridge", "u").is_some());
    again.forget("bridge").expect("a disk");
    assert_eq!(open(&folder).due(), 0);
}

#[test]
fn what_cannot_be_understood_is_put_aside_and_named_and_the_rest_is_read() {
    let folder = Folder::new();
    open(&folder)
        .put(report(&policy("u", 1), &Standing::Configured))
        .expect("a disk");
    for (name, text) in [
        ("broken.json", "{\"version\":1,\"kind\":\"report\",\"pass"),
        ("newer.json", "{\"version\":2,\"all\":\"new\"}"),
    ] {
        fs::write(folder.path("outbox").join(name), text).expect("a file");
    }
    fs::write(folder.path("outbox/half.json.new"), "{").expect("a file");
    let outbox = open(&folder);
    assert_eq!(outbox.due(), 1);
    let [broken, newer] = outbox.unread() else {
        panic!("{:?}", outbox.unread());
    };
    assert!(
        broken.contains("broken.json cannot be understood: Eof error in line 1"),
        "{broken}"
    );
    assert!(newer.contains("newer.json is of version 2"), "{newer}");
    let aside = outbox.aside().expect("a folder");
    assert_eq!(aside.len(), 2, "{aside:?}");
    assert!(!folder.path("outbox/half.json.new").exists());
    assert_eq!(open(&folder).unread(), &[] as &[String], "named once");
}

#[test]
fn a_report_the_disk_refuses_is_said_and_still_to_be_told() {
    let folder = Folder::new();
    let outbox = open(&folder);
    fs::remove_dir_all(folder.path("outbox")).expect("a folder");
    let refused = outbox.put(report(&policy("u", 1), &Standing::Configured));
    let said = refused.expect_err("no folder").to_string();
    assert!(said.contains("bridge.json.new cannot be written"), "{said}");
    assert_eq!(outbox.due(), 1);
}

#[test]
fn the_same_again_does_not_touch_the_disk() {
    let folder = Folder::new();
    let outbox = open(&folder);
    outbox
        .put(report(&policy("u", 1), &Standing::Configured))
        .expect("a disk");
    fs::remove_dir_all(folder.path("outbox")).expect("a folder");
    let again = outbox.put(report(&policy("u", 1), &Standing::Configured));
    again.expect("nothing to write");
}
