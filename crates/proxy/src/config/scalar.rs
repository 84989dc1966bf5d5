//! What an unquoted word means in YAML 1.1, as Go's yaml.v2 has it: `yes`, `n`, `0123`, `1_000`.
//!
//! Every key of the file that takes a text takes these too, in the form Go gives them, so a file
//! means the same to us as to the reference. Timestamps stay the text they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::golang;

/// A scalar as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its text, quotes and escapes removed.
    pub text: String,
    /// Whether it was written without quotes.
    pub plain: bool,
    /// Its tag; those of YAML itself by their last word, such as `str`.
    pub tag: Option<String>,
}

/// What a scalar means.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
}

impl Resolved {
    /// The text a key that takes one gets; nothing for null.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Resolved::Null => return None,
            Resolved::Bool(value) => value.to_string(),
            Resolved::Int(value) => value.to_string(),
            Resolved::Float(value) => golang::shortest(*value),
            Resolved::Text(text) => text.clone(),
        })
    }

    fn tag(&self) -> &'static str {
        match self {
            Resolved::Null => "null",
            Resolved::Bool(_) => "bool",
            Resolved::Int(_) => "int",
            Resolved::Float(_) => "float",
            Resolved::Text(_) => "str",
        }
    }
}

impl Scalar {
    /// What it means.
    pub fn resolve(&self) -> Result<Resolved, String> {
        let text = || Resolved::Text(self.text.clone());
        let Some(tag) = self.tag.as_deref() else {
            return Ok(if self.plain {
                plain(&self.text)
            } else {
                text()
            });
        };
        let found = plain(&self.text);
        match (tag, found) {
            ("bool" | "int" | "float" | "null", found) if found.tag() == tag => Ok(found),
            ("float", Resolved::Int(value)) => Ok(Resolved::Float(value as f64)),
            ("bool" | "int" | "float" | "null", found) => Err(format!(
                "cannot decode !!{} `{}` as a !!{tag}",
                found.tag(),
                self.text
            )),
            ("binary" | "!!binary", _) => STANDARD
                .decode(&self.text)
                .map(|bytes| Resolved::Text(String::from_utf8_lossy(&bytes).into_owned()))
                .map_err(|_| "!!binary value contains invalid base64 data".to_owned()),
            _ => Ok(text()),
        }
    }
}

/// An unquoted word.
fn plain(text: &str) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Resolved::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Resolved::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Resolved::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => decimal(text),
        b'+' | b'-' | b'0'..=b'9' => number(&text.replace('_', "")),
        _ => None,
    };
    number.unwrap_or_else(|| Resolved::Text(text.to_owned()))
}

fn number(text: &str) -> Option<Resolved> {
    integer(text).or_else(|| decimal(text))
}

fn integer(text: &str) -> Option<Resolved> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = i128::from(golang::digits(digits, 0).ok()?);
    let value = if negative { -magnitude } else { magnitude };
    // An explicit plus keeps Go from its unsigned reading.
    let most = if text.starts_with('+') {
        i128::from(i64::MAX)
    } else {
        i128::from(u64::MAX)
    };
    (i128::from(i64::MIN)..=most)
        .contains(&value)
        .then_some(Resolved::Int(value))
}

/// A float in digits: no names, no hexadecimal.
fn decimal(text: &str) -> Option<Resolved> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let well_formed = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent)
        });
    let value: f64 = well_formed.then(|| text.parse().ok())??;
    value.is_finite().then_some(Resolved::Float(value))
}
