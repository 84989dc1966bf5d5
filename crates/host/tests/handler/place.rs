//! Where in a state something is that cannot be read.

use keelson_host::handler::state::place::unreadable;
use serde_json::{Value, json};

use crate::state as given;

#[test]
fn what_cannot_be_read_is_named_by_its_place() {
    let placed = |text: Value| unreadable(&given(text));
    let good = json!({"name": "br1", "type": "linux-bridge", "state": "up"});
    assert_eq!(placed(json!({"interfaces": [good]})), None);
    let bad = json!({"name": "br2", "type": "linux-bridge", "mtu": "large"});
    let second = placed(json!({"interfaces": [good, bad]}));
    assert_eq!(second.as_deref(), Some("interfaces[1] (br2)"));
    let route = json!({"destination": "0.0.0.0/0", "metric": "low"});
    let route = placed(json!({"interfaces": [good], "routes": {"config": [route]}}));
    assert_eq!(route.as_deref(), Some("routes.config[0]"));
    // What is filled in later cannot be read yet.
    let filled = json!({"name": "br2", "type": "linux-bridge", "ipv4": "{{ capture.nic.ipv4 }}"});
    assert_eq!(placed(json!({"interfaces": [filled]})), None);
}
