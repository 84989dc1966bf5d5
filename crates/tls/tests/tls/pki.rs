//! Certificates for the tests, with everything about them to be chosen.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256, SanType,
    SignatureAlgorithm, date_time_ymd,
};
use std::sync::OnceLock;
use std::time::Duration;

use keelson_tls::{Fingerprint, Pair};

/// The names every serving certificate here carries unless a test says otherwise.
pub(crate) const NAMES: &[&str] = &["node-0.sei.svc", "node-0"];

/// A certificate and its key, PEM.
#[derive(Clone)]
pub(crate) struct Pem {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Pem {
    pub(crate) fn pair(&self) -> Pair {
        Pair::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).expect("a pair")
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.pair().leaf().fingerprint
    }
}

/// An authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: String,
}

/// What to put into a leaf.
pub(crate) struct Wanted<'a> {
    pub(crate) names: &'a [&'a str],
    pub(crate) common_name: Option<&'a str>,
    pub(crate) purpose: ExtendedKeyUsagePurpose,
    pub(crate) valid: (Timestamp, Timestamp),
    pub(crate) kind: &'static SignatureAlgorithm,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        let now = Timestamp::now();
        Self {
            names: NAMES,
            common_name: None,
            purpose: ExtendedKeyUsagePurpose::ServerAuth,
            valid: (
                now - SignedDuration::from_hours(1),
                now + SignedDuration::from_hours(24),
            ),
            kind: &PKCS_ECDSA_P256_SHA256,
        }
    }
}

impl Wanted<'_> {
    fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if let Some(name) = self.common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.extended_key_usages = vec![self.purpose.clone()];
        params.subject_alt_names = self
            .names
            .iter()
            .map(|name| match name.parse() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName((*name).try_into().expect("a name")),
            })
            .collect();
        params.not_before = date_time_ymd(1970, 1, 1) + since_1970(self.valid.0);
        params.not_after = date_time_ymd(1970, 1, 1) + since_1970(self.valid.1);
        params
    }

    fn key(&self) -> KeyPair {
        // An RSA key takes too long to make more than one.
        static RSA: OnceLock<String> = OnceLock::new();
        if self.kind == &PKCS_RSA_SHA256 {
            let pem = RSA.get_or_init(|| {
                let key = KeyPair::generate_for(&PKCS_RSA_SHA256).expect("an RSA key");
                key.serialize_pem()
            });
            return KeyPair::from_pem(pem).expect("an RSA key");
        }
        KeyPair::generate_for(self.kind).expect("a key")
    }
}

/// To be added to rcgen's first of January 1970.
fn since_1970(at: Timestamp) -> Duration {
    Duration::from_secs(at.as_second().try_into().expect("after 1970"))
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    /// An authority under this one.
    pub(crate) fn intermediate(&self, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        Self {
            issuer: Issuer::new(params, key),
            certificate: signed.pem(),
        }
    }

    pub(crate) fn sign(&self, wanted: &Wanted<'_>) -> Pem {
        let key = wanted.key();
        let signed = wanted.params().signed_by(&key, &self.issuer);
        Pem {
            certificate: signed.expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }

    /// A serving certificate with nothing special about it.
    pub(crate) fn server(&self) -> Pem {
        self.sign(&Wanted::default())
    }

    pub(crate) fn client(&self, name: &str) -> Pem {
        self.sign(&Wanted {
            names: &[],
            common_name: Some(name),
            purpose: ExtendedKeyUsagePurpose::ClientAuth,
            ..Wanted::default()
        })
    }
}

/// A serving certificate that vouches for itself.
pub(crate) fn self_signed(authority: IsCa) -> Pem {
    let wanted = Wanted::default();
    let key = wanted.key();
    let mut params = wanted.params();
    params.is_ca = authority;
    Pem {
        certificate: params.self_signed(&key).expect("a certificate").pem(),
        key: key.serialize_pem(),
    }
}

/// Serving certificates with an EC, an Ed25519 and an RSA key.
pub(crate) fn one_of_each_kind() -> [Pem; 3] {
    let authority = Authority::new("kinds");
    [&PKCS_ECDSA_P256_SHA256, &PKCS_ED25519, &PKCS_RSA_SHA256].map(|kind| {
        authority.sign(&Wanted {
            kind,
            ..Wanted::default()
        })
    })
}
