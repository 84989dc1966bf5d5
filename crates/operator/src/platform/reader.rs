//! Where a setting is said, and what it says there.
//!
//! A variable wins over the file, and one with nothing in it says nothing. Whatever is wrong is
//! noted and reading goes on with a value nobody sees, so that a person is told everything at once.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use keelson_seid_config::nearest;
use serde_json::Value;

use super::problems::Problems;
use super::table::{Need, SETTINGS, setting};
use crate::quantity::Amount;

/// What the platform file is called where it is wrong as a whole.
pub(super) const FILE: &str = "the platform file";

pub(super) struct Reader<'a> {
    environment: &'a BTreeMap<String, String>,
    file: BTreeMap<String, Value>,
    /// Whether there is a file that could not be read: what is missing might be in it.
    blind: bool,
    pub(super) problems: Problems,
}

/// What a setting says, and the name it says it under.
struct Said {
    name: String,
    value: Value,
}

impl<'a> Reader<'a> {
    pub(super) fn new(environment: &'a BTreeMap<String, String>, file: Option<&str>) -> Self {
        let mut reader = Self {
            environment,
            file: BTreeMap::new(),
            blind: false,
            problems: Problems::default(),
        };
        match file.map(parse) {
            None => {}
            Some(Ok(file)) => reader.take(file),
            Some(Err(why)) => {
                reader.blind = true;
                reader.problems.add(FILE, why);
            }
        }
        reader
    }

    fn take(&mut self, file: BTreeMap<String, Value>) {
        let known: Vec<_> = SETTINGS.iter().filter_map(super::Setting::key).collect();
        for key in file.keys().filter(|key| !known.contains(key)) {
            let meant = nearest(key, known.iter().map(String::as_str));
            let advice = meant.map_or("remove it".to_owned(), |meant| {
                format!("remove it, or write {meant} if that was meant")
            });
            let sentence = format!("of the platform file is no setting: {advice}");
            self.problems.add(key.as_str(), sentence);
        }
        self.file = file;
    }

    /// What a setting says; nothing where it is optional, or missing and noted.
    fn said(&mut self, variable: &'static str) -> Option<Said> {
        let row = setting(variable);
        if let Some(text) = self.environment.get(variable).map(|text| text.trim())
            && !text.is_empty()
        {
            return Some(Said {
                name: variable.to_owned(),
                value: text.into(),
            });
        }
        let key = row.key();
        let value = key.as_ref().and_then(|key| self.file.get(key));
        if let (Some(key), Some(value)) = (&key, value)
            && !is_blank(value)
        {
            return Some(Said {
                name: key.clone(),
                value: value.clone(),
            });
        }
        match row.need {
            Need::Default(value) => Some(Said {
                name: variable.to_owned(),
                value: value.into(),
            }),
            Need::Required if !self.blind || key.is_none() => {
                let or = key.map_or(String::new(), |key| {
                    format!(", or {key} of the platform file,")
                });
                let sentence = format!("is missing: set it{or} to {}", row.what);
                self.problems.add(variable, sentence);
                None
            }
            Need::Required | Need::Optional => None,
        }
    }

    /// A name, an image, a region: a text without spaces.
    pub(super) fn word(&mut self, variable: &'static str) -> String {
        self.optional_word(variable).unwrap_or_default()
    }

    pub(super) fn optional_word(&mut self, variable: &'static str) -> Option<String> {
        let Said { name, value } = self.said(variable)?;
        let wrong = match &value {
            Value::String(text) if !text.trim().contains(is_space) => {
                return Some(text.trim().to_owned());
            }
            Value::String(text) => format!("is {text:?}: write it without spaces"),
            Value::Number(_) | Value::Bool(_) => {
                format!("is {value}, which is no text in YAML: put it in quotes")
            }
            _ => "is not one text: write a text".to_owned(),
        };
        self.problems.add(name, wrong);
        None
    }

    /// A quantity of something there must be some of.
    pub(super) fn quantity(&mut self, variable: &'static str) -> Quantity {
        let read = |text: &str| {
            let amount = Amount::parse(text)?;
            amount.is_positive().then(|| Quantity(text.to_owned()))
        };
        let wanted = "a quantity above zero: write a number with a unit, such as 500m or 32Gi";
        self.plain(variable, wanted, read).unwrap_or_default()
    }

    /// A number of seconds there must be some of.
    pub(super) fn seconds(&mut self, variable: &'static str) -> i64 {
        let read = |text: &str| text.parse().ok().filter(|seconds| *seconds > 0);
        let wanted = "a number of seconds above zero: write digits only, such as 300";
        self.plain(variable, wanted, read).unwrap_or_default()
    }

    pub(super) fn switch(&mut self, variable: &'static str) -> Option<bool> {
        self.plain(variable, "a switch: write true or false", |text| {
            text.parse().ok()
        })
    }

    /// One of two words: whether it is the second.
    pub(super) fn choice(&mut self, variable: &'static str, words: [&str; 2]) -> bool {
        let wanted = format!("one of them: write {} or {}", words[0], words[1]);
        let read = |text: &str| words.iter().position(|word| *word == text);
        self.plain(variable, &wanted, read) == Some(1)
    }

    /// A text or what YAML reads as something else, by a rule of its own.
    fn plain<T>(
        &mut self,
        variable: &'static str,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let Said { name, value } = self.said(variable)?;
        let text = scalar(&value);
        let found = text.as_deref().and_then(read);
        if found.is_none() {
            let text = text.map_or("a list or a map".to_owned(), |text| format!("{text:?}"));
            self.problems
                .add(name, format!("is {text} and not {wanted}"));
        }
        found
    }

    /// Entries: a list in the file, separated by commas in a variable.
    pub(super) fn list<T>(
        &mut self,
        variable: &'static str,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        let Some(Said { name, value }) = self.said(variable) else {
            return Vec::new();
        };
        let Some(entries) = entries(&value) else {
            let sentence = "is neither a list of texts nor one text: write a list".to_owned();
            self.problems.add(name, sentence);
            return Vec::new();
        };
        let mut found = Vec::new();
        for entry in entries {
            match read(&entry) {
                Some(value) => found.push(value),
                None => {
                    let sentence = format!("has the entry {entry:?}, which is not {wanted}");
                    self.problems.add(name.as_str(), sentence);
                }
            }
        }
        found
    }
}

/// The keys of a platform file.
fn parse(text: &str) -> Result<BTreeMap<String, Value>, String> {
    // A file of comments alone says nothing, and that is not wrong.
    let read: Result<Option<BTreeMap<String, Value>>, _> = serde_saphyr::from_str(text);
    match read {
        Ok(keys) => Ok(keys.unwrap_or_default()),
        Err(error) => {
            let why = error.to_string();
            let first = why.lines().next().unwrap_or_default();
            Err(format!(
                "is not a map of settings in YAML ({first}): correct it"
            ))
        }
    }
}

fn is_space(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control()
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// A single value as it would be written in a variable.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn entries(value: &Value) -> Option<Vec<String>> {
    let trimmed = |text: &str| text.trim().to_owned();
    match value {
        Value::String(text) => {
            let all = text.split(',').map(trimmed);
            Some(all.filter(|entry| !entry.is_empty()).collect())
        }
        Value::Array(all) => all
            .iter()
            .map(|entry| entry.as_str().map(trimmed))
            .collect(),
        _ => None,
    }
}
