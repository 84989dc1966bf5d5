//! What the metrics take for a hundred nodes and a thousand enactments, where the program that ships
//! is measured; else that more of them than a list has on a page are all counted.

use crate::common::client::Tls;
use crate::common::program::{Folder, PROMISED, shipped};
use crate::world::{cluster, enact, holds, page_is, put};
use futures::stream::{StreamExt, iter};
use keelson_api::NodeNetworkState;
use serde_json::{Value, json};

const POLICIES: usize = 10;

/// How many nodes there are. A page has twenty-five objects.
fn nodes() -> usize {
    if shipped().is_some() { 100 } else { 30 }
}

/// A host of some size: sixty interfaces, two hundred routes.
fn state() -> Value {
    let interfaces = (0..60).map(|number| {
        json!({"name": format!("eth{number}"), "type": if number % 3 == 0 { "vlan" } else { "ethernet" },
            "state": "up", "mtu": 1500, "mac-address": "02:00:00:00:00:01",
            "ipv4": {"enabled": true, "address": [{"ip": "10.0.0.1", "prefix-length": 24}]},
            "ipv6": {"enabled": false}, "lldp": {"enabled": false}})
    });
    let routes = (0..200).map(|number| {
        json!({"destination": format!("10.{number}.0.0/16"), "next-hop-address": "10.0.0.254",
            "next-hop-interface": "eth0", "metric": 100, "table-id": 254})
    });
    let (interfaces, routes): (Value, Value) = (interfaces.collect(), routes.collect());
    json!({"currentState": {"interfaces": interfaces, "routes": {"running": routes, "config": []}}})
}

#[tokio::test]
async fn many_nodes_with_ten_times_as_many_enactments_are_counted_in_little_memory() {
    let cluster = cluster().await;
    let client = cluster.client();
    let tls = Tls::of(cluster.authority());
    let words = ["metrics", "--metrics-auth=None"];
    let start = || Folder::certified(cluster.authority()).start_at(&cluster.kubeconfig(), &words);
    let watching = start();
    watching.healthy().await;
    let made = iter(0..nodes()).map(async |number| {
        let node = format!("memory-{number}");
        put::<NodeNetworkState>(&client, &node, json!({}), state()).await;
        for policy in 0..POLICIES {
            let status = json!({"conditions": holds("Available"),
                "features": ["static-route", "lldp", "mac-based-identifier"]});
            enact(&client, &node, &format!("policy-{policy}"), status).await;
        }
    });
    made.buffer_unordered(16).collect::<Vec<()>>().await;
    let listing = start();
    listing.healthy().await;
    for (what, program) in [("watched them come", watching), ("listed them", listing)] {
        let all_there = |page: &str| {
            let counted = page.lines().filter(|line| {
                line.starts_with("kubernetes_nmstate_enactments_status{node=\"memory-")
                    && line.ends_with("status=\"Available\"} 10")
            });
            let routes = page.lines().filter(|line| {
                line.starts_with("kubernetes_nmstate_routes{node=\"memory-")
                    && line.ends_with("ip_stack=\"ipv4\",type=\"dynamic\"} 200")
            });
            counted.count() == nodes() && routes.count() == nodes()
        };
        page_is(&program, &tls, "all of them", all_there).await;
        let resident = program.resident();
        println!("metrics that {what}: {resident} KiB resident");
        if shipped().is_some() {
            assert!(resident <= PROMISED, "{resident} KiB");
        }
    }
}
