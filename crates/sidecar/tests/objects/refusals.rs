//! Archives that are damaged or mean harm: each is refused with its sentence, and nothing of it is
//! kept.

use super::gateway::{ACCESS_KEY, Kind, SECRET_KEY, Store};
use super::pack::{Pack, gzip, snapshot, zstandard};
use super::restore::{names, put, serving};
use super::stage::Sidecar;
use serde_json::json;
use std::io::Write;
use tar::EntryType;

/// Restores an archive that is not to be restored, and gives back what is said.
fn refused(store: &Store, sidecar: &Sidecar, suffix: &str, archive: &[u8]) -> String {
    put(store, &format!("x/state-sync/100.{suffix}"), archive);
    let task = sidecar.perform("snapshot-restore", json!({}));
    let key = store.folder.join(format!("x/state-sync/100.{suffix}"));
    std::fs::remove_file(key).expect("an object");
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["result"]["retryable"], false, "{task}");
    assert!(!sidecar.home.join(".sei-sidecar-snapshot-done").exists());
    assert!(!sidecar.home.join(".sei-sidecar-snapshot-height").exists());
    assert_eq!(names(&sidecar.home.join("data")), [""; 0], "{task}");
    task["error"].as_str().expect("an error").to_owned()
}

#[test]
fn an_entry_that_would_leave_the_folder_is_refused() {
    let store = Store::new(Kind::Folder);
    let sidecar = serving(&store, "leaving");
    let outside = sidecar.home.join("outside");
    let absolute = outside.display().to_string();
    let (file, link) = (EntryType::Regular, EntryType::Symlink);
    let good = || snapshot(100, 1, 10);
    let cases = [
        (good().raw(file, &absolute, "", b"x"), "is an absolute path"),
        (good().raw(file, "../outside", "", b"x"), "has .. in it"),
        (good().raw(file, "../../outside", "", b"x"), "has .. in it"),
        (
            good().raw(file, "100/../../../outside", "", b"x"),
            "has .. in it",
        ),
        (
            good()
                .said("path", "../../outside")
                .raw(file, "a", "", b"x"),
            "has .. in it",
        ),
        (
            good().raw(EntryType::Directory, "../../outside", "", b""),
            "has .. in it",
        ),
        (good().raw(link, "100/l", &absolute, b""), "is a link"),
        (good().raw(link, "100/l", "../../..", b""), "is a link"),
        (good().raw(link, "100/l", "1", b""), "is a link"),
        (
            good().raw(EntryType::Link, "100/l", "/etc/passwd", b""),
            "is a link",
        ),
        (
            good().raw(EntryType::Link, "100/l", "100/1/0", b""),
            "is a link",
        ),
        (
            good()
                .raw(link, "100/l", "../../../..", b"")
                .raw(file, "100/l/outside", "", b"x"),
            "is a link",
        ),
    ];
    for (pack, why) in cases {
        let error = refused(&store, &sidecar, "tar.gz", &pack.gz());
        assert!(
            error
                .starts_with("snapshot-restore: x/state-sync/100.tar.gz: the archive is refused: "),
            "{error}"
        );
        assert!(error.contains(why), "{error}");
        assert!(
            error.contains("[hint: upload the snapshot again"),
            "{error}"
        );
        assert!(!outside.exists() && !sidecar.home.join("data/outside").exists());
    }
}

#[test]
fn an_archive_that_is_damaged_is_refused_to_the_last_byte() {
    let store = Store::new(Kind::Folder);
    let sidecar = serving(&store, "damaged-archive");
    let tar = snapshot(100, 3, 100_000).tar();
    let gz = gzip(&tar);
    let zst = zstandard(&tar);
    let changed = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        bytes
    };
    let and = |bytes: &[u8], more: &[u8]| [bytes, more].concat();
    let mut ended = tar.clone();
    // Without its two blocks of zeros, and with one of them.
    ended.truncate(tar.len() - 1024);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("tar.gz", Vec::new(), "ends"),
        (
            "tar.gz",
            b"no archive at all".to_vec(),
            "invalid gzip header",
        ),
        (
            "tar.gz",
            gz[..gz.len() / 2].to_vec(),
            "it ends in the middle",
        ),
        (
            "tar.gz",
            gz[..gz.len() - 1].to_vec(),
            "it ends in the middle",
        ),
        ("tar.gz", changed(&gz, gz.len() - 6), "corrupt gzip stream"),
        ("tar.gz", changed(&gz, gz.len() - 1), "corrupt gzip stream"),
        (
            "tar.gz",
            and(&gz, b"and something that trails"),
            "invalid gzip header",
        ),
        (
            "tar.gz",
            and(&gz, &gzip(b"more")),
            "something comes after its end",
        ),
        ("tar.gz", gzip(&tar[..50_000]), "the tar ends too early"),
        ("tar.gz", gzip(&ended), "the tar ends too early"),
        (
            "tar.gz",
            gzip(&and(&ended, &[0; 512])),
            "the tar ends too early",
        ),
        ("tar.gz", gzip(&changed(&tar, 5)), "wrong checksum"),
        ("tar.gz", zst.clone(), "invalid gzip header"),
        ("tar.zst", gz.clone(), "damaged"),
        (
            "tar.zst",
            zst[..zst.len() / 2].to_vec(),
            "it ends in the middle",
        ),
        (
            "tar.zst",
            zst[..zst.len() - 1].to_vec(),
            "it ends in the middle",
        ),
        ("tar.zst", changed(&zst, zst.len() - 1), "checksum"),
        (
            "tar.zst",
            and(&zst, b"and something that trails"),
            "damaged",
        ),
        (
            "tar.zst",
            and(&zst, &zstandard(b"more")),
            "something comes after its end",
        ),
    ];
    for (number, (suffix, archive, why)) in cases.into_iter().enumerate() {
        let error = refused(&store, &sidecar, suffix, &archive);
        assert!(
            error.contains("the archive is damaged: "),
            "{number}: {error}"
        );
        assert!(error.contains(why), "{number}: {error}");
    }
}

#[test]
fn an_archive_that_would_take_all_memory_is_refused() {
    let store = Store::new(Kind::Folder);
    let sidecar = serving(&store, "hungry");
    let long = vec![b'a'; 2 << 20];
    let pack = Pack::new().raw(EntryType::GNULongName, "././@LongLink", "", &long);
    let error = refused(&store, &sidecar, "tar.gz", &pack.gz());
    assert!(
        error.contains("2097152 bytes are said of one member"),
        "{error}"
    );

    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("an encoder");
    encoder.window_log(27).expect("a window");
    let tar = snapshot(100, 1, 10).tar();
    encoder.write_all(&tar).expect("memory");
    let archive = encoder.finish().expect("memory");
    let error = refused(&store, &sidecar, "tar.zst", &archive);
    assert!(error.contains("too much memory"), "{error}");

    let sparse =
        Pack::new()
            .said("GNU.sparse.major", "1")
            .raw(EntryType::Regular, "100/sparse", "", b"x");
    let error = refused(&store, &sidecar, "tar.gz", &sparse.gz());
    assert!(error.contains("sparse"), "{error}");
    let sparse = Pack::new().raw(EntryType::GNUSparse, "100/sparse", "", b"x");
    let error = refused(&store, &sidecar, "tar.gz", &sparse.gz());
    assert!(error.contains("sparse"), "{error}");
}

#[test]
fn streams_that_follow_each_other_are_one_archive() {
    let store = Store::new(Kind::Folder);
    let sidecar = serving(&store, "streams");
    let tar = snapshot(100, 2, 100_000).tar();
    let (one, two) = tar.split_at(70_001);
    let archive = [gzip(one), gzip(two)].concat();
    put(&store, "x/state-sync/100.tar.gz", &archive);
    sidecar.completes("snapshot-restore", json!({}));
    super::restore::staged(&sidecar, 100, 2, 100_000);
}

#[test]
fn a_digest_beside_the_archive_is_heeded() {
    let store = Store::new(Kind::PathStyle);
    let archive = snapshot(100, 2, 100_000).gz();
    let sidecar = serving(&store, "digest");
    let beside = "x/state-sync/100.tar.gz.sha256";
    let right = sha256(&archive);
    let wrong = sha256(b"another");
    for (text, why) in [
        (wrong.as_str(), "was expected"),
        ("", "does not begin with a SHA-256"),
        ("xyz", "does not begin with a SHA-256"),
    ] {
        put(&store, beside, text.as_bytes());
        let error = refused(&store, &sidecar, "tar.gz", &archive);
        assert!(error.contains(why), "{error}");
    }
    put(&store, beside, format!("{right}  100.tar.gz\n").as_bytes());
    put(&store, "x/state-sync/100.tar.gz", &archive);
    sidecar.completes("snapshot-restore", json!({}));
}

#[test]
fn a_digest_noted_on_the_archive_is_heeded() {
    let store = Store::new(Kind::PathStyle);
    let archive = snapshot(100, 2, 100_000).gz();
    let sidecar = serving(&store, "noted");
    put_noted(&store, &archive, &sha256(b"another"));
    let task = sidecar.perform("snapshot-restore", json!({}));
    let error = task["error"].as_str().expect("an error");
    assert!(error.contains("was expected"), "{error}");
    assert_eq!(names(&sidecar.home.join("data")), [""; 0], "{task}");
    put_noted(&store, &archive, &sha256(&archive));
    sidecar.completes("snapshot-restore", json!({}));
}

/// Puts the archive with a note of its digest on it, as an uploader of another make may.
fn put_noted(store: &Store, archive: &[u8], digest: &str) {
    use object_store::{Attribute, PutOptions, path::Path};
    let client = object_store::aws::AmazonS3Builder::new()
        .with_endpoint(format!("http://127.0.0.1:{}", store.port))
        .with_allow_http(true)
        .with_region(store.bucket().region)
        .with_bucket_name(&store.name)
        .with_access_key_id(ACCESS_KEY)
        .with_secret_access_key(SECRET_KEY)
        .build()
        .expect("a client");
    let note = (Attribute::Metadata("sha256".into()), digest.to_owned());
    let options = PutOptions::from(object_store::Attributes::from_iter([note]));
    let key = Path::from("x/state-sync/100.tar.gz");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let put = object_store::ObjectStore::put_opts(&client, &key, archive.to_vec().into(), options);
    runtime.block_on(put).expect("a put");
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
