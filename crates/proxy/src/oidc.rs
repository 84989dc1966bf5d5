//! Tokens of an OpenID Connect issuer, checked here and not by the API server.
//!
//! What a token says and whether that is good enough are functions of values: `token` reads it,
//! `signature` checks who signed it, `claims` says for whom, from when until when, and who the bearer
//! is. [`Issuer`] is the edge: it finds the issuer's keys in the background, fetches them again when a
//! token names one it does not have, and remembers the tokens it accepted. In which order
//! authenticators are asked is the doorkeeper's.

mod claims;
mod fetch;
mod issuer;
mod signature;
mod token;

pub use claims::{distributed, identity, meant_for, timely};
pub use issuer::{Issuer, Memory, Pace};
pub use signature::{Algorithm, KeySet, NotAKeySet, Proof};
pub use token::Signed;

/// Why a token is nobody's. None repeats the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// It is no signed JWT.
    #[error("the bearer token is not a signed JWT")]
    NotAToken,
    /// Somebody else may know it.
    #[error("the token is of another issuer")]
    OtherIssuer,
    /// The issuer's keys are not known yet.
    #[error("the issuer has not been reached yet, so none of its tokens can be checked")]
    NotReady,
    /// Signed in a way that is not accepted.
    #[error("the token is signed with {0:?}, which --oidc-sign-alg does not name")]
    Algorithm(String),
    /// Meant for others.
    #[error("the token is for another audience")]
    Audience,
    /// Too late, or without an end.
    #[error("the token has expired, or does not say when it does")]
    Expired,
    /// Too early.
    #[error("the token is not valid yet")]
    TooEarly,
    /// No key of the issuer has this name.
    #[error("the token names a key the issuer does not have")]
    UnknownKey,
    /// The key did not make the signature.
    #[error("the token's signature is not its issuer's")]
    Signature,
    /// A claim is missing, or something else than it should be.
    #[error("the token's claim {0:?} is missing, empty, or not text")]
    Claim(String),
    /// The issuer does not stand by the address.
    #[error("the token's email is not verified")]
    EmailNotVerified,
    /// The groups are somewhere else.
    #[error(
        "the token's claim {0:?} is a distributed claim, and those are not fetched: have the issuer put it into the token"
    )]
    Distributed(String),
}
