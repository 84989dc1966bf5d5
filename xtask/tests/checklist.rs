//! The checklists of operator and handler name tests that exist, and have a row for every line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("a workspace").to_owned()
}

/// The names of all functions in the tests and sources of the workspace.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let words = text.split("fn ").skip(1);
            let names = words.filter_map(|it| it.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

fn numbered(group: &str, count: u32) -> Vec<String> {
    let numbers = 1..=count;
    numbers.map(|number| format!("{group}{number}")).collect()
}

/// The lines of the operator's checklist.
fn of_the_operator() -> Vec<String> {
    let never = [25, 27, 44, 46];
    let findings = (1..=62).filter(|number| !never.contains(number));
    [
        numbered("N", 23),
        numbered("T", 17),
        numbered("E", 9),
        numbered("R", 14),
        numbered("P", 14),
        numbered("K", 6),
        numbered("C", 7),
        findings.map(|number| format!("F-{number:02}")).collect(),
    ]
    .concat()
}

/// The lines of the handler's checklist.
fn of_the_handler() -> Vec<String> {
    [numbered("H", 18), numbered("R", 7), numbered("E", 15)].concat()
}

/// What stands in backquotes and looks like the name of a test.
fn named(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_name = |it: &&str| {
        it.matches('_').count() >= 2
            && it
                .chars()
                .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_')
    };
    quoted.filter(is_name).collect()
}

/// What is wrong with a checklist that has to have these lines.
fn flaws(text: &str, lines: &[String], known: &BTreeSet<String>) -> Vec<String> {
    let mut flaws = Vec::new();
    let rows: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
        .collect();
    for line in lines {
        let of_line: Vec<_> = rows.iter().filter(|(name, _)| name == line).collect();
        match of_line.as_slice() {
            [(_, row)] => {
                let answer = row.split_once(" | ").map_or("", |it| it.1);
                if answer.trim_matches([' ', '|']).is_empty() {
                    flaws.push(format!("{line} has neither a test nor a reason"));
                }
            }
            rows => flaws.push(format!("{line} has {} rows", rows.len())),
        }
    }
    let missing = named(text).into_iter().filter(|it| !known.contains(*it));
    flaws.extend(missing.map(|it| format!("there is no test {it}")));
    flaws
}

#[test]
fn a_checklist_is_whole_and_every_test_it_names_is_there() {
    let root = root();
    let mut known = BTreeSet::new();
    functions(&root.join("crates"), &mut known);
    functions(&root.join("xtask/tests"), &mut known);
    for (file, lines, names) in [
        ("operator-checklist.md", of_the_operator(), 150),
        ("handler-checklist.md", of_the_handler(), 50),
    ] {
        let path = root.join("docs").join(file);
        let text = fs::read_to_string(path).expect("the checklist");
        let found = flaws(&text, &lines, &known);
        assert!(found.is_empty(), "{file}:\n{}", found.join("\n"));
        assert!(named(&text).len() > names, "{file} was not really read");
    }
}

#[test]
fn a_test_that_is_gone_and_a_line_that_is_missing_are_found() {
    let lines = of_the_operator();
    let flaws = |text: &str, known: &BTreeSet<String>| flaws(text, &lines, known);
    let rows: String = lines
        .iter()
        .map(|line| format!("| {line} | asks | `a_test_that_is_there` |\n"))
        .collect();
    let known = BTreeSet::from(["a_test_that_is_there".to_owned()]);
    assert_eq!(flaws(&rows, &known), Vec::<String>::new());
    let other = rows.replacen("a_test_that_is_there", "a_test_that_is_gone", 1);
    assert_eq!(
        flaws(&other, &known),
        ["there is no test a_test_that_is_gone"]
    );
    let less = rows.replace("| N7 | asks | `a_test_that_is_there` |\n", "");
    assert_eq!(flaws(&less, &known), ["N7 has 0 rows"]);
    let empty = rows.replace("| N7 | asks | `a_test_that_is_there` |", "| N7 | asks |  |");
    assert_eq!(
        flaws(&empty, &known),
        ["N7 has neither a test nor a reason"]
    );
}
