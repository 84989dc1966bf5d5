//! From a tree to values: what each key takes, and every complaint about it, gathered rather than
//! raised, so that a file's author sees all of them at once.

use super::Warning;
use super::nearest::nearest;
use super::scalar::{Resolved, Scalar};
use super::yaml::{Node, Value};

/// Gathers complaints.
#[derive(Default)]
pub(super) struct Decoder {
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<Warning>,
}

/// The known keys of a map.
pub(super) struct Fields<'a> {
    at: String,
    found: Vec<(&'static str, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// The value of a key and its full name.
    pub(super) fn get(&self, key: &str) -> (Option<&'a Node>, String) {
        let node = self.found.iter().find(|(found, _)| *found == key);
        (node.map(|(_, node)| *node), join(&self.at, key))
    }
}

fn join(at: &str, key: &str) -> String {
    match at {
        "" => key.to_owned(),
        at => format!("{at}.{key}"),
    }
}

impl Decoder {
    /// Turns warnings about keys without effect into problems.
    pub(super) fn refuse_meaningless(&mut self) {
        let meaningless = |warning: &Warning| {
            matches!(
                warning,
                Warning::UnknownKey { .. } | Warning::Repeated { .. }
            )
        };
        let problems = self.warnings.iter().filter(|warning| meaningless(warning));
        self.problems.extend(problems.map(Warning::to_string));
    }

    fn problem(&mut self, at: &str, node: &Node, expected: &str) {
        let at = if at.is_empty() { "the file" } else { at };
        let line = node.line;
        self.problems
            .push(format!("{at} (line {line}) must be {expected}"));
    }

    /// A map; nothing when it is absent or null. Keys match in any case.
    pub(super) fn fields<'a>(
        &mut self,
        (node, at): (Option<&'a Node>, String),
        known: &'static [&'static str],
    ) -> Option<Fields<'a>> {
        let node = node?;
        let entries = match &node.value {
            Value::Map(entries) => entries,
            Value::Scalar(scalar) if is_null(scalar) => return None,
            _ => {
                self.problem(&at, node, "a map");
                return None;
            }
        };
        let mut chosen: Vec<(&'static str, &'a str, &'a Node)> = Vec::new();
        for (written, value) in entries {
            let matching = known.iter().find(|key| key.eq_ignore_ascii_case(written));
            let Some(key) = matching.copied() else {
                self.warnings.push(Warning::UnknownKey {
                    key: join(&at, written),
                    line: value.line,
                    nearest: nearest(written, known),
                });
                continue;
            };
            match chosen.iter_mut().find(|(found, ..)| *found == key) {
                None => chosen.push((key, written, value)),
                Some(earlier) => {
                    self.warnings.push(Warning::Repeated {
                        key: join(&at, written),
                        line: value.line,
                    });
                    // The reference sorts the spellings and takes the last; of one spelling, the
                    // last written.
                    if written.as_str() >= earlier.1 {
                        *earlier = (key, written, value);
                    }
                }
            }
        }
        let found = chosen
            .into_iter()
            .map(|(key, _, node)| (key, node))
            .collect();
        Some(Fields { at, found })
    }

    /// A text; empty when absent or null. Numbers and yes-or-no words are taken as Go prints them.
    pub(super) fn text(&mut self, (node, at): (Option<&Node>, String)) -> String {
        let Some(node) = node else {
            return String::new();
        };
        let Value::Scalar(scalar) = &node.value else {
            self.problem(&at, node, "a text");
            return String::new();
        };
        let resolved = match scalar.resolve() {
            Ok(resolved) => resolved,
            Err(problem) => {
                self.problems
                    .push(format!("{at} (line {}): {problem}", node.line));
                return String::new();
            }
        };
        let text = resolved.text().unwrap_or_default();
        if scalar.plain && resolved != Resolved::Null && text != scalar.text {
            self.warnings.push(Warning::Coerced {
                key: at,
                line: node.line,
                written: scalar.text.clone(),
                read: text.clone(),
            });
        }
        text
    }

    /// Yes or no; no when absent or null.
    pub(super) fn boolean(&mut self, (node, at): (Option<&Node>, String)) -> bool {
        let Some(node) = node else {
            return false;
        };
        let resolved = match &node.value {
            Value::Scalar(scalar) => scalar.resolve().ok(),
            _ => None,
        };
        match resolved {
            Some(Resolved::Bool(value)) => value,
            Some(Resolved::Null) => false,
            _ => {
                self.problem(&at, node, "true or false");
                false
            }
        }
    }

    /// The items of a list with their names; none when absent or null.
    pub(super) fn items<'a>(
        &mut self,
        (node, at): (Option<&'a Node>, String),
    ) -> Vec<(Option<&'a Node>, String)> {
        let Some(node) = node else {
            return Vec::new();
        };
        match &node.value {
            Value::List(items) => {
                let named = |(index, item)| (Some(item), format!("{at}[{index}]"));
                items.iter().enumerate().map(named).collect()
            }
            Value::Scalar(scalar) if is_null(scalar) => Vec::new(),
            _ => {
                self.problem(&at, node, "a list");
                Vec::new()
            }
        }
    }

    /// A list of texts.
    pub(super) fn texts(&mut self, field: (Option<&Node>, String)) -> Vec<String> {
        let items = self.items(field);
        items.into_iter().map(|item| self.text(item)).collect()
    }
}

fn is_null(scalar: &Scalar) -> bool {
    scalar.resolve() == Ok(Resolved::Null)
}
