//! Tasks, the stages they run in, and the one order there is.
//!
//! How long each may take stands here too. What a task does is for the operator and the sidecar;
//! which tasks a plan has is for [`crate::drift`].

use jiff::SignedDuration;
use keelson_api::task::{Executor, TaskType};

/// Which pod a task is about. Declaration order is execution order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// None yet: what every pod needs.
    Prepare,
    /// The pod of the bootstrap Job.
    Bootstrap,
    /// The node's own pod.
    Node,
}

/// Everything a plan may do to a node. Within a stage, declaration order is execution order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Makes sure of the data volume's claim.
    EnsureVolume,
    /// Checks the Secret of the signing key.
    ValidateSigningKey,
    /// Checks the Secret of the node key.
    ValidateNodeKey,
    /// Checks the Secrets of the operator's keyring.
    ValidateOperatorKeyring,
    /// Orders the sidecar's certificate.
    OrderCertificate,
    /// Waits until the certificate is there and fits.
    AwaitSecret,
    /// Writes the proxy's configuration.
    ApplyProxyConfig,
    /// Writes the NetworkPolicy.
    ApplyNetworkPolicy,
    /// Creates the bootstrap Service.
    DeployBootstrapService,
    /// Creates the bootstrap Job.
    DeployBootstrapJob,
    /// Writes the StatefulSet.
    ApplyStatefulSet,
    /// Writes the Service.
    ApplyService,
    /// Changes images of sidecar containers in the running pod.
    PatchImages,
    /// Replaces the pod, if a cause of the plan rolls.
    ReplacePod,
    /// Waits until the pod's containers run the images asked for.
    ObserveImage,
    /// Waits until a handshake shows the TLS asked for.
    ObserveTls,
    /// Removes the Certificate and its Secret.
    DeleteCertificate,
    /// Makes the node's identity for a ceremony.
    GenerateIdentity,
    /// Makes the node's genesis transaction.
    GenerateGentx,
    /// Uploads what the node adds to the ceremony.
    UploadGenesisArtifacts,
    /// Fetches a snapshot.
    SnapshotRestore,
    /// Writes the genesis file.
    ConfigureGenesis,
    /// Writes the configuration files.
    ConfigApply,
    /// Changes configuration files.
    ConfigPatch,
    /// Writes the ceremony's peers.
    SetGenesisPeers,
    /// Writes the peers.
    DiscoverPeers,
    /// Writes the state-sync settings.
    ConfigureStateSync,
    /// Checks the configuration files.
    ConfigValidate,
    /// Has snapshots uploaded from now on, or no longer.
    SnapshotUpload,
    /// Restarts the process.
    RestartProcess,
    /// Approves the start of the process.
    MarkReady,
    /// Waits for the bootstrap Job.
    AwaitBootstrap,
    /// Removes the bootstrap Job, its pods and its Service.
    TeardownBootstrap,
}

/// One line of a plan: a task, and the stage it runs in. Sorted, steps are in execution order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// Which pod it is about.
    pub stage: Stage,
    /// What is to be done.
    pub task: Task,
}

impl Task {
    /// Every task, in order.
    pub const ALL: &'static [Self] = &[
        Self::EnsureVolume,
        Self::ValidateSigningKey,
        Self::ValidateNodeKey,
        Self::ValidateOperatorKeyring,
        Self::OrderCertificate,
        Self::AwaitSecret,
        Self::ApplyProxyConfig,
        Self::ApplyNetworkPolicy,
        Self::DeployBootstrapService,
        Self::DeployBootstrapJob,
        Self::ApplyStatefulSet,
        Self::ApplyService,
        Self::PatchImages,
        Self::ReplacePod,
        Self::ObserveImage,
        Self::ObserveTls,
        Self::DeleteCertificate,
        Self::GenerateIdentity,
        Self::GenerateGentx,
        Self::UploadGenesisArtifacts,
        Self::SnapshotRestore,
        Self::ConfigureGenesis,
        Self::ConfigApply,
        Self::ConfigPatch,
        Self::SetGenesisPeers,
        Self::DiscoverPeers,
        Self::ConfigureStateSync,
        Self::ConfigValidate,
        Self::SnapshotUpload,
        Self::RestartProcess,
        Self::MarkReady,
        Self::AwaitBootstrap,
        Self::TeardownBootstrap,
    ];

    /// The task of this name on the wire, if a plan of ours may have it.
    pub fn named(type_: TaskType) -> Option<Self> {
        Self::ALL.iter().copied().find(|task| task.type_() == type_)
    }

    /// The name on the wire.
    pub const fn type_(self) -> TaskType {
        match self {
            Self::EnsureVolume => TaskType::EnsureDataPvc,
            Self::ValidateSigningKey => TaskType::ValidateSigningKey,
            Self::ValidateNodeKey => TaskType::ValidateNodeKey,
            Self::ValidateOperatorKeyring => TaskType::ValidateOperatorKeyring,
            Self::OrderCertificate => TaskType::ApplySidecarCert,
            Self::AwaitSecret => TaskType::WaitForSidecarTlsSecret,
            Self::ApplyProxyConfig => TaskType::ApplyRbacProxyConfig,
            Self::ApplyNetworkPolicy => TaskType::ApplyNetworkPolicy,
            Self::DeployBootstrapService => TaskType::DeployBootstrapService,
            Self::DeployBootstrapJob => TaskType::DeployBootstrapJob,
            Self::ApplyStatefulSet => TaskType::ApplyStatefulSet,
            Self::ApplyService => TaskType::ApplyService,
            Self::PatchImages => TaskType::PatchPodImages,
            Self::ReplacePod => TaskType::ReplacePod,
            Self::ObserveImage => TaskType::ObserveImage,
            Self::ObserveTls => TaskType::ObserveSidecarTls,
            Self::DeleteCertificate => TaskType::DeleteSidecarCert,
            Self::GenerateIdentity => TaskType::GenerateIdentity,
            Self::GenerateGentx => TaskType::GenerateGentx,
            Self::UploadGenesisArtifacts => TaskType::UploadGenesisArtifacts,
            Self::SnapshotRestore => TaskType::SnapshotRestore,
            Self::ConfigureGenesis => TaskType::ConfigureGenesis,
            Self::ConfigApply => TaskType::ConfigApply,
            Self::ConfigPatch => TaskType::ConfigPatch,
            Self::SetGenesisPeers => TaskType::SetGenesisPeers,
            Self::DiscoverPeers => TaskType::DiscoverPeers,
            Self::ConfigureStateSync => TaskType::ConfigureStateSync,
            Self::ConfigValidate => TaskType::ConfigValidate,
            Self::SnapshotUpload => TaskType::SnapshotUpload,
            Self::RestartProcess => TaskType::RestartSeid,
            Self::MarkReady => TaskType::MarkReady,
            Self::AwaitBootstrap => TaskType::AwaitBootstrapComplete,
            Self::TeardownBootstrap => TaskType::TeardownBootstrap,
        }
    }

    /// How long the task may take from its beginning, failed attempts and waits included.
    pub const fn deadline(self) -> SignedDuration {
        match self {
            // Terabytes, and a chain that is replayed up to a height.
            Self::SnapshotRestore | Self::AwaitBootstrap => SignedDuration::from_hours(48),
            // The other members of a ceremony may come late.
            Self::ConfigureGenesis | Self::SetGenesisPeers => SignedDuration::from_mins(90),
            // A long termination grace, a volume that moves, an image that is pulled.
            Self::ReplacePod | Self::ObserveImage | Self::TeardownBootstrap => {
                SignedDuration::from_mins(30)
            }
            Self::AwaitSecret | Self::ObserveTls | Self::RestartProcess => {
                SignedDuration::from_mins(15)
            }
            _ => SignedDuration::from_mins(10),
        }
    }

    /// Whether what the task does stays done for as long as the volume exists: neither an edit nor
    /// another pod is a reason to do it again.
    pub const fn keeps(self) -> bool {
        matches!(
            self,
            Self::GenerateIdentity
                | Self::GenerateGentx
                | Self::SnapshotRestore
                | Self::SnapshotUpload
        )
    }

    /// Whether the task is a look and a write, and waits for nobody.
    pub const fn is_written_at_once(self) -> bool {
        matches!(
            self,
            Self::EnsureVolume
                | Self::OrderCertificate
                | Self::ApplyProxyConfig
                | Self::ApplyNetworkPolicy
                | Self::ApplyStatefulSet
                | Self::ApplyService
        )
    }

    /// Whether a sidecar does it, after it was submitted under a name.
    pub fn is_submitted(self) -> bool {
        self.type_().executor() == Executor::Sidecar
    }
}

impl Stage {
    /// The word for a stage whose tasks could be taken for another's; none where they could not.
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Bootstrap => Some("bootstrap"),
            Self::Prepare | Self::Node => None,
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.stage {
            Stage::Bootstrap => write!(f, "{} (bootstrap)", self.task.type_()),
            Stage::Prepare | Stage::Node => write!(f, "{}", self.task.type_()),
        }
    }
}
