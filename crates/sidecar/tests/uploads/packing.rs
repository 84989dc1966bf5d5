//! Archives: what is in them, and that what changes on the way is no archive.

use super::play::{metadata, snapshot};
use keelson_sidecar::pack::{NotPacked, Tree, pack, pipe};
use std::cell::Cell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A home that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keelson-packing-{}-{next}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn snapshots(&self) -> PathBuf {
        self.0.join("data/snapshots")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What an archive has in it, as tar tells.
fn listed(archive: &[u8]) -> Vec<String> {
    let mut tar = Command::new("tar")
        .arg("tz")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tar");
    let mut pipe = tar.stdin.take().expect("a pipe");
    pipe.write_all(archive).expect("tar");
    drop(pipe);
    let output = tar.wait_with_output().expect("tar");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("names");
    text.lines()
        .map(|it| it.trim_end_matches('/').to_owned())
        .collect()
}

const GOES_ON: &dyn Fn() -> bool = &|| false;

#[test]
fn an_archive_has_everything_below_its_names_and_the_count_is_of_all_bytes() {
    let folder = Folder::new();
    snapshot(&folder.0, 100, 3, 70_000);
    snapshot(&folder.0, 200, 1, 10);
    metadata(&folder.0);
    let long = format!("100/{}", "n".repeat(180));
    std::fs::write(folder.snapshots().join(&long), "x").expect("a file");
    let trees = [
        Tree::survey(&folder.snapshots(), "100").expect("a tree"),
        Tree::survey(&folder.snapshots(), "metadata.db").expect("a tree"),
    ];
    let counted = Cell::new(0);
    let count = |bytes| counted.set(counted.get() + bytes);
    let archive = pack(&trees, Vec::new(), GOES_ON, &count).expect("an archive");
    assert_eq!(
        listed(&archive),
        [
            "100",
            "100/3",
            "100/3/00",
            "100/3/01",
            "100/3/02",
            &long,
            "metadata.db",
            "metadata.db/000001.log",
            "metadata.db/CURRENT",
            "metadata.db/LOCK"
        ]
    );
    let bytes = trees.iter().map(Tree::bytes).sum::<u64>();
    assert_eq!((counted.get(), bytes), (210_022, 210_022));
}

/// Does something when a megabyte was written: some was packed by then, and some was not.
struct Meanwhile<F: FnMut()>(Option<F>, usize);

impl<F: FnMut()> Write for Meanwhile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 += bytes.len();
        if self.1 > 1_000_000
            && let Some(mut act) = self.0.take()
        {
            act();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_changes_or_vanishes_while_it_is_packed_is_an_error() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 7] = [
        (
            |it| std::fs::remove_file(it.join("07")).expect("a file"),
            "it is gone",
        ),
        (
            |it| std::fs::remove_dir_all(it).expect("a folder"),
            "it is gone",
        ),
        (
            |it| std::fs::write(it.join("07"), "x").expect("a file"),
            "shorter than it was",
        ),
        (
            |it| {
                let file = std::fs::File::options().append(true).open(it.join("07"));
                file.expect("a file").write_all(b"more").expect("room");
            },
            "it is another",
        ),
        // What was packed long ago counts, too.
        (
            |it| std::fs::write(it.join("00"), vec![1; 300_000]).expect("a file"),
            "it is another",
        ),
        (
            |it| std::fs::write(it.join("08"), "x").expect("a file"),
            "it is another",
        ),
        (
            |it| std::fs::remove_file(it.join("00")).expect("a file"),
            "it is another",
        ),
    ];
    for (index, (change, sentence)) in changes.into_iter().enumerate() {
        let folder = Folder::new();
        let chunks = snapshot(&folder.0, 100, 8, 300_000);
        let tree = Tree::survey(&folder.snapshots(), "100").expect("a tree");
        let into = Meanwhile(Some(|| change(&chunks)), 0);
        let packed = pack(&[tree], into, GOES_ON, &|_| ());
        let Err(NotPacked::Changed { .. }) = &packed else {
            panic!("change {index}: packed");
        };
        let error = packed.err().expect("an error").to_string();
        assert!(error.contains(sentence), "{index}: {error}");
    }
}

#[test]
fn what_is_neither_file_nor_folder_is_refused() {
    let folder = Folder::new();
    let chunks = snapshot(&folder.0, 100, 1, 10);
    std::os::unix::fs::symlink("/etc/hostname", chunks.join("out")).expect("a link");
    let refused = Tree::survey(&folder.snapshots(), "100").expect_err("a refusal");
    let sentence = "100/3/out is neither a file nor a folder: take it away";
    assert!(refused.to_string().ends_with(sentence), "{refused}");
}

#[test]
fn a_folder_that_is_written_is_copied_when_it_has_stood_still_for_a_while() {
    let folder = Folder::new();
    metadata(&folder.0);
    let (root, to) = (folder.snapshots(), folder.0.join("tmp/copy"));
    let file = root.join("metadata.db/000001.log");
    let tree = std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut log = std::fs::File::options()
                .append(true)
                .open(&file)
                .expect("a file");
            for _ in 0..50 {
                log.write_all(b"more").expect("room");
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        Tree::copy(&root, Path::new("metadata.db"), &to).expect("a copy")
    });
    assert!(tree.bytes() >= 21);
    let archive = pack(&[tree], Vec::new(), GOES_ON, &|_| ()).expect("an archive");
    assert_eq!(listed(&archive).len(), 4);

    std::fs::write(&file, "written just now").expect("a file");
    Tree::copy(&root, Path::new("metadata.db"), &to).expect("a copy");
    let written = file
        .metadata()
        .and_then(|it| it.modified())
        .expect("a time");
    let age = written.elapsed().expect("a time that is over");
    assert!(age >= Duration::from_millis(100), "{age:?}");
    let copied = std::fs::read_to_string(to.join("metadata.db/000001.log"));
    assert_eq!(copied.expect("a file"), "written just now");
}

#[tokio::test]
async fn who_packs_is_stopped_when_nobody_reads_and_when_told() {
    let folder = Folder::new();
    snapshot(&folder.0, 100, 4, 2 << 20);
    let tree = Tree::survey(&folder.snapshots(), "100").expect("a tree");
    let (end, mut pieces) = pipe();
    let trees = [tree.clone()];
    let packing = tokio::task::spawn_blocking(move || pack(&trees, end, GOES_ON, &|_| ()));
    pieces.recv().await.expect("a piece");
    drop(pieces);
    let packed = packing.await.expect("no panic");
    assert!(matches!(packed, Err(NotPacked::Stopped)));

    let read = Cell::new(0);
    let stop = || read.get() > 1 << 20;
    let packed = pack(&[tree], io::sink(), &stop, &|more| {
        read.set(read.get() + more)
    });
    assert!(matches!(packed, Err(NotPacked::Stopped)));
    assert!(read.get() < 2 << 20, "{}", read.get());
}
