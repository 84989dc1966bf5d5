//! Following the files: every few seconds they are read, and what is complete is put in force.
//!
//! Deciding is `unit`'s. Here is only the order: the policy first, then the posture, then what
//! `/loaded` tells, so that whoever reads a mode there finds it in force.

use crate::config::{self, Config, Warning};
use crate::explain::{explain, rules};
use crate::logging::ONCE;
use crate::pipeline::{Pipeline, Policy};
use crate::refusal::Refusal;
use crate::serve::Posture;
use crate::settings::{Authenticator, Settings};
use crate::unit::{Loaded, Step, Unit, asking, sources, step};
use jiff::Timestamp;
use keelson_tls::reload::Demands;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Reads files and puts what they say in force.
#[derive(Debug)]
pub struct Follower {
    settings: Settings,
    demands: Demands,
    unit: Unit,
    error: Option<String>,
    posture: watch::Sender<Posture>,
    loaded: watch::Sender<Loaded>,
}

impl Follower {
    /// Reads the files for the first time. A configuration that cannot be read is an error; a
    /// certificate that cannot be used shuts the door until it can.
    pub fn start(settings: Settings, demands: Demands, now: Timestamp) -> Result<Self, Refusal> {
        let (stepped, warnings) = step_by_files(None, &settings, &demands, now)?;
        let (unit, error) = match stepped {
            Step::Take(unit) => (*unit, None),
            Step::Shut(unit, error) => (*unit, Some(error)),
            Step::Refuse(error) => return Err(Refusal::Certificate(error)),
            Step::Keep => return Err(Refusal::Certificate("nothing is in force yet".into())),
        };
        warn(&warnings, &settings, &unit.config);
        if let Some(error) = &error {
            tracing::error!(
                error,
                "TLS is required and there is no usable certificate: shut"
            );
        }
        Ok(Self {
            posture: watch::Sender::new(Posture::new(unit.mode()).vouched(unit.clients())),
            loaded: watch::Sender::new(unit.loaded(error.clone())),
            settings,
            demands,
            unit,
            error,
        })
    }

    /// What the configuration says about requests.
    pub fn policy(&self) -> Policy {
        Policy {
            authorization: self.unit.config.authorization.clone(),
            paths: rules(&self.settings, &self.unit.config),
        }
    }

    /// What is in force, in words.
    pub fn words(&self) -> String {
        explain(&self.settings, &self.unit.config).join(" ")
    }

    /// What connections get, now and later.
    pub fn posture(&self) -> watch::Receiver<Posture> {
        self.posture.subscribe()
    }

    /// What is in force, now and later.
    pub fn loaded(&self) -> watch::Receiver<Loaded> {
        self.loaded.subscribe()
    }

    /// Looks again and again.
    pub async fn follow(mut self, pipeline: Arc<Pipeline>, every: Duration) {
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let put = |policy| pipeline.policy.store(Arc::new(policy));
            self.look(&put, Timestamp::now());
        }
    }

    /// Looks once; `put` puts a new policy in force.
    pub fn look(&mut self, put: &impl Fn(Policy), now: Timestamp) {
        match step_by_files(Some(&self.unit), &self.settings, &self.demands, now) {
            Ok((Step::Keep, _)) => self.note(None),
            Ok((Step::Take(unit), warnings)) => {
                warn(&warnings, &self.settings, &unit.config);
                self.unit = *unit;
                put(self.policy());
                let (mode, clients) = (self.unit.mode(), self.unit.clients());
                self.posture
                    .send_modify(|posture| *posture = posture.then(mode).vouched(clients));
                self.error = None;
                self.tell();
                tracing::info!(loaded = ?*self.loaded.borrow(), "took over the configuration");
            }
            Ok((Step::Shut(_, error) | Step::Refuse(error), _)) => self.note(Some(error)),
            Err(refusal) => self.note(Some(refusal.to_string())),
        }
    }

    /// A new trouble is told once, and so is its end.
    fn note(&mut self, error: Option<String>) {
        if self.error == error {
            return;
        }
        if let Some(error) = &error {
            tracing::warn!(error, "the files are not usable; what was in force stays");
        }
        self.error = error;
        self.tell();
    }

    fn tell(&self) {
        self.loaded
            .send_replace(self.unit.loaded(self.error.clone()));
    }
}

/// Reads everything once and decides about it.
fn step_by_files(
    previous: Option<&Unit>,
    settings: &Settings,
    demands: &Demands,
    now: Timestamp,
) -> Result<(Step, Vec<Warning>), Refusal> {
    let (config, warnings) = read(settings)?;
    let mut sources = sources(&config, settings.tls.profile_file.as_deref());
    if let Some(sources) = &mut sources
        && !settings.authn.takes(Authenticator::X509)
    {
        sources.client_ca = None;
    }
    let demands = sources.as_ref().map(|it| asking(demands, it));
    let reading = sources.map(|sources| sources.read(&mut None, now));
    let demands = demands.unwrap_or_default();
    Ok((
        step(previous, config, reading.as_ref(), &demands, now),
        warnings,
    ))
}

/// What the configuration file says, and what is odd about it; nothing where there is none.
pub(crate) fn read(settings: &Settings) -> Result<(Config, Vec<Warning>), Refusal> {
    let Some(file) = &settings.config_file else {
        return Ok(Default::default());
    };
    let text = std::fs::read_to_string(file).map_err(|error| Refusal::ConfigFile {
        file: file.clone(),
        cause: error.to_string(),
    })?;
    Ok(config::load(&text, settings.strictness)?)
}

/// Told when a configuration is taken over, not at every look.
fn warn(warnings: &[Warning], settings: &Settings, config: &Config) {
    for warning in warnings {
        tracing::warn!(target: ONCE, %warning, "the configuration has something odd");
    }
    if config.client_ca_file().is_some() && !settings.authn.takes(Authenticator::X509) {
        tracing::warn!(target: ONCE, "tls.clientCAFile has no effect: name x509 in --authn-order");
    }
}
