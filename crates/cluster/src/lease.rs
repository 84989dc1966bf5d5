//! The lease that lets one of several operators work, by the protocol of client-go.
//!
//! Whoever holds it renews it every two seconds; whoever waits for it takes it once it has seen no
//! change for as long as the lease says, by its own clock. So an operator in Go and this one never
//! lead at the same time, whichever was there first. What to do about a lease is decided in
//! [`record`]; here are the calls, the clock and the work that ends when the lease is lost.

mod record;

use crate::calls::DEADLINE;
use crate::client::within;
use crate::error::Error;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1 as coordination;
use kube::api::PostParams;
use kube::{Api, Client};
use record::{Election, Step};
use std::future::Future;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// How long a lease is good that nobody renews. The original's, as are the others.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long the holder tries to renew before it takes the lease for lost.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How often the holder renews and the others look.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// Which lease, and who wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are: one name for each process, never used again.
    pub identity: String,
}

/// How leading ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Led<T> {
    /// The work is done, and the lease was let go.
    Done(T),
    /// We were asked to stop. The work was dropped, and then the lease let go.
    Stopped,
    /// The lease could not be kept, for this reason. The work was dropped.
    Lost(String),
}

/// Who leads, for readiness and metrics. Clones share it.
#[derive(Clone, Debug)]
pub struct Standing {
    state: watch::Sender<State>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    leading: bool,
    holder: Option<String>,
}

impl Default for Standing {
    fn default() -> Self {
        Self::new()
    }
}

impl Standing {
    /// Nobody is known to lead.
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(State::default()),
        }
    }

    /// Nobody else may work, so there is no lease and we lead from the beginning.
    pub fn alone() -> Self {
        let state = State {
            leading: true,
            holder: None,
        };
        Self {
            state: watch::Sender::new(state),
        }
    }

    /// Whether we lead.
    pub fn leading(&self) -> bool {
        self.state.borrow().leading
    }

    /// Who leads, as far as we know.
    pub fn holder(&self) -> Option<String> {
        self.state.borrow().holder.clone()
    }

    /// Waits until we lead.
    pub async fn leads(&self) {
        let mut state = self.state.subscribe();
        // The sender is in `self`, so it is not closed while we wait.
        let _ = state.wait_for(|state| state.leading).await;
    }

    /// One sentence for a person.
    pub fn sentence(&self) -> String {
        match (self.leading(), self.holder()) {
            (true, _) => "leading".to_owned(),
            (false, Some(holder)) => format!("standing by: {holder} leads"),
            (false, None) => "standing by: nobody is known to lead".to_owned(),
        }
    }

    fn is(&self, leading: bool, holder: Option<&str>) {
        self.state.send_if_modified(|state| {
            let now = State {
                leading,
                holder: holder.map(str::to_owned),
            };
            let new = *state != now;
            *state = now;
            new
        });
    }
}

/// Waits for the lease, then does the work while it is ours, and lets go of it afterwards.
///
/// `stop` ends the waiting and the work. The work runs in the caller's task, so it has ended when
/// this returns, and before anybody else may lead.
///
/// # Errors
/// Where the server refuses the lease itself, for a missing permission or namespace.
pub async fn lead<T>(
    client: Client,
    lease: Lease,
    standing: &Standing,
    stop: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> Result<Led<T>, Error> {
    let mut candidate = Candidate {
        api: Api::namespaced(client, &lease.namespace),
        election: Election::new(lease.identity.clone()),
        lease,
        standing: standing.clone(),
        wrote: false,
    };
    tokio::pin!(stop);
    let acquired = tokio::select! {
        () = &mut stop => None,
        acquired = candidate.acquire() => Some(acquired?),
    };
    let Some(renewed) = acquired else {
        // What was under way may have made it ours.
        if candidate.wrote {
            candidate.release().await;
        }
        return Ok(Led::Stopped);
    };
    // Dropped before the lease is let go.
    let mut work = Box::pin(work);
    let led = tokio::select! {
        biased;
        why = candidate.keep(renewed) => Led::Lost(why),
        () = &mut stop => Led::Stopped,
        done = &mut work => Led::Done(done),
    };
    drop(work);
    match &led {
        Led::Lost(_) => candidate.standing.is(false, candidate.election.holder()),
        Led::Done(_) | Led::Stopped => candidate.release().await,
    }
    Ok(led)
}

/// One who wants the lease.
struct Candidate {
    api: Api<coordination::Lease>,
    lease: Lease,
    election: Election,
    standing: Standing,
    /// Whether the lease was asked for, whatever came of it.
    wrote: bool,
}

impl Candidate {
    /// Tries until the lease is ours; says when the attempt began that got it.
    async fn acquire(&mut self) -> Result<Instant, Error> {
        loop {
            let began = Instant::now();
            match self.attempt(began + RENEW_DEADLINE).await {
                Ok(true) => {
                    self.standing.is(true, Some(&self.lease.identity));
                    tracing::info!(lease = self.lease.name, "Leading");
                    return Ok(began);
                }
                Ok(false) => self.standing.is(false, self.election.holder()),
                Err(error) if error.is_refused() || error.is_absent() => return Err(error),
                Err(error) if error.is_conflict() => {}
                Err(error) => tracing::warn!("Lease was not acquired: {error}"),
            }
            sleep(jittered(RETRY_PERIOD)).await;
        }
    }

    /// Renews until that has not worked for too long; says why. Times count from before a request:
    /// that is the latest the others can have seen it.
    async fn keep(&mut self, mut renewed: Instant) -> String {
        let mut why = String::new();
        loop {
            let deadline = renewed + RENEW_DEADLINE;
            sleep_until(deadline.min(Instant::now() + RETRY_PERIOD)).await;
            let began = Instant::now();
            if began >= deadline {
                return format!("the lease was not renewed within {RENEW_DEADLINE:?}: {why}");
            }
            match self.attempt(deadline).await {
                Ok(true) => renewed = began,
                Ok(false) => {
                    let holder = self.election.holder().unwrap_or("somebody else");
                    return format!("{holder} took the lease");
                }
                Err(error) => {
                    tracing::warn!("Lease was not renewed: {error}");
                    why = error.to_string();
                }
            }
        }
    }

    /// One attempt to take or renew the lease, until the deadline at most.
    async fn attempt(&mut self, deadline: Instant) -> Result<bool, Error> {
        let doing = format!(
            "renewing the lease {}/{}",
            self.lease.namespace, self.lease.name
        );
        match timeout_at(deadline, self.ask_and_write(&doing)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Deadline {
                doing,
                after: RENEW_DEADLINE,
            }),
        }
    }

    async fn ask_and_write(&mut self, doing: &str) -> Result<bool, Error> {
        let found = within(doing, DEADLINE, self.api.get_opt(&self.lease.name)).await?;
        // The clock is read after the answer: seen later, a lease is waited for longer, never less.
        let step = self
            .election
            .step(found.as_ref(), Instant::now(), Timestamp::now());
        let how = PostParams::default();
        let written = match step {
            Step::Wait => return Ok(false),
            Step::Create(spec) => {
                self.wrote = true;
                let new = record::lease(&self.lease.name, spec);
                within(doing, DEADLINE, self.api.create(&how, &new)).await?
            }
            Step::Write(spec) => {
                self.wrote = true;
                let changed = record::with_spec(found, spec);
                let call = self.api.replace(&self.lease.name, &how, &changed);
                within(doing, DEADLINE, call).await?
            }
        };
        self.election.saw(&written, Instant::now());
        Ok(true)
    }

    /// Lets go, so that the next one need not wait. A lease that is not ours any more is left alone.
    async fn release(&mut self) {
        let doing = format!(
            "letting go of the lease {}/{}",
            self.lease.namespace, self.lease.name
        );
        let released = async {
            let found = within(&doing, RETRY_PERIOD, self.api.get_opt(&self.lease.name)).await?;
            let Some(spec) = self.election.release(found.as_ref(), Timestamp::now()) else {
                return Ok(());
            };
            let changed = record::with_spec(found, spec);
            let how = PostParams::default();
            let call = self.api.replace(&self.lease.name, &how, &changed);
            within(&doing, RETRY_PERIOD, call).await.map(drop)
        };
        if let Err(error) = released.await {
            tracing::warn!("Lease was not let go, the next one waits for its end: {error}");
        }
        self.standing.is(false, None);
    }
}

/// Up to a fifth longer, so that those who wait do not all ask at once.
fn jittered(period: Duration) -> Duration {
    let nanos = SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |now| now.subsec_nanos());
    period + period / 5 * (nanos % 1000) / 1000
}
