//! The authorities and certificates as they are kept: in Secrets, and in what clients trust.
//!
//! The newest authority is in `ca.crt` and `ca.key` of its Secret, as the original has it; older ones,
//! whose keys nobody needs any more, in `old.crt`. An authority that clients trust counts as an old
//! one too, also where the Secret does not know it: somebody may still present what it signed. What
//! is unreadable is as good as not there, but never a reason to stop.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use keelson_tls::authority::made;
use keelson_tls::self_signed::NotMade;
use keelson_tls::{Authority, Issued, Leaf as Facts, Pair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::{Intervals, Leaf, Root, Server};

/// Key of the newest authority's certificate.
pub const CA_CERTIFICATE: &str = "ca.crt";
/// Key of its private key.
pub const CA_KEY: &str = "ca.key";
/// Key of the authorities before it.
pub const OLD_CERTIFICATES: &str = "old.crt";
/// Key of a server's certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// Key of its private key.
pub const KEY: &str = "tls.key";

/// What a Secret holds.
pub type Data = BTreeMap<String, Vec<u8>>;

/// The authorities.
#[derive(Clone, Debug, Default)]
pub struct Authorities {
    newest: Option<Authority>,
    old: Vec<(Facts, String)>,
}

impl Authorities {
    /// Reads what is kept, and what clients trust beside it.
    pub fn read(kept: Option<&Data>, trusted: &[u8]) -> Self {
        let empty = Data::new();
        let kept = kept.unwrap_or(&empty);
        let part = |key: &str| kept.get(key).map(Vec::as_slice).unwrap_or_default();
        let newest = Authority::from_pem(part(CA_CERTIFICATE), part(CA_KEY)).ok();
        let mut authorities = Self {
            newest,
            old: Vec::new(),
        };
        // A newest one that cannot sign is an old one.
        for pem in [part(CA_CERTIFICATE), part(OLD_CERTIFICATES), trusted] {
            authorities.take_in(pem);
        }
        authorities
    }

    fn take_in(&mut self, pem: &[u8]) {
        for der in CertificateDer::pem_slice_iter(pem).flatten() {
            let Ok(facts) = Facts::read(&der) else {
                continue;
            };
            let newest = self.newest.as_ref().map(|it| it.facts().fingerprint);
            let known = newest == Some(facts.fingerprint)
                || self
                    .old
                    .iter()
                    .any(|(old, _)| old.fingerprint == facts.fingerprint);
            if !known {
                let text = armoured(&der);
                self.old.push((facts, text));
            }
        }
    }

    /// The authorities as the order of steps sees them, newest first.
    pub fn roots(&self) -> Vec<Root> {
        let newest = self.newest.iter().map(|it| root(it.facts(), true));
        newest
            .chain(self.old.iter().map(|(facts, _)| root(facts, false)))
            .collect()
    }

    /// All certificates, newest first: what clients are told to trust.
    pub fn bundle(&self) -> Vec<u8> {
        let newest = self.newest.iter().map(|it| it.certificate().to_vec());
        let old = self.old.iter().map(|(_, text)| text.clone().into_bytes());
        newest.chain(old).flatten().collect()
    }

    /// Names of the authorities in a bundle.
    pub fn names(bundle: &[u8]) -> BTreeSet<String> {
        let certificates = CertificateDer::pem_slice_iter(bundle).flatten();
        let facts = certificates.filter_map(|der| Facts::read(&der).ok());
        facts.map(|facts| name(&facts)).collect()
    }

    /// Makes a new authority; the one before becomes an old one.
    pub fn found(&mut self, intervals: &Intervals, now: Timestamp) -> Result<(), NotMade> {
        let name = format!("nmstate-ca-{}", now.as_millisecond());
        let new = Authority::new(&name, intervals.ca_life(), now)?;
        if let Some(before) = self.newest.replace(new) {
            let text = String::from_utf8_lossy(before.certificate()).into_owned();
            self.old.insert(0, (before.facts().clone(), text));
        }
        Ok(())
    }

    /// Keeps these no longer.
    pub fn forget(&mut self, names: &[String]) {
        self.old.retain(|(facts, _)| !names.contains(&name(facts)));
    }

    /// Signs a certificate for these names.
    pub fn issue(
        &self,
        names: &[String],
        intervals: &Intervals,
        now: Timestamp,
    ) -> Result<Issued, NotMade> {
        match &self.newest {
            Some(newest) => newest.issue(names, intervals.cert_rotate, now),
            None => Err(NotMade::Name("a CA that is not there".to_owned())),
        }
    }

    /// What is to be kept in the Secret.
    pub fn data(&self) -> Data {
        let old: String = self.old.iter().map(|(_, text)| text.as_str()).collect();
        let mut data = Data::from([(OLD_CERTIFICATES.to_owned(), old.into_bytes())]);
        if let Some(newest) = &self.newest {
            data.insert(CA_CERTIFICATE.to_owned(), newest.certificate().to_vec());
            data.insert(CA_KEY.to_owned(), newest.key().to_vec());
        }
        data
    }
}

/// What is to be kept of a server's certificate, with the authorities that vouch for it.
pub fn leaf_data(issued: &Issued, bundle: &[u8]) -> Data {
    Data::from([
        (CERTIFICATE.to_owned(), issued.certificate.clone()),
        (KEY.to_owned(), issued.key.clone()),
        (CA_CERTIFICATE.to_owned(), bundle.to_vec()),
    ])
}

/// The certificate in a server's Secret; none where none is readable.
pub fn leaf(server: Server, kept: &Data, names: &[String]) -> Option<Leaf> {
    let pair = Pair::from_pem(kept.get(CERTIFICATE)?, kept.get(KEY)?).ok()?;
    let facts = pair.leaf();
    Some(Leaf {
        server,
        by: name(facts),
        made: made(facts),
        ends: facts.not_after,
        fits: facts.covers(names).is_ok(),
    })
}

/// Name of the authority a certificate was signed by; an authority signs itself.
pub fn name(facts: &Facts) -> String {
    facts.issuer.clone()
}

fn root(facts: &Facts, signs: bool) -> Root {
    Root {
        name: name(facts),
        made: made(facts),
        ends: facts.not_after,
        signs,
    }
}

/// PEM of a certificate.
fn armoured(der: &CertificateDer<'_>) -> String {
    let body = STANDARD.encode(der);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in body.as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}
