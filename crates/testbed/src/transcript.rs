//! Transcripts in documents, held to what really happens.
//!
//! A transcript is a fenced `console` block: lines that begin with `$ ` are commands, the lines after
//! each are what it prints. [`Transcript::replay`] runs the commands in order in a shell and compares;
//! with `KEELSON_TRANSCRIPTS=write` it writes what happened into the page instead. Which programs the
//! commands find is the caller's to say.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The transcripts of one page.
#[derive(Debug)]
pub struct Transcript {
    page: PathBuf,
    folder: PathBuf,
    programs: Vec<(String, PathBuf)>,
    environment: Vec<(String, PathBuf)>,
}

impl Transcript {
    /// The transcripts of a page, to be run in this folder.
    pub fn of(page: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self {
            page: page.into(),
            folder: folder.into(),
            programs: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// What a command line's first word stands for.
    #[must_use]
    pub fn program(mut self, name: &str, file: &Path) -> Self {
        self.programs.push((name.into(), file.into()));
        self
    }

    /// A variable the commands see.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &Path) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs every command and compares what it prints. Says how many there were.
    ///
    /// # Panics
    /// When a command prints something else than the page says, or there is no such page.
    pub fn replay(&self) -> usize {
        let text = std::fs::read_to_string(&self.page).expect("a page");
        let happened = rewritten(&text, |command| self.run(command));
        if std::env::var("KEELSON_TRANSCRIPTS").is_ok_and(|it| it == "write") {
            std::fs::write(&self.page, &happened).expect("a page that can be written");
        } else {
            let differing = text.lines().zip(happened.lines()).find(|(a, b)| a != b);
            let page = self.page.display();
            assert!(
                text == happened,
                "{page} is not what happens: {differing:?}"
            );
        }
        commands(&happened)
    }

    fn run(&self, command: &str) -> String {
        let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
        let known = self.programs.iter().find(|(name, _)| name == first);
        let first = known.map_or_else(|| first.into(), |(_, file)| file.display().to_string());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; {first} {rest}")]);
        shell.current_dir(&self.folder);
        shell.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let ran = shell.output().expect("a shell");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }
}

/// The page with what each command printed in place of what it said before.
fn rewritten(page: &str, mut run: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in page.lines() {
        match (inside, line) {
            (false, _) => {
                inside = line == "```console";
                let _ = writeln!(out, "{line}");
            }
            (true, "```") => {
                inside = false;
                let _ = writeln!(out, "{line}");
            }
            (true, _) => {
                if let Some(command) = line.strip_prefix("$ ") {
                    let _ = writeln!(out, "{line}");
                    let printed = run(command);
                    out += &printed;
                    if !printed.is_empty() && !printed.ends_with('\n') {
                        out.push('\n');
                    }
                }
            }
        }
    }
    out
}

fn commands(page: &str) -> usize {
    let mut count = 0;
    rewritten(page, |_| {
        count += 1;
        String::new()
    });
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Text\n```console\n$ a\nold\n$ b\n```\nmore\n```yaml\n$ no\n```\n";

    #[test]
    fn only_what_commands_printed_changes() {
        let page = rewritten(PAGE, |command| format!("{command} ran\n"));
        assert_eq!(
            page,
            "Text\n```console\n$ a\na ran\n$ b\nb ran\n```\nmore\n```yaml\n$ no\n```\n"
        );
        assert_eq!(commands(PAGE), 2);
    }

    #[test]
    fn a_page_that_says_what_happens_stays_as_it_is() {
        let page = rewritten(PAGE, |command| format!("{command} ran\n"));
        assert_eq!(rewritten(&page, |command| format!("{command} ran\n")), page);
    }
}
