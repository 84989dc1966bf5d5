//! The settings of the process that runs: its own variables, and the file it was told of.

use std::path::Path;

use super::problems::Problems;
use super::reader::FILE;
use super::{Settings, read};

/// Reads the settings of this process. A file that cannot be read is the one thing that is told: what
/// is missing might be in it.
pub fn of_process(file: Option<&Path>) -> Result<Settings, Problems> {
    // A variable that is not UTF-8 is shown as well as can be where it is one of ours.
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let environment = std::env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect();
    let Some(path) = file else {
        return read(&environment, None);
    };
    let content = std::fs::read_to_string(path).map_err(|error| {
        let mut problems = Problems::default();
        let path = path.display();
        let sentence = format!("{path} could not be read ({error}): correct --platform-file");
        problems.add(FILE, sentence);
        problems
    })?;
    read(&environment, Some(&content))
}
