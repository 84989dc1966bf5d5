//! `SeiNodeDeployment`: a fleet of nodes from one template, what a person asks for.
//!
//! The template holds a whole [`SeiNodeSpec`] with all its rules. How a change reaches the nodes is
//! for the operator; what came of it is in [`fleet_status`](crate::fleet_status).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::fleet_status::SeiNodeDeploymentStatus;
use crate::node::SeiNodeSpec;
use crate::vocabulary::vocabulary;

/// A fleet of nodes from one template.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sei.io",
    version = "v1alpha1",
    kind = "SeiNodeDeployment",
    plural = "seinodedeployments",
    shortname = "snd",
    category = "sei",
    namespaced,
    status = "SeiNodeDeploymentStatus",
    derive = "PartialEq",
    doc = "A fleet of SeiNodes from one template, rolled out a few at a time.",
    selectable = ".spec.template.spec.chainId",
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Revision",
        type_ = "string",
        json_path = ".status.rollout.entrantRevision",
        priority = 1
    ),
    printcolumn(
        name = "Updated",
        type_ = "integer",
        json_path = ".status.updatedReplicas",
        priority = 1
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec.template.spec.image",
        priority = 1
    ),
    printcolumn(
        name = "Stalled",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Stalled")].status"#,
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[x_kube(validation = Rule::new("!has(self.genesis) || has(self.template.spec.validator)").message(
    "A genesis ceremony is held by validators: set template.spec.validator, or remove genesis."
))]
#[x_kube(validation = Rule::new(
    "self.replicas <= 1 || !has(self.template.spec.validator) || !(has(self.template.spec.validator.signingKey) || has(self.template.spec.validator.nodeKey))"
).message("Replicas of one template would sign with one key and be slashed: set replicas to 1, or give each validator a SeiNode of its own."))]
#[x_kube(validation = Rule::new(
    "self.replicas <= 1 || !has(self.template.spec.dataVolume) || !has(self.template.spec.dataVolume.__import__)"
).message("Replicas of one template would write to one imported volume: set replicas to 1, or remove template.spec.dataVolume.import."))]
#[serde(rename_all = "camelCase")]
pub struct SeiNodeDeploymentSpec {
    /// How many nodes there are.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub replicas: i32,

    /// What each node is like.
    pub template: NodeTemplate,

    /// What becomes of the nodes when the fleet is deleted.
    #[serde(default = "retain")]
    pub deletion_policy: DeletionPolicy,

    /// Founds a chain with the fleet's validators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis: Option<GenesisConfig>,

    /// Publishes the fleet through the platform's gateway. Absent: reachable inside the cluster only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<Networking>,

    /// How a change of the template reaches the nodes.
    pub update_strategy: UpdateStrategy,

    /// Whether the operator leaves the fleet as it is: no node is created, changed or deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

fn one() -> i32 {
    1
}

fn retain() -> DeletionPolicy {
    DeletionPolicy::Retain
}

/// What each node of a fleet is like.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Labels and annotations for the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,

    /// Spec of the nodes.
    pub spec: SeiNodeSpec,
}

/// Labels and annotations for the nodes of a fleet.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels for the nodes and their pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,

    /// Annotations for the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

vocabulary! {
    /// What becomes of the nodes when their fleet is deleted.
    pub enum DeletionPolicy {
        /// They go too.
        Delete => "Delete",
        /// They stay, on their own.
        Retain => "Retain",
    }
}

vocabulary! {
    /// How a change of the template reaches the nodes.
    pub enum StrategyType {
        /// Nodes are changed one after the other.
        InPlace => "InPlace",
        /// Accepted for existing objects; the operator refuses it and says so.
        BlueGreen => "BlueGreen",
        /// Accepted for existing objects; the operator refuses it and says so.
        HardFork => "HardFork",
    }
}

/// Time without progress after which a rollout is stalled, where the spec names none, in seconds.
pub const DEFAULT_PROGRESS_DEADLINE_SECONDS: i32 = 1800;

/// How a change of the template reaches the nodes.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new(
    "self.type != 'HardFork' || (has(self.hardFork) && self.hardFork.haltHeight > 0)"
).message("A HardFork needs a height to halt at: set hardFork.haltHeight."))]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// The strategy.
    #[serde(rename = "type")]
    pub type_: StrategyType,

    /// How many nodes may be unavailable at once, as a number or as a percentage of the replicas.
    /// Absent means 1.
    // No default in the schema: adopted fleets would change by being read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new(
        "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')"
    ).message("maxUnavailable is a number of at least 1 or a percentage from 1% to 100%: with none a rollout could not begin."))]
    pub max_unavailable: Option<IntOrString>,

    /// Seconds without progress after which a rollout is stalled. Absent means 1800.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub progress_deadline_seconds: Option<i32>,

    /// Settings of the strategy HardFork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_fork: Option<HardFork>,
}

impl UpdateStrategy {
    /// The strategy with its defaults.
    pub fn new(type_: StrategyType) -> Self {
        Self {
            type_,
            max_unavailable: None,
            progress_deadline_seconds: None,
            hard_fork: None,
        }
    }

    /// How many nodes may be unavailable at once.
    pub fn max_unavailable(&self) -> IntOrString {
        self.max_unavailable.clone().unwrap_or(IntOrString::Int(1))
    }

    /// Seconds without progress after which a rollout is stalled.
    pub fn progress_deadline_seconds(&self) -> i32 {
        self.progress_deadline_seconds
            .unwrap_or(DEFAULT_PROGRESS_DEADLINE_SECONDS)
    }
}

/// Settings of the strategy HardFork.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HardFork {
    /// Height at which the present nodes halt.
    #[schemars(range(min = 1))]
    pub halt_height: i64,
}

/// Publishes a fleet through the platform's gateway. Has no settings of its own.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Networking {}

/// A chain to be founded.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenesisConfig {
    /// Name of the chain.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^[a-z0-9][a-z0-9-]*[a-z0-9]$")
    )]
    pub chain_id: String,

    /// What each validator stakes.
    #[serde(default = "default_staking_amount")]
    pub staking_amount: String,

    /// What each validator's account holds.
    #[serde(default = "default_account_balance")]
    pub account_balance: String,

    /// Further accounts of the genesis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<GenesisAccount>,

    /// Changes to the genesis by dotted key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, String>,

    /// How long the ceremony may take, as a duration such as `15m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ceremony_duration: Option<String>,
}

fn default_staking_amount() -> String {
    "10000000usei".to_owned()
}

fn default_account_balance() -> String {
    "1000000000000000000000usei,1000000000000000000000uusdc,1000000000000000000000uatom".to_owned()
}

impl GenesisConfig {
    /// A chain of that name with the default amounts.
    pub fn new(chain_id: impl Into<String>) -> Self {
        Self {
            chain_id: chain_id.into(),
            staking_amount: default_staking_amount(),
            account_balance: default_account_balance(),
            accounts: Vec::new(),
            overrides: BTreeMap::new(),
            max_ceremony_duration: None,
        }
    }
}

/// An account of the genesis.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenesisAccount {
    /// Address of the account.
    #[schemars(length(min = 1))]
    pub address: String,

    /// What the account holds.
    #[schemars(length(min = 1))]
    pub balance: String,
}

impl SeiNodeDeploymentSpec {
    /// A fleet of one node with everything else at its default.
    pub fn new(spec: SeiNodeSpec) -> Self {
        Self {
            replicas: one(),
            template: NodeTemplate {
                metadata: None,
                spec,
            },
            deletion_policy: retain(),
            genesis: None,
            networking: None,
            update_strategy: UpdateStrategy::new(StrategyType::InPlace),
            paused: false,
        }
    }
}
