//! Gateways.

use crate::{
    BRIEFLY, PATIENTLY, addresses, ask, ask_each, nobody_looks, now, passed, sentence, settings,
    state,
};
use keelson_host::handler::probe::Probe::{self, Gateway};
use keelson_host::handler::probing::{Answers, Settings};
use keelson_testbed::{DEVICE, Host, Network};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const GATEWAY: [Probe; 1] = [Gateway];

/// A network and a host on it.
async fn a_host() -> (Network, Host) {
    let network = Network::bare().expect("a switch");
    let host = Host::start(&network).await.expect("a host");
    (network, host)
}

fn ask_now(host: &Host, within: Duration) -> Answers {
    ask(host, settings(), &GATEWAY, within, now)
}

fn given(gateways: &[&str]) -> Settings {
    Settings {
        gateways: addresses(gateways),
        ..settings()
    }
}

/// Asks these, without any state to look at.
fn ask_given(host: &Host, gateways: &[&str], within: Duration) -> Answers {
    ask(host, given(gateways), &GATEWAY, within, nobody_looks)
}

/// Where the state says that the way out is here.
fn ask_there(host: &Host, address: &str, device: &str) -> Answers {
    let route = route("0.0.0.0/0", address, device);
    let said = json!({ "routes": { "running": [route] } });
    ask(host, settings(), &GATEWAY, BRIEFLY, move || {
        let said = state(said.clone());
        async { Ok(said) }
    })
}

fn route(destination: &str, address: &str, device: &str) -> Value {
    json!({
        "destination": destination, "next-hop-address": address, "next-hop-interface": device,
        "table-id": 254,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_answers_by_its_own_device_and_by_no_other() {
    let (network, host) = a_host().await;
    passed(&ask_now(&host, PATIENTLY), Gateway);
    let gateway = network.address().to_string();
    // The kernel's routes would lead there; the device it is asked by does not.
    host.run("ip link add dead0 type veth peer name dead1")
        .expect("a pair of devices");
    for device in ["dead0", "dead1"] {
        host.run(&format!("ip link set {device} up"))
            .expect("a device that is up");
    }
    let said = sentence(ask_there(&host, &gateway, "dead0"), Gateway);
    let expected = format!("the gateway {gateway} by dead0 did not answer within 0.9 s");
    assert_eq!(said, expected);
    let said = sentence(ask_there(&host, &gateway, "none0"), Gateway);
    let expected = format!("the gateway {gateway} by none0 cannot be asked: No such device");
    assert!(said.starts_with(&expected), "{said}");
    passed(&ask_there(&host, &gateway, DEVICE), Gateway);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_behind_a_black_hole_is_heard_again_once_that_is_mended() {
    let (network, host) = a_host().await;
    host.black_hole().expect("a switch that forwards nothing");
    let said = sentence(ask_now(&host, BRIEFLY), Gateway);
    let gateway = network.address();
    let expected = format!("the gateway {gateway} by {DEVICE} did not answer within 0.9 s");
    assert_eq!(said, expected);

    let (tell, told) = mpsc::channel();
    let look = move || {
        let _ = tell.send(());
        now()
    };
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&host, settings(), &GATEWAY, PATIENTLY, look));
        for _ in 0..2 {
            told.recv().expect("a look");
        }
        host.mend().expect("a mended way");
        passed(&asked.join().expect("answers"), Gateway);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_does_not_answer_where_the_cable_is_cut() {
    let (network, host) = a_host().await;
    host.cut().expect("a cut");
    let said = sentence(ask_now(&host, BRIEFLY), Gateway);
    let gateway = network.address();
    let expected = format!("the gateway {gateway} by {DEVICE} did not answer within 0.9 s");
    assert_eq!(said, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_moves_to_another_device_is_asked_there() {
    let (network, host) = a_host().await;
    host.plug("eth1").expect("a second cable");
    host.black_hole().expect("a switch that forwards nothing");
    let gateway = network.address();
    let moves = [
        "ip link set eth1 up".to_owned(),
        "ip addr add 10.77.0.199/24 dev eth1".to_owned(),
        format!("ip route replace default via {gateway} dev eth1"),
    ];
    // Before the second look, so that the first attempt was by the old device.
    let looks = AtomicU32::new(0);
    let look = move || {
        if looks.fetch_add(1, Ordering::Relaxed) == 1 {
            moves.iter().for_each(|words| run(words));
        }
        now()
    };
    let answers = ask(&host, settings(), &GATEWAY, PATIENTLY, look);
    passed(&answers, Gateway);
}

/// Runs a command where this is called.
fn run(words: &str) {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().expect("a command"));
    let ended = command.args(words).status().expect("an end");
    assert!(ended.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_of_ipv6_answers_where_there_is_none_of_ipv4() {
    let (network, host) = a_host().await;
    let link_local = link_local(&network);
    host.run("ip route del default").expect("no way out");
    let said = sentence(ask_now(&host, BRIEFLY), Gateway);
    let none = "there is no default gateway in the main routing table";
    assert_eq!(said, none);
    host.run(&format!(
        "ip route add default via {link_local} dev {DEVICE}"
    ))
    .expect("a way out");
    passed(&ask_now(&host, PATIENTLY), Gateway);
    host.black_hole().expect("a switch that forwards nothing");
    let said = sentence(ask_now(&host, BRIEFLY), Gateway);
    let expected = format!("the gateway {link_local} by {DEVICE} did not answer within 0.9 s");
    assert_eq!(said, expected);
}

/// The address the switch has on each of its links.
pub(crate) fn link_local(network: &Network) -> String {
    let shown = network.run("ip -6 -o addr show dev tb0 scope link");
    let shown = shown.expect("addresses of the switch");
    let mut words = shown.split_whitespace().skip_while(|it| *it != "inet6");
    let address = words.nth(1).expect("an address of the link");
    address.split('/').next().expect("an address").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_gateways_that_are_given_one_has_to_answer() {
    let (network, host) = a_host().await;
    let gateway = network.address().to_string();
    let one = ["10.77.0.253", &gateway];
    passed(&ask_given(&host, &one, PATIENTLY), Gateway);
    passed(&ask_given(&host, &["::1"], PATIENTLY), Gateway);
    let said = |gateways| sentence(ask_given(&host, gateways, BRIEFLY), Gateway);
    let expected = "the gateway 10.77.0.253 did not answer within 0.9 s, and \
                    the gateway 10.77.0.254 did not answer within 0.9 s";
    assert_eq!(said(&["10.77.0.253", "10.77.0.254"]), expected);
    let said = said(&["2001:db8::1"]);
    let expected = "the gateway 2001:db8::1 cannot be asked: Network is unreachable";
    assert!(said.starts_with(expected), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_somebody_else_on_the_host_is_none() {
    let (network, host) = a_host().await;
    let gateway = network.address().to_string();
    let each = [given(&["10.77.0.253"]), given(&[&gateway])];
    let [silent, answers] = &ask_each(&host, &each, Gateway)[..] else {
        panic!("both were asked");
    };
    passed(answers, Gateway);
    assert_eq!(silent.passed, [].into(), "{silent:?}");
}
