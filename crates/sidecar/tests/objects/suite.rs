//! The same of every back end.

use super::gateway::{KINDS, Kind, Store};
use super::line::Line;
use super::stage::until;
use bytes::Bytes;
use keelson_sidecar::objects::{self, Objects, part_size};
use std::path::Path;

const TEXT: &str = "text/plain";

/// Bytes that look drawn, the same for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = vec![0; length];
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    bytes
}

async fn keys(objects: &Objects, prefix: &str) -> Vec<String> {
    let listed = objects.list(prefix).await.expect("a listing");
    listed.into_iter().map(|it| it.key).collect()
}

#[tokio::test]
async fn what_was_put_comes_back() {
    for kind in KINDS {
        let objects = Store::new(kind).open();
        for (key, bytes) in [
            ("chain/peers.json", Bytes::from_static(b"[]")),
            ("chain/none", Bytes::new()),
            ("chain/peers.json", Bytes::from_static(b"[1]")),
        ] {
            objects.put(key, bytes.clone(), TEXT).await.expect("a put");
            let got = objects.get(key, 100).await.expect("an object");
            assert_eq!(got, bytes, "{kind:?} {key}");
        }
    }
}

#[tokio::test]
async fn a_listing_is_of_what_is_below_the_prefix_and_goes_on_page_after_page() {
    for kind in KINDS {
        let store = Store::new(kind);
        let folder = store.folder.join("chain/state-sync");
        std::fs::create_dir_all(&folder).expect("a folder");
        for height in 0..2_345 {
            std::fs::write(folder.join(format!("{height:05}.tar.gz")), "x").expect("a file");
        }
        let objects = store.open();
        for beside in ["chain/state-sync2/9", "chain/state", "other/state-sync/9"] {
            objects.put(beside, "x", TEXT).await.expect("a put");
        }
        let keys = keys(&objects, "chain/state-sync/").await;
        assert_eq!(keys.len(), 2_345, "{kind:?}");
        assert_eq!(keys[0], "chain/state-sync/00000.tar.gz");
        assert_eq!(keys[2_344], "chain/state-sync/02344.tar.gz");
        let listed = objects.list("chain/state-sync").await.expect("a listing");
        assert!(listed.iter().all(|it| it.size == 1), "{kind:?}");
    }
}

#[tokio::test]
async fn nothing_below_a_prefix_is_an_empty_listing() {
    for kind in KINDS {
        let objects = Store::new(kind).open();
        assert_eq!(
            keys(&objects, "chain/state-sync").await,
            [""; 0],
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_large_object_is_written_as_it_comes_and_read_back_in_order() {
    for kind in KINDS {
        let objects = Store::new(kind).open();
        let bytes = noise(7, 20 << 20);
        let mut writing = objects.write("large", TEXT, 0).await.expect("a begin");
        for piece in bytes.chunks(777_777) {
            writing.write(piece).await.expect("room");
            assert_eq!(
                keys(&objects, "").await,
                [""; 0],
                "{kind:?}: seen too early"
            );
        }
        writing.finish().await.expect("an end");
        let mut reading = objects.read("large").await.expect("an object");
        assert_eq!(reading.size(), 20 << 20, "{kind:?}");
        assert!(reading.etag().is_some(), "{kind:?}");
        let mut back = Vec::new();
        while let Some(piece) = reading.next().await.expect("bytes") {
            back.extend_from_slice(&piece);
        }
        assert!(back == bytes, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_given_up_leaves_the_one_before() {
    for kind in KINDS {
        let store = Store::new(kind);
        let objects = store.open();
        objects.put("key", "before", TEXT).await.expect("a put");
        for dropped in [false, true] {
            let mut writing = objects.write("key", TEXT, 0).await.expect("a begin");
            writing.write(&noise(1, 9 << 20)).await.expect("room");
            match dropped {
                true => drop(writing),
                false => writing.abort().await.expect("an abort"),
            }
            assert_eq!(keys(&objects, "").await, ["key"], "{kind:?}");
            let got = objects.get("key", 100).await.expect("an object");
            assert_eq!(got, "before", "{kind:?}, dropped {dropped}");
            // What was brought of it is gone, too.
            until("nothing left", || {
                parts(&store.folder).is_empty().then_some(())
            });
        }
    }
}

/// Files of large objects that are not finished, wherever a back end keeps them.
fn parts(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(parts(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found.retain(|it| it.contains("/multipart/") || it.contains('#'));
    found
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_read_is_a_fault_and_not_tried_again() {
    let store = Store::new(Kind::Folder);
    let objects = store.open();
    let bytes = noise(1, 2 << 20);
    objects.put("key", bytes, TEXT).await.expect("a put");
    let mut reading = objects.read("key").await.expect("an object");
    reading.next().await.expect("bytes").expect("bytes");
    std::fs::write(store.folder.join("key"), "short").expect("a file");
    let fault = reading.next().await.expect_err("a fault");
    assert_eq!(fault.kind, objects::Kind::Unexpected, "{fault}");
}

#[test]
fn parts_are_as_many_as_the_server_takes_however_large_the_object_is() {
    assert_eq!(part_size(0), 8 << 20);
    assert_eq!(part_size(1 << 30), 8 << 20);
    for about in [1_u64 << 36, 1 << 40, 5 << 40] {
        // Half as much again as was thought still fits.
        let parts = (about + about / 5).div_ceil(part_size(about));
        assert!(parts <= 10_000, "{about}: {parts}");
        assert!(part_size(about) <= 5 << 30);
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    for kind in KINDS {
        let store = Store::new(kind);
        let objects = store.open();
        let missing = objects.get("chain/genesis.json", 100).await;
        let missing = missing.expect_err("nothing");
        assert_eq!(missing.kind, objects::Kind::NoSuchKey, "{missing}");
        assert!(missing.to_string().contains("chain/genesis.json"));
        assert!(!missing.retryable());

        let gone = Store {
            name: "nobody".into(),
            folder: store.folder.join("nobody"),
            ..store.clone()
        };
        let opened = Objects::open_with(&gone.bucket(), &gone.reach(), gone.variables());
        let missing = match opened {
            Ok(objects) => objects.list("chain").await.expect_err("nothing"),
            Err(fault) => fault,
        };
        assert_eq!(missing.kind, objects::Kind::NoSuchBucket, "{missing}");
        assert!(missing.to_string().contains("nobody"), "{missing}");
    }
}

#[tokio::test]
async fn a_small_object_that_is_not_small_is_refused_before_it_is_read() {
    for kind in KINDS {
        let objects = Store::new(kind).open();
        objects.put("key", noise(1, 11), TEXT).await.expect("a put");
        assert!(objects.get("key", 11).await.is_ok(), "{kind:?}");
        let refused = objects.get("key", 10).await.expect_err("too large");
        assert!(refused.to_string().contains("it has 11 bytes"), "{refused}");
    }
}

/// An object behind a line that can be cut.
async fn behind_a_line(kind: Kind, length: usize) -> (Store, Line, Objects) {
    let mut store = Store::new(kind);
    let objects = store.open();
    let mut writing = objects.write("key", TEXT, 0).await.expect("a begin");
    writing.write(&noise(3, length)).await.expect("room");
    writing.finish().await.expect("an end");
    let line = Line::to(store.port);
    store.port = line.port;
    let objects = store.open();
    (store, line, objects)
}

#[tokio::test]
async fn a_read_that_is_cut_goes_on_where_it_was() {
    for kind in [Kind::S3, Kind::PathStyle] {
        let (_, line, objects) = behind_a_line(kind, 16 << 20).await;
        line.cut(5, 2 << 20);
        let mut reading = objects.read("key").await.expect("an object");
        let mut back = Vec::new();
        while let Some(piece) = reading.next().await.expect("bytes") {
            back.extend_from_slice(&piece);
        }
        assert!(back == noise(3, 16 << 20), "{kind:?}");
        assert_eq!(line.cuts(), 0, "{kind:?}");
        // What was on the way when the line was cut comes twice, and nothing else.
        assert!(line.back() < 22 << 20, "{kind:?}: {}", line.back());
    }
}

#[tokio::test]
async fn a_read_that_was_cut_is_not_gone_on_with_another_object() {
    for kind in [Kind::S3, Kind::PathStyle] {
        let (store, line, objects) = behind_a_line(kind, 16 << 20).await;
        let mut reading = objects.read("key").await.expect("an object");
        reading.next().await.expect("bytes").expect("bytes");
        line.cut(1, 1);
        // Of the same size, so that nothing but the ETag tells.
        let mut writing = objects.write("key", TEXT, 0).await.expect("a begin");
        writing.write(&noise(4, 16 << 20)).await.expect("room");
        writing.finish().await.expect("an end");
        line.cut(1, 1);
        let refused = loop {
            match reading.next().await {
                Ok(piece) => assert!(piece.is_some(), "{kind:?}: it was read to its end"),
                Err(fault) => break fault,
            }
        };
        assert_eq!(refused.kind, objects::Kind::Replaced, "{refused}");
        assert!(!refused.retryable());
        drop(store);
    }
}
