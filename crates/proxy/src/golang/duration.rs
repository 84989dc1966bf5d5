//! `time.Duration`: signed nanoseconds, read from `1m30s` and written as Go writes them.

use std::fmt;

/// A span of time as a flag states it. Signed, as Go's is; who needs a positive one says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(
    /// Nanoseconds.
    pub i64,
);

impl Duration {
    /// A number of whole seconds.
    pub const fn seconds(seconds: i64) -> Self {
        Duration(seconds * 1_000_000_000)
    }

    /// The span as a positive one, or nothing when it is negative.
    pub fn positive(self) -> Option<std::time::Duration> {
        u64::try_from(self.0)
            .ok()
            .map(std::time::Duration::from_nanos)
    }

    /// `time.ParseDuration`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("time: invalid duration {}", quote(text));
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Duration(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total = 0i128;
        while !rest.is_empty() {
            let (number, tail) = number(rest).ok_or_else(invalid)?;
            let whole = number.whole().ok_or_else(invalid)?;
            let (unit, tail) = unit(tail);
            if unit.is_empty() {
                return Err(format!("time: missing unit in duration {}", quote(text)));
            }
            let scale = scale(unit).ok_or_else(|| {
                format!(
                    "time: unknown unit {} in duration {}",
                    quote(unit),
                    quote(text)
                )
            })?;
            total += whole * scale + number.share(scale);
            // One more than the largest: the smallest has no positive twin.
            if total > 1 << 63 {
                return Err(invalid());
            }
            rest = tail;
        }
        let total = if negative { -total } else { total };
        i64::try_from(total).map(Duration).map_err(|_| invalid())
    }
}

/// The digits before and after the point.
struct Number<'a> {
    whole: &'a str,
    fraction: &'a str,
}

impl Number<'_> {
    /// The digits before the point; nothing for more than any duration has. Go finds that out before
    /// it looks at the unit.
    fn whole(&self) -> Option<i128> {
        let significant = self.whole.trim_start_matches('0');
        match significant.len() {
            0 => Some(0),
            1..=19 => significant.parse().ok().filter(|whole| *whole <= 1 << 63),
            _ => None,
        }
    }

    /// What the digits after the point come to.
    fn share(&self, scale: i128) -> i128 {
        let (parts, places) = self.parts();
        // In floating point, as Go does it: a third of an hour is a round number there.
        (parts as f64 * (scale as f64 / 10f64.powi(places))) as i128
    }

    /// The fraction as a number and its decimal places, cut where Go cuts it.
    fn parts(&self) -> (u64, i32) {
        let (mut parts, mut places) = (0u64, 0);
        for digit in self.fraction.bytes() {
            if parts > (1 << 63) / 10 {
                break;
            }
            let next = parts * 10 + u64::from(digit - b'0');
            if next > 1 << 63 {
                break;
            }
            (parts, places) = (next, places + 1);
        }
        (parts, places)
    }
}

/// The number at the front, and what follows it.
fn number(text: &str) -> Option<(Number<'_>, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    (!whole.is_empty() || !fraction.is_empty()).then_some((Number { whole, fraction }, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

fn unit(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

fn scale(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Quotes as package `time` does, which knows no escape but the hexadecimal one.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

impl fmt::Display for Duration {
    /// As Go prints it from a second up: `1m30s`, `500ms` below.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanoseconds = self.0.unsigned_abs();
        let fraction = |unit: u64, name: &str| {
            let text = format!("{:.9}", nanoseconds as f64 / unit as f64);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            format!("{sign}{text}{name}")
        };
        match nanoseconds {
            0 => return f.write_str("0s"),
            1..1_000 => return write!(f, "{sign}{nanoseconds}ns"),
            1_000..1_000_000 => return f.write_str(&fraction(1_000, "µs")),
            1_000_000..1_000_000_000 => return f.write_str(&fraction(1_000_000, "ms")),
            _ => {}
        }
        let seconds = nanoseconds / 1_000_000_000;
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        f.write_str(sign)?;
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if seconds >= 60 {
            write!(f, "{minutes}m")?;
        }
        let rest = nanoseconds % 60_000_000_000;
        let text = format!("{:.9}", rest as f64 / 1e9);
        write!(f, "{}s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (text, written) in [
            ("0s", "0s"),
            ("1m", "1m0s"),
            ("90s", "1m30s"),
            ("1h", "1h0m0s"),
            ("500ms", "500ms"),
            ("1500ms", "1.5s"),
            ("2s", "2s"),
            ("-5s", "-5s"),
            ("10s", "10s"),
            ("20m", "20m0s"),
            ("7us", "7µs"),
            ("7ns", "7ns"),
        ] {
            assert_eq!(Duration::parse(text).unwrap().to_string(), written);
        }
    }
}
