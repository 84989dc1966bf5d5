//! What a flag is: a name, a type, a place for its value, a sentence of help.

use crate::golang::{self, Duration};

use super::values::{Flags, Version};
use super::{added, reference};

/// One flag of a command line whose values end up in a `T`.
pub struct Flag<T: 'static = Flags> {
    /// The name after the two dashes.
    pub name: &'static str,
    /// The letter after the one dash.
    pub short: Option<u8>,
    /// Its type, and where the value goes.
    pub field: Field<T>,
    /// Whether `--help` leaves it out.
    pub hidden: bool,
    /// What it does.
    pub help: &'static str,
}

/// The type of a flag and the place of its value.
pub enum Field<T: 'static = Flags> {
    /// A switch; the bare flag turns it on.
    Bool(fn(&mut T) -> &mut bool),
    /// Any text.
    Text(fn(&mut T) -> &mut String),
    /// Comma-separated and repeatable.
    List(fn(&mut T) -> &mut Vec<String>),
    /// Repeatable, never split.
    Array(fn(&mut T) -> &mut Vec<String>),
    /// A Go `int`.
    Int(fn(&mut T) -> &mut i64),
    /// A Go `uint32`.
    Uint32(fn(&mut T) -> &mut u32),
    /// A Go `float32`.
    Float32(fn(&mut T) -> &mut f32),
    /// A span of time.
    Duration(fn(&mut T) -> &mut Duration),
    /// klog's verbosity: decimal, 32 bits.
    Level(fn(&mut T) -> &mut i32),
    /// Comma-separated `file=level`.
    LevelsByFile(fn(&mut T) -> &mut String),
    /// `--version`, with its own values.
    Version(fn(&mut T) -> &mut Version),
    /// A removed logging flag: typed, and without effect.
    Removed(Removed),
}

/// The types of the removed flags.
#[derive(Clone, Copy, Debug)]
pub enum Removed {
    /// A switch.
    Bool,
    /// Any text.
    Text,
    /// A Go `uint64`.
    Uint64,
}

/// A value on its way to its place.
pub(super) struct Slot<'a> {
    /// Whether the flag is given for the first time: lists then lose their default.
    pub(super) first: bool,
    pub(super) value: &'a str,
}

impl<T> Field<T> {
    pub(super) fn set(&self, target: &mut T, slot: Slot<'_>) -> Result<(), String> {
        let text = slot.value;
        match self {
            Field::Bool(at) => *at(target) = golang::boolean(text)?,
            Field::Text(at) => *at(target) = text.to_owned(),
            Field::List(at) => extend(at(target), slot.first, golang::list(text)?),
            Field::Array(at) => extend(at(target), slot.first, vec![text.to_owned()]),
            Field::Int(at) => *at(target) = golang::integer(text, 0, 64)?,
            Field::Uint32(at) => *at(target) = narrow(golang::unsigned(text, 0, 32)?)?,
            Field::Float32(at) => *at(target) = golang::float32(text)?,
            Field::Duration(at) => *at(target) = Duration::parse(text)?,
            Field::Level(at) => *at(target) = narrow(golang::integer(text, 10, 32)?)?,
            Field::LevelsByFile(at) => *at(target) = levels_by_file(text)?,
            Field::Version(at) => *at(target) = version(text)?,
            Field::Removed(Removed::Bool) => golang::boolean(text).map(drop)?,
            Field::Removed(Removed::Uint64) => golang::unsigned(text, 0, 64).map(drop)?,
            Field::Removed(Removed::Text) => {}
        }
        Ok(())
    }

    /// The type as pflag names it in help.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Field::Bool(_) | Field::Removed(Removed::Bool) => "",
            Field::Text(_) | Field::LevelsByFile(_) | Field::Removed(Removed::Text) => "string",
            Field::List(_) => "strings",
            Field::Array(_) => "stringArray",
            Field::Int(_) | Field::Level(_) => "int",
            Field::Uint32(_) => "uint32",
            Field::Float32(_) => "float32",
            Field::Duration(_) => "duration",
            Field::Version(_) => "version[=true]",
            Field::Removed(Removed::Uint64) => "uint",
        }
    }

    /// The value as help shows a default; nothing for an empty one.
    pub(super) fn shown(&self, target: &mut T) -> Option<String> {
        let text = match self {
            Field::Text(at) | Field::LevelsByFile(at) => golang::quote(at(target)),
            other => other.text(target)?,
        };
        let empty = ["\"\"", "[]", "0", "0s", "false"].contains(&text.as_str());
        (!empty).then_some(text)
    }

    /// The value as pflag prints it; nothing for a flag without one.
    pub(super) fn text(&self, target: &mut T) -> Option<String> {
        Some(match self {
            Field::Bool(at) => at(target).to_string(),
            Field::Text(at) | Field::LevelsByFile(at) => at(target).clone(),
            Field::List(at) | Field::Array(at) => format!("[{}]", at(target).join(",")),
            Field::Int(at) => at(target).to_string(),
            Field::Uint32(at) => at(target).to_string(),
            Field::Float32(at) => at(target).to_string(),
            Field::Duration(at) => at(target).to_string(),
            Field::Level(at) => at(target).to_string(),
            Field::Version(_) | Field::Removed(_) => return None,
        })
    }
}

impl<T> Flag<T> {
    /// What the bare flag means, for those that need no value.
    pub(super) fn bare_value(&self) -> Option<&'static str> {
        matches!(
            self.field,
            Field::Bool(_) | Field::Version(_) | Field::Removed(Removed::Bool)
        )
        .then_some("true")
    }

    /// The flag as pflag names it in messages.
    pub(super) fn spelling(&self) -> String {
        match self.short {
            Some(letter) => format!("-{}, --{}", char::from(letter), self.name),
            None => format!("--{}", self.name),
        }
    }
}

fn extend(list: &mut Vec<String>, first: bool, values: Vec<String>) {
    if first {
        list.clear();
    }
    list.extend(values);
}

fn narrow<A, B>(value: A) -> Result<B, String>
where
    B: TryFrom<A>,
{
    B::try_from(value).map_err(|_| "value out of range".to_owned())
}

fn levels_by_file(text: &str) -> Result<String, String> {
    let well_formed = text.split(',').filter(|part| !part.is_empty()).all(|part| {
        part.split_once('=')
            .is_some_and(|(file, level)| !file.is_empty() && golang::integer(level, 10, 32).is_ok())
    });
    well_formed
        .then(|| text.to_owned())
        .ok_or_else(|| "syntax error: expect comma-separated list of filename=N".to_owned())
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "raw" => Ok(Version::Raw),
        // The reference takes this as the version to report, and runs.
        text if text.starts_with('v') && text.split('.').count() >= 3 => Ok(Version::Unasked),
        text if text.starts_with('v') => {
            Err(format!("illegal version string {}", golang::quote(text)))
        }
        text => golang::boolean(text).map(|asked| match asked {
            true => Version::Plain,
            false => Version::Unasked,
        }),
    }
}

/// Every flag: the reference's, then those we add.
pub fn flags() -> impl Iterator<Item = &'static Flag> + Clone {
    reference::FLAGS.iter().chain(added::FLAGS)
}

/// Shorthands for the rows of the tables.
pub(super) mod row {
    use super::{Duration, Field, Flag, Flags, Removed};

    const fn flag(name: &'static str, field: Field, help: &'static str) -> Flag {
        Flag {
            name,
            short: None,
            field,
            hidden: false,
            help,
        }
    }

    type At<V> = fn(&mut Flags) -> &mut V;

    pub(crate) const fn switch(name: &'static str, at: At<bool>, help: &'static str) -> Flag {
        flag(name, Field::Bool(at), help)
    }

    pub(crate) const fn text(name: &'static str, at: At<String>, help: &'static str) -> Flag {
        flag(name, Field::Text(at), help)
    }

    pub(crate) const fn list(name: &'static str, at: At<Vec<String>>, help: &'static str) -> Flag {
        flag(name, Field::List(at), help)
    }

    pub(crate) const fn array(name: &'static str, at: At<Vec<String>>, help: &'static str) -> Flag {
        flag(name, Field::Array(at), help)
    }

    pub(crate) const fn int(name: &'static str, at: At<i64>, help: &'static str) -> Flag {
        flag(name, Field::Int(at), help)
    }

    pub(crate) const fn uint32(name: &'static str, at: At<u32>, help: &'static str) -> Flag {
        flag(name, Field::Uint32(at), help)
    }

    pub(crate) const fn float32(name: &'static str, at: At<f32>, help: &'static str) -> Flag {
        flag(name, Field::Float32(at), help)
    }

    pub(crate) const fn span(name: &'static str, at: At<Duration>, help: &'static str) -> Flag {
        flag(name, Field::Duration(at), help)
    }

    pub(crate) const fn removed(name: &'static str, kind: Removed) -> Flag {
        Flag {
            hidden: true,
            ..flag(name, Field::Removed(kind), "Removed; has no effect.")
        }
    }

    pub(crate) const fn hidden(flag: Flag) -> Flag {
        Flag {
            hidden: true,
            ..flag
        }
    }

    pub(crate) const fn other(name: &'static str, field: Field, help: &'static str) -> Flag {
        flag(name, field, help)
    }

    pub(crate) const fn short(letter: u8, flag: Flag) -> Flag {
        Flag {
            short: Some(letter),
            ..flag
        }
    }
}
