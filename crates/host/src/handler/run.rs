//! A handler from its start to its end: socket, lock, journal, and only then the network.
//!
//! Nothing on the way to being healthy asks the API server or NetworkManager. What was begun before is
//! brought to its end first; then policies are looked at one after the other, by name, whenever the API
//! server says something new, a wait is over, or it is time to look at the network again. Told to end,
//! it finishes or undoes what it began.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use keelson_proxy::run::asked_to_end;
use nix::fcntl::Flock;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::account::account;
use super::changes::{Changes, Ended, Witness};
use super::journal::{Journal, Trouble};
use super::lock::{self, Asked};
use super::points::{Act, around};
use super::probing::{self, Probes};
use super::pulse::{Pulse, Stage};
use super::records::{Policy, Record, Records};
use super::server::{self, Outbox, Server};
use super::turn::{Settled, next_due};
use super::worker::Worker;
use super::{bootstrap, socket};
use crate::cli::Handling;

/// How often somebody else's lock is asked for.
const LOCK_AGAIN: Duration = Duration::from_secs(1);

/// How often it is noted how it is with the API server.
const OBSERVED: Duration = Duration::from_secs(1);

/// What is kept of the host's files, under its state folder.
pub(super) const JOURNAL: &str = "journal";
const RECORDS: &str = "policies";
const OUTBOX: &str = "outbox";

/// Where a policy is heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The API server, now.
    Server,
    /// The host's own disk.
    Host,
}

/// A handler that holds the lock.
pub(super) struct Handler {
    pub(super) settings: Handling,
    pub(super) node: String,
    pub(super) changes: Changes,
    pub(super) server: Server,
    pub(super) records: Records,
    pub(super) settled: Settled,
    /// How often each policy asked for its turn in vain.
    pub(super) asked: BTreeMap<String, u32>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) leaving: CancellationToken,
    /// The last wish of the API server to hear of the network that was heeded.
    pub(super) heeded: Option<String>,
    /// A change or a word from the API server asks for another look at the network.
    pub(super) look: bool,
}

/// Runs a handler until it is told to end.
pub async fn run(settings: Handling, kubeconfig: Option<&Path>) -> Result<(), String> {
    let node = settings.node_name.clone().filter(|it| !it.is_empty());
    let node =
        node.ok_or("NODE_NAME is missing: set it to the name of this host's Kubernetes node")?;
    let worker =
        Worker::start().map_err(|error| format!("nmstate's thread cannot start: {error}"))?;
    let pulse = Arc::new(Pulse::new(worker.clone()));
    let listener = socket::bind(&settings.socket).map_err(|error| {
        format!(
            "{} cannot be listened on: {error}",
            settings.socket.display()
        )
    })?;
    let leaving = CancellationToken::new();
    let alive = async {
        let mut registry = Registry::default();
        pulse.counts.register(&mut registry);
        let served = socket::serve(listener, Arc::clone(&pulse), Arc::new(registry));
        tokio::join!(served, pulse.beat());
    };
    let work = async {
        let Some(_lock) = locked(&settings, &pulse, &leaving).await? else {
            return Ok(());
        };
        let started = Start {
            settings: settings.clone(),
            node,
            kubeconfig: kubeconfig.map(Path::to_owned),
            worker,
            pulse: Arc::clone(&pulse),
            leaving: leaving.clone(),
        };
        Box::pin(started.work()).await
    };
    let end = async {
        asked_to_end().await;
        pulse.is_at(Stage::Leaving);
        leaving.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        worked = work => worked,
        () = alive => Ok(()),
        () = end => Ok(()),
    }
}

/// Waits for the lock, live and not ready; none where the handler is told to end meanwhile.
async fn locked(
    settings: &Handling,
    pulse: &Pulse,
    leaving: &CancellationToken,
) -> Result<Option<Flock<std::fs::File>>, String> {
    loop {
        let path = &settings.lock_file;
        let asked = lock::ask(path);
        match asked.map_err(|error| format!("{} cannot be locked: {error}", path.display()))? {
            Asked::Ours(lock) => return Ok(Some(lock)),
            Asked::Taken { holder } => pulse.is_at(Stage::Waiting { holder }),
        }
        tokio::select! {
            () = sleep(LOCK_AGAIN) => {}
            () = leaving.cancelled() => return Ok(None),
        }
    }
}

/// Everything a handler needs, once it has the lock.
struct Start {
    settings: Handling,
    node: String,
    kubeconfig: Option<std::path::PathBuf>,
    worker: Worker,
    pulse: Arc<Pulse>,
    leaving: CancellationToken,
}

impl Start {
    async fn work(self) -> Result<(), String> {
        self.pulse.is_at(Stage::Recovering);
        let folder = &self.settings.state_dir;
        let told = |error: super::disk::Refused| error.to_string();
        let mut records = Records::open(&folder.join(RECORDS)).map_err(told)?;
        let server = Server::new(
            server::Settings {
                node: self.node.clone(),
                namespace: self.settings.namespace.clone(),
                kubeconfig: self.kubeconfig.clone(),
                labels: BTreeMap::new(),
            },
            Outbox::open(&folder.join(OUTBOX)).map_err(told)?,
        );
        let changes = changes(
            &self.settings,
            &self.node,
            self.kubeconfig.as_deref(),
            self.worker.clone(),
            &self.pulse,
        )?;
        let applied = changes.applied.subscribe();
        let recovered = recover(&changes).await?;
        if let Some(ended) = &recovered {
            around(Act::Account, async {
                account(&mut records, ended, &self.settings.retries());
            })
            .await;
        }
        self.pulse.is_at(Stage::Working);
        let pulse = Arc::clone(&self.pulse);
        let mut handler = Handler {
            settings: self.settings,
            node: self.node,
            changes,
            server: server.clone(),
            records,
            settled: Settled::default(),
            asked: BTreeMap::new(),
            pulse: self.pulse,
            leaving: self.leaving,
            heeded: None,
            look: true,
        };
        if let Some(ended) = &recovered {
            handler.tell_undone(ended);
        }
        tokio::select! {
            () = handler.turns() => Ok(()),
            () = server.run() => Ok(()),
            () = reconnect(&server, applied) => Ok(()),
            () = observe(&server, &pulse) => Ok(()),
        }
    }
}

/// Connections made before a change may lead nowhere after it.
async fn reconnect(server: &Server, mut applied: watch::Receiver<u64>) {
    while applied.changed().await.is_ok() {
        server.reconnect();
    }
    std::future::pending::<()>().await;
}

/// Notes how it is with the API server, for whoever asks. Of a server that goes away nothing is heard.
async fn observe(server: &Server, pulse: &Pulse) {
    loop {
        let connected = server.is_connected();
        pulse.counts.server(connected);
        let words = match server.trouble() {
            None if connected => "connected".to_owned(),
            None => "not heard of yet".to_owned(),
            Some(trouble) => trouble,
        };
        pulse.note(|told| told.server = words);
        sleep(OBSERVED).await;
    }
}

/// What makes changes, of these settings.
pub(super) fn changes(
    settings: &Handling,
    node: &str,
    kubeconfig: Option<&Path>,
    worker: Worker,
    pulse: &Pulse,
) -> Result<Changes, String> {
    let journal = Journal::open(&settings.state_dir.join(JOURNAL));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    Ok(Changes {
        journal: journal.map_err(|trouble| trouble.to_string())?,
        worker,
        probes: Probes::new(probing::Settings {
            dns_host: settings.probe_dns_host.clone(),
            dns_servers: settings.probe_dns_servers.0.clone(),
            gateways: settings.probe_gateways.0.clone(),
            kubeconfig: kubeconfig.map(Path::to_owned),
            node: node.to_owned(),
        }),
        times: settings.times(),
        boot: boot
            .map_err(|error| format!("this boot has no id: {error}"))?
            .trim()
            .to_owned(),
        applied: watch::Sender::new(0),
        doing: pulse.doing.clone(),
    })
}

/// Brings the last change to its end. A journal that cannot be understood is put aside and named; it is
/// for a person, and no reason to leave the host without a handler.
pub(super) async fn recover(changes: &Changes) -> Result<Option<Ended>, String> {
    match changes.journal.read() {
        Ok(None) => Ok(None),
        Ok(Some(entry)) => Ok(Some(changes.conclude(entry, None, Witness::Nobody).await)),
        Err(trouble @ (Trouble::Unreadable { .. } | Trouble::Newer { .. })) => {
            tracing::error!("{trouble}");
            Ok(None)
        }
        Err(trouble @ Trouble::System { .. }) => Err(trouble.to_string()),
    }
}

impl Handler {
    /// Looks at everything whenever there is something to look at, until it is told to end.
    async fn turns(&mut self) {
        let begun = Instant::now();
        let refresh = Duration::from_secs(self.settings.refresh_seconds.max(1).into());
        let mut refreshed = Instant::now();
        while !self.leaving.is_cancelled() {
            let looked = Timestamp::now();
            if let Some((policies, source)) = self.policies(begun) {
                self.turn(policies, source).await;
            }
            let wish = self.server.refresh();
            if wish.is_some() && wish != self.heeded {
                self.heeded = wish;
                self.look = true;
            }
            if self.look || refreshed.elapsed() >= refresh {
                self.look = false;
                refreshed = Instant::now();
                self.report().await;
            }
            self.say();
            let due = next_due(&self.records.all(), looked).map_or(refresh, until);
            let patience = begun + self.settings.patience();
            tokio::select! {
                () = self.leaving.cancelled() => {}
                () = self.server.changed() => {}
                () = sleep(due.min(refresh)) => {}
                () = sleep_until(patience), if Instant::now() < patience => {}
            }
        }
    }

    /// The policies there are, and where they are heard of: the API server as soon as it was heard of,
    /// and else, after a moment, the host itself.
    fn policies(&self, begun: Instant) -> Option<(Vec<Policy>, Source)> {
        if let Some(listed) = self.server.policies() {
            let policies = listed.iter().map(|it| it.as_ref().into()).collect();
            return Some((policies, Source::Server));
        }
        if begun.elapsed() < self.settings.patience() {
            return None;
        }
        let known = self
            .records
            .all()
            .into_iter()
            .filter_map(Record::as_enacted);
        let known: Vec<Policy> = known
            .filter(|it| !bootstrap::is_bootstrap(&it.uid))
            .collect();
        let (first, troubles) = bootstrap::read(&self.settings.bootstrap_dir);
        for trouble in troubles {
            tracing::error!("{trouble}");
        }
        let unknown = first
            .into_iter()
            .filter(|it| !known.iter().any(|known| known.name == it.name));
        let mut policies: Vec<Policy> = unknown.collect();
        policies.extend(known);
        policies.sort_by(|one, other| one.name.cmp(&other.name));
        Some((policies, Source::Host))
    }

    /// Notes how every policy stands, for whoever asks.
    fn say(&self) {
        let told = |record: &&Record| (record.policy.name.clone(), standing(record));
        let policies = self.records.all().iter().map(told).collect();
        self.pulse.note(|told| told.policies = policies);
    }
}

/// How a policy stands, in one line: the condition that holds, and why.
fn standing(record: &Record) -> String {
    let conditions = &record.status.conditions;
    let holds = conditions.iter().filter(|it| it.status == "True");
    let words = holds.map(|it| match it.message.as_deref() {
        Some(message) if !message.is_empty() => format!("{}: {message}", it.type_),
        _ => it.type_.clone(),
    });
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => "not looked at yet".to_owned(),
        false => words.join(", "),
    }
}

fn until(when: Timestamp) -> Duration {
    let left = when.duration_since(Timestamp::now());
    Duration::try_from(left).unwrap_or_default()
}
