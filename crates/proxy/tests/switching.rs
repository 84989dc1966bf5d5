//! The program told to switch between plaintext and TLS again and again, with new certificates in
//! between, under load: no request is lost, nobody gets the other mode, and nobody stays in it.

mod common;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use common::greeter::{NEVER, hello};
use common::line::{Line, Lost};
use common::program::{Proxy, SOON, get};
use futures::future::join_all;
use keelson_testbed::until;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::json;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

const OPEN: &str = "GET /v0/healthz";

/// A kubeconfig of nowhere: what is asked for here is everybody's.
fn nowhere() -> String {
    let made = rcgen::generate_simple_self_signed(vec!["nowhere".to_owned()]);
    let authority = BASE64_STANDARD.encode(made.expect("a certificate").cert.pem());
    let cluster = json!({
        "server": "https://127.0.0.1:1", "certificate-authority-data": authority,
    });
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "nowhere",
        "contexts": [{ "name": "nowhere", "context": { "cluster": "nowhere", "user": "nobody" } }],
        "clusters": [{ "name": "nowhere", "cluster": cluster }],
        "users": [{ "name": "nobody", "user": { "token": "none" } }],
    })
    .to_string()
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
type AnyLine = Line<Box<dyn Stream>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Tls,
}

/// What clients may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Phase {
    number: usize,
    /// None from the moment a new mode is written until the program says it is in force.
    reported: Option<Mode>,
    over: bool,
}

/// The certificates, their folders and the trust in all of them.
struct Stage {
    proxy: Proxy,
    pairs: Vec<String>,
    trust: Arc<ClientConfig>,
    phase: watch::Sender<Phase>,
    answered: watch::Sender<usize>,
}

impl Stage {
    async fn new(name: &str, flags: &[&str]) -> Self {
        let mut flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        flags.push("--tls-reload-interval=20ms".to_owned());
        let proxy = Proxy::with(
            name,
            &nowhere(),
            "tls: {mode: 'off'}\n",
            hello().await,
            &flags,
        );
        proxy.healthy().await;
        let mut roots = rustls::RootCertStore::empty();
        let mut pairs = Vec::new();
        for number in 0..5 {
            let made = rcgen::generate_simple_self_signed(vec!["node".to_owned()]);
            let made = made.expect("a certificate");
            roots.add(made.cert.der().clone()).expect("a root");
            let path = |kind| proxy.folder.join(format!("{number}.{kind}"));
            std::fs::write(path("crt"), made.cert.pem()).expect("a file");
            std::fs::write(path("key"), made.signing_key.serialize_pem()).expect("a file");
            let (certificate, key) = (path("crt"), path("key"));
            pairs.push(format!(
                "tls:\n  mode: required\n  certFile: {}\n  keyFile: {}\n",
                certificate.display(),
                key.display()
            ));
        }
        let trust = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let first = Phase {
            number: 0,
            reported: Some(Mode::Plain),
            over: false,
        };
        Self {
            proxy,
            pairs,
            trust: Arc::new(trust),
            phase: watch::Sender::new(first),
            answered: watch::Sender::new(0),
        }
    }

    /// Writes a configuration in one step, as a mounted volume changes.
    fn write(&self, text: &str) {
        let new = self.proxy.folder.join("config.new");
        std::fs::write(&new, text).expect("a file");
        std::fs::rename(new, self.proxy.folder.join("config.yaml")).expect("a rename");
    }

    fn loaded(&self) -> String {
        get(self.proxy.health, "/loaded", "").expect("what is loaded")
    }

    /// Waits until the program says that something else is in force, in this mode.
    async fn reported(&self, before: &str, mode: Mode) {
        let said = match mode {
            Mode::Plain => r#""tlsMode":"off""#,
            Mode::Tls => r#""tlsMode":"required""#,
        };
        let body = |text: &str| text.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
        let deadline = Instant::now() + SOON;
        loop {
            let now = self.loaded();
            if body(&now) != body(before) && now.contains(said) {
                return;
            }
            assert!(Instant::now() < deadline, "{mode:?} is not in force: {now}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Tells clients nothing, writes, and tells them when the program does.
    async fn switch(&self, number: usize, mode: Mode) {
        let before = self.loaded();
        self.phase.send_modify(|phase| {
            phase.number = number;
            phase.reported = None;
        });
        match mode {
            Mode::Plain => self.write("tls: {mode: 'off'}\n"),
            Mode::Tls => self.write(&self.pairs[number % self.pairs.len()]),
        }
        self.reported(&before, mode).await;
        self.phase.send_modify(|phase| phase.reported = Some(mode));
    }

    /// A new certificate in the same mode disturbs nobody.
    async fn renew(&self, number: usize) {
        let before = self.loaded();
        self.write(&self.pairs[(number + 1) % self.pairs.len()]);
        self.reported(&before, Mode::Tls).await;
    }

    async fn open(&self, mode: Mode) -> Result<AnyLine, String> {
        let stream = TcpStream::connect(self.proxy.requests).await;
        let stream = stream.map_err(|error| error.to_string())?;
        stream
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        match mode {
            Mode::Plain => Ok(Line::new(Box::new(stream))),
            Mode::Tls => {
                let name = ServerName::try_from("node").expect("a name");
                let connector = TlsConnector::from(Arc::clone(&self.trust));
                let stream = connector.connect(name, stream).await;
                Ok(Line::new(Box::new(
                    stream.map_err(|error| error.to_string())?,
                )))
            }
        }
    }
}

/// What a client has seen.
#[derive(Default)]
struct Tally {
    /// Requests answered, and those of them on a connection used before.
    answered: usize,
    reused: usize,
    /// Connections that had ended when they were used again: the request went on a new one.
    retried: usize,
    /// Connections in the wrong mode that were turned away.
    turned_away: usize,
}

/// Asks until it is over, each request until it is answered.
async fn client(stage: &Stage, number: usize, tally: &RefCell<Tally>) {
    let mut kept: Option<(Mode, AnyLine)> = None;
    let mut phases = stage.phase.subscribe();
    for round in number.. {
        let phase = *phases
            .wait_for(|it| it.reported.is_some())
            .await
            .expect("phases");
        if phase.over {
            return;
        }
        let mode = phase.reported.expect("a mode");
        if round % 16 == 0 {
            knock_at_the_wrong_door(stage, phase, tally).await;
        }
        if let Some((made, mut line)) = kept.take() {
            match line.ask(OPEN, "").await {
                Ok(status) => {
                    assert_eq!(status, 200);
                    tally.borrow_mut().reused += 1;
                    note(stage, tally);
                    let old = made != mode && *stage.phase.borrow() == phase;
                    assert!(line.over || !old, "{made:?} lives on in {phase:?}");
                    kept = (!line.over && round % 4 != 0).then_some((made, line));
                    continue;
                }
                Err(Lost::Unanswered) => tally.borrow_mut().retried += 1,
                Err(Lost::Broken(why)) => panic!("in phase {phase:?}: {why}"),
            }
        }
        let fresh = async {
            let mut line = stage.open(mode).await?;
            match line.ask(OPEN, "").await {
                Ok(200) => Ok(line),
                Ok(status) => Err(format!("it was told {status}")),
                Err(lost) => Err(format!("{lost:?}")),
            }
        };
        match fresh.await {
            Ok(line) => {
                note(stage, tally);
                kept = (!line.over).then_some((mode, line));
            }
            // The mode may have changed under it: it asks again.
            Err(_) if *stage.phase.borrow() != phase => {}
            Err(why) => panic!("a new connection in the mode reported, {phase:?}: {why}"),
        }
    }
}

fn note(stage: &Stage, tally: &RefCell<Tally>) {
    tally.borrow_mut().answered += 1;
    stage.answered.send_modify(|count| *count += 1);
}

/// A connection made after a mode was reported never gets the other.
async fn knock_at_the_wrong_door(stage: &Stage, phase: Phase, tally: &RefCell<Tally>) {
    let wrong = match phase.reported {
        Some(Mode::Plain) => Mode::Tls,
        _ => Mode::Plain,
    };
    let status = match stage.open(wrong).await {
        Ok(mut line) => line.ask(OPEN, "").await.ok(),
        Err(_) => None,
    };
    if *stage.phase.borrow() == phase {
        assert_ne!(status, Some(200), "{wrong:?} was served in {phase:?}");
        tally.borrow_mut().turned_away += 1;
    }
}

async fn switches_under_load(name: &str, clients: usize, switches: usize) {
    let stage = Stage::new(name, &[]).await;
    let tally = RefCell::new(Tally::default());
    let began = Instant::now();
    let mut slowest = Duration::ZERO;
    let switcher = async {
        for number in 1..=switches {
            let mode = match number % 2 {
                0 => Mode::Plain,
                _ => Mode::Tls,
            };
            let from = Instant::now();
            stage.switch(number, mode).await;
            slowest = slowest.max(from.elapsed());
            if mode == Mode::Tls && number % 4 == 1 {
                stage.renew(number).await;
            }
            let mut answered = stage.answered.subscribe();
            let so_far = *answered.borrow_and_update();
            let more = answered.wait_for(|count| *count >= so_far + clients);
            let more = tokio::time::timeout(2 * SOON, more).await;
            more.expect("requests are answered in every mode")
                .expect("clients");
        }
        stage.phase.send_modify(|phase| phase.over = true);
    };
    let load = join_all((0..clients).map(|number| client(&stage, number, &tally)));
    tokio::join!(load, switcher);
    let Tally {
        answered,
        reused,
        retried,
        turned_away,
    } = tally.into_inner();
    println!(
        "{switches} switches, {clients} connections, {:.1?}: {answered} requests answered, {reused} of them on kept connections; \
         {retried} found their kept connection ended and went on a new one; {turned_away} in the wrong mode turned away; \
         the slowest switch took {slowest:.0?}; 0 lost",
        began.elapsed()
    );
    assert!(answered >= switches * clients);
    assert!(reused > 0 && turned_away > 0);
}

#[tokio::test]
async fn no_request_is_lost_in_forty_switches_with_sixteen_connections() {
    switches_under_load("switch", 16, 40).await;
}

#[tokio::test]
#[ignore = "soak: a thousand switches take minutes"]
async fn no_request_is_lost_in_a_thousand_switches_with_sixty_four_connections() {
    switches_under_load("switches", 64, 1000).await;
}

#[tokio::test]
async fn a_connection_of_the_old_mode_is_gone_when_its_time_is_over() {
    old_connections_end("leave", &["--shutdown-timeout=2s"], Duration::from_secs(2)).await;
}

#[tokio::test]
#[ignore = "soak: waits for the whole 25 seconds"]
async fn a_connection_of_the_old_mode_is_gone_after_twenty_five_seconds() {
    old_connections_end("leaves", &[], Duration::from_secs(25)).await;
}

/// Requests that are never answered, one in each mode, outlive a switch by so much and no more.
async fn old_connections_end(name: &str, flags: &[&str], after: Duration) {
    let stage = Stage::new(name, flags).await;
    for (number, old, new) in [(1, Mode::Plain, Mode::Tls), (2, Mode::Tls, Mode::Plain)] {
        let mut line = stage.open(old).await.expect("a connection");
        let never = format!("{OPEN}{NEVER}");
        let asked = async {
            line.patience = after + 3 * SOON;
            line.ask(&never, "").await
        };
        let switched = async {
            until("the request inside", SOON, async || {
                let mut other = stage.open(old).await?;
                match other.ask(OPEN, "").await {
                    Ok(200) => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await
            .expect("an answer on another connection");
            let from = Instant::now();
            stage.switch(number, new).await;
            from
        };
        let (lost, from) = tokio::join!(asked, switched);
        let lived = from.elapsed();
        println!("a request of the old mode ({old:?}) lived {lived:.1?} after the switch");
        assert!(matches!(lost, Err(Lost::Unanswered)), "{lost:?}");
        assert!(lived >= after, "{lived:?}: it may take its time");
        assert!(lived <= after + Duration::from_secs(5), "{lived:?}");
    }
}
