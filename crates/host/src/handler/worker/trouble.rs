//! Why nmstate gave no answer, and whether asking again may help.

use std::time::Duration;

use nmstate::NmstateError;

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Trouble {
    /// nmstate's own words.
    #[error("{0}")]
    Refused(String),
    /// It did not come to an end.
    #[error("{what} did not end within {} s: see whether NetworkManager answers", after.as_secs())]
    Deadline {
        /// What was being done.
        what: &'static str,
        /// For how long.
        after: Duration,
    },
    /// A state nmstate does not know.
    #[error("{0}")]
    Malformed(String),
    /// The thread is gone.
    #[error("nmstate's thread has ended")]
    Ended,
}

/// Kinds of nmstate's errors that are about what was asked for, not about the host.
const REFUSALS: [&str; 4] = [
    "InvalidArgument",
    "NotImplementedError",
    "NotSupportedError",
    "PolicyError",
];

impl Trouble {
    /// Whether it is about what was asked for, so that asking again does not help.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Malformed(_) => true,
            Self::Refused(words) => REFUSALS.iter().any(|kind| words.starts_with(kind)),
            Self::Deadline { .. } | Self::Ended => false,
        }
    }

    /// The same, with the place it is about.
    pub(super) fn at(self, place: Option<String>) -> Self {
        let placed = |words: String| match &place {
            Some(place) => format!("{words}, in {place}"),
            None => words,
        };
        match self {
            Self::Refused(words) => Self::Refused(placed(words)),
            Self::Malformed(words) => Self::Malformed(placed(words)),
            other => other,
        }
    }
}

impl From<NmstateError> for Trouble {
    fn from(error: NmstateError) -> Self {
        Self::Refused(error.to_string())
    }
}
