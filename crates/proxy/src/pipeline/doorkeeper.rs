//! Who a caller is, and what they may: both questions, with their answers remembered.
//!
//! A door that cannot be asked about stays shut. Which of the two failed shows in the status, as it
//! does with the reference: 401 for the first question, 500 for the second.

use crate::attributes::{Check, Object};
use crate::decision::{Authentication, Digest, Engine, Inquiry, Keys, Provenance, Refusal};
use crate::headers::{bearer, subprotocol_token};
use crate::metrics::{Counts, Ruling, Source};
use crate::outcome::Outcome;
use crate::review::Identity;
use crate::reviewers::{Access, AccessReviewer, Login, TokenReviewer};
use crate::serve::Origin;
use futures::stream::{FuturesUnordered, StreamExt};
use http::HeaderMap;
use std::sync::Arc;
use std::time::SystemTime;

/// Whether an API server that cannot be asked shows as such (`--unavailable-status=503`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outage {
    /// 401 or 500, as with the reference.
    #[default]
    AsReference,
    /// 503 with `Retry-After`.
    Told,
}

/// Someone whose name is known.
#[derive(Clone, Debug)]
pub struct Entrant {
    identity: Arc<Identity>,
    digest: Digest,
    pub(super) subprotocols: Option<String>,
}

impl Entrant {
    /// Who they are.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// Knows callers and their rights.
pub struct Doorkeeper {
    tokens: Authentication<TokenReviewer>,
    access: Engine<Digest, AccessReviewer>,
    keys: Arc<Keys>,
    audiences: Arc<[String]>,
    outage: Outage,
}

impl std::fmt::Debug for Doorkeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doorkeeper")
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

impl Doorkeeper {
    /// A doorkeeper who remembers nobody yet.
    pub fn new(
        tokens: Authentication<TokenReviewer>,
        access: Engine<Digest, AccessReviewer>,
        keys: Arc<Keys>,
        audiences: Arc<[String]>,
        outage: Outage,
    ) -> Self {
        Self {
            tokens,
            access,
            keys,
            audiences,
            outage,
        }
    }

    /// The engines of both questions, for their counters.
    pub fn engines(
        &self,
    ) -> (
        &Engine<Digest, TokenReviewer>,
        &Engine<Digest, AccessReviewer>,
    ) {
        (self.tokens.engine(), &self.access)
    }

    /// Who this is.
    pub async fn greet(&self, origin: &Origin, headers: &HeaderMap) -> Result<Entrant, Outcome> {
        if let Some(token) = bearer(headers) {
            return self.know(origin, token, None).await;
        }
        match subprotocol_token(headers) {
            Ok(Some(found)) => self.know(origin, &found.token, Some(found.left)).await,
            Ok(None) | Err(_) => Err(Outcome::Unauthorized),
        }
    }

    async fn know(
        &self,
        origin: &Origin,
        token: &str,
        subprotocols: Option<String>,
    ) -> Result<Entrant, Outcome> {
        let source = origin.peer.ip();
        let now = SystemTime::now();
        let decided = self
            .tokens
            .authenticate(token, &self.audiences, source, now)
            .await;
        let decided =
            decided.map_err(|refusal| self.refused(&refusal, Outcome::AuthenticationFailed))?;
        match decided.answer() {
            Login::Unknown(reason) => {
                tracing::info!(%source, %reason, "Unable to authenticate the request");
                Err(Outcome::Unauthorized)
            }
            Login::Known { identity, digest } => Ok(Entrant {
                identity: Arc::clone(identity),
                digest: *digest,
                subprotocols,
            }),
        }
    }

    /// Whether they may do all of this, and where the answer came from: asked at once, and one no
    /// is enough.
    pub async fn admit(
        &self,
        entrant: &Entrant,
        checks: Vec<Check>,
        counts: &Counts,
    ) -> (Source, Result<(), Outcome>) {
        let mut asked: FuturesUnordered<_> = checks
            .into_iter()
            .map(|check| self.allow(entrant, check))
            .collect();
        // Whatever is not left to ask about was allowed by a rule.
        let mut dearest = Source::Static;
        while let Some((source, ruled)) = asked.next().await {
            dearest = dearest.max(source);
            counts.ruled(source, ruling(&ruled));
            if ruled.is_err() {
                return (source, ruled);
            }
        }
        (dearest, Ok(()))
    }

    async fn allow(&self, entrant: &Entrant, check: Check) -> (Source, Result<(), Outcome>) {
        let key = self.key(entrant, &check);
        let inquiry = || {
            let question = (Arc::clone(&entrant.identity), check.clone());
            Ok(Inquiry {
                question,
                not_after: None,
            })
        };
        let subject = || check.subject(&entrant.identity);
        match self.access.decide(&key, None, inquiry).await {
            Ok(decided) => {
                let source = match decided.provenance() {
                    Provenance::Cache => Source::Cache,
                    Provenance::Stale => Source::Stale,
                    Provenance::Review => Source::Review,
                };
                let ruled = match decided.answer() {
                    Access::Allowed => Ok(()),
                    Access::Denied(reason) => {
                        tracing::info!(user = entrant.identity.user, %check, %reason, "denied");
                        Err(Outcome::Forbidden(subject()))
                    }
                };
                (source, ruled)
            }
            Err(refusal) => {
                let outcome = self.refused(&refusal, Outcome::AuthorizationFailed(subject()));
                (Source::Review, Err(outcome))
            }
        }
    }

    fn key(&self, entrant: &Entrant, check: &Check) -> Digest {
        match &check.object {
            Object::Path(path) => self
                .keys
                .access(&entrant.digest, &[&check.verb, "path", path]),
            Object::Resource(attributes) => {
                let [a, b, c, d, e, f] = attributes.entries().map(|(_, text)| text.as_str());
                let parts = [check.verb.as_ref(), "resource", a, b, c, d, e, f];
                self.keys.access(&entrant.digest, &parts)
            }
        }
    }

    fn refused(&self, refusal: &Refusal, as_reference: Outcome) -> Outcome {
        tracing::warn!(%refusal, "the API server gave no decision");
        match (refusal, self.outage) {
            (Refusal::Expired, _) => Outcome::Unauthorized,
            (_, Outage::Told) => Outcome::Unavailable,
            (Refusal::Overloaded | Refusal::Throttled { .. }, _) => Outcome::Unavailable,
            (_, Outage::AsReference) => as_reference,
        }
    }
}

fn ruling(ruled: &Result<(), Outcome>) -> Ruling {
    match ruled {
        Ok(()) => Ruling::Allowed,
        Err(Outcome::Forbidden(_)) => Ruling::Denied,
        Err(_) => Ruling::Failed,
    }
}
