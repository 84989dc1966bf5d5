//! Spans of time as Go writes and reads them, because seid does.
//!
//! `168h0m0s`, `1m0s`, `100ms`, `0s`: what is written here is what seid's own library would write, to
//! the letter, and what it reads is read here.

use std::fmt;
use std::str::FromStr;

/// A span of time in nanoseconds; may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(i64);

/// A text that is no span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write a number and a unit, for example 10s, 100ms or 168h")]
pub struct BadDuration(pub String);

const NANOSECOND: i128 = 1;
const MICROSECOND: i128 = 1_000;
const MILLISECOND: i128 = 1_000_000;
const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;

impl Duration {
    /// Nanoseconds.
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// The span of so many nanoseconds.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }
}

impl FromStr for Duration {
    type Err = BadDuration;

    fn from_str(text: &str) -> Result<Self, BadDuration> {
        let bad = || BadDuration(text.to_owned());
        let (sign, rest) = match text.as_bytes().first() {
            Some(b'-') => (-1, &text[1..]),
            Some(b'+') => (1, &text[1..]),
            _ => (1, text),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        let total = terms(rest).ok_or_else(bad)?;
        i64::try_from(sign * total).map(Self).map_err(|_| bad())
    }
}

/// The sum of one or more terms such as `1h` and `30.5s`.
fn terms(mut rest: &str) -> Option<i128> {
    let mut total: i128 = 0;
    loop {
        let end = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let (number, behind) = rest.split_at(end);
        let unit_end = behind
            .find(|sign: char| sign.is_ascii_digit() || sign == '.')
            .unwrap_or(behind.len());
        let (unit, next) = behind.split_at(unit_end);
        total = total.checked_add(term(number, unit_of(unit)?)?)?;
        if next.is_empty() {
            return Some(total);
        }
        rest = next;
    }
}

fn term(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // More digits than a 64-bit number has are out of range, or below a nanosecond, whatever the unit.
    let whole: i128 = if whole.is_empty() {
        0
    } else if whole.len() > 20 {
        return None;
    } else {
        whole.parse().ok()?
    };
    let (mut part, mut scale): (i128, i128) = (0, 1);
    for digit in fraction.bytes().take(18) {
        part = part * 10 + i128::from(digit - b'0');
        scale *= 10;
    }
    Some(whole * unit + part * unit / scale)
}

fn unit_of(text: &str) -> Option<i128> {
    Some(match text {
        "ns" => NANOSECOND,
        // The micro sign, and the Greek letter that looks like it.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = i128::from(self.0).abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        if span == 0 {
            return f.write_str("0s");
        }
        if span < SECOND {
            let (unit, name) = match span {
                _ if span < MICROSECOND => (NANOSECOND, "ns"),
                _ if span < MILLISECOND => (MICROSECOND, "\u{b5}s"),
                _ => (MILLISECOND, "ms"),
            };
            return write!(f, "{sign}{}{name}", decimal(span, unit));
        }
        write!(f, "{sign}")?;
        let (hours, minutes) = (span / HOUR, span % HOUR / MINUTE);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", decimal(span % MINUTE, SECOND))
    }
}

/// The span in this unit, with as many digits behind the point as it takes.
fn decimal(span: i128, unit: i128) -> String {
    let (whole, rest) = (span / unit, span % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = usize::try_from(unit.ilog10()).unwrap_or(0);
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_are_written_as_go_writes_them() {
        for (read, written) in [
            ("0", "0s"),
            ("-0", "0s"),
            ("168h", "168h0m0s"),
            ("60s", "1m0s"),
            ("5m", "5m0s"),
            ("100ms", "100ms"),
            ("2000ms", "2s"),
            ("1500ms", "1.5s"),
            ("1h30m", "1h30m0s"),
            ("1h0m30.5s", "1h0m30.5s"),
            ("1.5h", "1h30m0s"),
            (".5s", "500ms"),
            ("5.s", "5s"),
            ("1us", "1\u{b5}s"),
            ("1\u{b5}s", "1\u{b5}s"),
            ("1\u{3bc}s", "1\u{b5}s"),
            ("1500ns", "1.5\u{b5}s"),
            ("7ns", "7ns"),
            ("-2s", "-2s"),
            ("+2s", "2s"),
        ] {
            let span: Duration = read.parse().expect(read);
            assert_eq!(span.to_string(), written, "{read}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused_with_an_example() {
        for text in [
            "",
            "10",
            "s",
            "1",
            "1x",
            "1s ",
            " 1s",
            "1..5s",
            ".s",
            "-",
            "10s5",
            "3000000h",
            "1d",
            "99999999999999999999999s",
        ] {
            let error = text.parse::<Duration>().expect_err(text);
            assert!(error.to_string().contains("for example 10s"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn every_span_survives_being_written_and_read(nanoseconds: i64) {
            let span = Duration(nanoseconds);
            // The one span without a positive twin is beyond what Go reads back, too.
            prop_assume!(nanoseconds != i64::MIN);
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }
    }
}
