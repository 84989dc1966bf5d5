//! A page whose measured part stands between two marks, and the tables in it. What stands around the
//! marks is written by hand.

use anyhow::anyhow;
use std::fmt::Write;

const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->\n";

/// The page with what stands between its marks replaced.
pub fn renewed(page: &str, measured: &str) -> anyhow::Result<String> {
    let missing = |mark: &str| anyhow!("the document has no line {}", mark.trim_end());
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}{measured}{END}{after}"))
}

/// What was not measured is a dash.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// The head of a table.
pub fn header<const N: usize>(out: &mut String, first: &str, titles: [&str; N]) {
    line(out, first, titles.map(str::to_owned));
    line(out, "---", titles.map(|_| "---:".to_owned()));
}

/// A line of a table.
pub fn line<const N: usize>(out: &mut String, first: &str, cells: [String; N]) {
    let _ = writeln!(out, "| {first} | {} |", cells.join(" | "));
}

/// Bytes as millions of them.
pub fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        let renewed = renewed(&page, "new\n").expect("a page");
        assert_eq!(renewed, format!("before\n{BEGIN}new\n{END}after\n"));
    }

    #[test]
    fn a_document_without_marks_is_refused_by_name() {
        let refused = renewed("nothing", "new\n").expect_err("a refusal");
        assert_eq!(
            refused.to_string(),
            "the document has no line <!-- measured: begin -->"
        );
    }
}
