//! Reading the two files of a node back into settings.
//!
//! Lenient as seid itself is: numbers and flags may be quoted, and a key the file does not name is
//! zero. An empty text where a number is due is refused, and so is a text that means nothing.

use crate::document::Document;
use crate::mode::Mode;
use crate::schema::{self, File};
use crate::settings::Settings;
use crate::value::BadValue;
use crate::{CURRENT_VERSION, Texts};

/// Why a file cannot be read. Nothing repeats the file's content beyond the value that is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unreadable {
    /// The file is not there.
    #[error("{0} does not exist: run config-apply without incremental first")]
    Missing(File),
    /// The text is not TOML.
    #[error("{file} is not TOML (line {line}): {problem}")]
    NotToml {
        /// The file.
        file: File,
        /// The line of the first error.
        line: usize,
        /// What the parser says.
        problem: String,
    },
    /// A section that is something else.
    #[error("{section} in {file} is not a section: write it as [{section}]")]
    NotASection {
        /// The file.
        file: File,
        /// The section.
        section: String,
    },
    /// A value that means nothing.
    #[error("{place} in {file} cannot be read: {problem}")]
    BadValue {
        /// The file.
        file: File,
        /// Section and name.
        place: String,
        /// What is wrong.
        problem: BadValue,
    },
}

/// Reads `config.toml` and `app.toml`. `client.toml` holds nothing a node is run by.
pub fn read(texts: &Texts) -> Result<Settings, Unreadable> {
    let config = open(texts, File::Config)?;
    let app = open(texts, File::App)?;
    let mut settings = Settings::empty();
    for field in schema::fields() {
        let document = match field.file {
            File::Config => &config,
            File::App => &app,
            File::Client => continue,
        };
        let name = field.name();
        let value = match document.get(field.section, &name)? {
            Some(item) => Some(field.kind.read(item).map_err(|problem| {
                let place = if field.section.is_empty() {
                    name.to_string()
                } else {
                    format!("{}.{name}", field.section)
                };
                Unreadable::BadValue {
                    file: field.file,
                    place,
                    problem,
                }
            })?),
            None => field.zero(),
        };
        if let Some(value) = value {
            settings.set(field.key, value);
        }
    }
    identify(&mut settings, &config)?;
    Ok(settings)
}

fn open(texts: &Texts, file: File) -> Result<Document, Unreadable> {
    let text = texts.get(file).ok_or(Unreadable::Missing(file))?;
    Document::open(file, Some(text))
}

/// Files seid made by itself have no section of ours: then the mode is what config.toml says, which
/// knows no archives, and the version is today's.
fn identify(settings: &mut Settings, config: &Document) -> Result<(), Unreadable> {
    if settings.mode().parse::<Mode>().is_err() {
        let written = config.get("", "mode")?.and_then(|item| item.as_str());
        let mode = written.and_then(|word| word.parse().ok());
        settings.set_mode(mode.unwrap_or(Mode::Full).as_str());
    }
    if settings.version() < 1 {
        settings.set_version(CURRENT_VERSION);
    }
    Ok(())
}
