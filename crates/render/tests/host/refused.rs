//! What no objects are made of, and how it is said.

use keelson_render::host::objects;
use serde_json::json;

use super::world::{plain, spec, vanilla};

fn refused(address: &str) -> String {
    let asked = spec(json!({"metricsConfiguration": {"bindAddress": address}}));
    let refused = objects(&vanilla(&asked)).expect_err("a refusal");
    refused.to_string()
}

#[test]
fn an_address_that_is_none_is_refused_with_what_to_write_instead() {
    for address in ["8443", ":", ":0", ":99999", "localhost:8443", "10.0.0.1"] {
        let said = refused(address);
        assert!(
            said.contains(address) && said.contains("\":8443\""),
            "{said}"
        );
    }
}

#[test]
fn the_port_of_health_is_not_given_to_metrics() {
    assert!(refused(":8081").contains("port of health: use another"));
}

#[test]
fn an_installation_with_nothing_in_a_place_is_refused_by_the_name_of_the_place() {
    let asked = plain();
    let mut install = vanilla(&asked);
    install.image = "";
    let said = objects(&install).expect_err("a refusal").to_string();
    assert_eq!(said, "the image of the installation is empty: set it");
}
