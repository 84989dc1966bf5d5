//! What is wrong with an object a node refers to and the operator may not make.

/// Why a node cannot go on with an object of somebody else's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It may still come: wait for it.
    #[error("{0}")]
    NotThere(String),
    /// It does not pass by itself: somebody must act.
    #[error("{0}")]
    Unfit(String),
}

impl Flaw {
    /// Whether waiting may help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NotThere(_))
    }
}
