//! Names of tasks and of plans.
//!
//! Only names, as they stand in `status.plan`, in the sidecar's requests and in metric labels. In
//! which order tasks run, and which of them a plan has, is for `plan`.

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Every task a plan may have, every task the original may have left in a status, and what else
    /// a sidecar does when asked.
    pub enum TaskType {
        // Done by the operator, for a node.
        /// Creates the data volume's claim, or checks the imported one.
        EnsureDataPvc => "ensure-data-pvc",
        /// Checks the Secret of the signing key.
        ValidateSigningKey => "validate-signing-key",
        /// Checks the Secret of the node key.
        ValidateNodeKey => "validate-node-key",
        /// Checks the Secrets of the operator's keyring.
        ValidateOperatorKeyring => "validate-operator-keyring",
        /// Orders the sidecar's certificate.
        ApplySidecarCert => "apply-sidecar-cert",
        /// Waits until the sidecar's certificate is there and fits.
        WaitForSidecarTlsSecret => "wait-for-sidecar-tls-secret",
        /// Writes the proxy's configuration.
        ApplyRbacProxyConfig => "apply-rbac-proxy-config",
        /// Writes the node's NetworkPolicy.
        ApplyNetworkPolicy => "apply-network-policy",
        /// Writes the StatefulSet.
        ApplyStatefulSet => "apply-statefulset",
        /// Writes the Service.
        ApplyService => "apply-service",
        /// Changes images of sidecar containers in the running pod.
        PatchPodImages => "patch-pod-images",
        /// Replaces a pod that a cause of the plan rolls.
        ReplacePod => "replace-pod",
        /// Records the images that run.
        ObserveImage => "observe-image",
        /// Records the certificate the sidecar serves, by a handshake.
        ObserveSidecarTls => "observe-sidecar-tls",
        /// Removes the Certificate and its Secret.
        DeleteSidecarCert => "delete-sidecar-cert",
        /// Creates the bootstrap Service.
        DeployBootstrapService => "deploy-bootstrap-service",
        /// Creates the bootstrap Job.
        DeployBootstrapJob => "deploy-bootstrap-job",
        /// Waits for the bootstrap Job.
        AwaitBootstrapComplete => "await-bootstrap-complete",
        /// Removes the bootstrap Job, its pods and its Service.
        TeardownBootstrap => "teardown-bootstrap",

        // Done by the sidecar.
        /// Fetches a snapshot.
        SnapshotRestore => "snapshot-restore",
        /// Writes the genesis file.
        ConfigureGenesis => "configure-genesis",
        /// Writes the configuration files.
        ConfigApply => "config-apply",
        /// Changes configuration files.
        ConfigPatch => "config-patch",
        /// Checks the configuration files.
        ConfigValidate => "config-validate",
        /// Writes the peers.
        DiscoverPeers => "discover-peers",
        /// Writes the state-sync settings.
        ConfigureStateSync => "configure-state-sync",
        /// Approves the start of the process.
        MarkReady => "mark-ready",
        /// Revokes the approval.
        MarkNotReady => "mark-not-ready",
        /// Stops the process.
        StopSeid => "stop-seid",
        /// Restarts the process.
        RestartSeid => "restart-seid",
        /// Empties the data folder.
        ResetData => "reset-data",
        /// Uploads snapshots, for as long as the node lives.
        SnapshotUpload => "snapshot-upload",
        /// Uploads one snapshot; asked for by people and cron jobs, never part of a plan.
        SnapshotUploadOnce => "snapshot-upload-once",
        /// Makes the node's identity for a ceremony.
        GenerateIdentity => "generate-identity",
        /// Makes the node's genesis transaction.
        GenerateGentx => "generate-gentx",
        /// Uploads what the node adds to the ceremony.
        UploadGenesisArtifacts => "upload-genesis-artifacts",
        /// Writes the ceremony's peers.
        SetGenesisPeers => "set-genesis-peers",
        /// Puts the genesis file together and uploads it.
        AssembleAndUploadGenesis => "assemble-and-upload-genesis",
        /// Waits for a height.
        AwaitCondition => "await-condition",
        /// Votes on a proposal.
        GovVote => "gov-vote",
        /// Proposes a software upgrade.
        GovSoftwareUpgrade => "gov-software-upgrade",
        /// Proposes a change of parameters.
        GovParamChange => "gov-param-change",

        // Done by the operator, for a fleet.
        /// Moves nodes to the new template.
        UpdateNodeSpecs => "update-node-specs",
        /// Waits until nodes are of the new template.
        AwaitSpecUpdate => "await-spec-update",
        /// Waits until nodes run.
        AwaitNodesRunning => "await-nodes-running",
        /// Makes the nodes of a ceremony each other's peers.
        CollectAndSetPeers => "collect-and-set-peers",
        /// Creates the nodes that will replace the present ones.
        CreateEntrantNodes => "create-entrant-nodes",
        /// Asks the present nodes to halt at a height.
        SubmitHaltSignal => "submit-halt-signal",
        /// Waits until nodes reach a height.
        AwaitNodesAtHeight => "await-nodes-at-height",
        /// Waits until nodes follow the head of the chain.
        AwaitNodesCaughtUp => "await-nodes-caught-up",
        /// Moves traffic to the new nodes.
        SwitchTraffic => "switch-traffic",
        /// Removes the replaced nodes.
        TeardownNodes => "teardown-nodes",
    }
}

vocabulary! {
    /// Who carries a task out.
    pub enum Executor {
        /// The operator, for one node.
        Operator => "operator",
        /// The node's sidecar.
        Sidecar => "sidecar",
        /// The operator, for a fleet.
        Fleet => "fleet",
    }
}

impl TaskType {
    /// Who carries the task out. Declaration order has the three groups one after the other.
    pub fn executor(self) -> Executor {
        if self < Self::SnapshotRestore {
            Executor::Operator
        } else if self < Self::UpdateNodeSpecs {
            Executor::Sidecar
        } else {
            Executor::Fleet
        }
    }
}

vocabulary! {
    /// Kinds of plans: the metric label `plan_type`, stored with the plan.
    pub enum PlanKind {
        /// Sets a node up.
        Init => "init",
        /// Sets a node up through a bootstrap pod.
        Bootstrap => "bootstrap",
        /// Takes part in, or holds, a genesis ceremony.
        Genesis => "genesis",
        /// Changes a running node.
        NodeUpdate => "node-update",
        /// Changes a running node's TLS.
        TlsToggle => "tls-toggle",
        /// Changes a running node and its TLS, as one.
        NodeUpdateTls => "node-update-tls",
        /// Approves a restarted node again.
        MarkReadyReapply => "mark-ready-reapply",
        /// Moves a fleet to a new template.
        Rollout => "rollout",
    }
}
