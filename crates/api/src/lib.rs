//! The API of Keelson: the custom resources of `sei.io` and `nmstate.io`, and every name that is
//! part of a contract with someone outside the process (condition types, reasons, labels, task
//! types, ports).
//!
//! Types only. No client, no clock and no decision about what to do with an object: those belong to
//! `plan`, `render`, `cluster` and the binaries. Two rules hold for all types here:
//!
//! * *Specs are strict, statuses are tolerant.* A spec is written by a person, who is helped by a
//!   refusal. A status was written by some version of some operator, and a part of it that cannot
//!   be read is absent, never an error (see [`tolerant`]).
//! * *Nothing serializes as `null`.* Under server-side apply a `null` is a value somebody owns.
//!
//! What admission refuses is what the original's API refused, and what the design adds to it:
//! changing a node's mode, its imported volume or its keys, and sharing a key or a volume among
//! replicas. What only the original's planner refused (for example a replayer without an S3
//! snapshot) is left to the operator, which reports it as `SpecValid=False`; so every object the
//! original's API accepted is accepted here.

#![allow(
    unreachable_pub,
    reason = "the schema derive copies each public struct into a function body"
)]
#![allow(
    clippy::duplicated_attributes,
    reason = "printer columns of one kind share types and priorities"
)]

pub mod condition;
pub mod crds;
pub mod enactment;
pub mod event;
pub mod fleet;
pub mod fleet_condition;
pub mod fleet_status;
pub mod host;
pub mod host_condition;
pub mod names;
pub mod network_state;
pub mod nmstate;
pub mod node;
pub mod node_condition;
pub mod node_status;
pub mod peers;
pub mod plan;
pub mod policy;
pub mod sidecar;
pub mod snapshot;
pub mod task;
pub mod tls;
pub mod tolerant;
pub mod validator;
mod vocabulary;

pub use vocabulary::UnknownName;

pub use enactment::NodeNetworkConfigurationEnactment;
pub use fleet::{SeiNodeDeployment, SeiNodeDeploymentSpec};
pub use fleet_status::SeiNodeDeploymentStatus;
pub use network_state::NodeNetworkState;
pub use nmstate::{NMState, NMStateSpec, NMStateStatus};
pub use node::{SeiNode, SeiNodeSpec};
pub use node_status::SeiNodeStatus;
pub use policy::{NodeNetworkConfigurationPolicy, NodeNetworkConfigurationPolicySpec};
