//! Which process is the node: what is seen of a process, and a pure judgement of it.
//!
//! A node is a process named `seid` that was called as `seid start`, whatever path it was called by.
//! Shells that wait for it, and other commands of `seid`, are not. Several nodes may be seen where
//! the sidecar does not run in a pod of its own; then the home tells them apart.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The node's name.
const NAME: &str = "seid";

/// What is seen of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What the kernel calls it.
    pub name: String,
    /// What it was called with.
    pub arguments: Vec<String>,
    /// `HOME` in its environment, where that may be read.
    pub user_home: Option<PathBuf>,
    /// The folder it works in, where that may be read.
    pub folder: Option<PathBuf>,
    /// Whether it lives in a process namespace within ours.
    pub nested: bool,
}

/// What a process is to the node of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kin {
    /// It is the node.
    Node,
    /// It is a node, of this other home.
    Other(PathBuf),
    /// It is something else.
    Stranger,
}

/// What a process is to the node whose home has these names. A node that does not say which home is
/// its own is taken for ours: in a pod there is no other.
pub fn judge(seen: &Seen, homes: &[PathBuf]) -> Kin {
    if seen.nested || !is_node(&seen.name, &seen.arguments) {
        return Kin::Stranger;
    }
    match home(seen) {
        Some(home) if !homes.contains(&home) => Kin::Other(home),
        _ => Kin::Node,
    }
}

/// Whether a process of this name and these arguments is a node that was started.
fn is_node(name: &str, arguments: &[String]) -> bool {
    let [program, command, ..] = arguments else {
        return false;
    };
    let called = program.rsplit('/').next() == Some(NAME);
    name == NAME && called && command == "start"
}

/// The home of a node, as far as it can be told: its flag, else the folder `.sei` of its user.
fn home(seen: &Seen) -> Option<PathBuf> {
    let mut rest = seen.arguments.iter().skip(2);
    let mut told = None;
    while let Some(argument) = rest.next() {
        if argument == "--home" {
            told = rest.next().map(PathBuf::from);
        } else if let Some(home) = argument.strip_prefix("--home=") {
            told = Some(PathBuf::from(home));
        }
    }
    let told = told.or_else(|| Some(seen.user_home.as_ref()?.join(".sei")))?;
    match told.is_absolute() {
        true => Some(told),
        false => Some(seen.folder.as_ref()?.join(told)),
    }
}

/// Whether a process lives in a namespace within the one `/proc` shows, by the text of its `status`:
/// then it has a number in each.
pub fn is_nested(status: &str) -> bool {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    numbers.is_some_and(|numbers| numbers.split_whitespace().count() > 1)
}

/// How old a process is, by the texts of its `stat` and of `uptime`. The name in the former may hold
/// anything, blanks and brackets too.
pub fn age(stat: &str, uptime: &str, ticks_per_second: u64) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let started: u64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let age = uptime - started as f64 / ticks_per_second as f64;
    // A clock that is read a moment earlier may be a moment behind.
    Duration::try_from_secs_f64(age.max(0.0)).ok()
}

impl Seen {
    /// What is seen of the process whose folder in `/proc` this is; nothing when it has gone.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        let name = name.trim_end_matches('\n').to_owned();
        if name != NAME {
            // Most are not, and need no closer look.
            return Some(Self {
                name,
                ..Self::default()
            });
        }
        let arguments = words(&fs::read(folder.join("cmdline")).ok()?);
        let variables = words(&fs::read(folder.join("environ")).unwrap_or_default());
        let user_home = variables.iter().find_map(|it| it.strip_prefix("HOME="));
        Some(Self {
            name,
            arguments,
            user_home: user_home.map(PathBuf::from),
            folder: fs::read_link(folder.join("cwd")).ok(),
            nested: is_nested(&fs::read_to_string(folder.join("status")).ok()?),
        })
    }
}

/// Texts with a zero after each.
fn words(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    match text.is_empty() {
        true => Vec::new(),
        false => text.split('\0').map(str::to_owned).collect(),
    }
}
