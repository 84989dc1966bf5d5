//! The Kubernetes objects of a SeiNode and of the host components, as pure functions of what was
//! decided.
//!
//! [`Node::read`] takes from a SeiNode what every object needs, or says in one sentence what is
//! missing; one function for each kind of object makes the rest of it. The pod of the node and the
//! pod that replays a snapshot before it come from one builder ([`pod`]), and no pod leaves it before
//! [`containment`] has looked where its keys went. Names that others must agree on have one function
//! each ([`names`]).
//!
//! [`host`] does the same for an NMState: one value in, every object of the host components out, in the
//! order they are applied in.
//!
//! Nothing is read, written, asked or timed here. In which order objects are applied is for `plan`,
//! applying them for `cluster`, and what of a running pod differs for the operator.

pub mod bootstrap;
pub mod certificate;
pub mod claim;
mod container;
pub mod containment;
pub mod fingerprint;
pub mod host;
mod metadata;
pub mod names;
pub mod network_policy;
mod node;
pub mod platform;
pub mod pod;
pub mod proxy_config;
mod script;
pub mod service;
pub mod stateful_set;
pub mod tls;

pub use node::{Node, Unrenderable};
pub use platform::Platform;
