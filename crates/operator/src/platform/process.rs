//! What the process that runs was told: its own variables, and the file it was told of.

use std::collections::BTreeMap;
use std::path::Path;

use super::problems::Problems;
use super::reader::FILE;

/// Everything a process was told.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its variables.
    pub environment: BTreeMap<String, String>,
    /// The text of the platform file.
    pub file: Option<String>,
}

impl Told {
    /// What this process was told. A file that cannot be read is the one thing that is said: what is
    /// missing might be in it.
    pub fn this_process(file: Option<&Path>) -> Result<Self, Problems> {
        // A variable that is not UTF-8 is shown as well as can be where it is one of ours.
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let content = |path: &Path| {
            std::fs::read_to_string(path).map_err(|error| {
                let mut problems = Problems::default();
                let path = path.display();
                let sentence =
                    format!("{path} could not be read ({error}): correct --platform-file");
                problems.add(FILE, sentence);
                problems
            })
        };
        Ok(Self {
            environment: environment.collect(),
            file: file.map(content).transpose()?,
        })
    }
}
