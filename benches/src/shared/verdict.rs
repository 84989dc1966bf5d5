//! A promise or an aim, kept or missed, in a sentence with the number.

use std::fmt;

/// Whether a promise is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is.
    Met,
    /// It is not.
    Missed,
    /// An aim beyond the promises is reached.
    AimMet,
    /// It is not.
    AimMissed,
}

/// One promise.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether it is kept.
    pub judgement: Judgement,
    said: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.judgement {
            Judgement::Met => "met",
            Judgement::Missed => "missed",
            Judgement::AimMet => "aim met",
            Judgement::AimMissed => "aim missed",
        };
        write!(f, "{word}: {}", self.said)
    }
}

/// The verdict on a promise.
pub fn promise(kept: bool, said: String) -> Verdict {
    let judgement = match kept {
        true => Judgement::Met,
        false => Judgement::Missed,
    };
    Verdict { judgement, said }
}

/// The verdict on an aim.
pub fn aim(reached: bool, said: String) -> Verdict {
    let judgement = match reached {
        true => Judgement::AimMet,
        false => Judgement::AimMissed,
    };
    Verdict { judgement, said }
}
