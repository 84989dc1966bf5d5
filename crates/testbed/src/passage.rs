//! Passages of documents that a test holds true: what stands between two marks is what was seen.
//!
//! With `KEELSON_WRITE_DOCS=1` the passage is written instead. Commands and what they print are for
//! [`Transcript`](crate::Transcript).

use std::path::Path;

/// Holds the passage of this name, in a page below the checkout, to a text of whole lines.
///
/// # Panics
/// When the page says something else, or has no such passage.
pub fn passage(page: &str, name: &str, text: &str) {
    let file = crate::cache::checkout().join(page);
    let before = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{page} could not be read: {error}"));
    let after = replaced(&before, name, text)
        .unwrap_or_else(|| panic!("{page} has no marks of a passage named {name}"));
    if std::env::var_os("KEELSON_WRITE_DOCS").is_some() {
        write(&file, &after);
        return;
    }
    assert!(
        before == after,
        "{page} does not say what was seen; KEELSON_WRITE_DOCS=1 writes it:\n{text}"
    );
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("a page that can be written");
}

/// The page with this text in the passage; none where its marks are missing.
fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- {name}: written by the test -->\n");
    let end = format!("<!-- end of {name} -->\n");
    let (head, rest) = page.split_once(&begin)?;
    let (_, tail) = rest.split_once(&end)?;
    Some(format!("{head}{begin}{text}{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- it: written by the test -->\nold\n<!-- end of it -->\nb\n";
        let new = "a\n<!-- it: written by the test -->\nnew\n<!-- end of it -->\nb\n";
        assert_eq!(replaced(page, "it", "new\n").as_deref(), Some(new));
        assert_eq!(replaced(page, "other", "new\n"), None);
    }
}
