//! A process that looks like the node and does as it is told: a shell by the name of `seid`, called
//! with a script by the name of `start`. For what a real node does not do when it should: refuse to
//! end, or end at a moment of the test's choosing.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends when it is told to.
pub(crate) const POLITE: &str = ": > ready; read -r _";
/// Does not.
pub(crate) const STUBBORN: &str = "trap '' TERM; : > ready; read -r _";
/// Takes its time, and notes that it ended by itself.
pub(crate) const SLOW: &str =
    "trap 'read -r -t 0.5 _ <> <(:); : > ended; exit 0' TERM; : > ready; read -r _";

/// A running puppet; it ends with its value.
pub(crate) struct Puppet {
    pub(crate) child: Child,
    pub(crate) folder: PathBuf,
}

impl Puppet {
    /// Starts one for a home, in a folder beside it, and waits until it has read its script.
    pub(crate) fn start(home: &Path, script: &str) -> Self {
        let folder = home.with_extension("puppet");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("start"), script).expect("a script");
        let program = folder.join("seid");
        std::os::unix::fs::symlink("/bin/bash", &program).expect("a name for the shell");
        let child = Command::new(&program)
            .args(["start", "--home"])
            .arg(home)
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("the shell");
        let puppet = Self { child, folder };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !puppet.folder.join("ready").exists() {
            assert!(Instant::now() < deadline, "the puppet is not ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        puppet
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
