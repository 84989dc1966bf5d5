//! How the world differs from the spec, as a set of named causes.
//!
//! The set names the plan: it is the condition's reason, the metric's label and the sentence a person
//! reads. What each cause asks for stands in `asks`.

use std::collections::BTreeSet;

use crate::observed::{Data, Observed};
use crate::target::{Pod, Start, Target};

/// One way the world differs from the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drift {
    /// The node was never set up to the end.
    Setup,
    /// Its data shall come from a bootstrap Job, which is not complete.
    Bootstrap,
    /// Something of a bootstrap Job is left that nobody needs.
    Leftover,
    /// The data volume's claim is missing.
    Volume,
    /// The proxy's configuration is missing or was changed.
    ProxyConfig,
    /// The NetworkPolicy is missing or was changed.
    NetworkPolicy,
    /// The StatefulSet is missing.
    Workload,
    /// The Service is missing or was changed.
    Service,
    /// The image of the node's process.
    Image,
    /// Something else only a new pod has.
    Pod,
    /// The image of the sidecar.
    SidecarImage,
    /// The image of the proxy.
    ProxyImage,
    /// TLS shall be served, from this source, and is not.
    TlsOn,
    /// TLS shall not be served, and is, or something of it is left.
    TlsOff,
    /// The TLS the pod was born with.
    TlsMount,
    /// The configuration of the process.
    Settings,
    /// The peers.
    Peers,
    /// Snapshots shall be uploaded and are not, or are and shall not be.
    Publishing,
    /// The start of the process is not approved.
    Approval,
}

impl Drift {
    /// Every cause.
    pub const ALL: &'static [Self] = &[
        Self::Setup,
        Self::Bootstrap,
        Self::Leftover,
        Self::Volume,
        Self::ProxyConfig,
        Self::NetworkPolicy,
        Self::Workload,
        Self::Service,
        Self::Image,
        Self::Pod,
        Self::SidecarImage,
        Self::ProxyImage,
        Self::TlsOn,
        Self::TlsOff,
        Self::TlsMount,
        Self::Settings,
        Self::Peers,
        Self::Publishing,
        Self::Approval,
    ];

    /// The name in `status.plan.causes`; stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Bootstrap => "bootstrap",
            Self::Leftover => "bootstrap-leftover",
            Self::Volume => "volume",
            Self::ProxyConfig => "proxy-config",
            Self::NetworkPolicy => "network-policy",
            Self::Workload => "workload",
            Self::Service => "service",
            Self::Image => "image",
            Self::Pod => "pod",
            Self::SidecarImage => "sidecar-image",
            Self::ProxyImage => "proxy-image",
            Self::TlsOn => "tls-on",
            Self::TlsOff => "tls-off",
            Self::TlsMount => "tls-mount",
            Self::Settings => "settings",
            Self::Peers => "peers",
            Self::Publishing => "publishing",
            Self::Approval => "approval",
        }
    }

    /// The same in words, for people.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Setup => "the node is new",
            Self::Bootstrap => "its state comes from a snapshot",
            Self::Leftover => "a bootstrap is to be cleared away",
            Self::Volume => "the data volume",
            Self::ProxyConfig => "the proxy's configuration",
            Self::NetworkPolicy => "the NetworkPolicy",
            Self::Workload => "the StatefulSet",
            Self::Service => "the Service",
            Self::Image => "the node's image",
            Self::Pod => "the pod's template",
            Self::SidecarImage => "the sidecar's image",
            Self::ProxyImage => "the proxy's image",
            Self::TlsOn => "TLS on",
            Self::TlsOff => "TLS off",
            Self::TlsMount => "the certificate's place in the pod",
            Self::Settings => "the node's settings",
            Self::Peers => "the peers",
            Self::Publishing => "the upload of snapshots",
            Self::Approval => "the sidecar has not approved the start",
        }
    }

    /// The cause of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|cause| cause.as_str() == name)
    }

    /// Whether only a new pod removes it.
    pub const fn rolls(self) -> bool {
        matches!(self, Self::Image | Self::Pod | Self::TlsMount)
    }

    /// Whether it is about TLS.
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::TlsOn | Self::TlsOff | Self::TlsMount)
    }

    /// Whether setting a node up removes it by the way, so that it is not worth naming beside it.
    const fn is_part_of_setup(self) -> bool {
        matches!(
            self,
            Self::Volume
                | Self::ProxyConfig
                | Self::NetworkPolicy
                | Self::Workload
                | Self::Service
                | Self::TlsOn
                | Self::Settings
                | Self::Peers
                | Self::Approval
        )
    }
}

/// How the world differs from the spec. Whatever a task writes is read here.
pub fn drifts(want: &Target, have: &Observed) -> BTreeSet<Drift> {
    let setup = have.data != Data::Complete;
    let bootstrap = have.data == Data::Empty && matches!(want.start, Start::Bootstrap { .. });
    let tls = tls_differs(want, have);
    // Files that are written and a process that was not restarted are still a difference.
    let settings = [&have.settings, &have.process]
        .into_iter()
        .any(|known| known_differs(known.as_ref(), Some(&want.settings)));
    let policy = have.proxy_config.as_ref().map(|config| &config.policy);
    [
        (Drift::Setup, setup),
        (Drift::Bootstrap, bootstrap),
        (Drift::Leftover, have.bootstrap && !bootstrap),
        (Drift::Volume, !have.volume),
        (Drift::ProxyConfig, policy != Some(&want.proxy_policy)),
        (
            Drift::NetworkPolicy,
            want.network_policy && !have.network_policy,
        ),
        (Drift::Workload, have.template.is_none()),
        (Drift::Service, !have.service),
        (Drift::Image, pod_differs(want, have, |pod| &pod.image)),
        (Drift::Pod, pod_differs(want, have, |pod| &pod.rest)),
        (
            Drift::SidecarImage,
            pod_differs(want, have, |pod| &pod.sidecar_image),
        ),
        (
            Drift::ProxyImage,
            pod_differs(want, have, |pod| &pod.proxy_image),
        ),
        (Drift::TlsOn, tls && want.tls.is_some()),
        (Drift::TlsOff, tls && want.tls.is_none()),
        (Drift::TlsMount, pod_differs(want, have, |pod| &pod.tls)),
        (Drift::Settings, settings),
        (
            Drift::Peers,
            known_differs(have.peers.as_ref(), want.peers.as_ref()),
        ),
        (
            Drift::Publishing,
            have.publishing.is_some_and(|on| on != want.publishes),
        ),
        (Drift::Approval, have.approved == Some(false)),
    ]
    .into_iter()
    .filter(|&(drift, present)| present && !(setup && drift.is_part_of_setup()))
    .map(|(drift, _)| drift)
    .collect()
}

/// Whether template or pod differ only by what an operator upgrade changed. It is reported, and rides
/// on the next roll somebody asks for.
pub fn outdated(want: &Target, have: &Observed) -> bool {
    pod_differs(want, have, |pod| &pod.made_by)
}

/// Whether the template or the pod has another value than the one asked for. One that is not there
/// has none.
fn pod_differs<T: PartialEq>(want: &Target, have: &Observed, field: fn(&Pod) -> &T) -> bool {
    pods(have).any(|pod| field(pod) != field(&want.pod))
}

/// Which parts of the pod differ in the template or the pod, where [`Drift::Pod`] is.
pub(crate) fn parts(want: &Target, have: &Observed) -> BTreeSet<String> {
    let want = &want.pod.rest;
    pods(have)
        .flat_map(|pod| {
            let names = want.keys().chain(pod.rest.keys());
            names.filter(|name| want.get(*name) != pod.rest.get(*name))
        })
        .cloned()
        .collect()
}

fn pods(have: &Observed) -> impl Iterator<Item = &Pod> {
    let running = have.running.as_ref().map(|running| &running.pod);
    [have.template.as_ref(), running].into_iter().flatten()
}

/// The order for the certificate, what the proxy is told, and what it serves.
fn tls_differs(want: &Target, have: &Observed) -> bool {
    let ordered = want.tls.as_ref().filter(|tls| tls.is_issued());
    let told = have.proxy_config.as_ref().map(|config| &config.tls);
    have.certificate.as_ref() != ordered
        || told.is_some_and(|told| *told != want.tls)
        || have.served.contradicts(want.tls.as_ref())
}

fn known_differs(have: Option<&String>, want: Option<&String>) -> bool {
    have.zip(want).is_some_and(|(have, want)| have != want)
}
