//! The part of Go's text templates that rewrites use: literals, `{{ .Value }}` with any blanks and
//! trim marks, strings, comments, and `printf` with `%s`.
//!
//! Compiled once, when the configuration is loaded, which a template outside this part fails
//! (deviation A10); the reference compiles per value and answers with an empty reply or, worse, with
//! an empty attribute.

use std::fmt::Write;

use serde_json::Value;

/// A compiled template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Value,
}

/// Why a template is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `{{` without `}}`.
    #[error("an action is not closed with }}}}")]
    Unclosed,
    /// An action that can be none.
    #[error("{{{{{0}}}}} is not an action")]
    Malformed(String),
    /// A field other than the only one.
    #[error("{{{{{0}}}}} names something other than .Value, the only thing there is")]
    Field(String),
    /// An action of Go's we do not have.
    #[error("{{{{{0}}}}} is not supported: only .Value, strings and printf with %s are")]
    Unsupported(String),
}

impl Template {
    /// Compiles the text of an attribute.
    pub fn compile(source: &str) -> Result<Template, Refused> {
        let mut template = Template::default();
        let mut rest = source;
        let mut trim = false;
        while let Some(open) = rest.find("{{") {
            let inside = &rest[open + 2..];
            let close = closing(inside).ok_or(Refused::Unclosed)?;
            let (action, trim_before, trim_after) = marks(&inside[..close]);
            let literal = trimmed(&rest[..open], trim, trim_before);
            template.push(Part::Literal(literal.to_owned()));
            for part in parts(action)? {
                template.push(part);
            }
            rest = &inside[close + 2..];
            trim = trim_after;
        }
        template.push(Part::Literal(trimmed(rest, trim, false).to_owned()));
        Ok(template)
    }

    /// A text that stands for itself, braces and all.
    pub fn literal(text: &str) -> Template {
        let mut template = Template::default();
        template.push(Part::Literal(text.to_owned()));
        template
    }

    /// The text for a value.
    pub fn render(&self, value: &str) -> String {
        let mut out = String::new();
        for part in &self.parts {
            out.push_str(match part {
                Part::Literal(text) => text,
                Part::Value => value,
            });
        }
        out
    }

    /// Whether the text depends on the value.
    pub fn varies(&self) -> bool {
        self.parts.contains(&Part::Value)
    }

    /// The template in its shortest spelling.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            let _ = match part {
                // With a brace at its end it would open the next action one too early.
                Part::Literal(text) if text.contains("{{") || text.ends_with('{') => {
                    write!(out, "{{{{{}}}}}", Value::from(text.as_str()))
                }
                Part::Literal(text) => write!(out, "{text}"),
                Part::Value => write!(out, "{{{{.Value}}}}"),
            };
        }
        out
    }

    fn push(&mut self, part: Part) {
        match (self.parts.last_mut(), part) {
            (_, Part::Literal(text)) if text.is_empty() => {}
            (Some(Part::Literal(last)), Part::Literal(text)) => last.push_str(&text),
            (_, part) => self.parts.push(part),
        }
    }
}

/// Go trims blanks, tabs and line ends only.
const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

fn trimmed(text: &str, start: bool, end: bool) -> &str {
    let text = if start {
        text.trim_start_matches(BLANK)
    } else {
        text
    };
    if end {
        text.trim_end_matches(BLANK)
    } else {
        text
    }
}

/// Where the action ends: strings and comments may contain braces.
fn closing(text: &str) -> Option<usize> {
    // A comment stands directly behind the braces, or behind the blank of a mark.
    let opening = match text.strip_prefix('-') {
        Some(rest) => rest.strip_prefix(BLANK).unwrap_or(text),
        None => text,
    };
    if let Some(comment) = opening.strip_prefix("/*") {
        let start = text.len() - comment.len();
        let end = start + comment.find("*/")? + 2;
        return text[end..].find("}}").map(|at| end + at);
    }
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '`') => quote = Some(c),
            None if text[at..].starts_with("}}") => return Some(at),
            None => {}
        }
    }
    None
}

/// The action without its trim marks, and which it had. A mark has a blank, which goes with it.
fn marks(text: &str) -> (&str, bool, bool) {
    let before = text.strip_prefix('-');
    let (text, before) = match before.and_then(|rest| rest.strip_prefix(BLANK)) {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let after = text.strip_suffix('-');
    match after.and_then(|rest| rest.strip_suffix(BLANK)) {
        Some(rest) => (rest, before, true),
        None => (text, before, false),
    }
}

fn parts(action: &str) -> Result<Vec<Part>, Refused> {
    if let Some(comment) = action.strip_prefix("/*") {
        // Anything behind a comment is an error in Go, and would vanish here.
        return match comment.split_once("*/") {
            Some((_, "")) => Ok(Vec::new()),
            _ => Err(Refused::Malformed(action.to_owned())),
        };
    }
    let action = action.trim_matches(BLANK);
    let words = words(action).ok_or_else(|| Refused::Malformed(action.to_owned()))?;
    match words.as_slice() {
        [Word::Value] => Ok(vec![Part::Value]),
        [Word::Text(text)] => Ok(vec![Part::Literal(text.clone())]),
        [Word::Name(name), Word::Text(format), arguments @ ..] if name == "printf" => {
            printf(format, arguments, action)
        }
        [
            Word::Value,
            Word::Pipe,
            Word::Name(name),
            Word::Text(format),
        ] if name == "printf" => printf(format, &[Word::Value], action),
        [] => Err(Refused::Malformed(action.to_owned())),
        [Word::Name(name)] if name.starts_with('.') && name.len() > 1 => {
            Err(Refused::Field(action.to_owned()))
        }
        _ => Err(Refused::Unsupported(action.to_owned())),
    }
}

#[derive(Debug)]
enum Word {
    Value,
    Text(String),
    Name(String),
    Pipe,
}

fn words(action: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = action.trim_start_matches(BLANK);
    while let Some(first) = rest.chars().next() {
        let (word, length) = match first {
            '"' => quoted(rest)?,
            '`' => {
                let end = rest[1..].find('`')?;
                // Go takes carriage returns out of these.
                (Word::Text(rest[1..=end].replace('\r', "")), end + 2)
            }
            '|' => (Word::Pipe, 1),
            _ => {
                let end = rest
                    .find(|c| BLANK.contains(&c) || matches!(c, '"' | '`' | '|'))
                    .unwrap_or(rest.len());
                let word = match &rest[..end] {
                    ".Value" => Word::Value,
                    name => Word::Name(name.to_owned()),
                };
                (word, end)
            }
        };
        // Go wants words apart; only a pipe may touch its neighbours.
        let apart =
            |rest: &str| rest.is_empty() || rest.starts_with(BLANK) || rest.starts_with('|');
        if !matches!(word, Word::Pipe) && !apart(&rest[length..]) {
            return None;
        }
        words.push(word);
        rest = rest[length..].trim_start_matches(BLANK);
    }
    Some(words)
}

/// A Go string with the escapes both languages write alike.
fn quoted(text: &str) -> Option<(Word, usize)> {
    let mut end = None;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                end = Some(at + 1);
                break;
            }
            _ => {}
        }
    }
    let end = end?;
    let value: String = serde_json::from_str(&text[..end]).ok()?;
    Some((Word::Text(value), end))
}

fn printf(format: &str, arguments: &[Word], action: &str) -> Result<Vec<Part>, Refused> {
    let unsupported = || Refused::Unsupported(action.to_owned());
    let mut arguments = arguments.iter();
    let mut parts = Vec::new();
    let mut pieces = format.split('%');
    parts.push(Part::Literal(pieces.next().unwrap_or_default().to_owned()));
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        if let Some(rest) = piece.strip_prefix('s') {
            parts.push(match arguments.next().ok_or_else(unsupported)? {
                Word::Value => Part::Value,
                Word::Text(text) => Part::Literal(text.clone()),
                Word::Name(_) | Word::Pipe => return Err(unsupported()),
            });
            parts.push(Part::Literal(rest.to_owned()));
        } else if piece.is_empty() && pieces.peek().is_some() {
            let rest = pieces.next().unwrap_or_default();
            parts.push(Part::Literal(format!("%{rest}")));
        } else {
            return Err(unsupported());
        }
    }
    match arguments.next() {
        None => Ok(parts),
        Some(_) => Err(unsupported()),
    }
}
