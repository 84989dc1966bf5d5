//! The program between a client that sends bytes and an upstream that writes them down.

use crate::common::program::{Proxy, SOON};
use crate::common::rights;
use crate::frames;
use crate::row::{Arrived, Row, Said, Then, Wire, arrives};
use crate::upstream::Recorder;
use keelson_testbed::Cluster;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// `/open` is everybody's; `/guarded` is for whoever has a token.
const GUARDED: &str =
    "authorization:\n  static:\n  - resourceRequest: false\n    verb: get\n    path: /guarded\n";

/// How the program is started.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) config: &'static str,
    pub(crate) flags: &'static [&'static str],
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            config: GUARDED,
            flags: &[],
        }
    }
}

/// The request that shows whether a connection goes on.
const WITNESS: &str = "GET /open/witness HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
/// The request that shows that whatever was to arrive has arrived.
const MARK: &str = "GET /open/mark HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
/// For what should arrive and does not.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Stage {
    proxy: Proxy,
    upstream: Recorder,
    address: SocketAddr,
    namespace: String,
    token: String,
}

impl Stage {
    pub(crate) async fn new(setup: Setup) -> Self {
        let cluster = Cluster::shared().await;
        let namespace = cluster.namespace("smuggling").await.name().to_owned();
        let token = rights::token(&cluster.client(), &namespace, &[]).await;
        let (upstream, address) = Recorder::start();
        let mut more = vec!["--ignore-paths=/open,/open/*".to_owned()];
        more.extend(setup.flags.iter().map(|&flag| flag.to_owned()));
        let kubeconfig = cluster.kubeconfig();
        let proxy = Proxy::with(&namespace, &kubeconfig, setup.config, address, &more);
        proxy.healthy().await;
        Self {
            proxy,
            upstream,
            address,
            namespace,
            token,
        }
    }

    /// Plays one row; the error says what was different.
    pub(crate) fn play(&self, row: &Row) -> Result<(), String> {
        let said = self.send(&row.wire);
        let mut expected = row.said.clone();
        let mut upstream: Vec<Arrived> = row.upstream.iter().map(|it| self.named(it)).collect();
        if row.then == Then::GoesOn {
            expected.push(Said::Status(200));
            upstream.push(arrives("GET /open/witness", &[], ""));
        } else if matches!(row.wire, Wire::Http2(_)) {
            expected.push(Said::Closed);
        }
        let mut arrived = self.arrived(upstream.len());
        if row.breaks_off {
            arrived.retain(|it| it.whole);
        }
        if said == expected && arrived == upstream {
            return Ok(());
        }
        Err(format!(
            "- {}\n    said    {said:?}\n    not     {expected:?}\n    arrived {arrived:#?}\n    not     {upstream:#?}",
            row.arrives
        ))
    }

    fn send(&self, wire: &Wire) -> Vec<Said> {
        let mut stream = connect(self.proxy.requests);
        let with_token = |bytes: &[u8]| replaced(bytes, b"{token}", self.token.as_bytes());
        match wire {
            Wire::Http1(bytes) => {
                let mut bytes = with_token(bytes);
                bytes.extend(WITNESS.as_bytes());
                // A refusal may come before everything is written.
                let _ = stream.write_all(&bytes);
                statuses(&mut stream)
            }
            Wire::Cut(bytes) => {
                let _ = stream.write_all(&with_token(bytes));
                let _ = stream.shutdown(Shutdown::Write);
                statuses(&mut stream)
            }
            Wire::Http2(bytes) => frames::converse(&mut stream, bytes, "/open/witness"),
        }
    }

    /// What the upstream got, the mark not counted. Torn requests are seen when their connection
    /// ends, which may be a moment later.
    fn arrived(&self, expected: usize) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        if expected > 0 {
            arrived = self.upstream.take(expected, PATIENCE);
        }
        let mut stream = connect(self.proxy.requests);
        stream.write_all(MARK.as_bytes()).expect("a request");
        assert_eq!(statuses(&mut stream), [Said::Status(200)], "the mark");
        arrived.extend(self.upstream.take(1, PATIENCE));
        arrived.retain(|it| !it.line.contains("/open/mark"));
        arrived
    }

    fn named(&self, arrived: &Arrived) -> Arrived {
        let mut arrived = arrived.clone();
        for line in &mut arrived.headers {
            *line = line
                .replace("{namespace}", &self.namespace)
                .replace("{upstream}", &self.address.to_string());
        }
        arrived.headers.sort();
        arrived
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a deadline");
    stream
}

/// The status of every answer until the connection ends.
fn statuses(stream: &mut TcpStream) -> Vec<Said> {
    let mut read = Vec::new();
    if let Err(error) = stream.read_to_end(&mut read)
        && error.kind() == std::io::ErrorKind::WouldBlock
    {
        panic!(
            "the connection stays open after {:?}",
            String::from_utf8_lossy(&read)
        );
    }
    let text = String::from_utf8_lossy(&read);
    let mut rest = &text[..];
    let mut said = Vec::new();
    while let Some((head, after)) = rest.split_once("\r\n\r\n") {
        let code = head
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse().ok())
            .unwrap_or_default();
        said.push(Said::Status(code));
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let length = name.eq_ignore_ascii_case("content-length");
            length.then(|| value.parse::<usize>().expect("a length"))
        });
        rest = after.get(length.unwrap_or(0)..).unwrap_or_default();
    }
    if said.is_empty() {
        said.push(Said::Closed);
    }
    said
}

fn replaced(bytes: &[u8], what: &[u8], with: &[u8]) -> Vec<u8> {
    let found = bytes.windows(what.len()).position(|it| it == what);
    match found {
        Some(at) => [&bytes[..at], with, &bytes[at + what.len()..]].concat(),
        None => bytes.to_vec(),
    }
}
