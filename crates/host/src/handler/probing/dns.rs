//! Whether a name server answers: a question by UDP, to each server directly and to all at once.
//!
//! The resolver of the host is not used: it remembers, and asks the servers one after the other. What
//! questions and answers are made of is in [`message`].

mod message;

use super::peer::{Peer, random};
use super::{Time, any};
use keelson_api::policy::State;
use message::{Answer, Question, Record};
use serde_json::Value;
use socket2::{Protocol, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Where name servers listen.
const PORT: u16 = 53;

/// More than a server sends by UDP to someone who did not offer to take more.
const LONGEST: usize = 1024;

/// The name that is asked for its name servers, as every root zone has them. Any other has addresses.
const ROOT_SERVERS: &str = "root-servers.net";

/// Asks these name servers for a name, of which one has to answer, or else those of the state.
pub(super) async fn ask(
    host: &str,
    configured: &[IpAddr],
    state: impl Future<Output = Result<Rc<State>, String>>,
    time: Time,
) -> Result<(), String> {
    let servers = match configured.is_empty() {
        false => configured.iter().map(|&it| it.into()).collect(),
        true => servers(&*state.await?),
    };
    if servers.is_empty() {
        return Err("there is no name server in the host's state".to_owned());
    }
    let records: &[Record] = match host.trim_end_matches('.') {
        ROOT_SERVERS => &[Record::Ns],
        _ => &[Record::A, Record::Aaaa],
    };
    let pairs = servers
        .iter()
        .flat_map(|server| records.iter().map(move |&record| (server, record)));
    any(pairs.map(|(server, record)| answers(server, host, record, time))).await
}

/// The name servers of a host. What is no address is passed over.
fn servers(state: &State) -> Vec<Peer> {
    let running = state.get("dns-resolver").and_then(|it| it.get("running"));
    let servers = running.and_then(|it| it.get("server"));
    let servers = servers.and_then(Value::as_array).into_iter().flatten();
    let servers = servers.filter_map(Value::as_str);
    servers.filter_map(server).collect()
}

/// An address, with the device it is good on where it is only good on one.
fn server(text: &str) -> Option<Peer> {
    let (address, device) = match text.split_once('%') {
        Some((address, device)) => (address, Some(device.to_owned())),
        None => (text, None),
    };
    let address = address.parse().ok()?;
    Some(Peer { address, device })
}

async fn answers(server: &Peer, host: &str, record: Record, time: Time) -> Result<(), String> {
    let [a, b, ..] = random().to_be_bytes();
    let question = Question::new(u16::from_be_bytes([a, b]), host, record)
        .map_err(|error| error.to_string())?;
    let missed = || format!("the name server {server} did not answer");
    let asked = async {
        let answer = exchange(server, &question).await;
        answer.map_err(|error| format!("the name server {server} cannot be asked: {error}"))
    };
    match time.bounded(missed, asked).await? {
        Answer::Found => Ok(()),
        Answer::Nothing => Err(format!(
            "the name server {server} knows of no {record} record of {host}"
        )),
        Answer::Failed(code) => Err(format!(
            "the name server {server} answers {code} for {host}"
        )),
    }
}

/// Ends with the first answer to this question. The kernel lets nobody but the server answer, to a port
/// that is new each time.
async fn exchange(server: &Peer, question: &Question) -> io::Result<Answer> {
    let socket = server.socket(Type::DGRAM, Protocol::UDP)?;
    socket
        .connect(SocketAddr::new(server.address, PORT))
        .await?;
    socket.send(&question.packet()).await?;
    let mut packet = [0; LONGEST];
    loop {
        let length = socket.recv(&mut packet).await?;
        if let Some(answer) = question.answered_by(&packet[..length]) {
            return Ok(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn name_servers_are_those_of_the_running_state_with_the_device_of_their_link() {
        let state = json!({ "dns-resolver": {
            "running": { "server": ["10.0.0.2", "fe80::1%eth1", "2001:db8::1", "nobody", 7] },
            "config": { "server": ["10.0.0.3"] },
        }});
        let state = state.as_object().expect("a state");
        let by = |address: &str, device: Option<&str>| Peer {
            address: address.parse().expect("an address"),
            device: device.map(str::to_owned),
        };
        let expected = [
            by("10.0.0.2", None),
            by("fe80::1", Some("eth1")),
            by("2001:db8::1", None),
        ];
        assert_eq!(servers(state), expected);
        assert_eq!(servers(&State::new()), []);
        assert_eq!(expected[1].to_string(), "fe80::1 by eth1");
    }
}
