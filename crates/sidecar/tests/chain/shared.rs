//! One chain for all tests of this binary: a validator, a node that follows it, and snapshots.

use crate::node::Node;
use std::sync::OnceLock;

pub(crate) const CHAIN: &str = "test-1";
/// Snapshots come every so many blocks.
pub(crate) const EVERY: u64 = 10;

/// The nodes that make and keep the chain.
pub(crate) struct Chain {
    pub(crate) validator: Node,
    pub(crate) follower: Node,
}

impl Chain {
    /// The chain, which has a snapshot and a few blocks after it.
    pub(crate) fn shared() -> &'static Self {
        static KEPT: OnceLock<Chain> = OnceLock::new();
        KEPT.get_or_init(Self::start)
    }

    fn start() -> Self {
        let every = format!("--state-sync.snapshot-interval={EVERY}");
        let flags = [every.as_str(), "--state-sync.snapshot-keep-recent=0"];
        let mut validator = Node::validator("validator", CHAIN);
        validator.start(&flags);
        let mut follower = Node::follower("follower", CHAIN, &validator);
        follower.start(&flags);
        validator.reaches(EVERY + 3);
        follower.reaches(EVERY + 3);
        Self {
            validator,
            follower,
        }
    }
}
