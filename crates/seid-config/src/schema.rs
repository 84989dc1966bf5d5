//! The table of keys: one row for every place in a file, with its kind, its default and what single
//! modes have instead.
//!
//! The rows stand in the order of the files, section by section, so that a new file reads as seid's
//! own does. What the rows mean together (which combinations are refused) is for `validate`.

use std::borrow::Cow;
use std::fmt;

use crate::host::Host;
use crate::mode::Mode;
use crate::value::{Kind, Value};

mod app;
mod client;
mod config;

/// A file of the configuration folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// Consensus, network and RPC.
    Config,
    /// The application and its stores.
    App,
    /// The command line's own settings.
    Client,
}

impl File {
    /// Every file, in the order in which they are written.
    pub const ALL: [Self; 3] = [Self::Config, Self::App, Self::Client];

    /// The file's name in the configuration folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Config => "config.toml",
            Self::App => "app.toml",
            Self::Client => "client.toml",
        }
    }

    /// The file of this name. There is no other file that a task may change.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.name() == name)
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a row is to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The place of the key: written there, and read from there.
    Own,
    /// A second place where the key is written.
    Mirror,
    /// A value seid needs that is no key of ours.
    Constant,
    /// The same, written only where the file does not have it.
    Initial,
}

/// How a section spells its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Words joined by `-`, with something before them.
    Kebab(&'static str),
    /// Words joined by `_`.
    Snake,
}

/// Where a default comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preset {
    /// There is none: the key is left out.
    Unset,
    /// A text in the grammar of overrides.
    Text(&'static str),
    /// The host's name.
    Moniker,
    /// Workers by the number of CPUs.
    Workers,
    /// EVM workers by the number of CPUs.
    EvmWorkers,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key an override names.
    pub key: &'static str,
    /// What kind of value it has.
    pub kind: Kind,
    /// The file it is written to.
    pub file: File,
    /// The section of that file; empty for the top.
    pub section: &'static str,
    pub(crate) role: Role,
    pub(crate) spelling: Spelling,
    pub(crate) renamed: Option<&'static str>,
    pub(crate) preset: Preset,
    pub(crate) omit_zero: bool,
    pub(crate) modes: &'static [(Mode, &'static str)],
}

impl Field {
    /// The name in its section of the file.
    pub fn name(&self) -> Cow<'static, str> {
        let last = || self.key.rsplit('.').next().unwrap_or(self.key);
        match (self.renamed, self.spelling) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, Spelling::Snake) => Cow::Borrowed(last()),
            (None, Spelling::Kebab(prefix)) => {
                Cow::Owned(format!("{prefix}{}", last().replace('_', "-")))
            }
        }
    }

    /// What a node of this mode has where it says nothing.
    pub(crate) fn default(&self, mode: Mode, host: &Host) -> Option<Value> {
        let text = match self.of_mode(mode).map_or(self.preset, Preset::Text) {
            Preset::Unset => return None,
            Preset::Text(text) => text,
            Preset::Moniker => return Some(Value::Text(host.moniker().to_owned())),
            Preset::Workers => return Some(Value::Int(host.concurrency_workers())),
            Preset::EvmWorkers => return Some(Value::Int(host.evm_workers())),
        };
        match self.kind.zero() {
            Some(zero) if text.is_empty() => Some(zero),
            _ => self.kind.parse(text).ok(),
        }
    }

    /// An archive is a full node that keeps everything: what full nodes have is its default, too.
    fn of_mode(&self, mode: Mode) -> Option<&'static str> {
        let of = |wanted| {
            let row = self.modes.iter().find(|(mode, _)| *mode == wanted);
            row.map(|(_, text)| *text)
        };
        match mode {
            Mode::Archive => of(Mode::Archive).or_else(|| of(Mode::Full)),
            mode => of(mode),
        }
    }
}

/// Every row, in the order of the files.
pub(crate) fn rows() -> impl Iterator<Item = &'static Field> {
    [config::ROWS, app::ROWS, client::ROWS]
        .into_iter()
        .flatten()
        .copied()
        .flatten()
}

/// Every key, with the place it is read from.
pub fn fields() -> impl Iterator<Item = &'static Field> {
    rows().filter(|row| row.role == Role::Own)
}

/// The row of one key.
pub fn field(key: &str) -> Option<&'static Field> {
    fields().find(|field| field.key == key)
}

/// Names that make seid refuse to start, or that mean another key today. They are taken out of any
/// file that is written.
pub(crate) const RETIRED: &[(File, &str, &str)] = &[(File::App, "receipt-store", "backend")];

const INT: Kind = whole(i64::MIN, i64::MAX);
const INT32: Kind = whole(i32::MIN as i64, i32::MAX as i64);
const UINT16: Kind = whole(0, u16::MAX as i64);
const UINT32: Kind = whole(0, u32::MAX as i64);
/// Go's unsigned numbers go further, but TOML's do not.
const UINT: Kind = whole(0, i64::MAX);

const fn whole(min: i64, max: i64) -> Kind {
    Kind::Int { min, max }
}

/// Rows of one section: `"key" => "name in the file", KIND, default omit, Mode "default";`, where the
/// name is needed only if it does not follow from the key, and `omit` says that a zero is not written.
macro_rules! section {
    ($file:ident $section:literal $spelling:expr;
     $( $(@$role:ident)? $key:literal $(=> $name:literal)?, $kind:expr, $preset:tt $($omit:ident)?
        $(, $mode:ident $value:literal)*; )+) => {
        &[ $( $crate::schema::Field {
            key: $key,
            kind: $kind,
            file: $crate::schema::File::$file,
            section: $section,
            role: $crate::schema::role!($($role)?),
            spelling: $spelling,
            renamed: $crate::schema::renamed!($($name)?),
            preset: $crate::schema::preset!($preset),
            omit_zero: $crate::schema::omit!($($omit)?),
            modes: &[ $( ($crate::mode::Mode::$mode, $value), )* ],
        }, )+ ]
    };
}

macro_rules! role {
    () => {
        $crate::schema::Role::Own
    };
    ($role:ident) => {
        $crate::schema::Role::$role
    };
}

macro_rules! renamed {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

macro_rules! preset {
    (unset) => {
        $crate::schema::Preset::Unset
    };
    (moniker) => {
        $crate::schema::Preset::Moniker
    };
    (workers) => {
        $crate::schema::Preset::Workers
    };
    (evm_workers) => {
        $crate::schema::Preset::EvmWorkers
    };
    ($text:literal) => {
        $crate::schema::Preset::Text($text)
    };
}

macro_rules! omit {
    () => {
        false
    };
    (omit) => {
        true
    };
}

use {omit, preset, renamed, role, section};
