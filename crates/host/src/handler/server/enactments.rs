//! Telling what became of policies: the outbox is emptied as long as the API server answers.
//!
//! Every time, it is looked first: at the policy, because a report about one that is gone is about
//! nothing, and at the enactment, because what is there already is not written again. What is written
//! takes the place of the whole status, under its resourceVersion: a patch would leave behind what the
//! last state had and this one has not. What follows from a look is a function of values.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use keelson_api::enactment::{NodeNetworkConfigurationEnactmentStatus as Status, enactment_name};
use keelson_api::names::{FieldManager, Label};
use keelson_api::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use keelson_cluster::DEADLINE;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client};
use tokio::time::sleep;

use super::outbox::{Due, EnactmentReport, What, says_the_same};
use super::{Server, Trouble};

/// How long a call may take at first. A call that began just before the server came back is given up
/// in time for the next.
const SOON: Duration = Duration::from_secs(3);

/// How long to wait after a failure; doubled by each that follows.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(4);

/// How long to wait after this many failures.
pub(super) fn wait_after(failures: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(1 << failures.min(10));
    wait.min(LONGEST_WAIT)
}

/// How writes are made.
pub(super) fn ours() -> PostParams {
    PostParams {
        dry_run: false,
        field_manager: Some(FieldManager::Handler.to_string()),
    }
}

/// What is to be done about a report.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Nothing: it is told.
    Rest,
    /// Nothing: somebody deleted its enactment.
    Leave,
    /// It is about nothing any more; this is why.
    Drop(&'static str),
    /// An enactment is made first.
    Create,
    /// The enactment is to say this.
    Write(Box<Status>),
}

/// What is to be done about a report, by what is there. `once`: its generation was told before.
fn step(
    report: &EnactmentReport,
    once: bool,
    policy: Option<&NodeNetworkConfigurationPolicy>,
    there: Option<&NodeNetworkConfigurationEnactment>,
) -> Step {
    let Some(policy) = policy else {
        return Step::Drop("its policy is gone");
    };
    if policy.metadata.uid.as_ref() != Some(&report.policy.uid) {
        return Step::Drop("another policy has its name now");
    }
    let Some(there) = there else {
        return match once {
            true => Step::Leave,
            false => Step::Create,
        };
    };
    let none = Status::default();
    let says = there.status.as_ref().unwrap_or(&none);
    // One that is ahead of the policy itself was left by an earlier policy of that name.
    let newer = report.policy.generation + 1..=policy.metadata.generation.unwrap_or(0);
    if says.policy_generation.is_some_and(|it| newer.contains(&it)) {
        return Step::Drop("a newer generation is told of already");
    }
    match says_the_same(says, &report.status) {
        true => Step::Rest,
        false => Step::Write(Box::new(following(says, &report.status))),
    }
}

/// What is to be said after what is said: within a generation, a time of transition moves only if its
/// status does.
fn following(before: &Status, report: &Status) -> Status {
    let mut next = report.clone();
    if before.policy_generation == report.policy_generation {
        for condition in &mut next.conditions {
            let mut known = before.conditions.iter();
            if let Some(known) = known.find(|it| it.type_ == condition.type_)
                && known.status == condition.status
                && known.last_transition_time.is_some()
            {
                condition.last_transition_time = known.last_transition_time.clone();
            }
        }
    }
    next
}

impl Server {
    /// Tells what is in the outbox, for ever.
    pub(super) async fn deliver(&self) {
        let mut failures = 0;
        loop {
            self.inner.watched.policies.in_order().await;
            let patience = if failures == 0 { SOON } else { DEADLINE };
            let mut failed = false;
            for due in self.inner.outbox.all_due() {
                let told = self.tell(&due, patience).await;
                failed |= told.is_err();
                if let Err(trouble) = told {
                    self.not_told(&due.policy, &trouble);
                    if trouble.is_outage() {
                        break;
                    }
                }
            }
            if failed {
                sleep(wait_after(failures)).await;
                failures = failures.saturating_add(1);
                continue;
            }
            failures = 0;
            self.all_told();
            self.tidy();
            self.inner.outbox.added().await;
        }
    }

    /// What was told of policies that are gone needs no memory.
    fn tidy(&self) {
        if let Some(policies) = self.policies() {
            let uids = policies
                .iter()
                .filter_map(|it| it.object.metadata.uid.clone());
            self.inner.outbox.tidy(&uids.collect());
        }
    }

    async fn tell(&self, due: &Due, patience: Duration) -> Result<(), Trouble> {
        let calls = Calls {
            server: self,
            name: enactment_name(&self.inner.settings.node, &due.policy),
            patience,
        };
        match &due.what {
            What::Withdrawal => {
                calls.delete().await?;
                self.inner.outbox.done(due);
                Ok(())
            }
            What::Report { report, once } => self.tell_report(&calls, due, report, *once).await,
        }
    }

    async fn tell_report(
        &self,
        calls: &Calls<'_>,
        due: &Due,
        report: &EnactmentReport,
        once: bool,
    ) -> Result<(), Trouble> {
        let policy = calls.policy(&due.policy).await?;
        let there = calls.get().await?;
        let next = step(report, once, policy.as_ref(), there.as_ref());
        let (policy, generation) = (&due.policy, report.policy.generation);
        match (next, there) {
            (Step::Drop(why), _) => {
                tracing::info!(policy, generation, "a report is not told: {why}");
                self.inner.outbox.done(due);
                return Ok(());
            }
            (Step::Leave, _) => {
                tracing::info!(policy, generation, "an enactment was deleted and stays so");
            }
            (Step::Rest, _) => {}
            (Step::Write(status), Some(there)) => calls.write(there, *status).await?,
            (Step::Create | Step::Write(_), _) => {
                let made = calls.create(policy).await?;
                calls.write(made, report.status.clone()).await?;
            }
        }
        self.inner.outbox.told(due);
        Ok(())
    }
}

/// Calls about one enactment.
struct Calls<'a> {
    server: &'a Server,
    name: String,
    patience: Duration,
}

impl Calls<'_> {
    async fn policy(&self, name: &str) -> Result<Option<NodeNetworkConfigurationPolicy>, Trouble> {
        let doing = format!("reading NodeNetworkConfigurationPolicy {name}");
        self.call(doing, async |client| Api::all(client).get_opt(name).await)
            .await
    }

    async fn get(&self) -> Result<Option<NodeNetworkConfigurationEnactment>, Trouble> {
        self.call(self.doing("reading"), async |client| {
            Api::all(client).get_opt(&self.name).await
        })
        .await
    }

    /// Makes an enactment that says nothing yet.
    async fn create(&self, policy: &str) -> Result<NodeNetworkConfigurationEnactment, Trouble> {
        let node = &self.server.inner.settings.node;
        let doing = format!("reading Node {node}");
        let read = async |client| Api::<Node>::all(client).get_opt(node).await;
        let found = self.call(doing, read).await?;
        let uid = found.and_then(|it| it.metadata.uid);
        let uid = uid.ok_or_else(|| Trouble::NoNode(node.clone()))?;
        let mut labels = self.server.inner.settings.labels.clone();
        labels.insert(Label::Policy.to_string(), policy.to_owned());
        labels.insert(Label::PolicyNode.to_string(), node.clone());
        let enactment = NodeNetworkConfigurationEnactment {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels),
                owner_references: Some(vec![owner(node, &uid)]),
                ..ObjectMeta::default()
            },
            ..NodeNetworkConfigurationEnactment::default()
        };
        self.call(self.doing("creating"), async |client| {
            Api::all(client).create(&ours(), &enactment).await
        })
        .await
    }

    async fn write(
        &self,
        there: NodeNetworkConfigurationEnactment,
        status: Status,
    ) -> Result<(), Trouble> {
        let enactment = NodeNetworkConfigurationEnactment {
            metadata: ObjectMeta {
                name: there.metadata.name,
                // Who judges whether it is ours to write may look at them.
                labels: there.metadata.labels,
                resource_version: there.metadata.resource_version,
                uid: there.metadata.uid,
                ..ObjectMeta::default()
            },
            status: Some(status),
            ..NodeNetworkConfigurationEnactment::default()
        };
        let written = self.call(self.doing("writing the status of"), async |client| {
            let api = Api::<NodeNetworkConfigurationEnactment>::all(client);
            api.replace_status(&self.name, &ours(), &enactment).await
        });
        written.await.map(drop)
    }

    /// Deletes the enactment that is there, and no other.
    async fn delete(&self) -> Result<(), Trouble> {
        let Some(there) = self.get().await? else {
            return Ok(());
        };
        let how = DeleteParams {
            preconditions: Some(Preconditions {
                uid: there.metadata.uid,
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let deleted = self.call(self.doing("deleting"), async |client| {
            let api = Api::<NodeNetworkConfigurationEnactment>::all(client);
            api.delete(&self.name, &how).await
        });
        match deleted.await {
            Err(Trouble::Call(error)) if error.is_absent() => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    async fn call<T>(
        &self,
        doing: String,
        call: impl AsyncFnOnce(Client) -> kube::Result<T>,
    ) -> Result<T, Trouble> {
        let line = &self.server.inner.line;
        line.call(doing, self.patience, call).await
    }

    fn doing(&self, what: &str) -> String {
        format!("{what} NodeNetworkConfigurationEnactment {}", self.name)
    }
}

/// What makes an object go when its node goes.
pub(super) fn owner(node: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.to_owned(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    }
}
