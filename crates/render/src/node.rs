//! A SeiNode as every renderer sees it: complete, with one mode and a port that is one.
//!
//! Admission refuses most of what is refused here; an object may be older than the rule, or come
//! from somewhere else than an API server.

use keelson_api::names::Port;
use keelson_api::node::Mode;
use keelson_api::sidecar::{DEFAULT_SIDECAR_PORT, SidecarConfig};
use keelson_api::{SeiNode, SeiNodeSpec};

use crate::containment::Leak;

/// What the objects of a node are made from.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// Its mode.
    pub mode: Mode,
    /// What a person asks for.
    pub spec: &'a SeiNodeSpec,
    /// The port the sidecar listens on inside the pod.
    pub sidecar_port: u16,
}

/// Why no objects can be made of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrenderable {
    /// Something the API server sets is missing.
    #[error("metadata.{0} is empty: render a SeiNode that was read from an API server")]
    Incomplete(&'static str),
    /// No mode, or more than one.
    #[error(
        "the spec has no single mode: set exactly one of fullNode, archive, replayer and validator"
    )]
    Mode,
    /// Not a port.
    #[error("spec.sidecar.port is {0}, which is no port: use a number from 1 to 65535")]
    NoPort(i32),
    /// A port of something else in the pod.
    #[error("spec.sidecar.port is {0}, which is the pod's port {1}: use another, for example 7777")]
    PortTaken(u16, Port),
    /// A bootstrap pod has nothing to replay.
    #[error("there is nothing to replay: set s3.targetHeight in the snapshot of the node's mode")]
    NoSnapshot,
    /// A key would be where it must not be.
    #[error(transparent)]
    Leak(#[from] Leak),
}

impl<'a> Node<'a> {
    /// Reads a node, or says what is wrong with it.
    pub fn read(node: &'a SeiNode) -> Result<Self, Unrenderable> {
        let set = |field: &'a Option<String>, name| {
            let text = field.as_deref().filter(|text| !text.is_empty());
            text.ok_or(Unrenderable::Incomplete(name))
        };
        Ok(Self {
            name: set(&node.metadata.name, "name")?,
            namespace: set(&node.metadata.namespace, "namespace")?,
            uid: set(&node.metadata.uid, "uid")?,
            mode: node.spec.mode().ok_or(Unrenderable::Mode)?,
            spec: &node.spec,
            sidecar_port: sidecar_port(node.spec.sidecar.as_ref())?,
        })
    }

    /// Whether the node keeps all history, which has machines, volumes and sizes of its own.
    pub(crate) fn is_archive(&self) -> bool {
        self.mode == Mode::Archive
    }
}

fn sidecar_port(sidecar: Option<&SidecarConfig>) -> Result<u16, Unrenderable> {
    let wanted = sidecar.map_or(DEFAULT_SIDECAR_PORT, |sidecar| sidecar.port);
    let port = u16::try_from(wanted)
        .ok()
        .filter(|port| *port > 0)
        .ok_or(Unrenderable::NoPort(wanted))?;
    let others = Port::ALL.iter().filter(|other| **other != Port::Sidecar);
    match others.copied().find(|other| other.number() == port) {
        Some(other) => Err(Unrenderable::PortTaken(port, other)),
        None => Ok(port),
    }
}
