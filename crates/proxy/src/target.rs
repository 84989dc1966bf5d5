//! The upstream's address: Go's reading of a URL, as far as `--upstream` can tell, and the `unix:`
//! form that we add. Connecting to it is not done here.

use std::borrow::Cow;

use crate::golang::quote;

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How it is reached.
    pub place: Place,
    /// What is put before every request's path; escaped.
    pub prefix: String,
    /// What is put before every request's query.
    pub query: String,
}

/// How an upstream is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Plain HTTP, at `host[:port]`.
    Http(String),
    /// HTTPS, at `host[:port]`.
    Https(String),
    /// Plain HTTP on a socket file.
    Unix(String),
    /// Nowhere: the reference starts with such a URL and answers every request with 502.
    Nowhere(String),
}

/// What `url.Parse` finds in a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case, without the colon.
    pub scheme: String,
    /// With the port, without the user.
    pub host: String,
    /// Escaped.
    pub path: String,
    /// Without the question mark.
    pub query: String,
}

impl Target {
    /// Reads the value of `--upstream`; the error is Go's.
    pub fn parse(text: &str) -> Result<Target, String> {
        let url = Url::parse(text).map_err(|cause| format!("parse {}: {cause}", quote(text)))?;
        let place = match url.scheme.as_str() {
            "http" if !url.host.is_empty() => Place::Http(url.host),
            "https" if !url.host.is_empty() => Place::Https(url.host),
            "unix" if url.host.is_empty() && url.path.starts_with('/') => {
                let (socket, prefix) = match url.path.split_once(":/") {
                    Some((socket, prefix)) => (socket, format!("/{prefix}")),
                    None => (url.path.as_str(), String::new()),
                };
                return Ok(Target {
                    place: Place::Unix(socket.to_owned()),
                    prefix,
                    query: url.query,
                });
            }
            "http" | "https" => Place::Nowhere("it names no host".to_owned()),
            "" => Place::Nowhere("it has no scheme".to_owned()),
            scheme => Place::Nowhere(format!("{scheme} is not a scheme we speak")),
        };
        Ok(Target {
            place,
            prefix: url.path,
            query: url.query,
        })
    }

    /// The path the upstream gets: joined with exactly one slash.
    pub fn path<'a>(&self, request: &'a str) -> Cow<'a, str> {
        match (self.prefix.strip_suffix('/'), request.starts_with('/')) {
            _ if self.prefix.is_empty() || self.prefix == "/" => Cow::Borrowed(request),
            (Some(prefix), true) => Cow::Owned(format!("{prefix}{request}")),
            (None, false) => Cow::Owned(format!("{}/{request}", self.prefix)),
            _ => Cow::Owned(format!("{}{request}", self.prefix)),
        }
    }
}

impl Url {
    /// `url.Parse`, for everything but opaque URLs, of which only the scheme is told.
    pub fn parse(text: &str) -> Result<Url, String> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Url {
            scheme: scheme.to_ascii_lowercase(),
            query: query.to_owned(),
            ..Url::default()
        };
        let mut path = rest;
        if let Some(after) = rest.strip_prefix("//") {
            let slash = after.find('/').unwrap_or(after.len());
            let (authority, tail) = after.split_at(slash);
            url.host = host(authority)?;
            path = tail;
        } else if !scheme.is_empty() && !rest.starts_with('/') {
            return Ok(Url {
                query: String::new(),
                ..url
            });
        } else if scheme.is_empty() && first_segment(rest).contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
        escapes(path)?;
        escapes(fragment)?;
        url.path = escaped(path);
        Ok(url)
    }
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at == 0 => return Ok(("", text)),
            '0'..='9' | '+' | '-' | '.' => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn first_segment(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

fn host(authority: &str) -> Result<String, String> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    if let Some(inside) = host.strip_prefix('[') {
        let (_, port) = inside
            .rsplit_once(']')
            .ok_or_else(|| "missing ']' in host".to_owned())?;
        valid_port(port)?;
    } else if let Some(at) = host.rfind(':') {
        valid_port(&host[at..])?;
    }
    if let Some(c) = host
        .chars()
        .find(|c| matches!(c, ' ' | '\\' | '^' | '`' | '{' | '|' | '}'))
    {
        return Err(format!(
            "invalid character {} in host name",
            quote(&c.to_string())
        ));
    }
    escapes(host)?;
    Ok(host.replace("%25", "%"))
}

fn valid_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':');
    let valid = port.is_empty() || digits.is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    valid
        .then_some(())
        .ok_or_else(|| format!("invalid port {} after host", quote(port)))
}

fn escapes(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let bytes = rest.as_bytes();
        let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        if !(hex(at + 1) && hex(at + 2)) {
            let end = rest.len().min(at + 3);
            let shown = rest.get(at..end).unwrap_or(&rest[at..=at]);
            return Err(format!("invalid URL escape {}", quote(shown)));
        }
        rest = &rest[at + 3..];
    }
    Ok(())
}

/// The path with what must be escaped escaped, and nothing else changed.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => {
                out.push_str(&format!("%{byte:02X}"));
            }
            byte => out.push(char::from(byte)),
        }
    }
    out
}
