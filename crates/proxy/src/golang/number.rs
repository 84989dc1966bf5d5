//! Numbers as `strconv` reads and writes them. Hexadecimal floats are left out: nobody throttles
//! an API client in base sixteen.

use super::quote;

/// Why `strconv` refused a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Syntax,
    Range,
}

impl Refused {
    fn text(self, function: &str, number: &str) -> String {
        let why = match self {
            Refused::Syntax => "invalid syntax",
            Refused::Range => "value out of range",
        };
        format!("strconv.{function}: parsing {}: {why}", quote(number))
    }
}

/// `strconv.ParseInt` with a size in bits; base 0 reads the base from the prefix.
pub fn integer(text: &str, base: u32, bits: u32) -> Result<i64, String> {
    signed(text, base, bits).map_err(|refused| refused.text("ParseInt", text))
}

/// `strconv.ParseUint` with a size in bits; base 0 reads the base from the prefix.
pub fn unsigned(text: &str, base: u32, bits: u32) -> Result<u64, String> {
    digits(text, base)
        .and_then(|value| {
            if bits < 64 && value >> bits != 0 {
                Err(Refused::Range)
            } else {
                Ok(value)
            }
        })
        .map_err(|refused| refused.text("ParseUint", text))
}

fn signed(text: &str, base: u32, bits: u32) -> Result<i64, Refused> {
    let (negative, magnitude) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = i128::from(digits(magnitude, base)?);
    let value = if negative { -value } else { value };
    let limit = 1i128 << (bits - 1);
    if value < -limit || value >= limit {
        return Err(Refused::Range);
    }
    i64::try_from(value).map_err(|_| Refused::Range)
}

/// The magnitude of an unsigned number.
pub(crate) fn digits(text: &str, base: u32) -> Result<u64, Refused> {
    if text.is_empty() {
        return Err(Refused::Syntax);
    }
    let from_prefix = base == 0;
    let (base, body) = match base {
        0 => prefixed(text),
        base => (base, text),
    };
    if from_prefix && !underscores_separate(text) {
        return Err(Refused::Syntax);
    }
    let mut value = 0u64;
    for c in body.chars() {
        if c == '_' && from_prefix {
            continue;
        }
        let digit = c.to_digit(base).ok_or(Refused::Syntax)?;
        value = value
            .checked_mul(u64::from(base))
            .and_then(|value| value.checked_add(u64::from(digit)))
            .ok_or(Refused::Range)?;
    }
    Ok(value)
}

fn prefixed(text: &str) -> (u32, &str) {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'0') {
        return (10, text);
    }
    match bytes.get(1).map(u8::to_ascii_lowercase) {
        Some(b'b') if bytes.len() > 2 => (2, &text[2..]),
        Some(b'o') if bytes.len() > 2 => (8, &text[2..]),
        Some(b'x') if bytes.len() > 2 => (16, &text[2..]),
        _ => (8, &text[1..]),
    }
}

/// Whether underscores stand only between digits, the base prefix counting as one.
fn underscores_separate(text: &str) -> bool {
    let bytes = text.as_bytes();
    let prefix = bytes.len() >= 2
        && bytes[0] == b'0'
        && matches!(bytes[1].to_ascii_lowercase(), b'b' | b'o' | b'x');
    let hex = prefix && bytes[1].eq_ignore_ascii_case(&b'x');
    let mut last = if prefix { '0' } else { '^' };
    for c in text.chars().skip(if prefix { 2 } else { 0 }) {
        last = match c {
            '_' if last != '0' => return false,
            '_' => '_',
            c if c.is_ascii_digit() || (hex && c.is_ascii_hexdigit()) => '0',
            _ if last == '_' => return false,
            _ => '!',
        };
    }
    last != '_'
}

/// `strconv.ParseFloat` into 32 bits.
pub fn float32(text: &str) -> Result<f32, String> {
    let refused = |refused: Refused| refused.text("ParseFloat", text);
    if !underscores_separate(text.trim_start_matches(['+', '-'])) {
        return Err(refused(Refused::Syntax));
    }
    let plain = text.replace('_', "");
    let value: f32 = plain.parse().map_err(|_| refused(Refused::Syntax))?;
    // A number that is none has no sign either.
    if value.is_nan() && plain.len() > "nan".len() {
        return Err(refused(Refused::Syntax));
    }
    let named = plain.to_ascii_lowercase().contains("inf");
    if value.is_infinite() && !named {
        return Err(refused(Refused::Range));
    }
    Ok(value)
}

/// `strconv.FormatFloat(value, 'g', -1, 32)`.
pub(crate) fn shortest(value: f64) -> String {
    #[allow(clippy::cast_possible_truncation, reason = "Go prints at 32 bits")]
    let value = value as f32;
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
