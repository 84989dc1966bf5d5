//! kubectl as a person uses it: for installing Keelson, here or in a cluster someone else runs, and
//! for tests of what people type.

use crate::command::{run, succeeded};
use crate::error::{Doing, Error};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// kubectl with a cluster to talk to.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(crate) fn new(program: PathBuf, kubeconfig: &Path) -> Self {
        Self {
            program,
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    /// Runs it to its end and returns what it printed.
    pub fn run(&self, words: &[&str]) -> Result<String, Error> {
        let mut command = self.command();
        command.args(words);
        run(command)
    }

    /// The same with something to read.
    pub fn feed(&self, words: &[&str], input: &[u8]) -> Result<String, Error> {
        let doing = format!("`kubectl {}`", words.join(" "));
        let mut command = self.command();
        command.args(words).stdin(Stdio::piped());
        let started = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = started.doing(|| format!("{doing} could not be started"))?;
        let fed = child.stdin.take().map(|mut pipe| pipe.write_all(input));
        let output = child.wait_with_output();
        let output = output.doing(|| format!("{doing} could not be waited for"))?;
        let said = succeeded(doing.clone(), &output)?;
        // Whoever does not want to read all of it says so by how it ends.
        fed.unwrap_or(Ok(()))
            .doing(|| format!("{doing} did not read what it was given"))?;
        Ok(said)
    }

    /// Applies objects; returns one line for each, which says whether it was changed.
    pub fn apply(&self, objects: &[Value]) -> Result<String, Error> {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        let words = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.feed(&words, list.to_string().as_bytes())
    }

    /// One object, or a list of them.
    pub fn get(&self, words: &[&str]) -> Result<Value, Error> {
        let said = self.run(&[&["get", "--output=json"], words].concat())?;
        serde_json::from_str(&said).map_err(|error| Error::Command {
            doing: format!("`kubectl get {}`", words.join(" ")),
            status: error.to_string(),
            output: said,
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command
    }
}
