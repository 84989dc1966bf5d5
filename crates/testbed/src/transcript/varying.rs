//! What of a line is another one every time: ages, durations, heights, moments, numbers of volumes and
//! the names the API server makes up. Pure.

/// The line without it, and without the spaces that depend on it.
pub(super) fn without(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let last = line.split_whitespace().count().saturating_sub(1);
    for (place, word) in line.split_whitespace().enumerate() {
        match words.last().map(String::as_str) {
            // `2.3 s`, and `7 min 21 s`.
            Some(number) if word.trim_end_matches([',', '.']) == "s" && is_number(number) => {
                let so_far = words.len() - 1;
                words.truncate(so_far);
                if words.last().is_some_and(|it| it == "min") {
                    words.truncate(words.len().saturating_sub(2));
                }
                words.push("TIME".to_owned());
            }
            // A height is the last word of a node's line.
            Some("Running") if place == last && is_number(word) => words.push("HEIGHT".to_owned()),
            _ => words.push(
                word.split_inclusive(['"', ',', '/', ':', '(', ')'])
                    .map(part)
                    .collect(),
            ),
        }
    }
    words.join(" ")
}

/// A part of a word, with what ends it.
fn part(part: &str) -> String {
    let inner = part.trim_end_matches(['"', ',', '/', ':', '(', ')']);
    let end = &part[inner.len()..];
    let name = if is_age(inner) {
        "AGE"
    } else if is_uid(inner) {
        "UID"
    } else if inner.strip_prefix("local-").is_some_and(is_number) {
        "VOLUME"
    } else {
        inner
    };
    format!("{name}{end}")
}

fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

/// As kubectl writes one: `45s`, `3m12s`, `2d`.
fn is_age(word: &str) -> bool {
    let of_age = |it: u8| it.is_ascii_digit() || b"smhdy".contains(&it);
    word.starts_with(|it: char| it.is_ascii_digit())
        && word.ends_with(|it: char| it.is_ascii_alphabetic())
        && word.bytes().all(of_age)
}

fn is_uid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_another_every_time_does_not_count() {
        for (one, other) in [
            (
                "full-0   True    Running   12s",
                "full-0 True Running   3m4s",
            ),
            (
                "starting cluster local: 9.3 s",
                "starting cluster local: 1 min 12 s",
            ),
            (
                "is up, 41 s after you asked.",
                "is up, 7 min 21 s after you asked.",
            ),
            ("  full-0      Running   17", "  full-0      Running   1234"),
            ("data  Bound  local-3", "data  Bound  local-11"),
            (
                "{\"id\":\"0a1e8fc2-33cd-5a3b-a885-b454c1a4e8d7\"}",
                "{\"id\":\"b90fd599-c4d4-5709-b54a-fffa3dcf0f97\"}",
            ),
        ] {
            assert_eq!(without(one), without(other));
        }
    }

    #[test]
    fn everything_else_counts() {
        for (one, other) in [
            ("full-0 True Running 12s", "full-0 False Running 12s"),
            ("image localhost/seid:v6.0.0", "image localhost/seid:v6.1.0"),
            ("full-0-0 4/4 Running 0 5s", "full-0-0 4/4 Running 1 5s"),
            ("local-1 founded", "local-ca founded"),
            ("3 nodes make blocks", "2 nodes make blocks"),
        ] {
            assert_ne!(without(one), without(other));
        }
    }
}
