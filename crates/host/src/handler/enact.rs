//! One policy on this host: refused, waiting for its turn, brought about, or failed and tried again.
//!
//! What it asks for is read, checked and compared with the host before anything is touched; a host that
//! is as asked for is not changed. Every outcome is noted in the record of the policy first, and told
//! from there.

use std::time::Duration;

use jiff::Timestamp;
use keelson_api::policy::State;
use tokio::time::timeout;

use super::account::{account, fill};
use super::bootstrap::is_bootstrap;
use super::changes::{Ended, NotBegun, Wanted};
use super::claims::stopped;
use super::enactment::{self, Failure, Standing};
use super::journal::End;
use super::points::{Act, around};
use super::probe::Origin;
use super::records::{Enacted, Policy, Record};
use super::run::{Handler, Source};
use super::selection::mismatches;
use super::server::{self, EnactmentReport, Place, Turn};
use super::state::bridge::with_default_vlans;
use super::state::dispatch::check_dispatch;
use super::turn::{among, pause, rival};
use super::worker::{Asked, Before, Trouble};

/// How long another attempt waits for the API server to be told how the last one failed.
const TELLING: Duration = Duration::from_secs(5);

impl Handler {
    /// Looks at every policy once, in the order of names.
    pub(super) async fn turn(&mut self, policies: Vec<Policy>, source: Source) {
        let labels = self.labels();
        let (ours, others): (Vec<Policy>, Vec<Policy>) = policies
            .into_iter()
            .partition(|it| mismatches(&it.spec.node_selector, &labels).is_empty());
        if source == Source::Server {
            self.depart(&ours, &others).await;
        }
        for policy in &ours {
            let record = self.known(policy);
            self.records.put(record);
        }
        for policy in ours {
            if self.leaving.is_cancelled() {
                return;
            }
            self.enact(&policy.uid, source).await;
        }
    }

    /// The record of a policy as it is now.
    fn known(&self, policy: &Policy) -> Record {
        let mut record = match self.records.get(&policy.uid) {
            Some(record) => record.clone(),
            None => Record::new(policy.clone()),
        };
        if record.policy.generation != policy.generation {
            // An edit is tried at once, however often what was there before failed.
            record.again = None;
        }
        record.policy = policy.clone();
        record
    }

    async fn enact(&mut self, uid: &str, source: Source) {
        let now = Timestamp::now();
        let others = among(&self.records.all());
        let Some(record) = self.records.get(uid).cloned() else {
            return;
        };
        if !self.settled.is_due(&record, &others, now) {
            return;
        }
        let mut record = record;
        let generation = record.policy.generation;
        if source == Source::Host && !record.is_enacted() && !is_bootstrap(uid) {
            // A generation that was never enacted needs its turn, which only the API server gives.
            return;
        }
        enactment::begin(&mut record.status, generation, now);
        if !enactment::may_try(&record.status, generation, &self.settings.retries()) {
            self.settled.settle(&record);
            return;
        }
        if let Some(why) = record.policy.unreadable.clone() {
            return self.refused(record, Failure::Refused(why));
        }
        let asked = match self.read(&record).await {
            Ok(asked) => asked,
            Err(trouble) if trouble.is_refusal() => {
                return self.refused(record, Failure::Refused(trouble.to_string()));
            }
            Err(trouble) => return self.later(record, &trouble.to_string(), source),
        };
        fill(&mut record, &asked, now);
        if let Err(refused) = check_dispatch(&asked.desired, self.settings.dispatch_scripts) {
            return self.refused(record, Failure::Refused(refused.to_string()));
        }
        if let Some(failure) = self.conflict(&record) {
            self.settled.settle_among(&record, &others);
            return self.tell(record, &Standing::Failed(failure));
        }
        match asked.before {
            None => self.is_so(record, asked.desired).await,
            Some(before) => self.change(record, asked.desired, before, source).await,
        }
    }

    /// What the policy asks of this host. What was captured once stays.
    async fn read(&self, record: &Record) -> Result<Asked, Trouble> {
        let spec = &record.policy.spec;
        let captured = record.status.captured_states.iter();
        let captured = captured.filter_map(|(name, it)| Some((name.clone(), it.state.clone()?)));
        let desired = spec.desired_state.clone().unwrap_or_default();
        let worker = &self.changes.worker;
        worker
            .asked(
                spec.capture.clone(),
                captured.collect(),
                desired,
                with_default_vlans,
            )
            .await
    }

    fn conflict(&self, record: &Record) -> Option<Failure> {
        let others = self.records.all();
        let (policy, about) = rival(record, &others)?;
        Some(Failure::Conflict {
            policy: policy.to_owned(),
            about: about.to_string(),
        })
    }

    /// Brings a policy about, once it is this host's turn.
    async fn change(&mut self, mut record: Record, desired: State, before: Before, source: Source) {
        let origin = match source {
            Source::Server => Origin::ApiServer,
            Source::Host => Origin::Host,
        };
        if source == Source::Server {
            self.last_failure_is_told(&record).await;
            if !self.is_its_turn(&mut record).await {
                return;
            }
        }
        record.again = None;
        let generation = record.policy.generation;
        let standing = match enactment::failures(&record.status, generation) {
            0 => Standing::Progressing,
            // Why it failed is not taken back before it is better.
            _ => self.came_of(&record),
        };
        self.tell(record.clone(), &standing);
        let wanted = Wanted {
            policy: record.policy.named(),
            origin,
            desired,
            before: Some(before),
        };
        let uid = wanted.policy.uid.clone();
        let made = self.changes.make(wanted, &self.leaving).await;
        self.look = true;
        match made {
            Ok(ended) => {
                self.pulse.counts.ended(ended.end);
                around(Act::Account, async {
                    account(&mut self.records, &ended, &self.settings.retries());
                })
                .await;
                self.after(&uid, source).await;
            }
            Err(NotBegun::Nmstate(trouble)) if trouble.is_refusal() => {
                self.give_back(&uid, source).await;
                self.refused(record, Failure::Refused(trouble.to_string()));
            }
            // The next handler looks at it.
            Err(NotBegun::Leaving) => self.give_back(&uid, source).await,
            Err(not_begun) => {
                self.give_back(&uid, source).await;
                self.later(record, &not_begun.to_string(), source);
            }
        }
    }

    /// Waits until what failed last is told: another attempt may cut the host off again, and nobody would
    /// hear of the first.
    async fn last_failure_is_told(&self, record: &Record) {
        if enactment::failures(&record.status, record.policy.generation) == 0 {
            return;
        }
        let name = &record.policy.name;
        tokio::select! {
            told = timeout(TELLING, self.server.outbox().caught_up(name)) => if told.is_err() {
                tracing::warn!(policy = name, "the last failure is not told within {TELLING:?}");
            },
            () = self.leaving.cancelled() => {}
        }
    }

    /// Tells what came of a change, and lets the next host have its turn.
    async fn after(&mut self, uid: &str, source: Source) {
        let Some(record) = self.records.get(uid).cloned() else {
            return;
        };
        let standing = self.came_of(&record);
        match &standing {
            Standing::Configured => {
                self.settled.settle(&record);
                self.give_back(uid, source).await;
            }
            Standing::Failed(failure) => {
                self.settled.settle(&record);
                if source == Source::Server
                    && let Err(trouble) = self.server.fail(uid).await
                {
                    tracing::warn!("a failure is not noted with the claims: {trouble}");
                }
                self.warn(&record.policy, failure.to_string());
            }
            _ => {}
        }
        self.tell(record, &standing);
    }

    /// How a policy stands after a change for it.
    fn came_of(&self, record: &Record) -> Standing {
        let retries = self.settings.retries();
        let generation = record.policy.generation;
        let node = self.node.clone();
        let error = || {
            let why = record.why.clone();
            why.unwrap_or_else(|| "the change was undone".to_owned())
        };
        if record.is_enacted() {
            Standing::Configured
        } else if enactment::may_try(&record.status, generation, &retries) {
            Standing::Retrying {
                node,
                attempt: enactment::failures(&record.status, generation) + 1,
                of: retries.attempts,
                error: error(),
            }
        } else {
            Standing::Failed(Failure::Applying {
                node,
                error: error(),
            })
        }
    }

    /// Tells of a change that was undone by the handler that starts: its policy is not looked at before
    /// the next attempt. What was kept is looked at, and told then.
    pub(super) fn tell_undone(&mut self, ended: &Ended) {
        let Some(record) = self.records.get(&ended.policy.uid).cloned() else {
            return;
        };
        let of_now = record.policy.generation == ended.policy.generation && !record.is_enacted();
        if ended.end == End::Undone && of_now {
            let standing = self.came_of(&record);
            self.tell(record, &standing);
        }
    }

    /// Whether this host may change now. Otherwise it is noted what it waits for.
    async fn is_its_turn(&mut self, record: &mut Record) -> bool {
        let uid = record.policy.uid.clone();
        let now = Timestamp::now();
        match self.claim(&record.policy).await {
            Ok(Place::Yours) => {
                self.asked.remove(&uid);
                true
            }
            Ok(Place::Wait { .. }) => {
                let asked = self.asked.entry(uid).or_default();
                let retries = self.settings.retries();
                record.again = Some(now + pause(*asked, retries.first, retries.longest));
                *asked += 1;
                self.tell(record.clone(), &Standing::Pending);
                false
            }
            Ok(Place::Stop { because }) => {
                // Whether somebody lets it go on is no matter of seconds.
                record.again = Some(now + self.settings.retries().longest * 2);
                let standing = Standing::Aborted {
                    name: keelson_api::enactment::enactment_name(&self.node, &record.policy.name),
                    why: stopped(&because),
                };
                self.tell(record.clone(), &standing);
                false
            }
            Err(trouble) => {
                self.later(record.clone(), &trouble.to_string(), Source::Server);
                false
            }
        }
    }

    /// Asks for this host's turn. A claim lasts longer than a change can take.
    pub(super) async fn claim(&self, policy: &Policy) -> Result<Place, server::Trouble> {
        let turn = Turn {
            policy: &policy.named(),
            selector: &policy.spec.node_selector,
            max_unavailable: &policy.spec.max_unavailable,
            lifetime: self.settings.turn(),
        };
        self.server.claim(&turn).await
    }

    /// Gives a turn back. One that cannot be given back now ends by itself, once the API server is told
    /// how the change ended.
    pub(super) async fn give_back(&self, uid: &str, source: Source) {
        if source == Source::Server
            && let Err(trouble) = self.server.release(uid).await
        {
            tracing::warn!("a claim is not given back: {trouble}");
        }
    }

    /// The host is as the policy asks.
    async fn is_so(&mut self, mut record: Record, desired: State) {
        if !record.is_enacted() {
            record.enacted = Some(Enacted {
                generation: record.policy.generation,
                desired,
                at: Timestamp::now(),
            });
        }
        record.again = None;
        self.settled.settle(&record);
        self.tell(record, &Standing::Configured);
    }

    /// The policy cannot be brought about as it stands, and trying again would not help.
    fn refused(&mut self, mut record: Record, failure: Failure) {
        record.again = None;
        self.settled.settle(&record);
        self.warn(&record.policy, failure.to_string());
        self.tell(record, &Standing::Failed(failure));
    }

    /// Nothing was touched, and it is tried again without counting.
    fn later(&mut self, mut record: Record, why: &str, source: Source) {
        let asked = self.asked.entry(record.policy.uid.clone()).or_default();
        let retries = self.settings.retries();
        record.again = Some(Timestamp::now() + pause(*asked, retries.first, retries.longest));
        *asked += 1;
        tracing::warn!(policy = record.policy.name, "{why}");
        self.changes
            .doing
            .send_replace(format!("trying again soon: {why}"));
        match source {
            Source::Server => self.tell(
                record,
                &Standing::Waiting {
                    why: why.to_owned(),
                },
            ),
            Source::Host => self.records.put(record),
        }
    }

    /// Has a failure told to whoever looks at the policy.
    pub(super) fn warn(&self, policy: &Policy, note: String) {
        tracing::warn!(policy = policy.name, "{note}");
        self.server.say_failed(&policy.named(), note);
    }

    /// Notes how a policy stands, and has it told.
    pub(super) fn tell(&mut self, mut record: Record, standing: &Standing) {
        let told = standing.is_told(&record.status.conditions);
        if !told {
            standing.set(&mut record.status.conditions, Timestamp::now());
        }
        self.records.put(record.clone());
        if !is_bootstrap(&record.policy.uid) {
            let report = EnactmentReport {
                policy: record.policy.named(),
                status: record.status,
            };
            if let Err(refused) = self.server.outbox().put(report) {
                tracing::error!("{refused}");
            }
        }
    }
}
