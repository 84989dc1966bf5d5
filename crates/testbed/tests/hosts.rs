//! Hosts of the network tests: what they are, what a test can do to them, and that they leave nothing.

use futures::future::try_join_all;
use keelson_testbed::{Cluster, DEVICE, Host, Network, Resolver};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Long enough for an answer on one machine, short enough to wait for none.
const SOON: Duration = Duration::from_secs(2);

fn devices_of(host: &Host) -> Vec<String> {
    let shown = host.run("ls /sys/class/net").expect("a listing");
    let mut devices: Vec<String> = shown.split_whitespace().map(str::to_owned).collect();
    devices.sort();
    devices
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_hosts_run_side_by_side_and_each_has_a_network_of_its_own() {
    let network = Network::bare().expect("a switch");
    let door = network.listen().expect("a listener");
    let address = door.local_addr().expect("its address");
    let begun = Instant::now();
    let hosts = try_join_all((0..10).map(|_| Host::start(&network)));
    let hosts = hosts.await.expect("ten hosts");
    println!("ten hosts were on the network after {:?}", begun.elapsed());
    for host in &hosts {
        assert_eq!(devices_of(host), [DEVICE, "lo"], "nothing of the machine's");
        host.reaches(address, SOON).expect("the way to the switch");
        // The options of a bridge are files of this sysfs, and the host may write them.
        host.run("ip link add br0 type bridge").expect("a bridge");
        let options = "/sys/devices/virtual/net/br0/bridge/stp_state";
        host.inside(move || std::fs::write(options, "1"))
            .expect("an option");
    }
    let folders: Vec<_> = hosts.iter().map(|host| host.folder().to_owned()).collect();
    drop(hosts);
    for folder in folders {
        assert!(!folder.exists(), "{} is left behind", folder.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cable_is_cut_lets_nothing_through_and_is_mended() {
    let network = Network::bare().expect("a switch");
    let door = network.listen().expect("a listener");
    let address = door.local_addr().expect("its address");
    let host = Host::start(&network).await.expect("a host");
    host.reaches(address, SOON).expect("the way to the switch");

    let carrier = || host.run(&format!("cat /sys/class/net/{DEVICE}/carrier"));
    host.black_hole().expect("a switch that forwards nothing");
    assert_eq!(carrier().expect("a look").trim(), "1", "the cable is in");
    host.reaches(address, SOON)
        .expect_err("nothing comes through");
    host.mend().expect("a mended way");
    host.connected(DEVICE).await.expect("the device");
    host.reaches(address, SOON * 5)
        .expect("the way to the switch");

    host.cut().expect("a cut");
    assert_eq!(carrier().expect("a look").trim(), "0", "the cable is out");
    host.reaches(address, SOON)
        .expect_err("nothing comes through");
    host.mend().expect("a mended way");
    host.connected(DEVICE).await.expect("the device");
    host.reaches(address, SOON * 5)
        .expect("the way to the switch");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_and_network_manager_can_die_and_come_back_and_the_address_stays() {
    let network = Network::bare().expect("a switch");
    let host = Host::start(&network).await.expect("a host");
    let address = || host.run(&format!("ip -o -4 addr show dev {DEVICE}"));
    let own = format!("inet {}/24", host.address());
    host.network_manager().kill().await;
    assert!(
        address().expect("a look").contains(&own),
        "the kernel has it"
    );
    host.bus().kill().await;
    host.run("nmcli general").expect_err("nobody answers");
    host.bus().start().expect("a bus");
    host.network_manager().start().expect("NetworkManager");
    host.connected(DEVICE).await.expect("the device");
    assert!(
        address().expect("a look").contains(&own),
        "and so has NetworkManager"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_on_a_clusters_network_reaches_its_api_server() {
    let cluster = Cluster::shared().await;
    let network = Network::of_cluster(cluster);
    let host = Host::start(&network).await.expect("a host");
    let api = SocketAddr::from((network.address(), 6443));
    host.reaches(api, SOON).expect("the API server");
    host.black_hole().expect("a switch that forwards nothing");
    host.reaches(api, SOON).expect_err("nothing comes through");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_two_cables_takes_a_lease_by_the_second() {
    let network = Network::bare().expect("a switch");
    let (resolver, host) = tokio::join!(Resolver::start(&network), Host::start(&network));
    let (_resolver, host) = (resolver.expect("a name server"), host.expect("a host"));
    host.plug("eth1").expect("a second cable");
    let profile = "nmcli connection add type ethernet con-name eth1 ifname eth1 ipv4.method auto \
                   ipv6.method link-local";
    host.run(profile).expect("a profile");
    host.connected("eth1").await.expect("the device");
    let fields = "IP4.ADDRESS,IP4.GATEWAY,IP4.DNS";
    let shown = host.run(&format!("nmcli --terse --fields {fields} device show eth1"));
    let shown = shown.expect("a lease");
    let lines: Vec<&str> = shown.lines().collect();
    let [address, gateway, server] = lines[..] else {
        panic!("{shown}");
    };
    let last = address.trim_end_matches("/24").rsplit('.').next();
    let last: u8 = last.expect("a number").parse().expect("a number");
    assert!((200..=250).contains(&last), "{address}");
    let switch = network.address();
    assert_eq!(gateway, format!("IP4.GATEWAY:{switch}"));
    assert_eq!(server, format!("IP4.DNS[1]:{switch}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_proxy_behind_the_gateway_refuses_hosts_and_lets_them_in_again() {
    let cluster = Cluster::shared().await;
    let network = Network::of_cluster(cluster);
    let faults = cluster.faults_at(&network).expect("a proxy");
    let host = Host::start(&network).await.expect("a host");
    host.reaches(faults.address(), SOON).expect("the proxy");
    let outage = faults.refuse();
    let refused = host.reaches(faults.address(), SOON).expect_err("a refusal");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    outage.clear();
    host.reaches(faults.address(), SOON).expect("the proxy");

    host.run(&format!("ip route add blackhole {}", faults.address().ip()))
        .expect("a way that leads nowhere");
    host.reaches(faults.address(), SOON)
        .expect_err("nothing leads there");
    let pings = network.pings(host.address()).await.expect("a ping");
    assert!(pings, "the gateway is another matter");
    host.cut().expect("a cut");
    let pings = network.pings(host.address()).await.expect("a ping");
    assert!(!pings, "nothing comes through");
}
