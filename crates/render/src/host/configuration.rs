//! What pods and scrapers are told by file: the TLS profile, and whom to trust. And what handlers tell
//! each other: whose turn it is.

use k8s_openapi::api::core::v1::ConfigMap;
use keelson_api::host::{
    CA_BUNDLE_CONFIG_MAP, CA_BUNDLE_KEY, CLAIMS_CONFIG_MAP, TLS_CONFIG_MAP, TLS_PROFILE_KEY,
};

use super::object::Object;
use super::{Certificates, HostInstall, metadata};

pub(super) fn objects(install: &HostInstall<'_>) -> Vec<Object> {
    let profile = map(
        install,
        TLS_CONFIG_MAP,
        TLS_PROFILE_KEY,
        install.profile.text,
    );
    let mut maps = vec![profile, claims(install)];
    if let Certificates::Operator { ca_bundle } = install.certificates {
        maps.push(map(install, CA_BUNDLE_CONFIG_MAP, CA_BUNDLE_KEY, ca_bundle));
    }
    maps
}

pub(super) fn map(install: &HostInstall<'_>, name: &str, key: &str, text: &str) -> Object {
    Object::of(ConfigMap {
        metadata: metadata::owned(install, name),
        data: Some([(key.to_owned(), text.to_owned())].into()),
        ..ConfigMap::default()
    })
}

/// The claims of handlers. Its content is theirs: what is applied has none, so that none of it is ever
/// put back.
fn claims(install: &HostInstall<'_>) -> Object {
    Object::of(ConfigMap {
        metadata: metadata::owned(install, CLAIMS_CONFIG_MAP),
        ..ConfigMap::default()
    })
}
