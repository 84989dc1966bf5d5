//! Name servers: a real one, and some that are silent, fail or answer others.

use crate::gateway::link_local;
use crate::{
    A_WHILE, BRIEFLY, PATIENTLY, addresses, ask, nobody_looks, passed, said_of_each, sentence,
    settings, state,
};
use keelson_host::handler::probe::Probe::{self, Dns};
use keelson_host::handler::probing::{Answers, Settings};
use keelson_testbed::{DEVICE, Host, Network, Resolver};
use serde_json::json;
use std::net::UdpSocket;
use std::time::Duration;

const DNS: [Probe; 1] = [Dns];

/// Settings to ask name servers for a name.
fn given(servers: &[&str], name: &str) -> Settings {
    Settings {
        dns_servers: addresses(servers),
        dns_host: name.to_owned(),
        ..settings()
    }
}

/// Asks name servers for a name, without any state to look at.
fn ask_given(host: &Host, servers: &[&str], name: &str, within: Duration) -> Answers {
    ask(host, given(servers, name), &DNS, within, nobody_looks)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_server_answers_for_what_it_knows_and_says_what_it_does_not() {
    let network = Network::bare().expect("a switch");
    let (resolver, host) = tokio::join!(Resolver::start(&network), Host::start(&network));
    let (resolver, host) = (resolver.expect("a name server"), host.expect("a host"));
    let server = network.address().to_string();
    let [four, six, none] = Resolver::NAMES;
    for name in ["root-servers.net", "root-servers.net.", four, six] {
        passed(&ask_given(&host, &[&server], name, PATIENTLY), Dns);
    }
    let asked = [none, "no.example", "elsewhere.test"].map(|name| given(&[&server], name));
    let said = said_of_each(&host, &asked, Dns).await;
    let expected = [
        format!(
            "the name server {server} knows of no A record of {none}, and \
             the name server {server} knows of no AAAA record of {none}"
        ),
        format!("the name server {server} answers NXDOMAIN for no.example"),
        format!("the name server {server} answers REFUSED for elsewhere.test"),
    ];
    assert_eq!(said, expected);

    // Of the state, also where an address is good on one link only.
    let link_local = format!("{}%{DEVICE}", link_local(&network));
    for server in [&server, &link_local] {
        let said = json!({ "dns-resolver": { "running": { "server": [server] } } });
        let look = move || {
            let said = state(said.clone());
            async { Ok(said) }
        };
        passed(&ask(&host, settings(), &DNS, PATIENTLY, look), Dns);
    }

    resolver.process().freeze();
    let said = sentence(ask_given(&host, &[&server], four, BRIEFLY), Dns);
    let expected = format!("the name server {server} did not answer within 0.9 s");
    assert_eq!(said, expected);
    resolver.process().thaw();
    passed(&ask_given(&host, &[&server], four, PATIENTLY), Dns);
}

/// A server on the host that answers every question with what is made of it.
fn stand_in(host: &Host, address: &'static str, answer: fn(&[u8]) -> Option<Vec<u8>>) {
    let socket = host.inside(move || UdpSocket::bind((address, 53)).expect("port 53"));
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            if let Some(answer) = answer(&packet[..length]) {
                socket.send_to(&answer, from).expect("an answer");
            }
        }
    });
}

/// The question as a response, with these flags and so many records said to follow.
fn response(question: &[u8], flags: [u8; 2], records: u8) -> Vec<u8> {
    let mut packet = question.to_vec();
    packet[2..4].copy_from_slice(&flags);
    packet[7] = records;
    packet
}

#[tokio::test(flavor = "multi_thread")]
async fn name_servers_that_fail_are_named_and_one_that_answers_is_enough() {
    let network = Network::bare().expect("a switch");
    let host = Host::start(&network).await.expect("a host");
    stand_in(&host, "127.0.0.2", |_| None);
    stand_in(&host, "127.0.0.3", |it| Some(response(it, [0x81, 0x82], 0)));
    stand_in(&host, "127.0.0.4", |it| {
        let mut foreign = response(it, [0x81, 0x80], 1);
        foreign[0] ^= 1;
        Some(foreign)
    });
    stand_in(&host, "127.0.0.5", |it| Some(it.to_vec()));
    stand_in(&host, "127.0.0.6", |it| Some(response(it, [0x83, 0x80], 0)));
    let bad = [
        "127.0.0.2",
        "127.0.0.3",
        "127.0.0.4",
        "127.0.0.5",
        "127.0.0.7",
    ];
    let said = sentence(ask_given(&host, &bad, "root-servers.net", A_WHILE), Dns);
    let expected = [
        "the name server 127.0.0.2 did not answer within 1.9 s",
        "the name server 127.0.0.3 answers SERVFAIL for root-servers.net",
        "the name server 127.0.0.4 did not answer within 1.9 s",
        "the name server 127.0.0.5 did not answer within 1.9 s",
        "the name server 127.0.0.7 cannot be asked: Connection refused (os error 111)",
    ];
    assert_eq!(said, expected.join(", and "));
    // An answer that is too long for a packet is one, and nobody waits for the others.
    let servers = [bad.as_slice(), &["127.0.0.6"]].concat();
    passed(
        &ask_given(&host, &servers, "root-servers.net", PATIENTLY),
        Dns,
    );
}
