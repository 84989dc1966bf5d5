//! YAML into a tree whose scalars are still text, so that they can be read by the rules of YAML 1.1.
//!
//! Aliases and merge keys are resolved here; only the first document counts, as in the reference.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::scalar::{Resolved, Scalar};

/// A node and where it starts.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// More than any configuration has, aliases counted each time they are used.
const MOST_NODES: usize = 20_000;

/// The first document; nothing for an empty file.
pub(super) fn parse(text: &str) -> Result<Option<Node>, String> {
    let mut builder = Builder {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
    };
    loop {
        match builder.next()? {
            (Event::DocumentStart(..), _) => return builder.node().map(Some),
            (Event::StreamEnd, _) => return Ok(None),
            _ => {}
        }
    }
}

/// The first document for a reader that wants texts, yes or no and nothing: numbers stay the text
/// they are, since a name may look like one.
pub(crate) fn texts(text: &str) -> Result<serde_json::Value, String> {
    match parse(text)? {
        Some(node) => node.texts(),
        None => Ok(serde_json::Value::Null),
    }
}

struct Builder<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'a> Builder<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        loop {
            match self.parser.next() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(event)) => return Ok(event),
                Some(Err(error)) => return Err(broken(&error)),
                None => return Err("the file ends in the middle".to_owned()),
            }
        }
    }

    fn node(&mut self) -> Result<Node, String> {
        let event = self.next()?;
        self.node_from(event)
    }

    fn node_from(&mut self, (event, span): (Event<'a>, Span)) -> Result<Node, String> {
        let line = span.start.line();
        self.count(1)?;
        let (value, anchor) = match event {
            Event::Alias(id) => {
                let node = self.anchors.get(&id).cloned();
                let node =
                    node.ok_or_else(|| format!("line {line}: an alias inside what it names"))?;
                self.count(node.size())?;
                return Ok(node);
            }
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                    tag: tag.map(|tag| match tag.core_suffix() {
                        Some(core) => core.to_owned(),
                        None => tag.original(),
                    }),
                };
                (Value::Scalar(scalar), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (Value::List(self.list()?), anchor),
            Event::MappingStart(_, anchor, _) => (Value::Map(self.map()?), anchor),
            _ => return Err(format!("line {line}: something other than a value")),
        };
        let node = Node { line, value };
        if anchor != 0 {
            // The copy counts: anchors within anchors would multiply.
            self.count(node.size())?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        self.nodes += nodes;
        match self.nodes > MOST_NODES {
            true => Err("it is larger than a configuration can be".to_owned()),
            false => Ok(()),
        }
    }

    fn list(&mut self) -> Result<Vec<Node>, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                event => items.push(self.node_from(event)?),
            }
        }
    }

    fn map(&mut self) -> Result<Vec<(String, Node)>, String> {
        let mut entries = Vec::new();
        let mut merged = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => break,
                event => self.node_from(event)?,
            };
            let value = self.node()?;
            match &key.value {
                Value::Scalar(scalar) if scalar.plain && scalar.text == "<<" => {
                    merge(value, &mut merged)?;
                }
                Value::Scalar(scalar) => entries.push((key_text(scalar, key.line)?, value)),
                _ => return Err(format!("line {}: a key must be a text", key.line)),
            }
        }
        // What is written wins over what is merged in.
        merged.retain(|(key, _)| !entries.iter().any(|(own, _)| own == key));
        entries.extend(merged);
        Ok(entries)
    }
}

fn merge(value: Node, into: &mut Vec<(String, Node)>) -> Result<(), String> {
    match value.value {
        Value::Map(entries) => {
            for (key, node) in entries {
                if !into.iter().any(|(own, _)| *own == key) {
                    into.push((key, node));
                }
            }
            Ok(())
        }
        Value::List(items) => items.into_iter().try_for_each(|item| merge(item, into)),
        Value::Scalar(_) => Err(format!("line {}: only maps can be merged", value.line)),
    }
}

fn key_text(scalar: &Scalar, line: usize) -> Result<String, String> {
    let resolved = scalar
        .resolve()
        .map_err(|problem| format!("line {line}: {problem}"))?;
    resolved
        .text()
        .ok_or_else(|| format!("line {line}: a key must be a text"))
}

fn broken(error: &ScanError) -> String {
    format!("line {}: {}", error.marker().line(), error.info())
}

impl Node {
    fn texts(self) -> Result<serde_json::Value, String> {
        Ok(match self.value {
            Value::Scalar(scalar) => match scalar.resolve() {
                Err(problem) => return Err(format!("line {}: {problem}", self.line)),
                Ok(Resolved::Null) => serde_json::Value::Null,
                Ok(Resolved::Bool(value)) => value.into(),
                Ok(Resolved::Int(_) | Resolved::Float(_)) => scalar.text.into(),
                Ok(Resolved::Text(text)) => text.into(),
            },
            Value::List(items) => {
                let items = items.into_iter().map(Node::texts);
                serde_json::Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Map(entries) => {
                let entries = entries.into_iter();
                let entries = entries.map(|(key, node)| Ok((key, node.texts()?)));
                serde_json::Value::Object(entries.collect::<Result<_, String>>()?)
            }
        })
    }

    fn size(&self) -> usize {
        match &self.value {
            Value::Scalar(_) => 1,
            Value::List(items) => 1 + items.iter().map(Node::size).sum::<usize>(),
            Value::Map(entries) => 1 + entries.iter().map(|(_, node)| node.size()).sum::<usize>(),
        }
    }
}
