//! What both benches do alike: run programs, count what they cost, sum up rounds, judge, and renew a
//! page. What is measured, and beside what, is each bench's own.

pub mod checkout;
pub mod machine;
pub mod page;
pub mod process;
pub mod program;
pub mod rounds;
pub mod statistics;
pub mod verdict;

use std::io::Write;

/// A line for the person who waits.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
