//! What is decided about snapshots and their members, without any bucket or program.

use super::pack::snapshot;
use keelson_sidecar::archive::{Form, Misplaced, Problem, inside, unpack};
use keelson_sidecar::objects::Listed;
use keelson_sidecar::tasks::snapshot::choice::{choose, height};

#[test]
fn only_a_number_between_the_prefix_and_the_suffix_is_a_height() {
    for (key, found) in [
        (
            "x/state-sync/198030000.tar.gz",
            Some((198_030_000, Form::Gzip)),
        ),
        ("x/state-sync/7.tar.zst", Some((7, Form::Zstandard))),
        ("x/state-sync/eu-central-1.tar.gz", None),
        ("x/state-sync/100-eu-central-1.tar.gz", None),
        ("x/state-sync/snapshot_100_x_eu-central-1.tar.gz", None),
        ("x/state-sync/latest.txt", None),
        ("x/state-sync/100.tar.gz.sha256", None),
        ("x/state-sync/.tar.gz", None),
        ("x/state-sync/0.tar.gz", None),
        ("x/state-sync/+5.tar.gz", None),
        ("x/state-sync/old/5.tar.gz", None),
        ("x/state-sync/9223372036854775808.tar.gz", None),
        ("y/state-sync/5.tar.gz", None),
        ("x/state-sync/5.tar", None),
    ] {
        assert_eq!(height("x", key), found, "{key}");
    }
}

#[test]
fn of_two_of_a_height_one_is_taken_with_its_digest() {
    let listed: Vec<Listed> = [
        "100.tar.gz",
        "100.tar.gz.sha256",
        "100.tar.zst",
        "99.tar.gz",
    ]
    .iter()
    .map(|name| Listed {
        key: format!("x/state-sync/{name}"),
        size: 5,
    })
    .collect();
    let choice = choose("x", &listed, 0).expect("a choice");
    assert_eq!((choice.form, choice.digest), (Form::Zstandard, None));
    let choice = choose("x", &listed[..2], 0).expect("a choice");
    let digest = choice.digest.as_deref();
    assert_eq!(digest, Some("x/state-sync/100.tar.gz.sha256"));
    assert_eq!(choose("x", &listed, 98), None);
}

#[test]
fn a_name_leads_inside_or_nowhere() {
    for (name, path) in [
        ("a/b", "a/b"),
        ("./a//b/", "a/b"),
        (".a/..b", ".a/..b"),
        ("./", ""),
    ] {
        assert_eq!(inside(name.as_bytes()), Ok(path.into()), "{name}");
    }
    for (name, why) in [
        ("/etc/passwd", Misplaced::Absolute),
        ("..", Misplaced::Upwards),
        ("a/../b", Misplaced::Upwards),
        ("a/..", Misplaced::Upwards),
        ("", Misplaced::Impossible),
        ("a\0b", Misplaced::Impossible),
    ] {
        assert_eq!(inside(name.as_bytes()), Err(why), "{name}");
    }
}

#[tokio::test]
async fn an_unpacking_that_is_not_told_the_end_does_not_end_well() {
    let archive = bytes::Bytes::from(snapshot(100, 1, 1000).gz());
    for told in [false, true] {
        let name = format!("keelson-feed-{told}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let (feed, unpacking) = unpack(Form::Gzip, folder.clone());
        feed.bring(archive.clone()).await.expect("someone");
        match told {
            true => feed.end().await.expect("someone"),
            false => drop(feed),
        }
        let ended = unpacking.end().await;
        std::fs::remove_dir_all(folder).expect("a folder");
        match told {
            true => assert_eq!(ended.expect("an end").files, 3),
            false => assert!(matches!(ended, Err(Problem::Stopped)), "{ended:?}"),
        }
    }
}
