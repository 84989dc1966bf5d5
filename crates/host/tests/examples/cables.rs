//! The NICs a policy needs. They lead to a network beside the switch's, where somebody answers DHCP if
//! the policy asks for it.

use crate::files::Example;
use keelson_testbed::{Host, Process};

/// What answers DHCP, with what it leases.
const DHCP: &str = "netns exec outside dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= \
     --user=root --dhcp-leasefile=/run/leases --bind-dynamic --port=0 --dhcp-authoritative \
     --dhcp-range=192.0.2.200,192.0.2.250,1h --dhcp-range=2001:db8:d::100,2001:db8:d::200,64,1h \
     --enable-ra --dhcp-option=option:dns-server,192.0.2.1";

/// What serves the networks of a host's NICs, as long as it is kept.
pub(crate) struct Servers(#[expect(dead_code, reason = "they end with it")] Vec<Process>);

/// Gives a host what a policy needs.
pub(crate) fn furnish(host: &Host, example: &Example) -> Servers {
    run(host, "ip netns add outside");
    run(host, "ip -n outside link set lo up");
    for nic in example.nics() {
        run(
            host,
            &format!("ip link add {nic} type veth peer name {nic} netns outside"),
        );
        run(host, &format!("ip -n outside link set {nic} up"));
    }
    let with_dhcp = example.nics_with_dhcp();
    Servers(with_dhcp.iter().map(|nic| serve(host, nic)).collect())
}

/// Has DHCP answered in the network of a NIC.
fn serve(host: &Host, nic: &str) -> Process {
    for address in ["192.0.2.1/24", "2001:db8:d::1/64"] {
        run(
            host,
            &format!("ip -n outside addr add {address} dev {nic} nodad"),
        );
    }
    let words = format!("{DHCP} --interface={nic}");
    let words = words.split_whitespace().map(str::to_owned).collect();
    let server = host.program("dnsmasq", "ip".into(), words, Vec::new());
    server.start().expect("a server for DHCP");
    server
}

fn run(host: &Host, words: &str) {
    host.run(words).expect(words);
}
