//! A command run to its end: what it printed, or a failure that shows what it said.

use crate::error::{Doing, Error};
use std::process::{Command, Output};

/// Runs a command and returns its standard output.
pub(crate) fn run(mut command: Command) -> Result<String, Error> {
    let doing = spelled(&command);
    let output = command
        .output()
        .doing(|| format!("`{doing}` could not be started"))?;
    succeeded(format!("`{doing}`"), &output)
}

/// The standard output of a command that ended well, or the end of its complaint.
pub(crate) fn succeeded(doing: impl Into<String>, output: &Output) -> Result<String, Error> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    Err(Error::Command {
        doing: doing.into(),
        status: output.status.to_string(),
        output: tail(&String::from_utf8_lossy(&said), 40),
    })
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The command as one would type it.
fn spelled(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_shows_how_it_was_typed_and_what_it_said() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo seen; echo no such thing >&2; exit 3"]);
        let said = run(command).expect_err("exit 3").to_string();
        for part in ["sh -c", "exit status: 3", "seen\nno such thing"] {
            assert!(said.contains(part), "{part:?} is missing in {said:?}");
        }
    }

    #[test]
    fn the_tail_of_a_short_text_is_the_text() {
        assert_eq!(tail("a\nb", 5), "a\nb");
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
    }
}
