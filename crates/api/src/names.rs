//! Names that other programs rely on: labels, annotations, finalizers, field managers, leases and
//! ports.
//!
//! Each is written once, here. Names derived from an object's name (`data-<node>`) belong to
//! `render`; condition types, events and task types have files of their own.

use crate::vocabulary::vocabulary;

/// API group of the nodes and fleets.
pub const SEI_GROUP: &str = "sei.io";

/// API group of the host network.
pub const NMSTATE_GROUP: &str = "nmstate.io";

/// Virtual resource that access to a sidecar's tasks is granted on, in the group `sei.io`.
pub const SIDECAR_ACCESS_RESOURCE: &str = "seinodetasks";

vocabulary! {
    /// Labels we set or read.
    pub enum Label {
        /// The SeiNode an object belongs to.
        Node => "sei.io/node",
        /// Chain of the node.
        Chain => "sei.io/chain",
        /// Role of the node; see [`Role`].
        Role => "sei.io/role",
        /// Part of a node that is not its normal pod; see [`Component`].
        Component => "sei.io/component",
        /// The SeiNodeDeployment a node belongs to.
        Fleet => "sei.io/nodedeployment",
        /// Ordinal of the node in its fleet.
        FleetOrdinal => "sei.io/nodedeployment-ordinal",
        /// Generation of the fleet that wrote the node.
        Revision => "sei.io/revision",
        /// The policy an enactment belongs to.
        Policy => "nmstate.io/policy",
        /// The Kubernetes node an enactment belongs to.
        PolicyNode => "nmstate.io/node",
        /// Asks the handler to report the node's network state at once.
        ForceRefresh => "nmstate.io/force-nns-refresh",
        /// Application of the host workloads.
        App => "app",
        /// Which of the host workloads a pod is; see [`HostWorkload`].
        HostComponent => "component",
        /// Recommended label: name of the application.
        AppName => "app.kubernetes.io/name",
        /// Recommended label: which instance of it.
        AppInstance => "app.kubernetes.io/instance",
        /// Recommended label: part of the application.
        AppComponent => "app.kubernetes.io/component",
        /// Recommended label: what the application is part of.
        AppPartOf => "app.kubernetes.io/part-of",
        /// Recommended label: who manages it.
        AppManagedBy => "app.kubernetes.io/managed-by",
        /// Recommended label: its version. Never part of a selector.
        AppVersion => "app.kubernetes.io/version",
    }
}

vocabulary! {
    /// Values of the label `sei.io/role`.
    pub enum Role {
        /// A validator.
        Validator => "validator",
        /// An archive node.
        Archive => "archive",
        /// A replayer.
        Replayer => "replayer",
        /// A full node.
        Node => "node",
    }
}

vocabulary! {
    /// Values of the label `sei.io/component`.
    pub enum Component {
        /// The pod that replays a snapshot before the node's own pod exists.
        Bootstrap => "bootstrap",
    }
}

vocabulary! {
    /// Values of the label `component` on host workloads.
    pub enum HostWorkload {
        /// The handler; its pods are counted to know how many hosts there are.
        Handler => "kubernetes-nmstate-handler",
        /// The webhook.
        Webhook => "kubernetes-nmstate-webhook",
        /// The metrics exporter.
        Metrics => "kubernetes-nmstate-metrics",
        /// The certificate rotation of the original, which we remove.
        CertManager => "kubernetes-nmstate-cert-manager",
    }
}

vocabulary! {
    /// Annotations we set or read.
    pub enum Annotation {
        /// Keeps a node's pod from being moved by the autoscaler.
        DoNotDisrupt => "karpenter.sh/do-not-disrupt",
        /// Marks a fleet's routes and internal Service.
        ManagedBy => "sei.io/managed-by",
        /// Asks for one more attempt after a failure; any new value counts once.
        Retry => "sei.io/retry",
        /// Touched on a pod so that the kubelet refreshes its mounted files at once.
        Refresh => "sei.io/refreshed-at",
        /// On a pod whose proxy was seen to serve TLS: from then on no token is sent to it in the clear.
        SpokeTls => "sei.io/spoke-tls",
        /// On a pod whose images were changed in place: by which edit, and what ran before it.
        EditedImages => "sei.io/edited-images",
        /// Hash of the TLS profile a host pod was made for.
        TlsProfileHash => "nmstate.io/tls-profile-hash",
        /// Touched on a host pod so that the kubelet refreshes its mounted files at once.
        HostRefresh => "nmstate.io/refreshed-at",
        /// Time of the last mutation of a policy, in nanoseconds.
        MutatedAt => "nmstate.io/webhook-mutating-timestamp",
        /// Undoes a policy's changes when it is deleted, where the value is `true`.
        RevertOnDelete => "nmstate.io/revert-on-delete",
    }
}

/// Value of the annotation `sei.io/managed-by`.
pub const MANAGED_BY_FLEET: &str = "seinodedeployment";

vocabulary! {
    /// Finalizers we set.
    pub enum Finalizer {
        /// On every SeiNode.
        Node => "sei.io/seinode-finalizer",
        /// On every SeiNodeDeployment.
        Fleet => "sei.io/seinodedeployment-finalizer",
    }
}

vocabulary! {
    /// Field managers of server-side apply; also the names events are reported under.
    ///
    /// They are the original's, so that adopted objects keep no field that nobody owns.
    pub enum FieldManager {
        /// Writes what belongs to a SeiNode.
        Node => "seinode-controller",
        /// Writes what belongs to a SeiNodeDeployment.
        Fleet => "seinodedeployment-controller",
        /// Writes what belongs to an NMState.
        Nmstate => "nmstate-operator",
        /// Writes what a host reports.
        Handler => "nmstate-handler",
    }
}

vocabulary! {
    /// Leases, one per API group.
    pub enum Lease {
        /// For `sei.io`; the original's, so that the two never lead at once.
        Sei => "bc1f5b0a.sei.io",
        /// For `nmstate.io`.
        Nmstate => "keelson.nmstate.io",
    }
}

vocabulary! {
    /// Ports of a node's pod, by the name they have in the Service and in the pod.
    pub enum Port {
        /// EVM JSON-RPC.
        EvmRpc => "evm-rpc",
        /// EVM over WebSocket.
        EvmWs => "evm-ws",
        /// gRPC.
        Grpc => "grpc",
        /// REST.
        Rest => "rest",
        /// Peers.
        P2p => "p2p",
        /// Tendermint RPC.
        Rpc => "rpc",
        /// Metrics of the node's process.
        Metrics => "metrics",
        /// The sidecar, on loopback only.
        Sidecar => "sidecar",
        /// The authorizing proxy before the sidecar; the only way in.
        Api => "api",
        /// Health of the proxy itself, without authorization.
        ProxyHealth => "proxy-health",
        /// Metrics of the Cosmos exporter.
        CosmosMetrics => "cosmos-metrics",
    }
}

impl Port {
    /// The port's number; the sidecar's is a default that a spec may change.
    pub const fn number(self) -> u16 {
        match self {
            Self::EvmRpc => 8545,
            Self::EvmWs => 8546,
            Self::Grpc => 9090,
            Self::Rest => 1317,
            Self::P2p => 26656,
            Self::Rpc => 26657,
            Self::Metrics => 26660,
            Self::Sidecar => 7777,
            Self::Api => 8443,
            Self::ProxyHealth => 8444,
            Self::CosmosMetrics => 9300,
        }
    }
}
