//! What holds for every input, whatever it is.
//!
//! A law takes bytes and panics when they break it. The fuzz targets look for such bytes, and
//! `tests/replay.rs` of the proxy holds the laws over the committed ones, so both mean the same.
//! Where a law says what Go does, it says so in the plainest code there is, slow and independent of
//! the code it judges. Inputs are text where they can be, parted by line ends, to be read in a diff.

mod config;
mod flags;
mod glob;
mod golang;
mod headers;
mod path;
mod query;
mod reviews;
mod template;

pub use config::config;
pub use flags::flags;
pub use glob::glob;
pub use golang::golang;
pub use headers::headers;
pub use path::path;
pub use query::query;
pub use reviews::{access, token};
pub use template::template;

/// Panics for an input that breaks it.
pub type Law = fn(&[u8]);

/// Every law, by the name of its fuzz target and of its folder of inputs.
pub const LAWS: [(&str, Law); 10] = [
    ("access", access),
    ("config", config),
    ("flags", flags),
    ("glob", glob),
    ("golang", golang),
    ("headers", headers),
    ("path", path),
    ("query", query),
    ("template", template),
    ("token", token),
];

/// The input as text; laws about text hold for nothing else.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// Percent-decodes; nothing when an escape is malformed.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Some(out),
            [b'%', high, low, after @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let value = digit(high)? * 16 + digit(low)?;
                out.push(u8::try_from(value).ok()?);
                after
            }
            [b'%', ..] => return None,
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
        };
    }
}

/// Whether a text can be a line of a log without becoming two.
fn is_one_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
