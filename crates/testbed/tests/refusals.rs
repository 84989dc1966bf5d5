//! Where something is missing, the command says so in one sentence, with what helps.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(what: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("keelson-{what}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// A search path with every program of this machine's system folders but these.
    fn path_without(&self, missing: &[&str]) -> &Path {
        for folder in ["/usr/bin", "/usr/sbin", "/bin", "/sbin"] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                if !missing.iter().any(|it| *it == name) {
                    let _ = symlink(entry.path(), self.0.join(name));
                }
            }
        }
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn testbed() -> Command {
    Command::new(env!("CARGO_BIN_EXE_keelson-testbed"))
}

/// What it said, which must be one line.
fn refusal(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it was not refused: {said}");
    assert_eq!(said.lines().count(), 1, "more than one sentence: {said}");
    said
}

#[test]
fn without_go_it_names_go_and_the_way_around_it() {
    let scratch = Scratch::new("no-go");
    let path = scratch.path_without(&["go"]);
    let output = testbed().arg("prepare").env("PATH", path).output();
    let said = refusal(&output.expect("the command"));
    assert!(
        said.contains("install Go 1.26") && said.contains("KUBEBUILDER_ASSETS"),
        "{said}"
    );
}

#[test]
fn without_a_c_compiler_it_names_the_package() {
    let scratch = Scratch::new("no-cc");
    let cache = Scratch::new("no-cc-cache");
    let path = scratch.path_without(&["cc", "gcc"]);
    let mut command = testbed();
    command.arg("images").arg(cache.0.join("images"));
    command
        .env("PATH", path)
        .env("KEELSON_CACHE", &cache.0)
        .env_remove("CC");
    let said = refusal(&command.output().expect("the command"));
    assert!(said.contains("apt-get install gcc"), "{said}");
}

#[test]
fn without_root_it_says_what_to_type() {
    let scratch = Scratch::new("no-root");
    // Where any user can reach it.
    let program = scratch.0.join("keelson-testbed");
    std::fs::copy(env!("CARGO_BIN_EXE_keelson-testbed"), &program).expect("a copy");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", "--"]);
    command
        .arg(&program)
        .arg("up")
        .env("KEELSON_CACHE", scratch.0.join("cache"));
    let said = refusal(&command.output().expect("the command"));
    assert!(
        said.contains("needs root") && said.contains("sudo -E"),
        "{said}"
    );
}

#[test]
fn a_second_preparation_builds_and_installs_nothing() {
    let prepare = || testbed().arg("prepare").output().expect("the command");
    assert!(prepare().status.success());
    let second = prepare();
    assert!(second.status.success());
    assert_eq!(
        String::from_utf8_lossy(&second.stderr),
        "",
        "nothing was left to do"
    );
}
