//! The journal on a real disk: every line is there whole or not at all, readable by root alone, never
//! lost.

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
        match entry.phase {
            Phase::Prepared => folder.journal().begin(&entry).expect("room"),
            _ => folder.journal().note(&entry).expect("room"),
        }
        assert_eq!(folder.journal().read().expect("a journal"), Some(entry));
    }
    assert_eq!(folder.names(), ["journal.json"]);
    // The next change takes the place of the last.
    folder.journal().begin(&entry()).expect("room");
    assert_eq!(folder.journal().read().expect("a journal"), Some(entry()));
}

#[test]
fn how_far_a_change_has_come_is_added_and_what_undoes_it_is_not_written_again() {
    let folder = Folder::new();
    let journal = folder.journal();
    journal.begin(&entry()).expect("room");
    let first = fs::read_to_string(folder.file()).expect("a file");
    let applied = entry().at(Phase::Applying).applied(checkpoint());
    journal.note(&applied).expect("room");
    let text = fs::read_to_string(folder.file()).expect("a file");
    let added = text.strip_prefix(&first).expect("the same first line");
    let added: Value = serde_json::from_str(added).expect("one more");
    assert_eq!(added["phase"], "Applied");
    assert_eq!(added["checkpoint"]["createdMs"], 1_000);
    assert_eq!(added.get("profiles"), None);
}

#[test]
fn a_last_line_that_is_not_whole_was_never_written_and_nothing_is_added_to_it() {
    let folder = Folder::new();
    let journal = folder.journal();
    journal.begin(&entry()).expect("room");
    let applying = entry().at(Phase::Applying);
    journal.note(&applying).expect("room");
    let text = fs::read_to_string(folder.file()).expect("a file");
    let verified = applying.applied(checkpoint()).at(Phase::Verified);
    journal.note(&verified).expect("room");
    let longer = fs::read_to_string(folder.file()).expect("a file");
    // Whoever wrote it died, or the power was cut, anywhere in it; or the disk has nothing there yet.
    let cuts = (text.len()..longer.len()).map(|end| longer.as_bytes()[..end].to_vec());
    let nothing = [text.as_bytes(), &[0; 40]].concat();
    for cut in cuts.chain([nothing]) {
        fs::write(folder.file(), &cut).expect("a file");
        let read = journal.read().expect("a journal");
        assert_eq!(read.as_ref(), Some(&applying), "{} bytes", cut.len());
        let undoing = applying.at(Phase::RollingBack);
        journal.note(&undoing).expect("room");
        assert_eq!(journal.read().expect("a journal"), Some(undoing));
    }
    assert_eq!(folder.names(), ["journal.json"]);
}

#[test]
fn a_journal_of_the_first_version_is_read_and_gone_on_with() {
    let folder = Folder::new();
    let journal = folder.journal();
    let applying = entry().at(Phase::Applying);
    let mut text = serde_json::to_value(&applying).expect("JSON");
    text["version"] = json!(1);
    fs::write(folder.file(), text.to_string()).expect("a file");
    assert_eq!(journal.read().expect("a journal"), Some(applying.clone()));
    let undoing = applying.at(Phase::RollingBack);
    journal.note(&undoing).expect("room");
    assert_eq!(journal.read().expect("a journal"), Some(undoing));
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
    journal.begin(&entry()).expect("room");
    let about = fs::metadata(folder.file()).expect("a file");
    assert_eq!(about.mode() & 0o7777, 0o600);
    assert_eq!(folder.names(), ["journal.json"]);
}

#[test]
fn the_text_of_the_last_change_is_replaced_and_not_written_into() {
    let folder = Folder::new();
    let journal = folder.journal();
    journal.begin(&entry()).expect("room");
    let old = fs::File::open(folder.file()).expect("a file");
    let mut next = entry();
    next.policy.name = "next".to_owned();
    journal.begin(&next).expect("room");
    let text = std::io::read_to_string(old).expect("the old text");
    let old: Value = serde_json::from_str(&text).expect("whole");
    assert_eq!(old["policy"]["name"], "bridge");
}

#[test]
fn a_file_nobody_understands_is_kept_aside_and_named() {
    let folder = Folder::new();
    let journal = folder.journal();
    let half = format!(r#"{{"version":1,"phase":"Applied","boot":"{SECRET}"#);
    let flying = {
        let mut first = serde_json::to_value(entry()).expect("JSON");
        first["version"] = json!(2);
        format!("{first}\n{{\"phase\":\"Flying\"}}\n")
    };
    let texts = [
        half.as_str(),
        "",
        "[]",
        "{\"version\":1,\"phase\":\"Flying\"}",
        &flying,
    ];
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
    journal.begin(&entry()).expect("room");
    assert_eq!(journal.aside().expect("a list").len(), texts.len());
}

#[test]
fn a_file_of_a_newer_program_is_kept_aside_and_named() {
    let folder = Folder::new();
    let journal = folder.journal();
    let text = r#"{"version":3,"phase":"Hovering","more":true}"#;
    fs::write(folder.file(), text).expect("a file");
    let trouble = journal.read().expect_err("too new");
    let Trouble::Newer {
        version: 3, aside, ..
    } = &trouble
    else {
        panic!("{trouble}");
    };
    assert_eq!(fs::read_to_string(aside).expect("kept"), text);
    assert!(trouble.to_string().contains("version 3"), "{trouble}");
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
    let written = journal.begin(&entry()).expect_err("a folder in its place");
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
        let begun = journal.begin(&entry().closed(End::NotBegun));
        println!("{}", begun.expect_err("no room"));
        let noted = journal.note(&entry().at(Phase::Applying));
        println!("{}", noted.expect_err("no room"));
        return;
    }
    let folder = Folder::new();
    folder.journal().begin(&entry()).expect("room");
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
    for refused in ["json.new cannot be written: ", "json cannot be added to: "] {
        assert!(said.contains(refused), "{said}");
    }
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
