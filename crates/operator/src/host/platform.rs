//! What the cluster can do beyond plain Kubernetes, each capability found out on its own.
//!
//! A capability is a kind that is served. The API server is asked again and again; only its explicit
//! answers count. An error is neither yes nor no: what was held before is held on. What was there
//! once counts as there until it was explicitly absent, without a break, for ten minutes: a type
//! that is being replaced, or a server behind an aggregator that restarts, is no change of platform.
//! What follows from a capability is for others.

use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use keelson_cluster::{DEADLINE, within};
use kube::Client;

/// How long an explicit absence has to last before something that was there is gone.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Two absences further apart than this are not one: nobody looked in between.
pub const BREAK: Duration = Duration::from_secs(120);

/// How often the API server is asked again.
pub const AGAIN: Duration = Duration::from_secs(30);

/// Something a cluster may be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// The cluster has a TLS profile of its own, in `APIServer/cluster`.
    ClusterProfile,
    /// Serving certificates are made by service-ca.
    ServiceCa,
    /// Pods need a SecurityContextConstraints to run as they want.
    SecurityConstraints,
    /// The console takes plugins.
    Console,
    /// Metrics are scraped where a ServiceMonitor says so.
    ServiceMonitors,
    /// Alerts are taken from PrometheusRules.
    PrometheusRules,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 6] = [
        Self::ClusterProfile,
        Self::ServiceCa,
        Self::SecurityConstraints,
        Self::Console,
        Self::ServiceMonitors,
        Self::PrometheusRules,
    ];

    /// Group with version, and resource, that a cluster with this capability serves.
    pub const fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::ClusterProfile => ("config.openshift.io/v1", "apiservers"),
            Self::ServiceCa => ("operator.openshift.io/v1", "servicecas"),
            Self::SecurityConstraints => ("security.openshift.io/v1", "securitycontextconstraints"),
            Self::Console => ("console.openshift.io/v1", "consoleplugins"),
            Self::ServiceMonitors => ("monitoring.coreos.com/v1", "servicemonitors"),
            Self::PrometheusRules => ("monitoring.coreos.com/v1", "prometheusrules"),
        }
    }
}

/// What the API server says to the question whether a kind is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is.
    Served,
    /// It explicitly is not.
    Absent,
    /// No answer to this question, and why.
    Unclear(String),
}

/// What is held to be true of one capability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    there: Option<bool>,
    /// The first and the last of the absences heard without a break, while it counts as there.
    absent: Option<(Timestamp, Timestamp)>,
    trouble: Option<String>,
}

impl Held {
    /// What was known before this process started.
    pub fn known(there: bool) -> Self {
        Self {
            there: Some(there),
            ..Self::default()
        }
    }

    /// Whether the capability is there; none where nobody could say so far.
    pub fn there(&self) -> Option<bool> {
        self.there
    }

    /// Why the last question got no answer, if it got none.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// What is held after an answer.
    #[must_use]
    pub fn hear(self, answer: &Answer, now: Timestamp) -> Self {
        match (answer, self.there) {
            (Answer::Served, _) => Self::known(true),
            (Answer::Unclear(why), there) => Self {
                there,
                absent: None,
                trouble: Some(why.clone()),
            },
            (Answer::Absent, Some(true)) => self.miss(now),
            (Answer::Absent, Some(false) | None) => Self::known(false),
        }
    }

    /// It was there and is not: believed after a while.
    fn miss(self, now: Timestamp) -> Self {
        let unbroken = |&(_, last): &(Timestamp, Timestamp)| within_span(last, now, BREAK);
        let since = self.absent.filter(unbroken).map_or(now, |(first, _)| first);
        if !within_span(since, now, PATIENCE) {
            return Self::known(false);
        }
        Self {
            there: Some(true),
            absent: Some((since, now)),
            trouble: None,
        }
    }
}

/// Whether less than `span` lies between two moments, in this order. A clock that was set back has
/// not advanced.
fn within_span(from: Timestamp, to: Timestamp, span: Duration) -> bool {
    Duration::try_from(to.duration_since(from)).is_ok_and(|passed| passed < span) || to < from
}

/// What is held to be true of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    held: [Held; Capability::ALL.len()],
}

impl Platform {
    /// A platform of which this was known before this process started: whether it is OpenShift, and
    /// whether service-ca makes certificates.
    pub fn remembered(openshift: Option<bool>, service_ca: Option<bool>) -> Self {
        let mut platform = Self::default();
        for (capability, known) in [
            (Capability::SecurityConstraints, openshift),
            (Capability::ServiceCa, service_ca),
        ] {
            if let Some(there) = known {
                platform.held[capability as usize] = Held::known(there);
            }
        }
        platform
    }

    /// What is held of one capability.
    pub fn of(&self, capability: Capability) -> &Held {
        &self.held[capability as usize]
    }

    /// Whether a capability is known to be there.
    pub fn has(&self, capability: Capability) -> bool {
        self.of(capability).there() == Some(true)
    }

    /// Whether this is OpenShift, where that is known. It is what `IS_OPENSHIFT` says: the cluster
    /// has SecurityContextConstraints, as the original has it.
    pub fn openshift(&self) -> Option<bool> {
        self.of(Capability::SecurityConstraints).there()
    }

    /// What is held after an answer about one capability; the others are untouched by it.
    pub fn hear(&mut self, capability: Capability, answer: &Answer, now: Timestamp) {
        let held = &mut self.held[capability as usize];
        *held = std::mem::take(held).hear(answer, now);
    }

    /// What nobody could say so far, with why; nothing where everything is known.
    pub fn unknown(&self) -> Vec<String> {
        let unknown = Capability::ALL
            .into_iter()
            .filter(|it| self.of(*it).there().is_none());
        unknown
            .map(|it| {
                let (group, resource) = it.kind();
                let why = self.of(it).trouble().unwrap_or("it was not asked for yet");
                format!("whether {resource} of {group} are served is not known: {why}")
            })
            .collect()
    }
}

/// Asks the API server whether a capability's kind is served.
pub async fn ask(client: &Client, capability: Capability) -> Answer {
    let (group, resource) = capability.kind();
    let doing = format!("asking whether {resource} of {group} are served");
    let listed = within(doing, DEADLINE, client.list_api_group_resources(group)).await;
    // A group that lists its kinds without this one says no as clearly as one that is not there.
    match listed {
        Ok(list) if list.resources.iter().any(|it| it.name == resource) => Answer::Served,
        Ok(_) => Answer::Absent,
        Err(error) if error.is_absent() => Answer::Absent,
        Err(error) => Answer::Unclear(error.to_string()),
    }
}

/// Asks for every capability, and hears what is said.
pub async fn look(client: &Client, platform: &mut Platform, now: Timestamp) {
    let asked = Capability::ALL.map(|it| async move { (it, ask(client, it).await) });
    for (capability, answer) in join_all(asked).await {
        platform.hear(capability, &answer, now);
    }
}
