//! Merge patches on files: the task `config-patch`.
//!
//! A patch is JSON in the shape of the file. An object is merged into a section, `null` takes a name
//! out, anything else replaces what is there. What the patch does not name stays to the letter.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, InlineTable, Item, Table, TableLike, Value as Toml};

use crate::Texts;
use crate::document::{self, Document};
use crate::read::Unreadable;
use crate::schema::File;

/// Why a patch is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadPatch {
    /// A patch of nothing.
    #[error("config-patch: at least one file is required")]
    NoFiles,
    /// A file no task may change.
    #[error(
        "config-patch: {0:?} is not a file of the configuration: use app.toml, client.toml or config.toml"
    )]
    UnknownFile(String),
    /// A patch that is not an object.
    #[error("config-patch: the patch of {0} is not an object of sections and names")]
    NotAnObject(File),
    /// A value TOML does not have.
    #[error("config-patch: {place} in {file} {problem}")]
    NoToml {
        /// The file.
        file: File,
        /// Sections and name.
        place: String,
        /// What is wrong with the value.
        problem: &'static str,
    },
    /// A file that cannot be read.
    #[error("config-patch: {0}")]
    Unreadable(#[from] Unreadable),
}

/// The texts with every file's patch merged in. All or nothing: a patch that is refused changes none.
pub fn patch_files(texts: &Texts, files: &Map<String, Json>) -> Result<Texts, BadPatch> {
    if files.is_empty() {
        return Err(BadPatch::NoFiles);
    }
    let mut patched = texts.clone();
    for (name, changes) in files {
        let file = File::from_name(name).ok_or_else(|| BadPatch::UnknownFile(name.clone()))?;
        let changes = changes.as_object().ok_or(BadPatch::NotAnObject(file))?;
        patched.set(file, patch(file, texts.get(file), changes)?);
    }
    Ok(patched)
}

/// One text with a patch merged in; a file that does not exist is an empty one.
pub fn patch(
    file: File,
    text: Option<&str>,
    changes: &Map<String, Json>,
) -> Result<String, BadPatch> {
    let mut document = Document::open(file, text)?;
    let place = Place { file, names: &[] };
    merge(document.root(), changes, &place)?;
    Ok(document.text())
}

/// Where in a file a patch is, for messages.
struct Place<'a> {
    file: File,
    names: &'a [&'a str],
}

impl Place<'_> {
    fn refuse(&self, problem: &'static str) -> BadPatch {
        BadPatch::NoToml {
            file: self.file,
            place: self.names.join("."),
            problem,
        }
    }
}

fn merge(
    table: &mut dyn TableLike,
    changes: &Map<String, Json>,
    place: &Place<'_>,
) -> Result<(), BadPatch> {
    for (name, change) in changes {
        let names: Vec<&str> = place.names.iter().copied().chain([name.as_str()]).collect();
        let place = Place {
            file: place.file,
            names: &names,
        };
        match change {
            Json::Null => {
                table.remove(name);
            }
            Json::Object(changes) => merge(section(table, name), changes, &place)?,
            value => document::set(table, name, toml(value, &place)?),
        }
    }
    Ok(())
}

/// The section of a name, made where there is none. What is no section makes room for one.
fn section<'a>(table: &'a mut dyn TableLike, name: &str) -> &'a mut dyn TableLike {
    if table.get(name).is_none_or(|item| !item.is_table_like()) {
        table.remove(name);
        table.insert(name, Item::Table(Table::new()));
    }
    table
        .get_mut(name)
        .and_then(Item::as_table_like_mut)
        .expect("a section that was just made")
}

fn toml(value: &Json, place: &Place<'_>) -> Result<Toml, BadPatch> {
    Ok(match value {
        Json::Null => return Err(place.refuse("has a null inside a list, which TOML cannot hold")),
        Json::Bool(flag) => (*flag).into(),
        Json::String(text) => text.as_str().into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(real)) if !number.is_u64() => real.into(),
            _ => return Err(place.refuse("is a number beyond what TOML can hold")),
        },
        Json::Array(entries) => {
            let entries = entries.iter().map(|entry| toml(entry, place));
            entries.collect::<Result<Array, _>>()?.into()
        }
        Json::Object(fields) => {
            let mut table = InlineTable::new();
            for (name, field) in fields.iter().filter(|(_, field)| !field.is_null()) {
                table.insert(name, toml(field, place)?);
            }
            table.into()
        }
    })
}
