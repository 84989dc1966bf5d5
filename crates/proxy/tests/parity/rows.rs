//! Every row and where it is shown: a row nobody shows, and a place that is not there, fail.

use crate::case::{Group, Verdict};
use crate::{checklist, headers, outcomes, paths, protocol, rights};
use std::collections::BTreeSet;

/// Rows shown by a test of its own, in this program or, where both programs cannot be asked from
/// outside, elsewhere.
const SHOWN: &[(&str, &str, &str)] = &[
    ("1", "same", "a_plain_request_to_a_tls_port_is_told_so"),
    ("5", "elsewhere", "pure/paths.rs"), // patterns are checked at the start: nobody gets there
    ("8", "elsewhere", "pure/outcomes.rs"), // nobody gets there
    (
        "12",
        "same",
        "without_an_upstream_the_answer_is_502_and_empty",
    ),
    (
        "14",
        "differs",
        "a_template_that_cannot_be_read_ends_requests_there_and_the_start_here",
    ),
    (
        "A9",
        "differs",
        "a9_a_key_that_does_not_fit_ends_the_reference_and_not_ours",
    ),
    (
        "A10",
        "differs",
        "a10_a_configuration_without_authorization_ends_the_reference_and_not_ours",
    ),
    (
        "A11",
        "differs",
        "a11_an_unknown_key_is_told_and_not_passed_over",
    ),
    (
        "A13",
        "differs",
        "a13_half_a_head_is_waited_for_ten_seconds_and_not_for_ever",
    ),
    (
        "A13",
        "differs",
        "a13_the_last_requests_are_waited_for_as_long_as_is_said_and_not_for_ever",
    ),
    (
        "A14",
        "differs",
        "a14_five_questions_a_second_there_and_as_many_as_there_are_here",
    ),
    (
        "A15",
        "differs",
        "a15_two_connections_are_kept_there_and_all_of_them_here",
    ),
    (
        "A16",
        "differs",
        "a16_tls_of_2006_can_be_had_there_and_not_here",
    ),
    (
        "A18",
        "differs",
        "a18_a_certificate_of_its_own_is_rsa_there_and_p_256_here",
    ),
    (
        "A19",
        "differs",
        "a19_a_health_port_beside_a_plain_listener_is_served_here_and_not_there",
    ),
    (
        "A21",
        "differs",
        "a21_a_certificate_for_the_upstream_without_an_authority_is_not_passed_over",
    ),
    (
        "A22",
        "differs",
        "a22_a_token_is_believed_past_its_end_there_and_not_here",
    ),
    (
        "H2CUpstream",
        "same",
        "an_upstream_that_speaks_only_h2c_is_reached",
    ),
    (
        "TLS",
        "same",
        "every_floor_is_served_with_the_newest_version_both_know",
    ),
    ("HTTP2", "same", "http2_is_agreed_on_unless_it_is_disabled"),
    (
        "HTTP2",
        "same",
        "http2_comes_in_with_and_without_tls_and_goes_on_as_the_same_request",
    ),
    (
        "TokenMasking",
        "same",
        "a_token_is_masked_at_the_loudest_level",
    ),
    ("sei", "same", "a_probe_of_an_upstream_that_is_away_fails"),
    ("1.3", "same", "both_refuse_to_start_in_the_same_words"),
    (
        "5.",
        "same",
        "the_health_port_beside_a_secure_listener_answers_alike",
    ),
    (
        "6.",
        "same",
        "a_certificate_is_shown_to_an_upstream_that_asks_for_one",
    ),
];

const CHECKLIST: [&str; 11] = [
    "Basics",
    "H2CUpstream",
    "TokenAudience",
    "AllowPath",
    "IgnorePath",
    "TLS",
    "StaticAuthorizer",
    "HTTP2",
    "Flags",
    "TokenMasking",
    "sei",
];

fn groups() -> impl Iterator<Item = Group> {
    let all = [
        outcomes::groups(),
        headers::groups(),
        paths::groups(),
        rights::groups(),
        checklist::groups(),
        protocol::groups(),
    ];
    all.into_iter().flatten()
}

/// Row, what becomes of it, where; a line for each case and each test.
fn table() -> Vec<(String, String, String)> {
    let mut lines = Vec::new();
    for case in groups().flat_map(|group| group.cases) {
        let verdict = match &case.verdict {
            Verdict::Same(_) => "same".to_owned(),
            Verdict::Differs { restore: None, .. } => "differs".to_owned(),
            Verdict::Differs {
                restore: Some(flags),
                ..
            } => format!("differs, restored by {}", flags.join(" ")),
        };
        for row in case.row.split(' ') {
            lines.push((row.to_owned(), verdict.clone(), case.name.to_owned()));
        }
    }
    let shown = SHOWN.iter().map(|(row, verdict, by)| {
        let own = |text: &&str| (*text).to_owned();
        (own(row), own(verdict), own(by))
    });
    lines.extend(shown);
    lines
}

#[test]
fn every_row_is_shown() {
    let table = table();
    for (row, verdict, by) in &table {
        println!("{row} | {verdict} | {by}");
    }
    let shown: BTreeSet<&str> = table.iter().map(|(row, ..)| row.as_str()).collect();
    let outcomes = (1..=14).map(|number| number.to_string());
    let deviations = (1..=23).map(|number| format!("A{number}"));
    let checklist = CHECKLIST.iter().map(|it| (*it).to_owned());
    for row in outcomes.chain(deviations).chain(checklist) {
        assert!(shown.contains(row.as_str()), "nothing shows {row}");
    }
}

/// A difference that is ours by choice has the row that promises it, and is there at least once.
#[test]
fn every_deviation_is_shown_as_a_difference() {
    for number in 1..=23 {
        let row = format!("A{number}");
        let differs = |(at, verdict, _): &&(String, String, String)| {
            *at == row && verdict.starts_with("differs")
        };
        assert!(table().iter().any(|it| differs(&it)), "{row}");
    }
}

#[test]
fn every_test_that_is_named_is_there() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let sources: String = std::fs::read_dir(here.join("parity"))
        .expect("a folder")
        .flatten()
        .map(|file| std::fs::read_to_string(file.path()).expect("a file"))
        .collect();
    for (row, verdict, by) in SHOWN {
        let there = match *verdict {
            "elsewhere" => here.join(by).exists(),
            _ => sources.contains(&format!("async fn {by}()")),
        };
        assert!(there, "{row}: {by}");
    }
}
