//! What tasks work on: the node's home and everything that is known of it.

use crate::configuration::{self, Approval};
use crate::disk;
use crate::engine::Locks;
use crate::gate::Gate;
use crate::home::Home;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::work::Trouble;
use keelson_seid_config::Texts;
use std::sync::Arc;

/// The node a sidecar stands beside. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where everything of the node is.
    pub home: Home,
    /// What the sidecar is told.
    pub settings: Arc<Settings>,
    /// The start gate.
    pub gate: Arc<Gate>,
    /// What only one task may have at a time. The engine takes what the table of tasks says; a task
    /// that takes one later does so here.
    pub locks: Arc<Locks>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

impl Site {
    /// The site the settings speak of, with a closed gate.
    pub fn new(settings: Settings) -> Self {
        let home = settings.home.clone();
        Self {
            gate: Arc::new(Gate::new(home.clone(), settings.facts.clone())),
            home,
            settings: Arc::new(settings),
            locks: Arc::default(),
            metrics: Metrics::new(),
        }
    }

    /// Makes the folders everything is in, and takes away what a sidecar that died left unfinished.
    pub fn prepare(&self) -> Result<(), disk::Trouble> {
        let folders = [
            self.home.path().to_owned(),
            self.home.config(),
            self.home.data(),
        ];
        for folder in &folders {
            disk::folder(folder)?;
        }
        disk::sweep(self.home.path())?;
        disk::sweep(&self.home.config())
    }

    /// Reads the configuration files, edits them, and puts those that changed in place as one; says
    /// whether any did. Who calls has the lock of the configuration.
    pub async fn change_configuration(
        &self,
        task: &'static str,
        approval: Approval,
        edit: impl FnOnce(&Texts) -> Result<Texts, Trouble> + Send + 'static,
    ) -> Result<bool, Trouble> {
        configuration::change(&self.home, &self.gate, task, approval, edit).await
    }

    /// Revokes the approval and closes the gate. To be called by whatever sets the node up, before
    /// the first thing it writes, and not where it finds that there is nothing to write.
    pub async fn close_gate(&self, task: &'static str) -> Result<(), Trouble> {
        let gate = Arc::clone(&self.gate);
        let closed = tokio::task::spawn_blocking(move || gate.close()).await;
        let problem = match closed {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let what = format!("the approval could not be revoked: {problem}");
        Err(Trouble::passing(task, "revoke", what))
    }
}
