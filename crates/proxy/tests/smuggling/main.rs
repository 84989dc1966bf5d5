//! Requests made to be read in two ways, by the byte, through the program itself: each is refused or
//! passed on in the one reading that was checked.
//!
//! The rows are the table of `docs/proxy-request-hygiene.md`; a test keeps the two the same. With
//! `KEELSON_WRITE_DOCS=1` that test writes the file.

#[path = "../common/mod.rs"]
mod common;
mod frames;
mod framing;
mod heads;
mod http2;
mod identity;
mod row;
mod stage;
mod targets;
mod upstream;

use row::Row;
use stage::{Setup, Stage};

/// A chapter of the table.
struct Topic {
    title: &'static str,
    setup: Setup,
    rows: Vec<Row>,
}

fn topics() -> [Topic; 7] {
    let topic = |title, rows| Topic {
        title,
        setup: Setup::default(),
        rows,
    };
    [
        topic("Where a body ends", framing::rows()),
        topic("Heads", heads::rows()),
        Topic {
            setup: Setup {
                flags: &["--max-header-bytes=131072"],
                ..Setup::default()
            },
            ..topic("Heads, with `--max-header-bytes=131072`", heads::large())
        },
        topic("Targets, hosts and methods", targets::rows()),
        topic("Identity and hop-by-hop headers", identity::rows()),
        Topic {
            setup: Setup {
                config: TENANTS,
                ..Setup::default()
            },
            ..topic(
                "A header that is checked (`rewrites.byHttpHeader`)",
                identity::tenants(),
            )
        },
        topic("HTTP/2", http2::rows()),
    ]
}

/// The tenant of a request is what `X-Tenant` says.
const TENANTS: &str = "\
authorization:
  rewrites:
    byHttpHeader:
      name: X-Tenant
  resourceAttributes:
    resource: things
    namespace: '{{ .Value }}'
  static:
  - resourceRequest: true
    resource: things
    namespace: a
";

async fn holds(title: &str) {
    let topic = topics().into_iter().find(|topic| topic.title == title);
    let topic = topic.expect("a topic");
    let stage = Stage::new(topic.setup).await;
    let wrong: Vec<String> = topic
        .rows
        .iter()
        .filter_map(|row| stage.play(row).err())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} rows of {title:?}:\n{}",
        wrong.len(),
        topic.rows.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn a_body_ends_where_everybody_sees_it_end() {
    holds("Where a body ends").await;
}

#[tokio::test]
async fn a_head_has_one_reading() {
    holds("Heads").await;
    holds("Heads, with `--max-header-bytes=131072`").await;
}

#[tokio::test]
async fn a_target_names_one_place() {
    holds("Targets, hosts and methods").await;
}

#[tokio::test]
async fn nobody_speaks_for_another_or_removes_what_we_say() {
    holds("Identity and hop-by-hop headers").await;
    holds("A header that is checked (`rewrites.byHttpHeader`)").await;
}

#[tokio::test]
async fn http2_is_turned_into_http1_without_a_second_meaning() {
    holds("HTTP/2").await;
}

#[test]
fn the_table_in_the_documentation_is_the_one_that_is_tested() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/proxy-request-hygiene.md"
    );
    let text = documentation();
    if std::env::var_os("KEELSON_WRITE_DOCS").is_some() {
        std::fs::write(file, &text).expect("a file that can be written");
    }
    let there = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        there == text,
        "docs/proxy-request-hygiene.md is not what is tested; KEELSON_WRITE_DOCS=1 writes it"
    );
}

fn documentation() -> String {
    let mut text = include_str!("preface.md").to_owned();
    for topic in topics() {
        text += &format!(
            "\n## {}\n| What arrives | What we do | Why |\n|---|---|---|\n",
            topic.title
        );
        for row in topic.rows {
            text += &row.documented();
            text.push('\n');
        }
    }
    text
}
