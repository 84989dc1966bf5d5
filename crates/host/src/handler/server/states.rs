//! Reporting the state of the host: written where it differs from what the API server has, and never
//! otherwise.
//!
//! The last report is kept and held against what is there: after another report, after somebody changed
//! or deleted it, after an outage. Of what is there only a digest is kept, because a host's state is
//! large. What belongs into a report is for [`state::report`](crate::handler::state::report).

use std::mem;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use keelson_api::NodeNetworkState;
use keelson_api::condition::HostCondition;
use keelson_api::names::Label;
use keelson_api::network_state::NodeNetworkStateStatus as Status;
use keelson_api::policy::State;
use keelson_cluster::{DEADLINE, digest};
use kube::Api;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::enactments::{ours, owner, wait_after};
use super::follow::key;
use super::line::lock;
use super::outbox::timeless;
use super::{Server, Trouble};

/// What is to be reported of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct StateReport {
    /// Its state, already [filtered](crate::handler::state::report::reported).
    pub state: State,
    /// Version of NetworkManager on the host.
    pub host_network_manager_version: Option<String>,
    /// Version of nmstate in the handler.
    pub handler_nmstate_version: Option<String>,
    /// What holds and what does not; their times of transition are kept from what was reported before.
    pub conditions: Vec<HostCondition>,
}

/// A report that is held against what is there.
struct Wanted {
    report: StateReport,
    digest: String,
}

/// The last report, and what came of it.
#[derive(Default)]
pub(super) struct Reported {
    wanted: Mutex<Option<Arc<Wanted>>>,
    /// What the server made of a state, both as digests: it may keep it in another shape.
    kept_as: Mutex<Option<(String, String)>>,
    new: Notify,
}

/// What the API server has.
#[derive(Clone, Debug)]
pub(super) struct StateSeen {
    version: String,
    uid: String,
    /// Value of the label that asks for a report at once.
    pub(super) refresh: Option<String>,
    /// Digest of the state, if there is one.
    state: Option<String>,
    /// All the rest.
    rest: Status,
}

impl From<NodeNetworkState> for StateSeen {
    fn from(object: NodeNetworkState) -> Self {
        let metadata = object.metadata;
        let mut rest = object.status.unwrap_or_default();
        let state = rest.current_state.take();
        let labels = metadata.labels.unwrap_or_default();
        Self {
            version: metadata.resource_version.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            refresh: labels.get(Label::ForceRefresh.as_str()).cloned(),
            state: state.map(|it| digest(&Value::Object(it))),
            rest,
        }
    }
}

impl Server {
    /// Reports the state of the host, as soon as the API server answers and if it has another one.
    pub fn report(&self, mut report: StateReport) {
        // Not copied for it: a large host's state is large.
        let state = Value::Object(mem::take(&mut report.state));
        let digest = digest(&state);
        if let Value::Object(state) = state {
            report.state = state;
        }
        let reported = &self.inner.reported;
        *lock(&reported.wanted) = Some(Arc::new(Wanted { report, digest }));
        reported.new.notify_one();
    }

    /// Reports the same state again under other conditions. Where none was reported yet there is nothing
    /// to say of it.
    pub fn report_again(&self, conditions: Vec<HostCondition>) {
        let reported = &self.inner.reported;
        let mut wanted = lock(&reported.wanted);
        let Some(last) = wanted.as_ref() else {
            return;
        };
        let report = StateReport {
            conditions,
            ..last.report.clone()
        };
        let digest = last.digest.clone();
        *wanted = Some(Arc::new(Wanted { report, digest }));
        reported.new.notify_one();
    }

    /// The value of the label that asks for a report at once. Another value is another request.
    pub fn refresh(&self) -> Option<String> {
        let seen = self
            .inner
            .watched
            .states
            .get(&key(&self.inner.settings.node))?;
        seen.refresh.clone()
    }

    /// Holds the last report against what is there, for ever.
    pub(super) async fn keep_state(&self) {
        let (watched, reported) = (&self.inner.watched, &self.inner.reported);
        let mut failures = 0;
        loop {
            watched.states.in_order().await;
            watched.states.synced().await;
            match self.settle_state().await {
                Ok(()) => failures = 0,
                Err(trouble) => {
                    if !trouble.is_conflict() {
                        tracing::warn!("the state of the host is not reported: {trouble}");
                    }
                    sleep(wait_after(failures)).await;
                    failures = failures.saturating_add(1);
                    continue;
                }
            }
            tokio::select! {
                () = reported.new.notified() => {}
                () = watched.state_moved.notified() => {}
            }
        }
    }

    async fn settle_state(&self) -> Result<(), Trouble> {
        let Some(wanted) = lock(&self.inner.reported.wanted).clone() else {
            return Ok(());
        };
        let (watched, node) = (&self.inner.watched, &self.inner.settings.node);
        let seen = match watched.states.get(&key(node)) {
            Some(seen) => seen,
            None => {
                // Without its node a report goes as soon as it comes.
                let Some(owner) = watched.nodes.get(&key(node)) else {
                    return Ok(());
                };
                Arc::new(self.create_state(&owner.uid).await?)
            }
        };
        let kept_as = lock(&self.inner.reported.kept_as).clone();
        match status(&wanted, &seen, kept_as.as_ref(), Timestamp::now()) {
            Some(status) => self.write_state(&wanted, &seen, status).await,
            None => Ok(()),
        }
    }

    async fn create_state(&self, owner_uid: &str) -> Result<StateSeen, Trouble> {
        let settings = &self.inner.settings;
        let object = NodeNetworkState {
            metadata: ObjectMeta {
                name: Some(settings.node.clone()),
                labels: Some(settings.labels.clone()),
                owner_references: Some(vec![owner(&settings.node, owner_uid)]),
                ..ObjectMeta::default()
            },
            ..NodeNetworkState::default()
        };
        let doing = format!("creating NodeNetworkState {}", settings.node);
        let create = async |client| Api::all(client).create(&ours(), &object).await;
        let made = self.inner.line.call(doing, DEADLINE, create).await?;
        Ok(self.note_state(made))
    }

    async fn write_state(
        &self,
        wanted: &Wanted,
        seen: &StateSeen,
        status: Status,
    ) -> Result<(), Trouble> {
        let node = &self.inner.settings.node;
        let object = NodeNetworkState {
            metadata: ObjectMeta {
                name: Some(node.clone()),
                resource_version: Some(seen.version.clone()),
                uid: Some(seen.uid.clone()),
                ..ObjectMeta::default()
            },
            status: Some(status),
            ..NodeNetworkState::default()
        };
        let doing = format!("writing the status of NodeNetworkState {node}");
        let write = async |client| {
            let api = Api::<NodeNetworkState>::all(client);
            api.replace_status(node, &ours(), &object).await
        };
        let written = self.inner.line.call(doing, DEADLINE, write).await?;
        let now = self.note_state(written);
        let kept_as = now.state.map(|it| (wanted.digest.clone(), it));
        *lock(&self.inner.reported.kept_as) = kept_as;
        Ok(())
    }

    /// What our own write made of it is known at once, so that it is not written again.
    fn note_state(&self, object: NodeNetworkState) -> StateSeen {
        let seen = StateSeen::from(object);
        let states = &self.inner.watched.states;
        states.note(key(&self.inner.settings.node), &seen.version, seen.clone());
        seen
    }
}

/// The status to be written, if what is there says something else.
fn status(
    wanted: &Wanted,
    seen: &StateSeen,
    kept_as: Option<&(String, String)>,
    now: Timestamp,
) -> Option<Status> {
    let report = &wanted.report;
    let there = seen.state.as_ref();
    let as_kept = kept_as.is_some_and(|(sent, kept)| (sent, Some(kept)) == (&wanted.digest, there));
    let same_state = there == Some(&wanted.digest) || as_kept;
    let same_rest = seen.rest.host_network_manager_version == report.host_network_manager_version
        && seen.rest.handler_nmstate_version == report.handler_nmstate_version
        && timeless(&seen.rest.conditions) == timeless(&report.conditions);
    if same_state && same_rest {
        return None;
    }
    let mut conditions = seen.rest.conditions.clone();
    conditions.retain(|old| report.conditions.iter().any(|it| it.type_ == old.type_));
    for condition in report.conditions.clone() {
        condition.set(&mut conditions);
    }
    let since = seen.rest.last_successful_update_time.clone();
    let since = since.filter(|_| same_state);
    Some(Status {
        current_state: Some(report.state.clone()),
        last_successful_update_time: Some(since.unwrap_or(Time(now))),
        host_network_manager_version: report.host_network_manager_version.clone(),
        handler_nmstate_version: report.handler_nmstate_version.clone(),
        handler_network_manager_version: None,
        conditions,
    })
}
