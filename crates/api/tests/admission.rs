//! What the API server accepts and refuses: the schemas and their rules, judged by a real one.
//!
//! Each row applies an object, or applies one and then another over it, and says what must come of
//! it. All rows run, a few at a time, and all that go wrong are reported together.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "admission/fleet.rs"]
mod fleet;
#[path = "admission/nmstate.rs"]
mod nmstate;
#[path = "admission/node.rs"]
mod node;
#[path = "admission/served.rs"]
mod served;
#[path = "admission/table.rs"]
mod table;
#[path = "admission/validator.rs"]
mod validator;

#[tokio::test]
async fn nodes_are_accepted_and_refused_as_the_table_says() {
    table::run("nodes", [node::rows(), validator::rows()].concat()).await;
}

#[tokio::test]
async fn fleets_are_accepted_and_refused_as_the_table_says() {
    table::run("fleets", fleet::rows()).await;
}

#[tokio::test]
async fn host_objects_are_accepted_and_refused_as_the_table_says() {
    table::run("hosts", nmstate::rows()).await;
}

#[test]
fn the_tables_have_a_row_for_every_rule() {
    let rows = [
        node::rows(),
        validator::rows(),
        fleet::rows(),
        nmstate::rows(),
    ]
    .concat();
    assert!(rows.len() >= 90, "only {} rows", rows.len());
    table::assert_every_rule_refuses(&rows);
}
