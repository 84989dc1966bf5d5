//! An authority that signs whatever a test needs, wrong certificates included.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
    pub(crate) der: CertificateDer<'static>,
}

/// A certificate and its key.
pub(crate) struct Held {
    pub(crate) der: CertificateDer<'static>,
    pub(crate) pem: String,
    pub(crate) key_pem: String,
    key: Vec<u8>,
}

impl Held {
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.key.clone().into())
    }
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        let made = params.self_signed(&key).expect("a certificate");
        Self {
            pem: made.pem(),
            der: made.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A client's certificate with this common name, and whatever else.
    pub(crate) fn client(&self, name: &str, more: impl FnOnce(&mut CertificateParams)) -> Held {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        more(&mut params);
        self.sign(&params)
    }

    /// A server's certificate for the loopback address.
    pub(crate) fn server(&self) -> Held {
        let mut params = CertificateParams::default();
        let loopback = [127, 0, 0, 1].into();
        params.subject_alt_names = vec![SanType::IpAddress(loopback)];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Held {
        let key = KeyPair::generate().expect("a key");
        let made = params.signed_by(&key, &self.issuer).expect("a certificate");
        Held {
            der: made.der().clone(),
            pem: made.pem(),
            key_pem: key.serialize_pem(),
            key: key.serialize_der(),
        }
    }
}
