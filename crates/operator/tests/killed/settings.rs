//! A program that is told too little does not start.

use crate::process::{VARIABLES, command};

#[tokio::test]
async fn without_its_variables_it_names_all_of_them_sorted_and_ends_with_code_two() {
    let ended = command().output().await.expect("an end");
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).expect("text");
    let said = said.trim().trim_start_matches("keelson-operator: ");
    let named = said.lines().map(|line| line.split(' ').next());
    let named: Vec<_> = named.flatten().collect();
    let mut names: Vec<_> = VARIABLES.iter().map(|(name, _)| *name).collect();
    names.push("POD_NAMESPACE");
    names.sort_unstable();
    assert_eq!(named, names, "{said}");
}
