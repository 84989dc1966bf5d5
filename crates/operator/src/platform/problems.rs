//! Everything that is wrong with the settings of a platform, told at once.

use std::fmt;

/// What is wrong, one sentence for each name, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems(Vec<Problem>);

/// What is wrong with one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    name: String,
    sentence: String,
}

impl Problems {
    pub(super) fn add(&mut self, name: impl Into<String>, sentence: impl Into<String>) {
        let problem = Problem {
            name: name.into(),
            sentence: sentence.into(),
        };
        let place = self.0.partition_point(|other| other <= &problem);
        self.0.insert(place, problem);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, sorted: variables, or keys of the platform file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|problem| problem.name.as_str())
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.0.iter().enumerate() {
            let line = if place == 0 { "" } else { "\n" };
            write!(f, "{line}{} {}", problem.name, problem.sentence)?;
        }
        Ok(())
    }
}
