//! What the operator is told about the host components, by the original's variables.
//!
//! Without an image for them there is nothing to install, and this half of the operator stays quiet:
//! that is how it runs where only `sei.io` is wanted.

use std::collections::BTreeMap;
use std::str::FromStr;

use keelson_api::host::{
    DEFAULT_MONITORING_NAMESPACE, DEFAULT_NAMESPACE, INITIAL_BACKOFF_VARIABLE,
    MAX_BACKOFF_VARIABLE, MAX_RETRIES_VARIABLE,
};
use keelson_render::host::{Plugin, Retries};
use keelson_render::platform::Source;

/// Image of the host components.
pub const IMAGE: &str = "RELATED_IMAGE_HANDLER_IMAGE";
/// Namespace they are installed to.
pub const NAMESPACE: &str = "HANDLER_NAMESPACE";
/// Namespace of the usual scraper.
pub const MONITORING: &str = "MONITORING_NAMESPACE";
/// Ports the API server is reached at, by its Service and behind it, with commas between.
pub const API_PORTS: &str = "API_SERVER_PORTS";
/// Image of the console's plugin.
pub const PLUGIN_IMAGE: &str = "PLUGIN_IMAGE";
/// Name of the console's plugin.
pub const PLUGIN_NAME: &str = "PLUGIN_NAME";
/// The port it listens on.
pub const PLUGIN_PORT: &str = "PLUGIN_PORT";

/// What the operator is told about the host components.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Their image.
    pub image: String,
    /// Their namespace.
    pub namespace: String,
    /// Namespace of the usual scraper.
    pub monitoring_namespace: String,
    /// The operator's own pods.
    pub operator: Source,
    /// Ports the API server is reached at.
    pub api_ports: Vec<u16>,
    /// How the handler tries again.
    pub retries: Retries,
    /// The console's plugin, where it is wanted.
    pub plugin: Option<ConsolePlugin>,
}

/// The console's plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsolePlugin {
    /// Its image.
    pub image: String,
    /// Its name.
    pub name: String,
    /// The port it listens on.
    pub port: u16,
}

impl ConsolePlugin {
    /// It, as it is rendered.
    pub fn rendered(&self) -> Plugin<'_> {
        Plugin {
            name: &self.name,
            image: &self.image,
            port: self.port,
        }
    }
}

impl Settings {
    /// What is said where nothing but an image is given.
    pub fn new(image: String, operator: Source) -> Self {
        Self {
            image,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            monitoring_namespace: DEFAULT_MONITORING_NAMESPACE.to_owned(),
            operator,
            api_ports: vec![443, 6443],
            retries: Retries::default(),
            plugin: None,
        }
    }

    /// Reads the variables; none where no image is given. The error says which one cannot be read.
    pub fn read(
        environment: &BTreeMap<String, String>,
        operator: Source,
    ) -> Result<Option<Self>, String> {
        let given = Given(environment);
        let Some(image) = given.text(IMAGE) else {
            return Ok(None);
        };
        let usual = Self::new(image, operator);
        let retries = Retries {
            attempts: given.or(MAX_RETRIES_VARIABLE, usual.retries.attempts)?,
            first_seconds: given.or(INITIAL_BACKOFF_VARIABLE, usual.retries.first_seconds)?,
            longest_seconds: given.or(MAX_BACKOFF_VARIABLE, usual.retries.longest_seconds)?,
        };
        let plugin = match given.text(PLUGIN_IMAGE) {
            Some(image) => Some(ConsolePlugin {
                image,
                name: given.or(PLUGIN_NAME, "nmstate-console-plugin".to_owned())?,
                port: given.or(PLUGIN_PORT, 9443)?,
            }),
            None => None,
        };
        let api_ports = match given.text(API_PORTS) {
            Some(text) => text
                .split(',')
                .map(|port| number(API_PORTS, port))
                .collect::<Result<_, _>>()?,
            None => usual.api_ports.clone(),
        };
        Ok(Some(Self {
            namespace: given.or(NAMESPACE, usual.namespace.clone())?,
            monitoring_namespace: given.or(MONITORING, usual.monitoring_namespace.clone())?,
            api_ports,
            retries,
            plugin,
            ..usual
        }))
    }
}

/// The variables there are.
struct Given<'a>(&'a BTreeMap<String, String>);

impl Given<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let text = self.0.get(name).map(|text| text.trim());
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn or<T: FromStr>(&self, name: &str, usual: T) -> Result<T, String> {
        match self.text(name) {
            Some(text) => number(name, &text),
            None => Ok(usual),
        }
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    let read = text.trim().parse();
    read.map_err(|_| format!("{name} is {text:?}, which is no such number: set another, or none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let operator = Source {
            namespace: "keelson-system".to_owned(),
            labels: BTreeMap::new(),
        };
        Settings::read(&variables.iter().map(owned).collect(), operator)
    }

    #[test]
    fn without_an_image_hosts_are_left_alone() {
        assert_eq!(read(&[(MAX_RETRIES_VARIABLE, "7")]), Ok(None));
    }

    #[test]
    fn the_originals_variables_are_understood() {
        let image = (IMAGE, "registry.example/host:1");
        let usual = read(&[image]).expect("settings").expect("an image");
        assert_eq!(usual.retries, Retries::default());
        assert_eq!((usual.plugin, usual.api_ports), (None, vec![443, 6443]));
        let all = read(&[
            image,
            (MAX_RETRIES_VARIABLE, "7"),
            (INITIAL_BACKOFF_VARIABLE, "2"),
            (MAX_BACKOFF_VARIABLE, "60"),
            (PLUGIN_IMAGE, "registry.example/plugin:1"),
            (PLUGIN_PORT, "9444"),
            (API_PORTS, "443, 16443"),
        ]);
        let all = all.expect("settings").expect("an image");
        let (attempts, first_seconds, longest_seconds) = (7, 2, 60);
        let retries = Retries {
            attempts,
            first_seconds,
            longest_seconds,
        };
        assert_eq!(all.retries, retries);
        assert_eq!(all.api_ports, [443, 16443]);
        let plugin = all.plugin.expect("a plugin");
        let rendered = plugin.rendered();
        assert_eq!(
            (rendered.name, rendered.port),
            ("nmstate-console-plugin", 9444)
        );
    }

    #[test]
    fn what_is_no_number_is_named() {
        for (name, value) in [
            (MAX_RETRIES_VARIABLE, "many"),
            (API_PORTS, "443;6443"),
            (API_PORTS, "70000"),
        ] {
            let refused = read(&[(IMAGE, "registry.example/host:1"), (name, value)]);
            let said = refused.expect_err("a sentence");
            assert!(said.starts_with(&format!("{name} is {value:?}")), "{said}");
        }
    }
}
