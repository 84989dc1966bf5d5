//! A real Kubernetes on one machine, from published parts, for tests and for a first look.
//!
//! A test asks for [`Cluster::shared`] (one control plane for the whole test binary), takes a
//! namespace of its own and a client, and works against the real API server. Tests of pods start a
//! cluster of [`Size::Pods`]. [`faults`] puts a misbehaving proxy before the API server. Tests of
//! host networking start a [`Host`] or several on a [`Network`], and a [`Resolver`] where names or leases
//! are needed. Nothing is left behind, however the
//! test ends.
//!
//! ```no_run
//! # use keelson_testbed::Cluster;
//! # async fn test() {
//! let cluster = Cluster::shared().await;
//! let namespace = cluster.namespace("first").await;
//! let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
//!     kube::Api::namespaced(cluster.client(), namespace.name());
//! # }
//! ```

mod cache;
mod cgroup;
mod chain;
mod cluster;
mod command;
mod components;
mod containers;
mod enclosure;
mod error;
mod failure;
pub mod faults;
mod forward;
mod host;
pub mod image;
pub mod images;
mod inside;
mod install;
mod keeper;
mod kernel;
mod kubeconfig;
mod kubectl;
mod libraries;
mod manifests;
mod modules;
mod network_manager;
mod node;
mod openshift;
mod packages;
mod passage;
mod peers;
mod pki;
mod process;
mod products;
mod programs;
mod progress;
mod resolver;
mod shared;
mod state;
mod transcript;
mod trouble;
mod up;
mod wait;

pub mod cli;

pub use cache::folder as cache_folder;
pub use chain::{Founding, found};
pub use cluster::{Cluster, Size};
pub use containers::{Container, Running, exchange};
pub use enclosure::MASKED_SYSCTLS;
pub use error::Error;
pub use host::{DEVICE, Host, Network};
pub use install::{Installer, pods};
pub use kernel::patience;
pub use kubectl::Kubectl;
pub use network_manager::{LAB, OnMachine};
pub use node::{NON_ROOT, Pods};
pub use openshift::{api_server_crd, derived_api_server_crd, openshift_crds};
pub use packages::{provide_bench_tools, provide_openssl};
pub use passage::passage;
pub use peers::{Peer, peer};
pub use pki::{Authority, Identity};
pub use process::Process;
pub use products::{Product, Profile, build};
pub use programs::{KUBERNETES, Program};
pub use resolver::Resolver;
pub use shared::Namespace;
pub use transcript::Transcript;
pub use wait::until;
