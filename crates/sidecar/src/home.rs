//! Where everything of a node is, below its home folder. Names are the original's: a volume may be
//! handed from one sidecar to the other.

use std::path::{Path, PathBuf};

/// The home folder of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// The home at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The store of tasks.
    pub fn store(&self) -> PathBuf {
        self.0.join("sidecar.db")
    }

    /// Configuration files.
    pub fn config(&self) -> PathBuf {
        self.0.join("config")
    }

    /// The chain's genesis.
    pub fn genesis(&self) -> PathBuf {
        self.config().join("genesis.json")
    }

    /// The node's identity among peers.
    pub fn node_key(&self) -> PathBuf {
        self.config().join("node_key.json")
    }

    /// The chain's state.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// What the node's key has signed last.
    pub fn signed(&self) -> PathBuf {
        self.data().join("priv_validator_state.json")
    }

    /// Snapshots of the state, staged for seid or made by it.
    pub fn snapshots(&self) -> PathBuf {
        self.data().join("snapshots")
    }

    /// What is not finished.
    pub fn tmp(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// The note that something is done. The original's are empty; ours say what was done.
    pub fn marker(&self, marker: Marker) -> PathBuf {
        self.0.join(marker.file())
    }

    /// Whether seid may start, as approved: the record that outlives the sidecar.
    pub fn approval(&self) -> PathBuf {
        self.0.join(".sei-sidecar-approval.json")
    }
}

/// Notes on the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A snapshot is staged.
    Snapshot,
    /// The height of the staged snapshot.
    SnapshotHeight,
    /// The genesis file is in place.
    Genesis,
    /// State sync is configured.
    StateSync,
    /// The last snapshot that was uploaded.
    LastUpload,
}

impl Marker {
    /// The file's name.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Snapshot => ".sei-sidecar-snapshot-done",
            Self::SnapshotHeight => ".sei-sidecar-snapshot-height",
            Self::Genesis => ".sei-sidecar-genesis-done",
            Self::StateSync => ".sei-sidecar-statesync-done",
            Self::LastUpload => ".sei-sidecar-last-upload.json",
        }
    }
}
