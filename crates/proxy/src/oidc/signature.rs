//! The issuer's keys, and whether one of them made a signature.
//!
//! The kind of key decides which algorithms it can be used with, so a token cannot have an RSA key read
//! as a shared secret; there are no shared secrets here at all, and no "none".

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED,
    EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// How a token may be signed.
#[derive(Clone, Copy, Debug)]
pub enum Algorithm {
    /// With an RSA key.
    Rsa(&'static RsaParameters),
    /// With a key on an elliptic curve.
    Curve(&'static Curve),
}

/// A curve, which in JOSE comes with one hash.
#[derive(Debug)]
pub struct Curve {
    name: &'static str,
    bytes: usize,
    verification: &'static EcdsaVerificationAlgorithm,
}

static P256: Curve = Curve {
    name: "P-256",
    bytes: 32,
    verification: &ECDSA_P256_SHA256_FIXED,
};
static P384: Curve = Curve {
    name: "P-384",
    bytes: 48,
    verification: &ECDSA_P384_SHA384_FIXED,
};
static P521: Curve = Curve {
    name: "P-521",
    bytes: 66,
    verification: &ECDSA_P521_SHA512_FIXED,
};

impl Algorithm {
    /// By the name of `--oidc-sign-alg` and of a token's header.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            "RS384" => Self::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            "RS512" => Self::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            "PS256" => Self::Rsa(&RSA_PSS_2048_8192_SHA256),
            "PS384" => Self::Rsa(&RSA_PSS_2048_8192_SHA384),
            "PS512" => Self::Rsa(&RSA_PSS_2048_8192_SHA512),
            "ES256" => Self::Curve(&P256),
            "ES384" => Self::Curve(&P384),
            "ES512" => Self::Curve(&P521),
            _ => return None,
        })
    }
}

/// What the keys say about a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// One of them made it.
    Good,
    /// The one that is named did not make it.
    Bad,
    /// The one that is named is not there; or none is named, and none made it.
    NoSuchKey,
}

/// The keys an issuer signs with at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    name: Option<String>,
    public: Public,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Public {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    Point {
        curve: &'static str,
        encoded: Vec<u8>,
    },
}

/// Why the issuer's answer is no set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAKeySet {
    /// Not the document it should be.
    #[error("the issuer's keys are not a JSON Web Key Set")]
    Malformed,
    /// Nothing to check signatures with.
    #[error("the issuer's key set has no key a token can be signed with")]
    Empty,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default, rename = "use")]
    purpose: Option<String>,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

impl KeySet {
    /// Reads a set of keys. Those for other purposes, and of kinds we do not know, are passed over.
    pub fn read(json: &[u8]) -> Result<Self, NotAKeySet> {
        let document: Document = serde_json::from_slice(json).map_err(|_| NotAKeySet::Malformed)?;
        let keys: Vec<Key> = document.keys.into_iter().filter_map(Key::read).collect();
        match keys.is_empty() {
            true => Err(NotAKeySet::Empty),
            false => Ok(Self { keys }),
        }
    }

    /// Whether the key of this name made this signature; without a name any of them may have.
    pub fn prove(
        &self,
        algorithm: Algorithm,
        name: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Proof {
        let name = name.filter(|name| !name.is_empty());
        let named = |key: &&Key| name.is_none() || key.name.as_deref() == name;
        let mut candidates = self.keys.iter().filter(named).peekable();
        let there = name.is_some() && candidates.peek().is_some();
        match candidates.any(|key| key.public.made(algorithm, message, signature)) {
            true => Proof::Good,
            false if there => Proof::Bad,
            false => Proof::NoSuchKey,
        }
    }
}

impl Key {
    fn read(entry: Entry) -> Option<Self> {
        if entry.purpose.is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let number = |text: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            Some(bytes[zeros..].to_vec()).filter(|bytes| !bytes.is_empty())
        };
        let public = match entry.kty.as_str() {
            "RSA" => Public::Rsa {
                modulus: number(&entry.n)?,
                exponent: number(&entry.e)?,
            },
            "EC" => {
                let curves = [&P256, &P384, &P521];
                let curve = curves.into_iter().find(|it| it.name == entry.crv)?;
                let (x, y) = (number(&entry.x)?, number(&entry.y)?);
                let room = |number: &[u8]| curve.bytes.checked_sub(number.len());
                let (before_x, before_y) = (room(&x)?, room(&y)?);
                let zeros = |count| std::iter::repeat_n(0, count);
                let encoded = std::iter::once(4)
                    .chain(zeros(before_x).chain(x))
                    .chain(zeros(before_y).chain(y));
                Public::Point {
                    curve: curve.name,
                    encoded: encoded.collect(),
                }
            }
            _ => return None,
        };
        Some(Self {
            name: entry.kid,
            public,
        })
    }
}

impl Public {
    fn made(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, Algorithm::Rsa(parameters)) => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, message, signature).is_ok()
            }
            (Self::Point { curve, encoded }, Algorithm::Curve(wanted)) => {
                *curve == wanted.name
                    && UnparsedPublicKey::new(wanted.verification, encoded)
                        .verify(message, signature)
                        .is_ok()
            }
            _ => false,
        }
    }
}
