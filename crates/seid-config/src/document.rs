//! A TOML file that is changed in place: what is not asked for stays to the letter, comments too.

use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::read::Unreadable;
use crate::schema::File;

/// One file's text, opened for changes.
pub(crate) struct Document {
    file: File,
    document: DocumentMut,
}

impl Document {
    /// Opens a text; a file that does not exist is an empty one.
    pub(crate) fn open(file: File, text: Option<&str>) -> Result<Self, Unreadable> {
        let text = text.unwrap_or_default();
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            let before = error.span().and_then(|span| text.get(..span.start));
            Unreadable::NotToml {
                file,
                line: before.unwrap_or_default().matches('\n').count() + 1,
                problem: error.message().trim().replace('\n', ", "),
            }
        })?;
        Ok(Self { file, document })
    }

    pub(crate) fn text(&self) -> String {
        self.document.to_string()
    }

    pub(crate) fn root(&mut self) -> &mut Table {
        self.document.as_table_mut()
    }

    /// The item of a name in a section, where there is one.
    pub(crate) fn get(&self, section: &str, name: &str) -> Result<Option<&Item>, Unreadable> {
        let root = self.document.as_table();
        if section.is_empty() {
            return Ok(root.get(name));
        }
        match root.get(section) {
            None => Ok(None),
            Some(item) => match item.as_table_like() {
                Some(table) => Ok(table.get(name)),
                None => Err(self.not_a_section(section)),
            },
        }
    }

    /// Writes a value, unless the file already says the same.
    pub(crate) fn set(
        &mut self,
        section: &str,
        name: &str,
        value: toml_edit::Value,
    ) -> Result<(), Unreadable> {
        let refused = self.not_a_section(section);
        let table = self.section(section).ok_or(refused)?;
        set(table, name, value);
        Ok(())
    }

    /// Takes a name out, with the comment above it.
    pub(crate) fn remove(&mut self, section: &str, name: &str) {
        let root = self.document.as_table_mut();
        if section.is_empty() {
            root.remove(name);
        } else if let Some(table) = root.get_mut(section).and_then(Item::as_table_like_mut) {
            table.remove(name);
        }
    }

    fn section(&mut self, section: &str) -> Option<&mut dyn TableLike> {
        let root = self.document.as_table_mut();
        if section.is_empty() {
            return Some(root);
        }
        let item = root
            .entry(section)
            .or_insert_with(|| Item::Table(Table::new()));
        item.as_table_like_mut()
    }

    fn not_a_section(&self, section: &str) -> Unreadable {
        Unreadable::NotASection {
            file: self.file,
            section: section.to_owned(),
        }
    }
}

/// Writes a value under a name. The comment above it and the one behind it stay.
pub(crate) fn set(table: &mut dyn TableLike, name: &str, mut value: toml_edit::Value) {
    match table.get_mut(name) {
        Some(Item::Value(old)) if same(old, &value) => {}
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        _ => {
            // A section's name is laid out as a heading; the value starts anew.
            table.remove(name);
            table.insert(name, Item::Value(value));
        }
    }
}

/// Whether two values mean the same, however they are written.
fn same(a: &toml_edit::Value, b: &toml_edit::Value) -> bool {
    use toml_edit::Value::{Array, Boolean, Datetime, Float, InlineTable, Integer, String};
    match (a, b) {
        (String(a), String(b)) => a.value() == b.value(),
        (Integer(a), Integer(b)) => a.value() == b.value(),
        (Float(a), Float(b)) => a.value().to_bits() == b.value().to_bits(),
        (Boolean(a), Boolean(b)) => a.value() == b.value(),
        (Datetime(a), Datetime(b)) => a.value() == b.value(),
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (InlineTable(a), InlineTable(b)) => {
            let equal = |(key, value)| b.get(key).is_some_and(|other| same(value, other));
            a.len() == b.len() && a.iter().all(equal)
        }
        _ => false,
    }
}
