//! Transcripts in documents, held to what really happens.
//!
//! A transcript is a fenced `console` block: lines that begin with `$ ` are commands, the lines after
//! each are what it prints. [`Transcript::replay`] runs the commands in order in a shell and compares,
//! but for what is never the same twice ([`varying`]); with `KEELSON_TRANSCRIPTS=write` or
//! `KEELSON_WRITE_DOCS=1` it writes what happened into the page instead. Which programs the commands
//! find is the caller's to say.

mod varying;

use std::collections::BTreeMap;
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
    stand_ins: Vec<(String, String)>,
    shown: Vec<(String, String)>,
    printed: BTreeMap<String, String>,
}

impl Transcript {
    /// The transcripts of a page, to be run in this folder.
    pub fn of(page: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self {
            page: page.into(),
            folder: folder.into(),
            programs: Vec::new(),
            environment: Vec::new(),
            stand_ins: Vec::new(),
            shown: Vec::new(),
            printed: BTreeMap::new(),
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

    /// A word of the page, and what is in its place here: in commands, and in what they print.
    #[must_use]
    pub fn stands_for(mut self, word: &str, here: &str) -> Self {
        self.stand_ins.push((word.into(), here.into()));
        self
    }

    /// Something of this machine in what commands print, and what the page shows instead.
    #[must_use]
    pub fn shown_as(mut self, here: &str, page: &str) -> Self {
        self.shown.push((page.into(), here.into()));
        self
    }

    /// A command the caller runs, and what it printed.
    #[must_use]
    pub fn printed(mut self, command: &str, what: &str) -> Self {
        self.printed.insert(command.into(), what.into());
        self
    }

    /// Runs every command and compares what it prints. Says how many there were.
    ///
    /// # Panics
    /// When a command prints something else than the page says, or there is no such page.
    pub fn replay(&self) -> usize {
        let text = std::fs::read_to_string(&self.page).expect("a page");
        let happened = rewritten(&text, |command| self.run(command));
        let asked = std::env::var("KEELSON_TRANSCRIPTS").is_ok_and(|it| it == "write");
        if asked || std::env::var_os("KEELSON_WRITE_DOCS").is_some() {
            std::fs::write(&self.page, &happened).expect("a page that can be written");
        } else {
            let lines =
                |page: &str| -> Vec<String> { page.lines().map(varying::without).collect() };
            let (says, does) = (lines(&text), lines(&happened));
            let differing = says.iter().zip(&does).find(|(a, b)| a != b);
            assert!(
                says == does,
                "{} is not what happens, KEELSON_WRITE_DOCS=1 writes it: {differing:?}\n{happened}",
                self.page.display()
            );
        }
        commands(&happened)
    }

    fn run(&self, command: &str) -> String {
        if let Some(printed) = self.printed.get(command) {
            return self.as_on_the_page(printed);
        }
        let stand_ins = self.stand_ins.iter();
        let command = stand_ins.fold(command.to_owned(), |command, (word, here)| {
            command.replace(word, here)
        });
        let command = command.as_str();
        let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
        let known = self.programs.iter().find(|(name, _)| name == first);
        let first = known.map_or_else(|| first.into(), |(_, file)| file.display().to_string());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; {first} {rest}")]);
        shell.current_dir(&self.folder);
        shell.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let ran = shell.output().expect("a shell");
        self.as_on_the_page(&String::from_utf8_lossy(&ran.stdout))
    }

    fn as_on_the_page(&self, printed: &str) -> String {
        let words = self.stand_ins.iter().chain(&self.shown);
        words.fold(printed.to_owned(), |printed, (word, here)| {
            printed.replace(here, word)
        })
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
