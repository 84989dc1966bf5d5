//! Asks whether the host is reachable, before a change and after it.
//!
//! What the answers mean is for [`probe`](super::probe); here everybody is asked at the same time, and
//! again every second until they answer or the time is over. Attempts overlap: an answer that takes
//! longer than a second is still one. Gateway and name servers are read from the host's state for every
//! round, because a change may have moved them. Nothing is remembered from one question to the next, and
//! no connection of anybody else is used: one that is left from before a change says nothing about after.

mod dns;
mod gateway;
mod peer;
mod server;

use super::probe::Probe;
use futures::future::{LocalBoxFuture, Shared};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use keelson_api::policy::State;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How often those who have not answered are asked again.
const EVERY: Duration = Duration::from_secs(1);

/// How long an answer to one question may take.
const ONE_ATTEMPT: Duration = Duration::from_secs(5);

/// What is asked, and of whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What name servers are asked for: for `root-servers.net` its name servers, for any other name its
    /// addresses, of either family.
    pub dns_host: String,
    /// The name servers to ask, of which one has to answer. None: those of the host's state.
    pub dns_servers: Vec<IpAddr>,
    /// The gateways to ask, of which one has to answer, by whatever way the kernel takes. None: the
    /// default gateway of the host's state, by its own device; that of IPv4 where there is one.
    pub gateways: Vec<IpAddr>,
    /// Where the API server is and who we are. None: as every pod knows it.
    pub kubeconfig: Option<PathBuf>,
    /// The name of this host's Node.
    pub node: String,
}

/// What each probe that was asked said in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Those that passed.
    pub passed: BTreeSet<Probe>,
    /// Those that did not, each with a sentence: who was asked, and what happened.
    pub failed: BTreeMap<Probe, String>,
}

impl Answers {
    /// Why those that did not pass did not, each reason once: two may have asked the same server.
    pub fn why(&self) -> String {
        let mut sentences: Vec<&str> = self.failed.values().map(String::as_str).collect();
        sentences.dedup();
        sentences.join("; ")
    }
}

/// The probes of one host.
#[derive(Clone, Debug)]
pub struct Probes {
    settings: Settings,
}

/// The host's state as those see it who ask in the same round. It is read when the first of them needs
/// it, so not at all where none does.
type Sight<'a> = Shared<LocalBoxFuture<'a, Result<Rc<State>, String>>>;

impl Probes {
    /// Probes that ask this.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Asks these, all at the same time, each again every second until it answers or the time is over.
    /// It ends early where all have answered, or where no time is left to ask again.
    ///
    /// `look` gives the host's state as it is now. It is called once a second at most, and never while
    /// a call before it has not ended.
    pub async fn ask<L, F>(&self, which: &BTreeSet<Probe>, within: Duration, look: L) -> Answers
    where
        L: Fn() -> F,
        F: Future<Output = Result<State, String>>,
    {
        let begun = Instant::now();
        let over = begun + within;
        let mut answers = Answers::default();
        let mut open = which.clone();
        let mut told: BTreeMap<Probe, Instant> = BTreeMap::new();
        let mut attempts = FuturesUnordered::new();
        let mut sight = sight(&look);
        let mut turn = begun;
        while !open.is_empty() {
            tokio::select! {
                // One that is cut short says less than the one before it.
                () = sleep_until(turn), if turn + EVERY <= over || turn == begun => {
                    if sight.peek().is_some() {
                        sight = self::sight(&look);
                    }
                    let time = Time { within, until: over.min(Instant::now() + ONE_ATTEMPT) };
                    let begin = |probe: &Probe| self.attempt(*probe, turn, sight.clone(), time);
                    attempts.extend(open.iter().map(begin));
                    turn = Instant::now() + EVERY;
                }
                Some((probe, asked, answer)) = attempts.next() => match answer {
                    Ok(()) => {
                        open.remove(&probe);
                        answers.failed.remove(&probe);
                        answers.passed.insert(probe);
                    }
                    // Of what did not pass, the attempt that began last is told.
                    Err(why) if open.contains(&probe) && told.get(&probe) <= Some(&asked) => {
                        told.insert(probe, asked);
                        answers.failed.insert(probe, why);
                    }
                    Err(_) => {}
                },
                else => break,
            }
        }
        answers
    }

    async fn attempt(
        &self,
        probe: Probe,
        asked: Instant,
        sight: Sight<'_>,
        time: Time,
    ) -> (Probe, Instant, Result<(), String>) {
        let settings = &self.settings;
        let kubeconfig = settings.kubeconfig.as_deref();
        let answer = match probe {
            Probe::Gateway => gateway::ask(&settings.gateways, seen(sight, time), time).await,
            Probe::Dns => {
                let servers = &settings.dns_servers;
                dns::ask(&settings.dns_host, servers, seen(sight, time), time).await
            }
            Probe::ApiServer => server::answers(kubeconfig, time).await,
            Probe::NodeReady => server::is_node_ready(kubeconfig, &settings.node, time).await,
        };
        (probe, asked, answer)
    }
}

fn sight<'a, L, F>(look: &'a L) -> Sight<'a>
where
    L: Fn() -> F,
    F: Future<Output = Result<State, String>>,
{
    let seen = async move { look().await.map(Rc::new) };
    seen.boxed_local().shared()
}

/// The state in sight, or a sentence.
async fn seen(sight: Sight<'_>, time: Time) -> Result<Rc<State>, String> {
    let state = time.bounded(|| "the host's state could not be read".to_owned(), sight);
    state.await
}

/// The time of an attempt.
#[derive(Clone, Copy, Debug)]
struct Time {
    /// How long is asked in all, which is what is told of somebody who never answers.
    within: Duration,
    /// When this attempt is given up.
    until: Instant,
}

impl Time {
    /// Waits no longer than there is time. What is said of it then goes on with the time there was.
    async fn bounded<T>(
        self,
        missed: impl FnOnce() -> String,
        call: impl Future<Output = Result<T, String>>,
    ) -> Result<T, String> {
        let ended = timeout_at(self.until, call).await;
        ended.unwrap_or_else(|_| {
            let seconds = self.within.as_secs_f64();
            Err(format!("{} within {seconds} s", missed()))
        })
    }
}

/// Asks several at the same time, until one of them has answered. Otherwise what each of them did.
async fn any<F: Future<Output = Result<(), String>>>(
    asked: impl IntoIterator<Item = F>,
) -> Result<(), String> {
    let mut asked: FuturesUnordered<F> = asked.into_iter().collect();
    let mut sentences = BTreeSet::new();
    while let Some(answer) = asked.next().await {
        match answer {
            Ok(()) => return Ok(()),
            Err(sentence) => sentences.insert(sentence),
        };
    }
    let sentences: Vec<String> = sentences.into_iter().collect();
    Err(sentences.join(", and "))
}
