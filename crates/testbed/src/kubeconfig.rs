//! Kubeconfig files: one shape, two ways to say who one is.

use crate::pki::Identity;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::Config;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// How a client says who it is.
#[derive(Clone, Debug)]
pub(crate) enum Credential<'a> {
    Certificate(&'a Identity),
    Token(&'a str),
}

/// A kubeconfig for the server at `url`, trusting `authority` (PEM).
pub(crate) fn kubeconfig(url: &str, authority: &str, who: &Credential<'_>) -> String {
    let encode = |text: &str| BASE64_STANDARD.encode(text);
    let user = match who {
        Credential::Token(token) => json!({ "token": token }),
        Credential::Certificate(identity) => json!({
            "client-certificate-data": encode(&identity.certificate),
            "client-key-data": encode(&identity.key),
        }),
    };
    let config: Value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "keelson", "cluster": {
            "server": url,
            "certificate-authority-data": encode(authority),
        }}],
        "users": [{ "name": "keelson", "user": user }],
        "contexts": [{ "name": "keelson", "context": { "cluster": "keelson", "user": "keelson" } }],
        "current-context": "keelson",
    });
    // JSON is YAML, and every reader of kubeconfigs takes it.
    format!("{config:#}\n")
}

/// A client configuration for the same server with a token, and without the client's own
/// retries: a test asks once and sees the answer.
pub(crate) fn client_config(address: SocketAddr, authority: &str, token: &str) -> Config {
    let url = format!("https://{address}");
    let mut config = Config::new(url.parse().expect("an address makes a URL"));
    let root = CertificateDer::from_pem_slice(authority.as_bytes());
    config.root_cert = Some(vec![root.expect("our own PEM").to_vec()]);
    config.auth_info.token = Some(token.to_owned().into());
    config.default_retry = false;
    config
}
