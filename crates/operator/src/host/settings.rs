//! What the operator is told about the host components, by the original's variables.
//!
//! Without an image for them there is nothing to install, and this half of the operator stays quiet:
//! that is how it runs where only `sei.io` is wanted.

use std::collections::BTreeMap;

use keelson_api::host::{DEFAULT_MONITORING_NAMESPACE, DEFAULT_NAMESPACE};
use keelson_render::platform::Source;

/// Image of the host components.
pub const IMAGE: &str = "RELATED_IMAGE_HANDLER_IMAGE";
/// Namespace they are installed to.
pub const NAMESPACE: &str = "HANDLER_NAMESPACE";
/// Namespace of the usual scraper.
pub const MONITORING: &str = "MONITORING_NAMESPACE";

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
}

impl Settings {
    /// Reads the variables of this process.
    pub fn of_process(operator: Source) -> Option<Self> {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        Self::read(&environment.collect(), operator)
    }

    /// Reads the variables; none where no image is given.
    pub fn read(environment: &BTreeMap<String, String>, operator: Source) -> Option<Self> {
        let given = |name: &str| {
            let text = environment.get(name).map(|text| text.trim());
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Some(Self {
            image: given(IMAGE)?,
            namespace: given(NAMESPACE).unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            monitoring_namespace: given(MONITORING)
                .unwrap_or_else(|| DEFAULT_MONITORING_NAMESPACE.to_owned()),
            operator,
        })
    }
}
