//! Numbers, durations, lists and quotes, as Go has them.

use keelson_proxy::golang::{Duration, boolean, float32, integer, list, quote, unsigned};

/// The input is a value of any of these types.
pub fn golang(data: &[u8]) {
    let Some(text) = super::text(data) else {
        return;
    };
    durations(text);
    numbers(text);
    lists(text);
    quotes(text);
    assert_eq!(
        boolean(text).is_ok(),
        boolean(text.trim()).is_ok() && text.trim() == text
    );
}

fn durations(text: &str) {
    match (Duration::parse(text), exact(text)) {
        (Ok(duration), Some((nanoseconds, rounded))) => {
            let off = (i128::from(duration.0) - nanoseconds).abs();
            assert!(off <= rounded, "{text:?}: {duration:?}, not {nanoseconds}");
            let written = duration.to_string();
            assert_eq!(Duration::parse(&written), Ok(duration), "{written}");
        }
        (Err(error), expected) => {
            assert!(error.starts_with("time: "), "{error}");
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                // A number that no duration has is invalid before it lacks a unit.
                let fits = digits.parse::<u64>().is_ok_and(|number| number <= 1 << 63);
                assert_eq!(error.starts_with("time: missing unit"), fits, "{error}");
            }
            assert!(super::is_one_line(&error.replace('\x7f', "")), "{error:?}");
            // On the brink, a rounded sum may be on either side.
            let brink = |(sum, rounded): (i128, i128)| {
                sum + rounded > i128::from(i64::MAX) || sum - rounded < i128::from(i64::MIN)
            };
            assert!(expected.is_none_or(brink), "{text:?}: {error}");
        }
        (Ok(duration), None) => panic!("{text:?} is read as {duration:?}"),
    }
}

/// The sum of a duration's parts in nanoseconds, and by how much Go's floats may miss it. Nothing for
/// what is no duration.
fn exact(text: &str) -> Option<(i128, i128)> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some((0, 0));
    }
    let (mut sum, mut rounded) = (0i128, 0);
    let mut rest = unsigned;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, tail) = rest.split_at(digits(rest));
        let (fraction, tail) = match tail.strip_prefix('.') {
            Some(tail) => tail.split_at(digits(tail)),
            None => ("", tail),
        };
        let end = tail.find(|c: char| c == '.' || c.is_ascii_digit());
        let (unit, tail) = tail.split_at(end.unwrap_or(tail.len()));
        let scale = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        // A number of this many digits is over the brink, whatever they are.
        let whole = whole.trim_start_matches('0');
        let whole: i128 = if whole.is_empty() {
            "0"
        } else {
            &whole[..whole.len().min(21)]
        }
        .parse()
        .ok()?;
        let short = &fraction[..fraction.len().min(18)];
        let tenths: i128 = if short.is_empty() { "0" } else { short }.parse().ok()?;
        let places = u32::try_from(short.len()).ok()?;
        sum += whole * scale + tenths * scale / 10i128.pow(places);
        sum = sum.min(1 << 64);
        rounded += i128::from(!fraction.is_empty());
        rest = tail;
    }
    let sum = if text.starts_with('-') { -sum } else { sum };
    Some((sum, rounded))
}

fn numbers(text: &str) {
    let wide: Option<i64> = text.parse().ok();
    assert_eq!(integer(text, 10, 64).ok(), wide, "{text:?}");
    let narrow: Option<i32> = text.parse().ok();
    assert_eq!(
        integer(text, 10, 32).ok(),
        narrow.map(i64::from),
        "{text:?}"
    );
    // Go has no sign on what cannot have one.
    let natural: Option<u64> = text.parse().ok().filter(|_| !text.starts_with('+'));
    assert_eq!(unsigned(text, 10, 64).ok(), natural, "{text:?}");
    if let Ok(value) = integer(text, 0, 64) {
        let (sign, size) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
        for written in [
            format!("{sign}{size}"),
            format!("{sign}{size:#x}"),
            format!("{sign}{size:#o}"),
            format!("{sign}{size:#b}"),
            format!("{sign}0{size:o}"),
        ] {
            assert_eq!(integer(&written, 0, 64), Ok(value), "{written}");
        }
    }
    match float32(text) {
        Err(error) => assert!(super::is_one_line(&error), "{error:?}"),
        Ok(value) if value.is_nan() => assert!(text.eq_ignore_ascii_case("nan"), "{text:?}"),
        Ok(value) => assert_eq!(float32(&value.to_string()), Ok(value)),
    }
}

fn lists(text: &str) {
    // CSV cannot hold every line end.
    if !text.contains('\r') {
        let one = vec![text.to_owned()];
        assert_eq!(list(&super::flags::csv(&one)), Ok(one));
    }
    let items = list(text);
    if !text.contains(['"', '\r', '\n']) && !text.is_empty() {
        let plain: Vec<String> = text.split(',').map(str::to_owned).collect();
        assert_eq!(items.as_ref(), Ok(&plain), "{text:?}");
    }
    match items {
        Err(error) => assert!(super::is_one_line(&error), "{error:?}"),
        Ok(items) if items.iter().any(|item| item.contains('\r')) => {}
        Ok(items) => assert_eq!(list(&super::flags::csv(&items)), Ok(items)),
    }
}

/// A quoted text is a line and can be told from every other.
fn quotes(text: &str) {
    let quoted = quote(text);
    assert!(super::is_one_line(&quoted), "{quoted:?}");
    let inside = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let inside = inside.expect("quotes around it");
    assert_eq!(unquoted(inside).as_deref(), Some(text));
}

fn unquoted(inside: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = inside.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let escaped = rest.next()?;
        let mut code = |digits: usize| {
            let digits: String = rest.by_ref().take(digits).collect();
            u32::from_str_radix(&digits, 16)
                .ok()
                .and_then(char::from_u32)
        };
        out.push(match escaped {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => code(2)?,
            'u' => code(4)?,
            'U' => code(8)?,
            c => c,
        });
    }
    Some(out)
}
