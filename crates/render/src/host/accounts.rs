//! The three accounts the host components run as, and the plugin's.
//!
//! None mounts a token by itself: a pod that calls the API server says so in its own spec.

use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_api::host::{HANDLER, METRICS, WEBHOOK};

use super::object::Object;
use super::{HostInstall, metadata};

pub(super) fn objects(install: &HostInstall<'_>) -> Vec<Object> {
    [HANDLER, WEBHOOK, METRICS]
        .into_iter()
        .map(|name| account(install, name))
        .collect()
}

pub(super) fn account(install: &HostInstall<'_>, name: &str) -> Object {
    Object::of(ServiceAccount {
        metadata: metadata::owned(install, name),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    })
}
