//! The journal on a real disk: written as a whole or not at all, readable by root alone, never lost.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use keelson_host::handler::journal::{
    Checkpoint, End, Entry, Journal, Phase, Policy, Profile, Trouble,
};
use keelson_host::handler::probe::{Baseline, Origin, Probe, Unanswered};
use serde_json::{Value, json};

use crate::state;

const SECRET: &str = "correct horse battery staple";

/// A folder of a test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keelson-journal-{}-{count}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.0).expect("a journal")
    }

    fn file(&self) -> PathBuf {
        self.0.join("journal.json")
    }

    /// The names of the files in it.
    fn names(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).expect("a folder");
        let name = |file: std::io::Result<fs::DirEntry>| {
            let name = file.expect("a file").file_name();
            name.into_string().expect("a name")
        };
        let mut names: Vec<String> = files.map(name).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn entry() -> Entry {
    Entry {
        phase: Phase::Prepared,
        end: None,
        why: None,
        began: Timestamp::UNIX_EPOCH,
        boot: "5a1e".to_owned(),
        policy: Policy {
            uid: "u-1".to_owned(),
            name: "bridge".to_owned(),
            generation: 3,
        },
        desired: state(json!({ "interfaces": [{ "name": "br0" }] })),
        before: state(
            json!({ "interfaces": [{ "name": "eth0", "802.1x": { "password": SECRET } }] }),
        ),
        revert: state(json!({ "interfaces": [{ "name": "br0", "state": "absent" }] })),
        profiles: vec![Profile {
            uuid: "0f".to_owned(),
            settings: state(json!({ "802-1x": { "password": SECRET } })),
            active: Some("eth0".to_owned()),
            in_memory: false,
        }],
        baseline: Baseline {
            origin: Origin::ApiServer,
            passed: [Probe::ApiServer, Probe::Gateway].into(),
        },
        checkpoint: None,
    }
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        path: "/org/freedesktop/NetworkManager/Checkpoint/1".to_owned(),
        created_ms: 1_000,
        deadline_ms: Some(21_000),
    }
}

#[test]
fn what_was_written_is_read_by_the_next_start_in_every_phase() {
    let folder = Folder::new();
    assert_eq!(folder.journal().read().expect("nothing"), None);
    let applying = entry().at(Phase::Applying);
    let applied = applying.applied(checkpoint());
    for entry in [
        entry(),
        applying,
        applied.clone(),
        applied.at(Phase::Verified),
        applied.at(Phase::Committed),
        applied.at(Phase::RollingBack),
        applied.closed(End::Undone),
    ] {
        folder.journal().write(&entry).expect("room");
        assert_eq!(folder.journal().read().expect("a journal"), Some(entry));
    }
    assert_eq!(folder.names(), ["journal.json"]);
}

#[test]
fn only_root_may_read_it_whatever_lay_in_its_place() {
    let folder = Folder::new();
    let journal = folder.journal();
    for name in ["journal.json", "journal.json.new"] {
        let path = folder.0.join(name);
        fs::write(&path, "left").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("rights");
    }
    journal.write(&entry()).expect("room");
    let about = fs::metadata(folder.file()).expect("a file");
    assert_eq!(about.mode() & 0o7777, 0o600);
    assert_eq!(folder.names(), ["journal.json"]);
}

#[test]
fn the_text_is_replaced_and_not_written_into() {
    let folder = Folder::new();
    let journal = folder.journal();
    journal.write(&entry()).expect("room");
    let old = fs::File::open(folder.file()).expect("a file");
    journal.write(&entry().at(Phase::Applying)).expect("room");
    let text = std::io::read_to_string(old).expect("the old text");
    let old: Value = serde_json::from_str(&text).expect("whole");
    assert_eq!(old["phase"], "Prepared");
}

#[test]
fn a_file_nobody_understands_is_kept_aside_and_named() {
    let folder = Folder::new();
    let journal = folder.journal();
    let half = format!(r#"{{"version":1,"phase":"Applied","boot":"{SECRET}"#);
    let texts = [half.as_str(), "", "[]", r#"{"version":1,"phase":"Flying"}"#];
    for (count, text) in texts.into_iter().enumerate() {
        fs::write(folder.file(), text).expect("a file");
        let trouble = journal.read().expect_err("not a journal");
        let Trouble::Unreadable { aside, .. } = &trouble else {
            panic!("{trouble}");
        };
        assert_eq!(
            aside,
            &folder.0.join(format!("journal.json.aside-{}", count + 1))
        );
        assert_eq!(fs::read_to_string(aside).expect("kept"), text);
        let said = trouble.to_string();
        assert!(
            said.contains(&format!("journal.json.aside-{}", count + 1)),
            "{said}"
        );
        assert!(!said.contains(SECRET), "{said}");
        assert_eq!(journal.read().expect("no journal"), None);
    }
    // Nothing takes them away again.
    journal.write(&entry()).expect("room");
    assert_eq!(journal.aside().expect("a list").len(), texts.len());
}

#[test]
fn a_file_of_a_newer_program_is_kept_aside_and_named() {
    let folder = Folder::new();
    let journal = folder.journal();
    let text = r#"{"version":2,"phase":"Hovering","more":true}"#;
    fs::write(folder.file(), text).expect("a file");
    let trouble = journal.read().expect_err("too new");
    let Trouble::Newer {
        version: 2, aside, ..
    } = &trouble
    else {
        panic!("{trouble}");
    };
    assert_eq!(fs::read_to_string(aside).expect("kept"), text);
    assert!(trouble.to_string().contains("version 2"), "{trouble}");
    let kept = journal.aside().expect("a list");
    assert_eq!(kept, std::slice::from_ref(aside));
}

#[test]
fn what_the_disk_refuses_is_said_and_not_taken_for_a_bad_journal() {
    let folder = Folder::new();
    let journal = folder.journal();
    fs::create_dir(folder.file()).expect("a folder in its place");
    let read = journal.read().expect_err("not a file");
    assert!(
        matches!(read, Trouble::System { verb: "read", .. }),
        "{read}"
    );
    let written = journal.write(&entry()).expect_err("a folder in its place");
    assert!(
        matches!(
            written,
            Trouble::System {
                verb: "replaced",
                ..
            }
        ),
        "{written}"
    );
    assert_eq!(folder.names(), ["journal.json"]);
}

/// The disk of a process of its own is full: it may not make a file any longer.
#[test]
fn a_full_disk_is_an_error_and_what_was_written_before_stays() {
    const FOLDER: &str = "KEELSON_JOURNAL_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let journal = Journal::open(&PathBuf::from(folder)).expect("a journal");
        let trouble = journal.write(&entry().at(Phase::Applying));
        println!("{}", trouble.expect_err("no room"));
        return;
    }
    let folder = Folder::new();
    folder.journal().write(&entry()).expect("room");
    let program = std::env::current_exe().expect("this program");
    let out = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 0; exec "$0" "$@""#])
        .arg(program)
        .args(["--exact", "--nocapture"])
        .arg("journal::a_full_disk_is_an_error_and_what_was_written_before_stays")
        .env(FOLDER, &folder.0)
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}");
    assert!(
        said.contains("journal.json.new cannot be written: "),
        "{said}"
    );
    assert_eq!(folder.journal().read().expect("a journal"), Some(entry()));
    assert_eq!(folder.names(), ["journal.json"]);
}

#[test]
fn no_log_of_an_entry_shows_a_key() {
    let said = format!("{:?} {:?}", entry(), entry().profiles);
    assert!(said.contains("bridge") && !said.contains(SECRET), "{said}");
}

#[test]
fn a_change_that_came_from_the_api_server_must_not_cost_it() {
    let baseline = |origin, passed: &[Probe]| Baseline {
        origin,
        passed: passed.iter().copied().collect(),
    };
    let without = baseline(Origin::ApiServer, &[Probe::Gateway]);
    assert_eq!(
        without.may_begin(),
        Err(Unanswered([Probe::ApiServer].into()))
    );
    assert_eq!(baseline(Origin::Host, &[]).may_begin(), Ok(()));
    let usual = baseline(Origin::ApiServer, &[Probe::ApiServer, Probe::Gateway]);
    assert_eq!(usual.may_begin(), Ok(()));
    // What did not pass before need not after.
    assert_eq!(
        usual.judge(&[Probe::ApiServer, Probe::Gateway].into()),
        Ok(())
    );
    let cut = usual.judge(&[Probe::Dns].into()).expect_err("cut off");
    assert_eq!(
        cut.to_string(),
        "the default gateway and the API server did not answer"
    );
    assert_eq!(baseline(Origin::Host, &[]).judge(&[].into()), Ok(()));
}
