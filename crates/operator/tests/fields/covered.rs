//! Which rows of the table of fields a test edits on a node.

use std::collections::BTreeSet;

use keelson_operator::node::fields::FIELDS;

/// Tests, each with the rows it edits. That there is such a test is the compiler's to see.
pub(crate) type Covered = &'static [(fn(), &'static [&'static str])];

/// Whether the rows this holds of are those the tests edit: a sentence for each that is not.
pub(crate) fn missing(tests: &[Covered], is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let edited = tests.iter().copied().flatten();
    let edited: BTreeSet<&str> = edited.flat_map(|(_, rows)| *rows).copied().collect();
    let rows = FIELDS.iter().map(|it| it.path).filter(|it| is_meant(it));
    let rows: BTreeSet<&str> = rows.collect();
    let untested = rows.difference(&edited);
    let untested = untested.map(|row| format!("no test edits {row}"));
    let unknown = edited.difference(&rows);
    untested
        .chain(unknown.map(|row| format!("the table has no row {row}")))
        .collect()
}
