//! The attributes of a certificate's subject, in the certificate's order.
//!
//! Reading only. Nothing here says that the certificate is to be trusted, nor whom it makes the one
//! who presents it; servers are never known by their subject, see [`crate::certificate`].

use crate::certificate::NotACertificate;
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// Common name.
pub const COMMON_NAME: &str = "2.5.4.3";
/// Organization.
pub const ORGANIZATION: &str = "2.5.4.10";

/// Whom a certificate is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The attributes.
    pub attributes: Vec<Attribute>,
}

/// One attribute of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its kind, as numbers with dots between.
    pub kind: String,
    /// Its text; none where it is no text of the usual encodings.
    pub text: Option<String>,
}

impl Subject {
    /// Reads the subject of a certificate.
    pub fn read(der: &CertificateDer<'_>) -> Result<Self, NotACertificate> {
        let (_, parsed) = X509Certificate::from_der(der).map_err(|_| NotACertificate)?;
        let attributes = parsed.subject().iter_attributes();
        Ok(Self {
            attributes: attributes
                .map(|attribute| Attribute {
                    kind: attribute.attr_type().to_id_string(),
                    text: attribute.as_str().ok().map(str::to_owned),
                })
                .collect(),
        })
    }

    /// The values of one kind, in order.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = Option<&'a str>> {
        let of_kind = self.attributes.iter().filter(move |it| it.kind == kind);
        of_kind.map(|attribute| attribute.text.as_deref())
    }
}
