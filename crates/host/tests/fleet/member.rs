//! A host of a cluster and its node: the handler on it, and what that tells of policies.

use super::world::HOST;
use crate::common::homes::{Home, SOON, Start};
use keelson_api::NodeNetworkConfigurationEnactment;
use keelson_api::condition::HostCondition;
use keelson_api::enactment::{NodeNetworkConfigurationEnactmentStatus as Status, enactment_name};
use keelson_api::host_condition::EnactmentCondition;
use keelson_host::handler::points::Point;
use keelson_testbed::{Network, Process, until};
use kube::{Api, Client};
use std::ops::Deref;

/// What handlers are told besides where things are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// How long a checkpoint lasts, in seconds.
    pub(crate) checkpoint: u32,
    /// How long probes have, in seconds.
    pub(crate) probes: u32,
    /// How often a policy is tried.
    pub(crate) attempts: u32,
    /// How many seconds lie before the second attempt.
    pub(crate) pause: u32,
    /// How many seconds lie between two looks at the network.
    pub(crate) refresh: u32,
    /// What a claim lasts longer than a change, in seconds.
    pub(crate) spare: u32,
    /// Whether it asks the name server at the switch, and not those of the host.
    pub(crate) ask_the_switch: bool,
    /// Where it stops by itself, if anywhere.
    pub(crate) stop: Option<Point>,
    /// Whether it logs how far each change is.
    pub(crate) debug: bool,
}

impl Told {
    fn servers(&self, network: &Network) -> String {
        match self.ask_the_switch {
            true => network.address().to_string(),
            false => String::new(),
        }
    }
}

impl Default for Told {
    fn default() -> Self {
        Self {
            checkpoint: 20,
            probes: 5,
            attempts: 1,
            pause: 1,
            refresh: 60,
            spare: 60,
            ask_the_switch: true,
            stop: None,
            debug: false,
        }
    }
}

/// A host and its node.
pub(crate) struct Member {
    pub(super) home: Home,
    pub(crate) node: String,
    pub(super) namespace: String,
    pub(super) kubeconfig: String,
    pub(super) network: Network,
    pub(super) client: Client,
}

impl Deref for Member {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl Member {
    /// A handler that is told this, running.
    pub(crate) fn start(&self, told: Told) -> Process {
        let words = [
            format!("--namespace={}", self.namespace),
            format!("--checkpoint-timeout-seconds={}", told.checkpoint),
            format!("--probe-timeout-seconds={}", told.probes),
            format!("--max-retries={}", told.attempts),
            format!("--refresh-seconds={}", told.refresh),
            format!("--claim-spare-seconds={}", told.spare),
            format!("--probe-dns-servers={}", told.servers(&self.network)),
            "--server-patience-seconds=3".to_owned(),
            format!("--initial-backoff-seconds={}", told.pause),
            "--max-backoff-seconds=2".to_owned(),
            format!("--log-level={}", if told.debug { "debug" } else { "info" }),
        ];
        let handler = self.home.handler(Start {
            node: self.node.clone(),
            kubeconfig: self.kubeconfig.clone(),
            stop: told.stop,
            words: words.into(),
        });
        handler.start().expect("a handler");
        handler
    }

    /// The label no other host has, and its value.
    pub(crate) fn own_label(&self) -> (&'static str, &str) {
        (HOST, &self.node)
    }

    /// What the enactment of a policy here says; none where there is none.
    pub(crate) async fn enactment(&self, policy: &str) -> Option<Status> {
        let api = Api::<NodeNetworkConfigurationEnactment>::all(self.client.clone());
        let found = api.get_opt(&enactment_name(&self.node, policy)).await;
        Some(found.expect("an answer")?.status.unwrap_or_default())
    }

    /// Waits until a condition of the enactment of a policy holds, and gives what it says.
    pub(crate) async fn comes_to(&self, policy: &str, kind: EnactmentCondition) -> Status {
        self.comes_to_where(policy, kind, |_| true).await
    }

    /// The same, of a status that is also like this.
    pub(crate) async fn comes_to_where(
        &self,
        policy: &str,
        kind: EnactmentCondition,
        so: impl Fn(&Status) -> bool,
    ) -> Status {
        let what = format!("{policy} on {} to be {kind}", self.node);
        let seen = until(&what, SOON * 2, async || {
            match self.enactment(policy).await {
                Some(status) if holds(&status, kind) && so(&status) => Ok(status),
                other => Err(format!("{other:#?}")),
            }
        });
        match seen.await {
            Ok(status) => status,
            Err(error) => panic!("{error}\n{}", self.log(30)),
        }
    }

    /// Waits until there is no enactment of a policy.
    pub(crate) async fn is_rid_of(&self, policy: &str) {
        let gone = until("the end of an enactment", SOON, async || {
            match self.enactment(policy).await {
                None => Ok(()),
                Some(status) => Err(format!("{status:?}")),
            }
        });
        gone.await.expect("no enactment");
    }

    /// The last lines of what its handler logged.
    pub(crate) fn log(&self, lines: usize) -> String {
        let text = std::fs::read_to_string(self.path("logs/keelson-host.log"));
        let text = text.unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Whether a condition holds.
pub(crate) fn holds(status: &Status, kind: EnactmentCondition) -> bool {
    condition(status, kind).is_some_and(|it| it.status == "True")
}

/// One condition.
pub(crate) fn condition(status: &Status, kind: EnactmentCondition) -> Option<&HostCondition> {
    status
        .conditions
        .iter()
        .find(|it| it.type_ == kind.as_str())
}

/// What a condition says.
pub(crate) fn message(status: &Status, kind: EnactmentCondition) -> &str {
    let condition = condition(status, kind);
    condition
        .and_then(|it| it.message.as_deref())
        .unwrap_or_default()
}
