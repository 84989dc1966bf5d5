//! A proxy in front of the API server that does what networks and overloaded servers do, on
//! command, and remembers every call.
//!
//! A test points a client at it, says what goes wrong for which calls, and afterwards asks what was
//! called and what was not. Everything it is not told to spoil it passes through as it is: bodies
//! stream, credentials are the caller's own, upgraded connections (`exec`, `port-forward`) work.
//! It does not start the API server and judges nobody: assertions are the test's.
//!
//! There are two kinds of faults. Faults of **calls** are rules, [`inject`](FaultProxy::inject)ed
//! with a selector. Faults of **connections** concern every caller alike: [`refuse`],
//! [`black_hole`], [`distrust`], [`freeze`], and the momentary [`cut_watches`] and
//! [`expire_watches`]. All are in force when the method returns, and until what it returned is
//! cleared or dropped.
//!
//! ```no_run
//! # use keelson_testbed::faults::{Fault, FaultProxy, On};
//! # async fn example(faults: FaultProxy) -> Result<(), Box<dyn std::error::Error>> {
//! let client = faults.client();
//! let second = faults.inject(Fault::Conflict, On::writes().nth(2));
//! // … run what is to be tested with `client` …
//! second.hit(1).await?;
//! assert!(faults.writes().iter().all(|call| call.resource != "secrets"));
//! # Ok(())
//! # }
//! ```
//!
//! [`refuse`]: FaultProxy::refuse
//! [`black_hole`]: FaultProxy::black_hole
//! [`distrust`]: FaultProxy::distrust
//! [`freeze`]: FaultProxy::freeze
//! [`cut_watches`]: FaultProxy::cut_watches
//! [`expire_watches`]: FaultProxy::expire_watches

mod answer;
mod call;
mod door;
mod ledger;
mod link;
mod script;
mod serve;
mod tls;
mod upstream;
mod watch;

pub use call::{Call, Verb};
pub use script::{Fault, On, Pause};

use crate::{
    kubeconfig::{Credential, client_config, kubeconfig},
    pki::Authority,
};
pub(crate) use door::Place;
use door::{Door, Trouble};
use ledger::Ledger;
use rustls::{ServerConfig, pki_types};
use script::RuleId;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch as channel, task::JoinHandle, time::timeout};
use upstream::Upstream;

/// How long a wait for a call, a hit or a watch may take. A control plane on one machine needs
/// milliseconds; a loaded machine may need seconds.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why there is no proxy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotStarted {
    /// The authority signed no certificate.
    #[error("no certificate was made for the fault proxy")]
    CertificateNotMade(#[source] rcgen::Error),
    /// A certificate or key of the authority is no PEM.
    #[error("the authority's PEM was not read")]
    PemNotRead(#[source] pki_types::pem::Error),
    /// TLS accepts neither the certificate nor the authority.
    #[error("TLS was not configured for the fault proxy")]
    TlsNotConfigured(#[source] rustls::Error),
    /// There is no port to listen on.
    #[error("the fault proxy does not listen")]
    NotListening(#[source] io::Error),
    /// No client comes from the configuration.
    #[error("no client was made for the fault proxy")]
    ClientNotMade(#[source] Box<kube::Error>),
}

/// What was waited for did not happen in time.
#[derive(Debug, thiserror::Error)]
#[error("{what} did not happen within {DEADLINE:?}; the calls were: {calls:#?}")]
pub struct NotSeen {
    what: String,
    calls: Vec<String>,
}

struct Shared {
    ledger: channel::Sender<Ledger>,
    door: Mutex<Door>,
    trusted: Arc<ServerConfig>,
    foreign: Arc<ServerConfig>,
    upstream: Upstream,
}

impl Shared {
    fn door(&self) -> MutexGuard<'_, Door> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until(
        &self,
        what: impl FnOnce() -> String,
        happened: impl FnMut(&Ledger) -> bool,
    ) -> Result<(), NotSeen> {
        let mut ledger = self.ledger.subscribe();
        match timeout(DEADLINE, ledger.wait_for(happened)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(NotSeen {
                what: what(),
                calls: self.ledger.borrow().calls().map(Call::to_string).collect(),
            }),
        }
    }
}

/// The proxy. Dropping it closes its port and all connections.
///
/// It serves on the runtime it was started on, and ends with it.
pub struct FaultProxy {
    shared: Arc<Shared>,
    config: kube::Config,
    kubeconfig: String,
    acceptor: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts a proxy for the API server at this address, with a serving certificate from the
    /// cluster's authority. The token is what [`client`](Self::client) and
    /// [`kubeconfig`](Self::kubeconfig) present; the proxy itself has no credentials.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn start(
        api_server: SocketAddr,
        authority: &Authority,
        token: &str,
    ) -> Result<Self, NotStarted> {
        Self::start_at(Place::Loopback, api_server, authority, token)
    }

    /// The same at another place. Of what is there for callers, only the
    /// [`kubeconfig`](Self::kubeconfig) is of use to those who are there too.
    pub(crate) fn start_at(
        place: Place,
        api_server: SocketAddr,
        authority: &Authority,
        token: &str,
    ) -> Result<Self, NotStarted> {
        let stranger = Authority::new("a stranger").map_err(NotStarted::CertificateNotMade)?;
        let door = Door::open(place).map_err(NotStarted::NotListening)?;
        let address = door.address();
        let url = format!("https://{address}");
        let trust = authority.certificate();
        let kubeconfig = kubeconfig(&url, trust, &Credential::Token(token));
        let config = client_config(address, trust, token);
        kube::Client::try_from(config.clone())
            .map_err(|error| NotStarted::ClientNotMade(Box::new(error)))?;
        let shared = Arc::new(Shared {
            ledger: channel::Sender::new(Ledger::default()),
            door: Mutex::new(door),
            trusted: tls::server(authority, address.ip())?,
            foreign: tls::server(&stranger, address.ip())?,
            upstream: Upstream {
                address: api_server,
                tls: tls::client(authority)?,
            },
        });
        Ok(Self {
            acceptor: tokio::spawn(serve::accept(shared.clone())),
            shared,
            config,
            kubeconfig,
        })
    }

    /// A new client through the proxy, with connections of its own. It verifies the proxy against
    /// the cluster's authority and never retries by itself.
    pub fn client(&self) -> kube::Client {
        kube::Client::try_from(self.config.clone())
            .expect("the same configuration made a client at the start")
    }

    /// The configuration behind [`client`](Self::client), for other timeouts or credentials.
    pub fn config(&self) -> kube::Config {
        self.config.clone()
    }

    /// The way through the proxy for other processes: a kubeconfig file's content.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig.clone()
    }

    /// Where the proxy listens, or would.
    pub fn address(&self) -> SocketAddr {
        self.shared.door().address()
    }

    /// Makes calls fail. Where several rules want a call, the newest has it.
    pub fn inject(&self, fault: Fault, on: On) -> Rule {
        let mut id = None;
        self.shared
            .ledger
            .send_modify(|ledger| id = Some(ledger.script.add(fault, on)));
        Rule {
            shared: self.shared.clone(),
            id: id.expect("the ledger is modified before the call returns"),
        }
    }

    /// An API server that is not there: connections are refused and those that exist are reset.
    /// The port stays the proxy's and opens again afterwards.
    pub fn refuse(&self) -> Outage {
        self.begin(Trouble::Refuse)
    }

    /// A network that drops every packet: connections are accepted, by the kernel as it were, and
    /// nothing is answered, neither on new ones nor on those that exist. Whatever fell in does not
    /// come out: afterwards these connections are reset and calls in them were never made.
    pub fn black_hole(&self) -> Outage {
        self.begin(Trouble::BlackHole)
    }

    /// A server with a certificate from a foreign authority: handshakes fail. Connections that
    /// exist are reset, or their callers would not notice.
    pub fn distrust(&self) -> Outage {
        self.begin(Trouble::Distrust)
    }

    /// A path that stalls: on connections that exist no byte moves in either direction, without FIN
    /// or reset. New connections work. Afterwards the frozen ones go on where they were, and a call
    /// that its caller has long given up may still arrive.
    pub fn freeze(&self) -> Outage {
        self.begin(Trouble::Freeze)
    }

    fn begin(&self, trouble: Trouble) -> Outage {
        Outage {
            shared: self.shared.clone(),
            number: self.shared.door().begin(trouble),
        }
    }

    /// Resets every watch that runs now and says how many there were. New ones work.
    pub fn cut_watches(&self) -> usize {
        let running = self.take_watches();
        running.iter().for_each(|watch| watch.link.reset());
        running.len()
    }

    /// Ends every watch that runs now with an `ERROR` event, 410 `Expired`, and says how many there
    /// were. New ones work; to spoil those, inject [`Fault::Expired`] or [`Fault::Gone`]. The
    /// stream must be JSON, as from `kube` and `kubectl`.
    pub fn expire_watches(&self) -> usize {
        let running = self.take_watches();
        let count = running.len();
        for watch in running {
            // A watch that ended just now needs no farewell.
            let _ = watch.expire.send(());
        }
        count
    }

    fn take_watches(&self) -> Vec<ledger::Running> {
        let mut running = Vec::new();
        self.shared.ledger.send_modify(|ledger| {
            running = std::mem::take(&mut ledger.watches).into_values().collect()
        });
        running
    }

    /// How many connections callers hold open now.
    pub fn connections(&self) -> usize {
        self.shared.door().connections()
    }

    /// The watches that run now.
    pub fn watches(&self) -> Vec<Call> {
        let ledger = self.shared.ledger.borrow();
        ledger
            .watches
            .values()
            .map(|watch| watch.call.clone())
            .collect()
    }

    /// Every call since the start or the last [`forget`](Self::forget), in order of arrival, those
    /// still unanswered included. An answer is in here before its caller sees it.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.ledger.borrow().calls().cloned().collect()
    }

    /// The [`calls`](Self::calls) that are not get, list or watch.
    pub fn writes(&self) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| call.verb.writes());
        calls
    }

    /// Forgets the calls so far. Rules keep their counts.
    pub fn forget(&self) {
        self.shared.ledger.send_modify(Ledger::forget);
    }

    /// Waits until this many watches run at the same time.
    pub async fn watching(&self, count: usize) -> Result<(), NotSeen> {
        let what = || format!("{count} running watches");
        self.shared
            .until(what, |ledger| ledger.watches.len() >= count)
            .await
    }

    /// Waits for a call, past or future, of which this holds; `what` names it in the error.
    pub async fn called(&self, what: &str, holds: impl Fn(&Call) -> bool) -> Result<(), NotSeen> {
        self.shared
            .until(|| what.to_string(), |ledger| ledger.calls().any(&holds))
            .await
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.shared.door().close();
    }
}

/// A fault of calls, in force until it is cleared or dropped.
#[must_use = "the fault ends when this is dropped"]
pub struct Rule {
    shared: Arc<Shared>,
    id: RuleId,
}

impl Rule {
    /// How often it had its way.
    pub fn hits(&self) -> usize {
        self.shared
            .ledger
            .borrow()
            .script
            .hits(self.id)
            .unwrap_or(0)
    }

    /// Waits until it had its way this many times.
    pub async fn hit(&self, times: usize) -> Result<(), NotSeen> {
        let what = || format!("a rule of the fault proxy met {times} times");
        self.shared
            .until(what, |ledger| ledger.script.hits(self.id) >= Some(times))
            .await
    }

    /// Ends the fault; calls it holds back go on. Says how often it had its way.
    pub fn clear(self) -> usize {
        self.hits()
    }
}

impl Drop for Rule {
    fn drop(&mut self) {
        self.shared
            .ledger
            .send_modify(|ledger| ledger.script.remove(self.id));
    }
}

/// A fault of connections, in force until it is cleared or dropped.
#[must_use = "the fault ends when this is dropped"]
pub struct Outage {
    shared: Arc<Shared>,
    number: u64,
}

impl Outage {
    /// Ends the fault.
    pub fn clear(self) {}
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.shared
            .door()
            .end(self.number)
            .expect("the port is reserved for this proxy by a socket of its own");
    }
}
