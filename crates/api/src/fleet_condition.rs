//! Condition types of a SeiNodeDeployment and the reasons they may have.

use crate::condition::reasons;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// Condition types of a SeiNodeDeployment. All are present from the first reconcile on.
    pub enum FleetCondition {
        /// Every node is available and of today's template.
        Ready => "Ready",
        /// The operator works towards the spec.
        Reconciling => "Reconciling",
        /// The operator cannot get further by itself; the message names what it waits for.
        Stalled => "Stalled",
        /// The spec can be carried out.
        SpecValid => "SpecValid",
        /// The operator leaves the fleet as it is.
        Paused => "Paused",
        /// Every node is ready.
        NodesReady => "NodesReady",
        /// The public routes are in place.
        RouteReady => "RouteReady",
        /// The genesis ceremony is over; stays true.
        GenesisCeremonyComplete => "GenesisCeremonyComplete",
        /// A genesis ceremony has to be held.
        GenesisCeremonyNeeded => "GenesisCeremonyNeeded",
        /// A plan is being carried out.
        PlanInProgress => "PlanInProgress",
        /// Nodes are being moved to a new template.
        RolloutInProgress => "RolloutInProgress",
    }
}

vocabulary! {
    /// Reasons of a SeiNodeDeployment's conditions.
    pub enum FleetReason {
        /// The condition does not apply to this spec.
        NotApplicable => "NotApplicable",
        /// Nothing has been observed yet.
        NotObserved => "NotObserved",
        /// Every node is ready.
        AllNodesReady => "AllNodesReady",
        /// Some nodes failed.
        NodesFailed => "NodesFailed",
        /// Some nodes are being set up.
        NodesInitializing => "NodesInitializing",
        /// The fleet is being deleted.
        Terminating => "Terminating",
        /// The fleet is as the spec asks.
        Settled => "Settled",
        /// Nothing holds the fleet up.
        NotStalled => "NotStalled",
        /// No node made progress within the deadline.
        ProgressDeadlineExceeded => "ProgressDeadlineExceeded",
        /// The spec can be carried out.
        Valid => "Valid",
        /// The spec cannot be carried out; the message says what to change.
        Invalid => "Invalid",
        /// The spec asks for the pause.
        PausedBySpec => "PausedBySpec",
        /// The fleet is not paused.
        NotPaused => "NotPaused",
        /// The routes are in place.
        HttpRouteReady => "HTTPRouteReady",
        /// The cluster has no Gateway API.
        CrdNotInstalled => "CRDNotInstalled",
        /// The name of the route does not resolve yet.
        DnsPending => "DNSPending",
        /// A plan began.
        PlanStarted => "PlanStarted",
        /// The plan is complete.
        PlanComplete => "PlanComplete",
        /// The plan failed.
        PlanFailed => "PlanFailed",
        /// The template changed.
        TemplateChanged => "TemplateChanged",
        /// Every node is of the new template.
        RolloutComplete => "RolloutComplete",
        /// The rollout failed.
        RolloutFailed => "RolloutFailed",
        /// The spec asks for a ceremony.
        GenesisConfigured => "GenesisConfigured",
        /// The ceremony is over.
        CeremonyComplete => "CeremonyComplete",
        /// The ceremony is being held.
        CeremonyInProgress => "CeremonyInProgress",
    }
}

reasons!(FleetCondition => FleetReason);
