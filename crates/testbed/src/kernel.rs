//! A second kernel, for tests of devices the machine's own does not have: Debian's, in a machine that
//! qemu makes up without help of the processor.
//!
//! A program runs there as it does here: it sees the same files under the same names, what it prints
//! comes out here, and how it ends is how we end. The files are the machine's own, read over 9p, with
//! memory laid over them, so whatever is written there is gone in the end, and nothing of the machine
//! can be changed. A control plane would take minutes to start there, so it is the machine's: the guest
//! is in the network of a cluster of its own, and reaches nothing else. Which programs run there is for
//! others to say.

mod archive;
mod debian;
mod guest;

use crate::cluster::{Cluster, Size};
use crate::error::{Doing, Error};
use crate::progress::say;
use crate::{cache, packages};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// How many times longer everything may take in the second kernel that has a limit on the machine. A
/// loop that only counts takes 19 times as long there (5.6 s and 0.3 s), but what has a limit mostly
/// waits, and keeps it on the machine with room to spare: a handler is live a tenth of a second after its
/// start, and may take a whole one.
const SLOWER: u32 = 6;

/// Tells a program that it is in the second kernel, and of the cluster outside.
pub(crate) const VARIABLE: &str = "KEELSON_SECOND_KERNEL";

/// What of the environment a program finds there too, by how the names begin.
const KEPT: [&str; 7] = [
    "CARGO",
    "HOME",
    "KEELSON_",
    "LD_",
    "PATH",
    "PROPTEST_",
    "RUST",
];

/// How long something may take where we are, that may take so long on the machine itself.
pub fn patience(of: Duration) -> Duration {
    match std::env::var_os(VARIABLE) {
        Some(_) => of * SLOWER,
        None => of,
    }
}

/// Runs a program in the second kernel, for so long at most, and ends as it does.
pub(crate) async fn run(words: &[OsString], at_most: Duration) -> Result<ExitCode, Error> {
    packages::require_root()?;
    packages::provide(packages::SECOND_KERNEL)?;
    packages::provide(packages::HOSTS)?;
    let kernel = debian::kernel()?;
    let cluster = Cluster::start(Size::ControlPlane).await?;
    cluster.install_crds().await?;
    let mut environment = environment();
    environment.push((VARIABLE.into(), cluster.seen_from_outside().into()));
    let job = job(words, &environment, &current_folder()?);
    say(&format!(
        "starting {}, which takes about 20 times as long as this machine for anything",
        kernel.name
    ));
    guest::run(&kernel, &job, &cluster, at_most)
}

fn current_folder() -> Result<OsString, Error> {
    let folder = std::env::current_dir().doing(|| "the folder we are in is gone")?;
    Ok(folder.into_os_string())
}

fn environment() -> Vec<(OsString, OsString)> {
    let kept = |name: &OsString| {
        let name = name.to_string_lossy();
        KEPT.iter().any(|it| name.starts_with(it))
    };
    std::env::vars_os().filter(|(name, _)| kept(name)).collect()
}

/// What the guest's shell does: it runs the program where we are and says what it came to. Folders of
/// clusters that run on the machine are not seen, or they would be taken for remains.
fn job(words: &[OsString], environment: &[(OsString, OsString)], folder: &OsString) -> Vec<u8> {
    let clusters = cache::clusters().into_os_string();
    let mut job = [b"mkdir -p ".as_slice(), &quoted(&clusters)].concat();
    job.extend(b" && mount -t tmpfs tmpfs ");
    job.extend(quoted(&clusters));
    job.extend(b"\ncd ");
    job.extend(quoted(folder));
    // By `env`, because cargo gives names that no shell takes.
    job.extend(b" && env");
    for (name, value) in environment {
        let mut both = name.clone();
        both.push("=");
        both.push(value);
        job.extend(b" ");
        job.extend(quoted(&both));
    }
    for word in words {
        job.extend(b" ");
        job.extend(quoted(word));
    }
    job.extend(b"\necho $? > /dev/ttyS1\n/bin/busybox poweroff -f\n");
    job
}

/// A word as a shell reads it, whatever is in it.
fn quoted(word: &OsString) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word.as_encoded_bytes() {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_finds_every_variable_whatever_its_name() {
        let environment = [("NAMED-BY_cargo".into(), "it's so".into())];
        let words = ["printenv".into(), "NAMED-BY_cargo".into()];
        let job = job(&words, &environment, &"/".into());
        let job = String::from_utf8(job).expect("text");
        let line = job
            .lines()
            .find(|it| it.starts_with("cd "))
            .expect("a line");
        let output = std::process::Command::new("sh").args(["-c", line]).output();
        let said = String::from_utf8(output.expect("a shell").stdout).expect("text");
        assert_eq!(said, "it's so\n");
    }

    #[test]
    fn a_shell_reads_every_word_as_it_is() {
        let words = ["plain", "two words", "it's", "$HOME \"x\" `y` \\", ""];
        let mut script = b"printf '%s|'".to_vec();
        for word in words {
            script.push(b' ');
            script.extend(quoted(&word.into()));
        }
        let script = String::from_utf8(script).expect("text");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output();
        let said = String::from_utf8(output.expect("a shell").stdout).expect("text");
        assert_eq!(said, words.map(|it| format!("{it}|")).concat());
    }
}
