//! TLS versions and cipher suites in Go's names, and what is left of them here (deviation A16).

use crate::flags::Flags;
use crate::refusal::Refusal;

/// A TLS version we speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// 1.2.
    #[default]
    Tls12,
    /// 1.3.
    Tls13,
}

/// A TLS 1.2 cipher suite we speak, by its IANA name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CipherSuite(pub &'static str);

/// The suites of TLS 1.2 that have forward secrecy and AEAD.
const USABLE: [&str; 6] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Of TLS 1.3, where Go ignores the choice and so do we.
const TLS13: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// Known to Go, and not spoken here.
const UNSPOKEN: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
];

/// The lowest version, and the suites asked for.
pub(super) fn tls_policy(
    flags: &Flags,
    notices: &mut Vec<String>,
) -> Result<(TlsVersion, Option<Vec<CipherSuite>>), Refusal> {
    // The reference looks at neither without a TLS listener.
    if flags.listen.secure.is_empty() && flags.listen.either.is_empty() {
        return Ok((TlsVersion::default(), None));
    }
    let version = version(&flags.tls.min_version, notices)?;
    let asked = &flags.tls.cipher_suites;
    if asked.is_empty() {
        return Ok((version, None));
    }
    let suites = suites(asked, notices)?;
    if version == TlsVersion::Tls12 {
        if suites.is_empty() {
            return Err(Refusal::Flags(vec![
                "--tls-cipher-suites names no suite that can be used below TLS 1.3".to_owned(),
            ]));
        }
        let required = |suite: &CipherSuite| suite.0.ends_with("_WITH_AES_128_GCM_SHA256");
        if !flags.http2.disable && !suites.iter().any(required) {
            notices.push(
                "http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 \
                 cipher: some HTTP/2 clients will not connect with TLS 1.2"
                    .to_owned(),
            );
        }
    }
    Ok((version, Some(suites)))
}

fn version(name: &str, notices: &mut Vec<String>) -> Result<TlsVersion, Refusal> {
    match name {
        "" | "VersionTLS12" => Ok(TlsVersion::Tls12),
        "VersionTLS13" => Ok(TlsVersion::Tls13),
        "VersionTLS10" | "VersionTLS11" => {
            notices.push(format!(
                "--tls-min-version={name} is taken as VersionTLS12: nothing older is spoken"
            ));
            Ok(TlsVersion::Tls12)
        }
        name => Err(Refusal::TlsVersion(name.to_owned())),
    }
}

fn suites(names: &[String], notices: &mut Vec<String>) -> Result<Vec<CipherSuite>, Refusal> {
    let mut suites = Vec::new();
    let mut unspoken = Vec::new();
    for name in names {
        // Two names from before the hash was part of them.
        let full = match name.as_str() {
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => {
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
            }
            name => name,
        };
        if let Some(usable) = USABLE.iter().find(|usable| **usable == full) {
            suites.push(CipherSuite(usable));
        } else if UNSPOKEN.contains(&full) {
            unspoken.push(full);
        } else if !TLS13.contains(&full) {
            return Err(Refusal::CipherSuite(name.clone()));
        }
    }
    if !unspoken.is_empty() {
        notices.push(format!(
            "--tls-cipher-suites: {} not used: no forward secrecy or no AEAD",
            unspoken.join(", ")
        ));
    }
    Ok(suites)
}
