//! Changes that cost the host something it had, as the original's tests try them, and are undone: with
//! what a checkpoint leaves behind.

use crate::common::homes::SOON;
use crate::member::{Member, Told, message};
use crate::world::World;
use keelson_api::host_condition::EnactmentCondition::{Available, Failing};
use keelson_host::handler::journal::End;
use keelson_testbed::{DEVICE, until};
use serde_json::{Value, json};

/// A host that has its address, its way out and its name server from DHCP.
async fn leased(world: &World) -> Member {
    let host = world.host().await;
    let nmcli = |words: &str| host.host.run(&format!("nmcli {words}")).expect("nmcli");
    nmcli(&format!(
        "connection modify {DEVICE} ipv4.method auto ipv4.addresses  ipv4.gateway "
    ));
    nmcli(&format!("connection up {DEVICE}"));
    host.host.connected(DEVICE).await.expect("a lease");
    host
}

/// A NIC that goes on having its lease.
fn nic(more: Value) -> Value {
    let mut nic = json!({
        "name": DEVICE, "type": "ethernet", "state": "up",
        "ipv4": {"enabled": true, "dhcp": true},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        match (key.as_str(), value.as_object()) {
            ("ipv4", Some(members)) => {
                for (key, value) in members {
                    nic["ipv4"][key] = value.clone();
                }
            }
            _ => nic[key] = value.clone(),
        }
    }
    nic
}

/// What is asked for, and whose silence undoes it.
fn losses(gateway: &str) -> Vec<(Value, &'static str)> {
    vec![
        // A way out that leads nowhere, before the one that does; and a name no checkpoint takes back.
        (
            json!({
                "interfaces": [nic(json!({"alt-names": [{"name": "uplink"}]}))],
                "routes": {"config": [{
                    "destination": "0.0.0.0/0", "next-hop-address": gateway,
                    "next-hop-interface": DEVICE, "table-id": 254, "metric": 5,
                }]},
            }),
            "the default gateway did not answer after the change",
        ),
        // No name servers.
        (
            json!({"interfaces": [nic(json!({"ipv4": {"auto-dns": false}}))]}),
            "the name servers did not answer after the change",
        ),
        // Name servers on the link that nobody is.
        (
            json!({
                "interfaces": [nic(json!({"ipv4": {"auto-dns": false}}))],
                "dns-resolver": {"config": {"server": [format!("fe80::deef:1%{DEVICE}")]}},
            }),
            "the name servers did not answer after the change",
        ),
        // A name server for everything that nobody is, which no checkpoint takes back either.
        (
            json!({"dns-resolver": {"config": {
                "server": ["192.168.100.3"], "search": ["example.com"],
            }}}),
            "the name servers did not answer after the change",
        ),
    ]
}

/// What DNS and other names are like, which profiles do not tell.
fn beside(host: &Member) -> Value {
    let dns = host.property("GlobalDnsConfiguration");
    let link = host
        .host
        .run(&format!("ip link show {DEVICE}"))
        .expect("a link");
    let names: Vec<&str> = link.lines().filter(|it| it.contains("altname")).collect();
    let files = host
        .host
        .inside(|| std::fs::read_dir("/etc/systemd/network").map(Iterator::count));
    json!({"dns": dns, "names": names, "files": files.unwrap_or(0)})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_costs_the_gateway_or_the_name_servers_is_undone_with_what_a_checkpoint_leaves()
 {
    let world = World::new("losses").await;
    let host = leased(&world).await;
    let (before, aside) = (host.snapshot(), beside(&host));
    let told = Told {
        probes: 3,
        ask_the_switch: false,
        ..Told::default()
    };
    let _handler = host.start(told);
    let [a, b, c, _] = world.network.address().octets();
    let mut policy: Option<String> = None;
    for (generation, (desired, why)) in (1..).zip(losses(&format!("{a}.{b}.{c}.254"))) {
        match &policy {
            None => policy = Some(world.policy("loss", &desired).await),
            Some(policy) => world.edit(policy, &desired).await,
        }
        let policy = policy.as_ref().expect("a policy");
        let status = host.comes_to_where(policy, Failing, |it| {
            it.policy_generation == Some(generation)
        });
        let said = message(&status.await, Failing).to_owned();
        assert!(said.contains(why), "{said}");
        let entry = host.closed().await;
        assert_eq!(
            (entry.policy.generation, entry.end),
            (generation, Some(End::Undone))
        );
        // Leases come when they come.
        until("the network of before", SOON, async || {
            let differences = host.snapshot().differences(&before);
            match differences.is_empty() && beside(&host) == aside {
                true => Ok(()),
                false => Err(format!("{differences:#?} {} {aside}", beside(&host))),
            }
        })
        .await
        .unwrap_or_else(|error| panic!("{generation}: {error}\n{}", host.log(30)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_out_in_another_table_on_another_nic_stays() {
    let world = World::new("table").await;
    let host = world.host().await;
    host.host.plug("eth1").expect("a cable");
    let _handler = host.start(Told::default());
    let desired = json!({
        "interfaces": [{
            "name": "eth1", "type": "ethernet", "state": "up",
            "ipv4": {
                "enabled": true, "dhcp": false,
                "address": [{"ip": "198.51.100.5", "prefix-length": 24}],
            },
        }],
        "routes": {"config": [{
            "destination": "0.0.0.0/0", "next-hop-address": "198.51.100.254",
            "next-hop-interface": "eth1", "table-id": 200,
        }]},
    });
    let policy = world.policy("table", &desired).await;
    host.comes_to(&policy, Available).await;
    let entry = host.closed().await;
    assert_eq!(entry.end, Some(End::Kept));
    assert!(
        !host.checkpoints().contains("/Checkpoint/"),
        "nobody undoes it later"
    );
    let routes = host.host.run("ip route show table 200").expect("routes");
    assert!(
        routes.contains("default via 198.51.100.254 dev eth1"),
        "{routes}"
    );
}
