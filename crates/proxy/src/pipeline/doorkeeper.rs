//! Who a caller is, and what they may: both questions, with their answers remembered.
//!
//! A door that cannot be asked about stays shut. Which of the two failed shows in the status, as it
//! does with the reference: 401 for the first question, 500 for the second.

use crate::attributes::{Check, Object};
use crate::decision::{Authentication, Digest, Engine, Inquiry, Keys, Provenance, Refusal};
use crate::headers::{Proof, bearer, subprotocol_token};
use crate::metrics::{Counts, Ruling, Source};
use crate::oidc::{Issuer, Rejected};
use crate::outcome::Outcome;
use crate::review::Identity;
use crate::reviewers::{Access, AccessReviewer, Login, TokenReviewer};
use crate::serve::Origin;
use crate::settings::Authenticator;
use futures::stream::{FuturesUnordered, StreamExt};
use http::HeaderMap;
use jiff::Timestamp;
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
    shown: Shown,
}

/// What someone showed to prove their name.
#[derive(Clone, Debug)]
enum Shown {
    Bearer,
    Certificate,
    /// A subprotocol; these are left.
    Subprotocol(String),
}

impl Entrant {
    /// Who they are.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How they proved who they are.
    pub fn proof(&self) -> Proof<'_> {
        match &self.shown {
            Shown::Bearer => Proof::Bearer,
            Shown::Certificate => Proof::Certificate,
            Shown::Subprotocol(left) => Proof::Subprotocol(left),
        }
    }

    /// Whoever this login is of; nobody gets in on the login of nobody.
    fn of(login: &Login, shown: Shown) -> Result<Self, Outcome> {
        match login {
            Login::Unknown(_) => Err(Outcome::Unauthorized),
            Login::Known { identity, digest } => Ok(Self {
                identity: Arc::clone(identity),
                digest: *digest,
                shown,
            }),
        }
    }
}

/// Knows callers and their rights.
pub struct Doorkeeper {
    order: Vec<Authenticator>,
    issuer: Option<Arc<Issuer>>,
    tokens: Authentication<TokenReviewer>,
    access: Engine<Digest, AccessReviewer>,
    keys: Arc<Keys>,
    audiences: Arc<[String]>,
    outage: Outage,
}

impl std::fmt::Debug for Doorkeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doorkeeper")
            .field("order", &self.order)
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

impl Doorkeeper {
    /// A doorkeeper who remembers nobody yet, and asks for a client certificate, then for a token.
    pub fn new(
        tokens: Authentication<TokenReviewer>,
        access: Engine<Digest, AccessReviewer>,
        keys: Arc<Keys>,
        audiences: Arc<[String]>,
        outage: Outage,
    ) -> Self {
        Self {
            order: vec![Authenticator::X509, Authenticator::TokenReview],
            issuer: None,
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

    /// The same, asking in this order, and with this issuer of tokens.
    #[must_use]
    pub fn asking(self, order: Vec<Authenticator>, issuer: Option<Arc<Issuer>>) -> Self {
        Self {
            order,
            issuer,
            ..self
        }
    }

    /// The issuer whose keys are to be followed.
    pub fn issuer(&self) -> Option<Arc<Issuer>> {
        self.issuer.clone()
    }

    /// Who this is. The first authenticator that knows them decides; one that does not, or cannot
    /// say, stops none after it.
    pub async fn greet(&self, origin: &Origin, headers: &HeaderMap) -> Result<Entrant, Outcome> {
        let mut refused = Outcome::Unauthorized;
        for way in &self.order {
            let known = match way {
                Authenticator::X509 => self.by_certificate(origin),
                Authenticator::TokenReview => self.by_review(origin, headers).await,
                Authenticator::Oidc => self.by_issuer(headers).await,
            };
            match known {
                Ok(entrant) => return Ok(entrant),
                Err(Outcome::Unauthorized) => {}
                Err(outcome) => refused = outcome,
            }
        }
        Err(refused)
    }

    fn by_certificate(&self, origin: &Origin) -> Result<Entrant, Outcome> {
        if origin.certificates.is_empty() {
            return Err(Outcome::Unauthorized);
        }
        let authorities = origin.authorities().ok_or(Outcome::Unauthorized)?;
        let login = origin
            .certificates
            .login(&authorities, &self.keys, Timestamp::now());
        Entrant::of(&login, Shown::Certificate)
    }

    async fn by_issuer(&self, headers: &HeaderMap) -> Result<Entrant, Outcome> {
        let (Some(issuer), Some(token)) = (&self.issuer, bearer(headers)) else {
            return Err(Outcome::Unauthorized);
        };
        match issuer.know(token, SystemTime::now()).await {
            Ok(login) => Entrant::of(&login, Shown::Bearer),
            Err(rejected) => {
                match rejected {
                    // Nothing is wrong with it: somebody else may know it.
                    Rejected::OtherIssuer | Rejected::NotAToken => {}
                    rejected => tracing::info!(%rejected, "a token was not accepted"),
                }
                Err(Outcome::Unauthorized)
            }
        }
    }

    async fn by_review(&self, origin: &Origin, headers: &HeaderMap) -> Result<Entrant, Outcome> {
        if let Some(token) = bearer(headers) {
            return self.review(origin, token, Shown::Bearer).await;
        }
        match subprotocol_token(headers) {
            Ok(Some(found)) => {
                let shown = Shown::Subprotocol(found.left);
                self.review(origin, &found.token, shown).await
            }
            Ok(None) | Err(_) => Err(Outcome::Unauthorized),
        }
    }

    async fn review(&self, origin: &Origin, token: &str, shown: Shown) -> Result<Entrant, Outcome> {
        let source = origin.peer.ip();
        let now = SystemTime::now();
        let decided = self
            .tokens
            .authenticate(token, &self.audiences, source, now)
            .await;
        let decided =
            decided.map_err(|refusal| self.refused(&refusal, Outcome::AuthenticationFailed))?;
        if let Login::Unknown(reason) = decided.answer() {
            tracing::info!(%source, %reason, "Unable to authenticate the request");
        }
        Entrant::of(decided.answer(), shown)
    }

    /// Whether they may do all of this, and where the answer came from: asked at once, and one no
    /// is enough.
    pub async fn admit(
        &self,
        entrant: &Entrant,
        mut checks: Vec<Check>,
        counts: &Counts,
    ) -> (Source, Result<(), Outcome>) {
        // Nearly every request has one question, and needs no crowd of futures for it.
        if checks.len() <= 1 {
            let Some(check) = checks.pop() else {
                return (Source::Static, Ok(()));
            };
            let (source, ruled) = self.allow(entrant, check).await;
            counts.ruled(source, ruling(&ruled));
            return (source, ruled);
        }
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
