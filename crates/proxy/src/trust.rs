//! Whom to trust where no file says so: the authorities of the host, from the places where systems
//! keep them.
//!
//! `SSL_CERT_FILE` names another place, as it does for OpenSSL and Go. A bundle is read once for each
//! connection's configuration or process, as its user likes; what it is used for is not known here.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};

/// Where bundles are: Debian and Alpine, Fedora and RHEL, older RHEL, openSUSE, the rest.
const USUAL: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Why the host's own authorities are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoHostRoots {
    /// No bundle at the usual places.
    #[error(
        "this host has no bundle of authorities at {}: install ca-certificates, set SSL_CERT_FILE, or name a CA file by flag",
        USUAL.join(", ")
    )]
    NoBundle,
    /// The bundle cannot be read.
    #[error("the host's bundle of authorities {} cannot be read: {why}", .file.display())]
    Unreadable {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The bundle has no certificate in it.
    #[error("the host's bundle of authorities {} holds no certificate", .0.display())]
    Empty(PathBuf),
}

/// The authorities the host trusts.
pub fn host_roots() -> Result<RootCertStore, NoHostRoots> {
    let file = host_bundle()?;
    let pem = std::fs::read(&file).map_err(|error| NoHostRoots::Unreadable {
        why: error.to_string(),
        file: file.clone(),
    })?;
    roots(&pem).ok_or(NoHostRoots::Empty(file))
}

/// The file the host keeps its authorities in.
pub fn host_bundle() -> Result<PathBuf, NoHostRoots> {
    let named = std::env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty());
    bundle(named.map(PathBuf::from), Path::exists)
}

/// The file named, or the first of the usual ones that is there.
fn bundle(
    named: Option<PathBuf>,
    is_there: impl Fn(&Path) -> bool,
) -> Result<PathBuf, NoHostRoots> {
    if let Some(named) = named {
        return Ok(named);
    }
    let usual = USUAL.iter().map(Path::new).find(|file| is_there(file));
    usual.map(Path::to_owned).ok_or(NoHostRoots::NoBundle)
}

/// The authorities of a PEM bundle; none if it has none. A bundle may hold a certificate nobody can
/// use; the others count.
pub fn roots(pem: &[u8]) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem).flatten() {
        let _ = roots.add(certificate);
    }
    (!roots.is_empty()).then_some(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_bundle_wins_and_then_the_first_usual_one_that_is_there() {
        let there = |files: &'static [&'static str]| {
            move |file: &Path| files.iter().any(|it| Path::new(it) == file)
        };
        let named = Some(PathBuf::from("/mine.pem"));
        assert_eq!(bundle(named, there(&USUAL)), Ok("/mine.pem".into()));
        let both = there(&["/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"]);
        assert_eq!(
            bundle(None, both),
            Ok("/etc/pki/tls/certs/ca-bundle.crt".into())
        );
        assert_eq!(bundle(None, there(&[])), Err(NoHostRoots::NoBundle));
    }

    #[test]
    fn a_bundle_counts_by_its_usable_certificates() {
        let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]);
        let good = made.expect("a certificate").cert.pem();
        let broken = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let counted = |pem: &str| roots(pem.as_bytes()).map(|roots| roots.len());
        assert_eq!(counted(&format!("# a comment\n{broken}{good}")), Some(1));
        assert_eq!(counted(broken), None);
        assert_eq!(counted(""), None);
    }
}
