//! Keys and certificates of a cluster, made here and nowhere else.
//!
//! One authority signs everything: the API server's serving certificate, a client certificate for
//! each component, and whatever a test asks for (a webhook's listener, the fault proxy). Where the
//! files go and who reads them is the cluster's business.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use std::net::IpAddr;

/// A certificate with its private key, both PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS #8.
    pub key: String,
}

/// A certificate authority that lives as long as its cluster.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    /// A new authority under this common name.
    pub fn new(name: &str) -> Result<Self, rcgen::Error> {
        let params = of_authority(name);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate,
        })
    }

    /// One that was made elsewhere under this common name.
    pub(crate) fn made_elsewhere(name: &str, identity: Identity) -> Result<Self, rcgen::Error> {
        Ok(Self {
            issuer: Issuer::new(of_authority(name), KeyPair::from_pem(&identity.key)?),
            certificate: identity.certificate,
        })
    }

    /// The authority's own certificate, PEM: what a client trusts.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The same with its private key: what a test gives an issuer of its own.
    pub fn identity(&self) -> Identity {
        Identity {
            certificate: self.certificate.clone(),
            key: self.issuer.key().serialize_pem(),
        }
    }

    /// A client certificate: `user` and `group` are who Kubernetes sees.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, rcgen::Error> {
        let mut params = leaf(ExtendedKeyUsagePurpose::ClientAuth);
        params.distinguished_name = distinguished(user, group);
        self.sign(params)
    }

    /// A serving certificate for these names; a name that parses as an address becomes one.
    pub fn server(&self, names: &[&str]) -> Result<Identity, rcgen::Error> {
        let mut params = leaf(ExtendedKeyUsagePurpose::ServerAuth);
        params.distinguished_name = distinguished(names.first().unwrap_or(&"server"), None);
        params.subject_alt_names = names
            .iter()
            .map(|name| match name.parse::<IpAddr>() {
                Ok(address) => Ok(SanType::IpAddress(address)),
                Err(_) => Ok(SanType::DnsName((*name).try_into()?)),
            })
            .collect::<Result<_, rcgen::Error>>()?;
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        Ok(Identity {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// The pair that signs service account tokens and verifies them: private and public key, PEM.
pub(crate) fn signing_pair() -> Result<(String, String), rcgen::Error> {
    let pair = KeyPair::generate()?;
    Ok((pair.serialize_pem(), pair.public_key_pem()))
}

fn of_authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished(name, None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

fn leaf(purpose: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    params
}

/// Kubernetes reads the user from the common name and its group from the organisation.
fn distinguished(user: &str, group: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(group) = group {
        subject.push(DnType::OrganizationName, group);
    }
    subject.push(DnType::CommonName, user);
    subject
}
