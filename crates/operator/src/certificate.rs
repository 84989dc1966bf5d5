//! What a `kubernetes.io/tls` Secret holds, whether it is what a node asks for, and what cert-manager
//! says of a Certificate: functions of objects as they were read.
//!
//! A certificate out of its time passes here, with its end in [`Held`]: what a server presents is
//! judged in the handshake. Reading the objects, ordering and waiting are the controller's.

mod order;

pub use order::{Order, issuer_ready, order};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use keelson_api::node_condition::NodeReason;
use keelson_api::sidecar::IssuerKind;
use keelson_plan::Tls;
use keelson_tls::client::{NoPins, Pins};
use keelson_tls::{Fingerprint, Leaf, Pair};

/// Type of a Secret with a key pair.
const TYPE: &str = "kubernetes.io/tls";
/// Which Certificate cert-manager wrote a Secret for.
const CERTIFICATE_NAME: &str = "cert-manager.io/certificate-name";
/// Who issued what is in it.
const ISSUER_NAME: &str = "cert-manager.io/issuer-name";
const ISSUER_KIND: &str = "cert-manager.io/issuer-kind";
const ISSUER_GROUP: &str = "cert-manager.io/issuer-group";
/// The group of cert-manager's own issuers.
const GROUP: &str = "cert-manager.io";

/// What a Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// SHA-256 of the leaf.
    pub fingerprint: Fingerprint,
    /// First moment of its validity.
    pub not_before: Timestamp,
    /// Last moment of its validity.
    pub not_after: Timestamp,
    /// The names it is for.
    pub names: Vec<String>,
    /// The authorities to verify it with, PEM; none where the Secret has no `ca.crt`, or an empty one.
    pub ca: Option<Vec<u8>>,
    /// The issuer of cert-manager that issued it, where one did.
    pub issuer: Option<(String, IssuerKind)>,
    /// The Certificate it was issued for, where it was for one.
    pub certificate: Option<String>,
}

/// Why a Secret is not what a node asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// There is none.
    #[error("there is no Secret {0}")]
    NotFound(String),
    /// It could not be read.
    #[error("the Secret could not be read: {0}")]
    Unavailable(String),
    /// It holds no usable key pair.
    #[error("{0}")]
    Malformed(String),
    /// Its certificate does not cover these names.
    #[error("the certificate in Secret {secret} must name {} too; it names {}", listed(.missing), listed(.names))]
    SansMismatch {
        /// The Secret.
        secret: String,
        /// The names that are missing.
        missing: Vec<String>,
        /// The names there are.
        names: Vec<String>,
    },
    /// It is somebody else's.
    #[error("{0}")]
    NotOwned(String),
    /// It was issued by another issuer than the one asked for.
    #[error("the certificate in the Secret is still from {found}, not from {wanted}")]
    OtherIssuer {
        /// The issuer asked for.
        wanted: String,
        /// The issuer that is there.
        found: String,
    },
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        names => names.join(", "),
    }
}

impl Unfit {
    /// The reason of the condition that says so. A certificate of another issuer is on its way.
    pub fn reason(&self) -> NodeReason {
        match self {
            Self::NotFound(_) => NodeReason::TlsSecretNotFound,
            Self::Unavailable(_) => NodeReason::TlsSecretUnavailable,
            Self::Malformed(_) => NodeReason::TlsSecretMalformed,
            Self::SansMismatch { .. } => NodeReason::TlsSecretSansMismatch,
            Self::NotOwned(_) => NodeReason::TlsSecretNotOwned,
            Self::OtherIssuer { .. } => NodeReason::CertificatePending,
        }
    }
}

/// Reads a Secret whose certificate has to cover these names.
pub fn read(secret: &Secret, names: &[String]) -> Result<Held, Unfit> {
    let name = name(secret);
    let type_ = secret.type_.as_deref().unwrap_or_default();
    if type_ != TYPE {
        return Err(Unfit::Malformed(format!(
            "Secret {name} is of type {type_:?}: make one of type {TYPE}"
        )));
    }
    let certificates = entry(secret, name, "tls.crt")?;
    let key = entry(secret, name, "tls.key")?;
    let pair = Pair::from_pem(certificates, key).map_err(|error| {
        Unfit::Malformed(format!(
            "tls.crt and tls.key of Secret {name} are no key pair: {error}"
        ))
    })?;
    let leaf = pair.leaf();
    let missing = missing(leaf, names);
    if !missing.is_empty() {
        return Err(Unfit::SansMismatch {
            secret: name.to_owned(),
            missing,
            names: leaf.names.clone(),
        });
    }
    Ok(Held {
        fingerprint: leaf.fingerprint,
        not_before: leaf.not_before,
        not_after: leaf.not_after,
        names: leaf.names.clone(),
        ca: bytes(secret, "ca.crt").map(<[u8]>::to_vec),
        issuer: issuer(secret),
        certificate: annotation(secret, CERTIFICATE_NAME).map(str::to_owned),
    })
}

/// Whether a Secret is what a node asks for. One that cert-manager is to write has to be its work for
/// the Certificate of this name: somebody else's is neither used nor overwritten.
pub fn fits(
    secret: Option<&Secret>,
    wanted: &Tls,
    certificate_name: &str,
    names: &[String],
) -> Result<Held, Unfit> {
    match wanted {
        Tls::Secret(given) => {
            let secret = secret.ok_or_else(|| Unfit::NotFound(given.clone()))?;
            read(secret, names)
        }
        Tls::Issuer { name, kind } => {
            let secret = secret.ok_or_else(|| Unfit::NotFound(certificate_name.to_owned()))?;
            owned(secret, certificate_name)?;
            let held = read(secret, names)?;
            match &held.issuer {
                Some((by, of)) if by == name && of == kind => Ok(held),
                _ => Err(Unfit::OtherIssuer {
                    wanted: format!("{kind} {name}"),
                    found: annotated_issuer(secret),
                }),
            }
        }
    }
}

/// Whether a Secret is cert-manager's work for this Certificate: only then may it be deleted.
pub fn owned(secret: &Secret, certificate_name: &str) -> Result<(), Unfit> {
    let name = name(secret);
    match annotation(secret, CERTIFICATE_NAME) {
        Some(by) if by == certificate_name => Ok(()),
        Some(other) => Err(Unfit::NotOwned(format!(
            "Secret {name} belongs to the Certificate {other}: give that another secretName"
        ))),
        None => Err(Unfit::NotOwned(format!(
            "Secret {name} was not written by cert-manager: remove it, or name it as sidecar.tls.secretName"
        ))),
    }
}

/// Whom a handshake is to trust: the leaf known before, what chains to the Secret's authorities, or,
/// where it has none, its leaf.
pub fn pins(
    held: Option<&Held>,
    known: Option<Fingerprint>,
    names: &[String],
) -> Result<Pins, NoPins> {
    let bundle = held.and_then(|held| held.ca.as_deref());
    let leaf = held.map(|held| held.fingerprint);
    Pins::observation(known, bundle, leaf, names)
}

fn missing(leaf: &Leaf, names: &[String]) -> Vec<String> {
    let uncovered = names.iter().filter(|name| leaf.covers(&[name]).is_err());
    uncovered.cloned().collect()
}

fn name(secret: &Secret) -> &str {
    secret.metadata.name.as_deref().unwrap_or_default()
}

fn bytes<'a>(secret: &'a Secret, key: &str) -> Option<&'a [u8]> {
    let value = secret.data.as_ref()?.get(key)?.0.as_slice();
    (!value.trim_ascii().is_empty()).then_some(value)
}

fn entry<'a>(secret: &'a Secret, name: &str, key: &str) -> Result<&'a [u8], Unfit> {
    bytes(secret, key)
        .ok_or_else(|| Unfit::Malformed(format!("{key} of Secret {name} is missing or empty")))
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    let value = secret.metadata.annotations.as_ref()?.get(key)?;
    (!value.is_empty()).then_some(value)
}

/// The issuer, if it is one of cert-manager's own. No kind means an Issuer, as it does there.
fn issuer(secret: &Secret) -> Option<(String, IssuerKind)> {
    let name = annotation(secret, ISSUER_NAME)?;
    let kind = annotation(secret, ISSUER_KIND).map_or(Ok(IssuerKind::Issuer), str::parse);
    let group = annotation(secret, ISSUER_GROUP).unwrap_or(GROUP);
    (group == GROUP).then_some((name.to_owned(), kind.ok()?))
}

fn annotated_issuer(secret: &Secret) -> String {
    let kind = annotation(secret, ISSUER_KIND).unwrap_or("Issuer");
    match annotation(secret, ISSUER_NAME) {
        Some(name) => format!("{kind} {name}"),
        None => "an issuer it does not name".to_owned(),
    }
}
