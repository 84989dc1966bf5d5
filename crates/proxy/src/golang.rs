//! The corners of Go's standard library that users of kube-rbac-proxy can see: how it reads
//! numbers, durations and comma-separated lists, and what it says when it cannot.
//!
//! Only what the flags and the configuration file need, each held to Go's own answers by the corpus
//! under `tests/corpus`. Anything about HTTP lives with the thing it is about.

mod duration;
mod list;
mod number;

pub use duration::Duration;
pub use list::list;
pub(crate) use number::{digits, shortest};
pub use number::{float32, integer, unsigned};

/// Go's `%q`: the form in which Go names a value in its messages.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        push_printable(c, &mut out);
    }
    out.push('"');
    out
}

/// The text with Go's escapes for control characters, so that it is one line of a log.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push_printable(c, &mut out);
    }
    out
}

fn push_printable(c: char, out: &mut String) {
    match c {
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push(c),
    }
}

/// Go's `%q` of a slice of strings.
pub fn quote_all(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

/// `strconv.ParseBool`.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!(
            "strconv.ParseBool: parsing {}: invalid syntax",
            quote(text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_escapes_as_go_does() {
        for (text, quoted) in [
            ("", r#""""#),
            ("plain é", r#""plain é""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\n\t\x07\x01\x7f", r#""\n\t\a\x01\x7f""#),
            ("\u{85}", r#""\u0085""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
        assert_eq!(one_line("a\n\"b\"\u{85}"), "a\\n\"b\"\\u0085");
        assert_eq!(quote_all(&["a".into(), "b c".into()]), r#"["a" "b c"]"#);
    }
}
