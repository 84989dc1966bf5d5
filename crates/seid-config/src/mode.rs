//! What a node is for. The mode chooses the defaults of its configuration.

use std::fmt;
use std::str::FromStr;

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Signs blocks; serves nobody.
    Validator,
    /// Follows the chain and serves its recent state.
    Full,
    /// Knows peers and tells them; runs no chain.
    Seed,
    /// Follows the chain and keeps all of it.
    Archive,
}

/// A word that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid mode {0:?}: use validator, full, seed or archive")]
pub struct UnknownMode(pub String);

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Validator, Self::Full, Self::Seed, Self::Archive];

    /// The mode's word in tasks and files; stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validator => "validator",
            Self::Full => "full",
            Self::Seed => "seed",
            Self::Archive => "archive",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_its_word_both_ways_and_no_other() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for word in ["", "Full", "rpc", " full"] {
            assert_eq!(word.parse::<Mode>(), Err(UnknownMode(word.into())));
        }
    }
}
