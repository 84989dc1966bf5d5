//! What EC2 and the service of tokens answer, read from their XML.
//!
//! Of XML only what they send is understood: elements, text, and the five characters that have names.
//! Anything else is refused rather than guessed at.

use super::credentials::Credentials;
use std::net::IpAddr;

/// A page of machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Where each of them is.
    pub addresses: Vec<String>,
    /// What to ask the next page with.
    pub next: Option<String>,
}

/// Why an answer is not a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlike {
    /// Not text.
    #[error("it is not UTF-8")]
    NotText,
    /// Not XML.
    #[error("it is not XML at byte {0}")]
    NotXml(usize),
    /// Other XML.
    #[error("it is XML that begins with {0:?} and not with \"DescribeInstancesResponse\"")]
    Other(String),
    /// Too long.
    #[error("it is longer than {0} bytes")]
    Long(usize),
    /// Too many pages.
    #[error("there is still more after {0} pages")]
    Endless(usize),
}

/// Something in a text of XML.
enum Event {
    /// An element with nothing but text in it, or with nothing, ends.
    Text(String),
    /// An element ends.
    End,
}

/// Reads a page.
pub fn page(body: &[u8]) -> Result<Page, Unlike> {
    const MACHINE: [&str; 5] = [
        "DescribeInstancesResponse",
        "reservationSet",
        "item",
        "instancesSet",
        "item",
    ];
    let mut page = Page::default();
    let (mut public, mut private) = (None, None);
    let mut root = None;
    walk(body, |path, event| {
        root.get_or_insert_with(|| path[0].to_owned());
        match (path, event) {
            ([machine @ .., "ipAddress"], Event::Text(text)) if machine == MACHINE => {
                public = address(text);
            }
            ([machine @ .., "privateIpAddress"], Event::Text(text)) if machine == MACHINE => {
                private = address(text);
            }
            (path, Event::End) if path == MACHINE => {
                page.addresses.extend(public.take().or(private.take()));
                private = None;
            }
            (["DescribeInstancesResponse", "nextToken"], Event::Text(text)) => {
                page.next = Some(text).filter(|text| !text.is_empty());
            }
            _ => {}
        }
    })?;
    match root {
        Some(root) if root == MACHINE[0] => Ok(page),
        root => Err(Unlike::Other(root.unwrap_or_default())),
    }
}

fn address(text: String) -> Option<String> {
    text.parse::<IpAddr>().ok().map(|it| it.to_string())
}

/// The keys a role is given, where the answer holds all of them.
pub fn keys(body: &[u8]) -> Option<Credentials> {
    let (mut id, mut secret, mut token) = (None, None, None);
    let walked = walk(body, |path, event| match (path, event) {
        ([.., "Credentials", "AccessKeyId"], Event::Text(text)) => id = Some(text),
        ([.., "Credentials", "SecretAccessKey"], Event::Text(text)) => secret = Some(text),
        ([.., "Credentials", "SessionToken"], Event::Text(text)) => token = Some(text),
        _ => {}
    });
    walked.ok()?;
    Some(Credentials {
        access_key_id: id?,
        secret_access_key: secret?,
        session_token: Some(token?),
    })
}

/// What a refusal says, where it is one of EC2's.
pub fn refusal(body: &[u8]) -> Option<String> {
    let (mut code, mut message) = (None, None);
    let walked = walk(body, |path, event| match (path, event) {
        ([.., "Error", "Code"], Event::Text(text)) => code = Some(text),
        ([.., "Error", "Message"], Event::Text(text)) => message = Some(text),
        _ => {}
    });
    walked.ok()?;
    let message: String = message.unwrap_or_default().chars().take(512).collect();
    Some(format!("{}: {message}", code?))
}

/// Goes through a text, and tells of the end of each element where it is and what it held.
fn walk<'a>(body: &'a [u8], mut tell: impl FnMut(&[&'a str], Event)) -> Result<(), Unlike> {
    let text = std::str::from_utf8(body).map_err(|_| Unlike::NotText)?;
    let mut path: Vec<&str> = Vec::new();
    let (mut at, mut leaf) = (0, false);
    while let Some(open) = text[at..].find('<').map(|it| at + it) {
        let between = &text[at..open];
        let close = text[open..].find('>').map(|it| open + it);
        let close = close.ok_or(Unlike::NotXml(open))?;
        let tag = &text[open + 1..close];
        at = close + 1;
        if tag.starts_with('?') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if path.last() != Some(&name.trim_end()) {
                return Err(Unlike::NotXml(open));
            }
            if leaf {
                let held = unescaped(between).ok_or(Unlike::NotXml(open))?;
                tell(&path, Event::Text(held));
            } else {
                tell(&path, Event::End);
            }
            path.pop();
            leaf = false;
            continue;
        }
        let (tag, empty) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let name = tag.split_whitespace().next().unwrap_or_default();
        if name.is_empty() || name.starts_with('!') {
            return Err(Unlike::NotXml(open));
        }
        path.push(name);
        leaf = !empty;
        if empty {
            tell(&path, Event::Text(String::new()));
            path.pop();
        }
    }
    match path.is_empty() {
        true => Ok(()),
        false => Err(Unlike::NotXml(text.len())),
    }
}

/// The text with its named characters put in.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';')?;
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => return None,
        });
        out.push_str(rest);
    }
    Some(out)
}
