//! A certificate chain with its private key, and the checks a pair must pass before it is served.
//!
//! Used by listeners when they load and by the operator when it looks at a Secret. Every failure is
//! a type of its own and one sentence. No sentence repeats any byte of the key.

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, SignatureAlgorithm};
use std::sync::Arc;

use crate::certificate::{Leaf, NameMissing, Untimely};

/// Why a pair is not usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// No certificate in the PEM.
    #[error("the certificate file holds no certificate")]
    CertificateMissing,
    /// Broken PEM or DER.
    #[error("the certificate file is not readable as PEM certificates")]
    CertificateUnreadable,
    /// No private key in the PEM, or half of one.
    #[error("the key file holds no private key")]
    KeyMissing,
    /// A key rustls does not do.
    #[error(
        "the private key is broken or of a kind that is not supported: use EC, Ed25519, or RSA of 2048 bits or more"
    )]
    KeyUnsupported,
    /// Two halves of different pairs.
    #[error("the private key does not belong to the certificate")]
    Mismatched,
    /// Out of its time.
    #[error(transparent)]
    Untimely(#[from] Untimely),
    /// A name is not covered.
    #[error(transparent)]
    NameMissing(#[from] NameMissing),
}

/// A chain and a key that belong together.
#[derive(Clone, Debug)]
pub struct Pair {
    certified: Arc<CertifiedKey>,
    leaf: Leaf,
}

impl Pair {
    /// Reads a pair from PEM, as in a `kubernetes.io/tls` Secret, and checks that key and
    /// certificate belong together. The chain's first certificate is the leaf.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, PairError> {
        let chain = chain(certificates)?;
        let leaf = chain.first().ok_or(PairError::CertificateMissing)?;
        let leaf = Leaf::read(leaf).map_err(|_| PairError::CertificateUnreadable)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| PairError::KeyMissing)?;
        let key = default_provider()
            .key_provider
            .load_private_key(key)
            .map_err(|_| PairError::KeyUnsupported)?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) => {}
            Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(PairError::Mismatched);
            }
            Err(rustls::Error::InconsistentKeys(_)) => return Err(PairError::KeyUnsupported),
            Err(_) => return Err(PairError::CertificateUnreadable),
        }
        Ok(Self {
            certified: Arc::new(certified),
            leaf,
        })
    }

    /// Whether the pair may be served at this time under all these names: what the operator asks
    /// of a Secret.
    pub fn serves<S: AsRef<str>>(&self, names: &[S], now: Timestamp) -> Result<(), PairError> {
        self.leaf.valid_at(now)?;
        self.leaf.covers(names)?;
        Ok(())
    }

    /// The facts of the leaf.
    pub fn leaf(&self) -> &Leaf {
        &self.leaf
    }

    /// Which signatures the key makes.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.certified.key.algorithm()
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }
}

/// The certificates of a PEM text, in order.
pub(crate) fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PairError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| PairError::CertificateUnreadable)
}
