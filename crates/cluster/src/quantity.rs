//! Quantities (`500m`, `2Gi`) in the one way the API server writes them. Pure.
//!
//! The server reads `0.5`, `2048Mi` and `1e3` and writes `500m`, `2Gi` and `1e3`: the kind of suffix
//! stays, the number becomes whole and as small as it can. Arithmetic on quantities is nobody's
//! business here.

const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// By powers of a thousand, from a billionth.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// A billionth is the smallest there is.
const SCALE: i128 = 1_000_000_000;

/// The text as the server would write it; none where it is no quantity we can read exactly.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let end = text
        .char_indices()
        .find(|(index, c)| !(c.is_ascii_digit() || *c == '.' || (*index == 0 && "+-".contains(*c))))
        .map_or(text.len(), |(index, _)| index);
    let (number, suffix) = text.split_at_checked(end)?;
    let nanos = nanos(number)?;
    if nanos == 0 {
        // Zero keeps nothing of its suffix but the kind, and that does not show.
        return exponent(suffix).is_none().then(|| "0".to_owned());
    }
    if let Some(power) = BINARY.iter().skip(1).position(|known| *known == suffix) {
        return binary(nanos, power + 1);
    }
    let power = DECIMAL.iter().position(|known| *known == suffix)?;
    decimal(nanos, power)
}

/// Exponents (`1e3`) are left as they are written.
fn exponent(suffix: &str) -> Option<&str> {
    suffix
        .strip_prefix(['e', 'E'])
        .filter(|rest| !rest.is_empty())
}

/// A decimal number in billionths.
fn nanos(number: &str) -> Option<i128> {
    let (sign, digits) = match number.as_bytes().first()? {
        b'-' => (-1, &number[1..]),
        b'+' => (1, &number[1..]),
        _ => (1, number),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') || part.len() > 9 {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let part: i128 = format!("{part:0<9}").parse().ok()?;
    whole
        .checked_mul(SCALE)?
        .checked_add(part)?
        .checked_mul(sign)
}

fn binary(nanos: i128, power: usize) -> Option<String> {
    let mut nanos = nanos;
    for _ in 0..power {
        nanos = nanos.checked_mul(1024)?;
    }
    // Parts of a byte are the server's to round.
    let mut bytes = (nanos % SCALE == 0).then_some(nanos / SCALE)?;
    let mut power = 0;
    while bytes % 1024 == 0 && power + 1 < BINARY.len() {
        bytes /= 1024;
        power += 1;
    }
    Some(format!("{bytes}{}", BINARY[power]))
}

fn decimal(nanos: i128, power: usize) -> Option<String> {
    let mut number = nanos;
    for _ in 0..power {
        number = number.checked_mul(1000)?;
    }
    // `number` is now in billionths of the smallest suffix.
    let mut number = (number % SCALE == 0).then_some(number / SCALE)?;
    let mut power = 0;
    while number % 1000 == 0 && power + 1 < DECIMAL.len() {
        number /= 1000;
        power += 1;
    }
    Some(format!("{number}{}", DECIMAL[power]))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn quantities_are_written_as_the_api_server_writes_them() {
        for (sent, stored) in [
            ("4", "4"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("2048Mi", "2Gi"),
            ("2000Gi", "2000Gi"),
            ("40Ti", "40Ti"),
            ("1.5Gi", "1536Mi"),
            ("1000Mi", "1000Mi"),
            ("1000", "1k"),
            ("1000000", "1M"),
            ("0", "0"),
            ("0Gi", "0"),
            ("+1", "1"),
            (".5", "500m"),
        ] {
            assert_eq!(canonical(sent).as_deref(), Some(stored), "{sent}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_left_to_the_server() {
        for odd in ["", "Gi", "1.2.3", "1e3", "four", "1Xi", "0.0000000001", "-"] {
            assert_eq!(canonical(odd), None, "{odd}");
        }
    }
}
