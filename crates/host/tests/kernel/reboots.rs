//! What a policy brought about is there again after a reboot: profiles are on the disk, and everything
//! else of the network is gone.

use crate::files;
use crate::place::Place;
use keelson_testbed::{Network, until};
use std::time::Duration;

/// How long NetworkManager may take to bring up what it has profiles of.
const UP: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "for the second kernel: `make test-kernel`"]
async fn a_bond_on_the_way_out_and_a_vrf_are_there_again_after_a_reboot() {
    let network = Network::bare().expect("a switch");
    for (file, made, wires) in [
        (
            "capture-bond-on-default-route.yaml",
            "bond5",
            ["eth0", "eth1"].as_slice(),
        ),
        ("vrf-route-by-name.yaml", "blue", &["eth0", "eth2"]),
    ] {
        let example = files::named(file);
        let place = Place::raise(&network, &example).await.expect("a host");
        place.step("apply", &example).await.expect("an apply");
        let host = place.host();
        host.network_manager().kill().await;
        place.run(&format!("ip link del {made}"));
        for wire in wires {
            place.run(&format!("ip link set {wire} down"));
            place.run(&format!("ip addr flush dev {wire}"));
        }
        let missed = place.step("look", &example).await;
        missed.expect_err("nothing brings it back but NetworkManager");
        host.network_manager().start().expect("NetworkManager");
        host.connected(made).await.expect("a device");
        until(file, UP, async || place.step("look", &example).await)
            .await
            .expect("what was applied");
        println!("`{file}` is there again after a reboot");
    }
}
