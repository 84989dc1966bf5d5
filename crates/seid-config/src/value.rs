//! Values of keys: how an override's text, a file's item and a value become one another.
//!
//! An override is read strictly, by the grammar of its key's kind. A file is read leniently, because
//! seid's own templates quote numbers and flags; only what means nothing is refused.

use std::fmt;

use toml_edit::{Array, Item};

use crate::duration::{BadDuration, Duration};

/// What kind of value a key has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number within limits.
    Int {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// A number with a point.
    Float,
    /// A span of time, a string in the file.
    Duration,
    /// Texts, a list in the file.
    List,
    /// Texts, joined by commas in the file.
    CommaList,
    /// Pairs of texts; no override can set them.
    Labels,
    /// `true`, `false` or nothing at all; no override can set it.
    OptionalBool,
}

/// A value of some kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A flag.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// A span of time.
    Duration(Duration),
    /// Texts.
    List(Vec<String>),
    /// Lists of texts.
    Labels(Vec<Vec<String>>),
}

/// Why a text or a file's item is no value of its key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadValue {
    /// Not a flag.
    #[error("{0:?} is not true or false (1, 0, yes and no are understood too)")]
    NotBool(String),
    /// Not a whole number.
    #[error("{0:?} is not a whole number")]
    NotInt(String),
    /// Not a number.
    #[error("{0:?} is not a number")]
    NotFloat(String),
    /// A number beyond its limits.
    #[error("{value} is out of range: use a number from {min} to {max}")]
    OutOfRange {
        /// The number, as written.
        value: String,
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// Not a span of time.
    #[error(transparent)]
    NotDuration(#[from] BadDuration),
    /// A list with a hole in it.
    #[error("{0:?} has an empty entry: write entries with single commas between them")]
    EmptyEntry(String),
    /// A key that has no text form.
    #[error("an override cannot set it: use config-patch")]
    NotOverridable,
    /// An item of another type.
    #[error("it is not {0}")]
    WrongType(&'static str),
}

impl Kind {
    /// Reads an override's text.
    pub fn parse(self, text: &str) -> Result<Value, BadValue> {
        match self {
            Self::Text => Ok(Value::Text(text.to_owned())),
            Self::Bool => flag(text).map(Value::Bool),
            Self::Int { min, max } => int(text, min, max).map(Value::Int),
            Self::Float => float(text).map(Value::Float),
            Self::Duration => Ok(Value::Duration(text.parse()?)),
            Self::List | Self::CommaList => list(text).map(Value::List),
            Self::Labels | Self::OptionalBool => Err(BadValue::NotOverridable),
        }
    }

    /// What a key is where its file does not name it; nothing for a key that may be absent.
    pub fn zero(self) -> Option<Value> {
        Some(match self {
            Self::Text => Value::Text(String::new()),
            Self::Bool => Value::Bool(false),
            Self::Int { .. } => Value::Int(0),
            Self::Float => Value::Float(0.0),
            Self::Duration => Value::Duration(Duration::default()),
            Self::List | Self::CommaList => Value::List(Vec::new()),
            Self::Labels => Value::Labels(Vec::new()),
            Self::OptionalBool => return None,
        })
    }

    /// Reads a file's item.
    pub(crate) fn read(self, item: &Item) -> Result<Value, BadValue> {
        match self {
            Self::OptionalBool => Self::Bool.read(item),
            Self::Labels => labels(item).map(Value::Labels),
            Self::List | Self::CommaList if item.is_array() => texts(item).map(Value::List),
            _ => {
                let text = scalar(item).ok_or(BadValue::WrongType(self.noun()))?;
                self.parse(&text)
            }
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Bool | Self::OptionalBool => "true or false",
            Self::Int { .. } => "a whole number",
            Self::Float => "a number",
            Self::Duration => "a duration such as \"10s\"",
            Self::List | Self::CommaList => "a list of texts",
            Self::Labels => "a list of lists of texts",
        }
    }

    /// The value as it stands in a file.
    pub(crate) fn write(self, value: &Value) -> toml_edit::Value {
        match value {
            Value::Text(text) => text.as_str().into(),
            Value::Bool(flag) => (*flag).into(),
            Value::Int(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::Duration(span) => span.to_string().into(),
            Value::List(texts) if self == Self::CommaList => texts.join(",").into(),
            Value::List(texts) => texts.iter().collect::<Array>().into(),
            Value::Labels(rows) => rows
                .iter()
                .map(|row| toml_edit::Value::from(row.iter().collect::<Array>()))
                .collect::<Array>()
                .into(),
        }
    }
}

/// Prints what an override would have to say, for messages.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Duration(span) => write!(f, "{span}"),
            Self::List(texts) => f.write_str(&texts.join(",")),
            Self::Labels(rows) => write!(f, "{rows:?}"),
        }
    }
}

fn flag(text: &str) -> Result<bool, BadValue> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err(BadValue::NotBool(text.to_owned())),
    }
}

fn int(text: &str, min: i64, max: i64) -> Result<i64, BadValue> {
    let number: i128 = text
        .parse()
        .map_err(|_| BadValue::NotInt(text.to_owned()))?;
    i64::try_from(number)
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| BadValue::OutOfRange {
            value: text.to_owned(),
            min,
            max,
        })
}

fn float(text: &str) -> Result<f64, BadValue> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| BadValue::NotFloat(text.to_owned()))
}

/// Entries between commas, trimmed. An empty text is an empty list, not a list of one empty entry.
fn list(text: &str) -> Result<Vec<String>, BadValue> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let entries: Vec<String> = text
        .split(',')
        .map(|entry| entry.trim().to_owned())
        .collect();
    if entries.iter().any(String::is_empty) {
        return Err(BadValue::EmptyEntry(text.to_owned()));
    }
    Ok(entries)
}

/// The text of an item that is one value, however it is quoted.
fn scalar(item: &Item) -> Option<String> {
    match item.as_value()? {
        toml_edit::Value::String(text) => Some(text.value().clone()),
        toml_edit::Value::Integer(number) => Some(number.value().to_string()),
        toml_edit::Value::Float(number) => Some(number.value().to_string()),
        toml_edit::Value::Boolean(flag) => Some(flag.value().to_string()),
        _ => None,
    }
}

fn texts(item: &Item) -> Result<Vec<String>, BadValue> {
    let wrong = BadValue::WrongType("a list of texts");
    let array = item.as_array().ok_or_else(|| wrong.clone())?;
    array
        .iter()
        .map(|entry| entry.as_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or(wrong)
}

fn labels(item: &Item) -> Result<Vec<Vec<String>>, BadValue> {
    let wrong = BadValue::WrongType("a list of lists of texts");
    let array = item.as_array().ok_or_else(|| wrong.clone())?;
    array
        .iter()
        .map(|row| texts(&Item::Value(row.clone())).map_err(|_| wrong.clone()))
        .collect()
}
