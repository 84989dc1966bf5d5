//! Names of the events we emit, with the severity each has.
//!
//! An event marks a transition; what varies stands in its note. The name is API, the note is not.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// How an event is classed.
    pub enum Severity {
        /// As it should be.
        Normal => "Normal",
        /// Someone may want to look.
        Warning => "Warning",
    }
}

vocabulary! {
    /// Events about a SeiNode.
    pub enum NodeEvent {
        /// The phase changed.
        PhaseTransition => "PhaseTransition",
        /// The sidecar is ready again.
        SidecarReadinessRestored => "SidecarReadinessRestored",
        /// The certificate of the sidecar is ready.
        SidecarTlsSecretReady => "SidecarTLSSecretReady",
        /// A plan began; the note names its causes.
        PlanStarted => "PlanStarted",
        /// A plan was replaced, because the spec asks for something else.
        PlanSuperseded => "PlanSuperseded",
        /// A plan is complete.
        PlanComplete => "PlanComplete",
        /// Another attempt was asked for.
        RetryRequested => "RetryRequested",
        /// The data volume outlives the node.
        VolumeRetained => "VolumeRetained",
        /// The node failed.
        NodeFailed => "NodeFailed",
        /// A plan failed.
        PlanFailed => "PlanFailed",
        /// A stored plan could not be read and was dropped.
        PlanDropped => "PlanDropped",
        /// The spec cannot be carried out.
        SpecInvalid => "SpecInvalid",
        /// The operator cannot get further by itself.
        Stalled => "Stalled",
        /// The sidecar is no longer ready.
        SidecarReadinessLost => "SidecarReadinessLost",
        /// The certificate of the sidecar is not ready.
        SidecarTlsSecretNotReady => "SidecarTLSSecretNotReady",
        /// A StatefulSet somebody changed has one pod again, which nobody replaces but the operator.
        WorkloadMended => "WorkloadMended",
        /// The operator may not let the proxies of the namespace ask who calls.
        ProxiesNotBound => "ProxiesNotBound",
        /// A renewed certificate is not served yet.
        CertificateNotLoaded => "CertificateNotLoaded",
    }
}

impl NodeEvent {
    /// How the event is classed.
    pub const fn severity(self) -> Severity {
        match self {
            Self::PhaseTransition
            | Self::SidecarReadinessRestored
            | Self::SidecarTlsSecretReady
            | Self::PlanStarted
            | Self::PlanSuperseded
            | Self::PlanComplete
            | Self::RetryRequested
            | Self::VolumeRetained => Severity::Normal,
            Self::NodeFailed
            | Self::PlanFailed
            | Self::PlanDropped
            | Self::SpecInvalid
            | Self::Stalled
            | Self::SidecarReadinessLost
            | Self::SidecarTlsSecretNotReady
            | Self::WorkloadMended
            | Self::ProxiesNotBound
            | Self::CertificateNotLoaded => Severity::Warning,
        }
    }
}

vocabulary! {
    /// Events about a SeiNodeDeployment.
    pub enum FleetEvent {
        /// A node was created.
        SeiNodeCreated => "SeiNodeCreated",
        /// A node was deleted.
        SeiNodeDeleted => "SeiNodeDeleted",
        /// A rollout began.
        RolloutStarted => "RolloutStarted",
        /// A rollout was replaced by a newer one.
        RolloutSuperseded => "RolloutSuperseded",
        /// A rollout is complete.
        RolloutComplete => "RolloutComplete",
        /// A plan began.
        PlanStarted => "PlanStarted",
        /// A plan is complete.
        PlanComplete => "PlanComplete",
        /// What belongs to the fleet outlives it.
        RetainResources => "RetainResources",
        /// The routes are in place.
        HttpRouteReady => "HTTPRouteReady",
        /// A plan failed.
        PlanFailed => "PlanFailed",
        /// Something could not be deleted.
        DeleteFailed => "DeleteFailed",
        /// The cluster has no Gateway API.
        CrdNotInstalled => "CRDNotInstalled",
        /// The spec cannot be carried out.
        SpecInvalid => "SpecInvalid",
        /// The operator cannot get further by itself.
        Stalled => "Stalled",
    }
}

impl FleetEvent {
    /// How the event is classed.
    pub const fn severity(self) -> Severity {
        match self {
            Self::SeiNodeCreated
            | Self::SeiNodeDeleted
            | Self::RolloutStarted
            | Self::RolloutSuperseded
            | Self::RolloutComplete
            | Self::PlanStarted
            | Self::PlanComplete
            | Self::RetainResources
            | Self::HttpRouteReady => Severity::Normal,
            Self::PlanFailed
            | Self::DeleteFailed
            | Self::CrdNotInstalled
            | Self::SpecInvalid
            | Self::Stalled => Severity::Warning,
        }
    }
}

vocabulary! {
    /// Events about a NodeNetworkConfigurationPolicy.
    pub enum PolicyEvent {
        /// A host could not be brought to what the policy asks for.
        ReconcileFailed => "ReconcileFailed",
    }
}

impl PolicyEvent {
    /// How the event is classed.
    pub const fn severity(self) -> Severity {
        match self {
            Self::ReconcileFailed => Severity::Warning,
        }
    }
}
