//! Writing settings into the texts of the files, new or existing.

use crate::Texts;
use crate::document::Document;
use crate::mode::Mode;
use crate::read::Unreadable;
use crate::schema::{self, Field, File, Preset, RETIRED, Role};
use crate::settings::Settings;
use crate::value::Value;

/// The files with every key as the settings have it. In a file that exists, comments and names nobody
/// knows stay; a known name that the settings leave out goes. `client.toml` is written for a node
/// whose chain is named and is left as it is otherwise.
pub fn render(settings: &Settings, existing: &Texts) -> Result<Texts, Unreadable> {
    let mut texts = existing.clone();
    for file in File::ALL {
        if file == File::Client && settings.text("chain.chain_id").is_empty() {
            continue;
        }
        let rows: Vec<&Field> = schema::rows().filter(|row| row.file == file).collect();
        texts.set(file, write(file, existing.get(file), &rows, settings)?);
    }
    Ok(texts)
}

/// One file with these rows as the settings have them, and nothing else changed.
pub(crate) fn write(
    file: File,
    text: Option<&str>,
    rows: &[&Field],
    settings: &Settings,
) -> Result<String, Unreadable> {
    let mut document = Document::open(file, text)?;
    for row in rows {
        let name = row.name();
        if row.role == Role::Initial && document.get(row.section, &name)?.is_some() {
            continue;
        }
        match row.value(settings) {
            Some(value) => document.set(row.section, &name, row.kind.write(&value))?,
            None => document.remove(row.section, &name),
        }
    }
    for (_, section, name) in RETIRED.iter().filter(|(of, ..)| *of == file) {
        document.remove(section, name);
    }
    Ok(document.text())
}

impl Field {
    /// What this row writes; nothing where the name is left out.
    fn value(&self, settings: &Settings) -> Option<Value> {
        let value = match self.role {
            Role::Constant | Role::Initial => {
                let Preset::Text(text) = self.preset else {
                    return None;
                };
                return Some(Value::Text(text.to_owned()));
            }
            // config.toml knows three modes; to it, an archive is a full node.
            Role::Mirror if self.key == "mode" && settings.mode() == Mode::Archive.as_str() => {
                return Some(Value::Text(Mode::Full.as_str().to_owned()));
            }
            Role::Own | Role::Mirror => settings.get(self.key)?,
        };
        let left_out = self.omit_zero && self.kind.zero().as_ref() == Some(value);
        (!left_out).then(|| value.clone())
    }

    /// What the key is where its file does not name it.
    pub(crate) fn zero(&self) -> Option<Value> {
        match self.preset {
            Preset::Unset => None,
            _ => self.kind.zero(),
        }
    }
}
