//! Where the API server is, and who we are to it: read from files, never from the network.

use std::path::Path;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// What a kubeconfig says, or what is mounted into every pod where there is none.
pub async fn configured(kubeconfig: Option<&Path>) -> Result<Config, String> {
    let Some(file) = kubeconfig else {
        return Config::incluster().map_err(|error| error.to_string());
    };
    let read = Kubeconfig::read_from(file).map_err(|error| error.to_string())?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.map_err(|error| error.to_string())
}
