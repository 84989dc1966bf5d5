//! Quantities as numbers: `2000Gi` is a text on the wire, and whether one volume is as large as
//! another is a question about numbers.
//!
//! Exact down to a billionth, as the API server is; what is finer is rounded up, and what is larger
//! than any volume is as large as can be told. Writing quantities is for who has one.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// An amount, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

const BILLION: i128 = 1_000_000_000;

/// The largest power of ten that is told apart from a larger one.
const LARGEST: u32 = 27;

/// Suffixes of powers of 1024.
const BINARY: [(&str, u32); 6] = [
    ("Ki", 1),
    ("Mi", 2),
    ("Gi", 3),
    ("Ti", 4),
    ("Pi", 5),
    ("Ei", 6),
];

/// Suffixes of powers of ten, in billionths.
const DECIMAL: [(&str, u32); 10] = [
    ("n", 0),
    ("u", 3),
    ("m", 6),
    ("", 9),
    ("k", 12),
    ("M", 15),
    ("G", 18),
    ("T", 21),
    ("P", 24),
    ("E", 27),
];

impl Amount {
    /// The amount a quantity says, or nothing where it is none.
    pub fn of(quantity: &Quantity) -> Option<Self> {
        Self::parse(&quantity.0)
    }

    /// The amount a text says: an optional sign, digits with at most one point, and one suffix.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, suffix) = rest.split_at(end.unwrap_or(rest.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let amount = scaled(whole, fraction, unit(suffix)?);
        Some(Self(if negative { -amount } else { amount }))
    }

    /// Whether it is more than nothing.
    pub fn is_positive(self) -> bool {
        self.0 > 0
    }
}

/// What one of a suffix is: billionths, and tenths to add or take away.
enum Unit {
    Billionths(i128),
    PowerOfTen(i64),
}

fn unit(suffix: &str) -> Option<Unit> {
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit::Billionths(BILLION << (10 * power)));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit::Billionths(10_i128.pow(*power)));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let known =
        !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit());
    known
        .then(|| exponent.parse().ok())
        .flatten()
        .map(|exponent: i64| Unit::PowerOfTen(exponent + 9))
}

/// Digits before and after the point, times the unit, rounded up.
fn scaled(whole: &str, fraction: &str, unit: Unit) -> i128 {
    // Digits behind the thirtieth place are less than a billionth of the largest unit.
    let fraction = &fraction[..fraction.len().min(30)];
    let (one, shift) = match unit {
        Unit::Billionths(one) => (one, 0),
        Unit::PowerOfTen(power) => (1, power),
    };
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let Ok(number) = digits.parse::<i128>() else {
        return i128::MAX;
    };
    let number = number.saturating_mul(one);
    let shift = shift - i64::try_from(fraction.len()).unwrap_or(0);
    match u32::try_from(shift.unsigned_abs()) {
        Ok(power) if shift >= 0 && power <= LARGEST => number.saturating_mul(10_i128.pow(power)),
        Ok(power) if shift < 0 && power <= 38 => {
            let divisor = 10_i128.pow(power);
            number / divisor + i128::from(number % divisor != 0)
        }
        _ if shift < 0 => 1,
        _ => i128::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn billionths(text: &str) -> Option<i128> {
        Amount::parse(text).map(|amount| amount.0)
    }

    #[test]
    fn a_quantity_is_the_number_the_api_server_takes_it_for() {
        for (text, expected) in [
            ("0", 0),
            ("4", 4 * BILLION),
            ("+4", 4 * BILLION),
            ("-4", -4 * BILLION),
            ("100m", BILLION / 10),
            ("0.1", BILLION / 10),
            (".5", BILLION / 2),
            ("5.", 5 * BILLION),
            ("1500u", BILLION * 3 / 2000),
            ("7n", 7),
            ("0.1n", 1),
            ("2000Gi", 2000 * (BILLION << 30)),
            ("1.5Gi", (BILLION << 30) * 3 / 2),
            ("40Ti", 40 * (BILLION << 40)),
            ("1Ei", BILLION << 60),
            ("1k", 1000 * BILLION),
            ("12e6", 12_000_000 * BILLION),
            ("12E6", 12_000_000 * BILLION),
            ("1e-3", BILLION / 1000),
            ("1e-30", 1),
            ("2E", 2 * 10_i128.pow(27)),
            ("9e400", i128::MAX),
            ("99999999999999999999999999999999999999999", i128::MAX),
        ] {
            assert_eq!(billionths(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for text in [
            "", " ", "-", ".", "Gi", "2000Gx", "1 Gi", " 1", "1.2.3", "2e", "2e+", "1KI", "0x10",
            "1e1.5", "1_000", "--1", "é", "1é", "e3",
        ] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }

    #[test]
    fn the_same_amount_in_other_words_is_equal_and_a_larger_one_is_larger() {
        let amount = |text| Amount::parse(text).expect("a quantity");
        assert_eq!(amount("1Ki"), amount("1024"));
        assert_eq!(amount("1000m"), amount("1"));
        assert!(amount("2Ti") > amount("2T"));
        assert!(amount("1n").is_positive());
        assert!(!amount("0.000").is_positive());
        assert!(!amount("-1").is_positive());
    }
}
