//! A server's configuration from its parts: profile, pair, client authentication, ALPN.
//!
//! Made whole or not at all, and never changed afterwards: who reloads makes a new one. Each has a
//! session cache of its own, so no session outlives the certificate or the client CA it began with.

use rustls::ServerConfig;
use rustls::sign::SingleCertAndKey;
use std::sync::Arc;

use crate::client_auth::{Authorities, AuthorityError, ClientAuth, verifier};
use crate::honour::{Honoured, Preference, Unusable};
use crate::pair::Pair;
use crate::profile::Profile;
use crate::report::Report;

/// Why a configuration cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The profile serves nobody.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// No authorities to check clients with.
    #[error(transparent)]
    Authorities(#[from] AuthorityError),
    /// rustls refuses what we think is fine.
    #[error("the TLS library refuses the configuration")]
    Refused(#[source] rustls::Error),
}

/// A server's configuration, and what became of the profile under this pair.
pub fn server_config(
    profile: &Profile,
    pair: &Pair,
    client_auth: ClientAuth,
    authorities: Option<&Authorities>,
    alpn: &[Vec<u8>],
) -> Result<(ServerConfig, Report), ConfigError> {
    let honoured = profile.honour()?.for_key(pair.algorithm())?;
    let config = assemble(&honoured, pair, client_auth, authorities, alpn)?;
    Ok((config, honoured.report().clone()))
}

fn assemble(
    honoured: &Honoured,
    pair: &Pair,
    client_auth: ClientAuth,
    authorities: Option<&Authorities>,
    alpn: &[Vec<u8>],
) -> Result<ServerConfig, ConfigError> {
    let provider = Arc::new(honoured.provider());
    let clients = verifier(client_auth, authorities, &provider)?;
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&honoured.versions())
        .map_err(ConfigError::Refused)?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => builder.with_client_cert_verifier(clients),
    };
    let resolver = SingleCertAndKey::from(pair.certified());
    let mut config = builder.with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = alpn.to_vec();
    config.ignore_client_order = honoured.preference() == Preference::Server;
    Ok(config)
}
