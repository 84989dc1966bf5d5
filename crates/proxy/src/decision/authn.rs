//! Tokens in front of the engine: their key, their `exp`, and those not worth asking about.
//!
//! Finding the token in a request and reading the TokenReview's answer, audiences included, are for
//! others.

use super::{Decision, Digest, Engine, Inquiry, Keys, Refusal, Reviewer, Settings, jwt::Expiry};
use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// A token to be reviewed. It exists while the review does and nowhere else in the engine.
#[derive(Clone)]
pub struct Token {
    /// The token as the client sent it.
    pub text: Box<str>,
    /// The audiences it must be meant for; empty for the API server's own.
    pub audiences: Arc<[String]>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

/// Kubernetes allows no more drift than this between its clocks.
pub const EXPIRED_LEEWAY: Duration = Duration::from_secs(60);

/// Turns tokens into identities.
pub struct Authentication<R: Reviewer<Question = Token>> {
    engine: Engine<Digest, R>,
    keys: Arc<Keys>,
    expired_leeway: Option<Duration>,
}

impl<R: Reviewer<Question = Token>> Authentication<R> {
    /// Refuses tokens that ended more than `expired_leeway` ago without asking; none to ask about
    /// every token. [`EXPIRED_LEEWAY`] is the default.
    pub fn new(
        reviewer: R,
        settings: Settings,
        keys: Arc<Keys>,
        expired_leeway: Option<Duration>,
    ) -> Self {
        Authentication {
            engine: Engine::new(reviewer, settings),
            keys,
            expired_leeway,
        }
    }

    /// Whose token this is. `wall` is the time of day, which `exp` is measured by.
    pub async fn authenticate(
        &self,
        token: &str,
        audiences: &Arc<[String]>,
        source: IpAddr,
        wall: SystemTime,
    ) -> Result<Decision<R::Answer>, Refusal> {
        let key = self.keys.token(token, audiences);
        self.engine
            .decide(&key, Some(source), || self.inquiry(token, audiences, wall))
            .await
    }

    /// The engine, for its counters and size.
    pub fn engine(&self) -> &Engine<Digest, R> {
        &self.engine
    }

    fn inquiry(
        &self,
        token: &str,
        audiences: &Arc<[String]>,
        wall: SystemTime,
    ) -> Result<Inquiry<Token>, Refusal> {
        let expiry = Expiry::of(token);
        if let (Some(expiry), Some(leeway)) = (expiry, self.expired_leeway)
            && expiry.over(wall, leeway)
        {
            return Err(Refusal::Expired);
        }
        Ok(Inquiry {
            question: Token {
                text: token.into(),
                audiences: audiences.clone(),
            },
            // An end too far away to be told is no end.
            not_after: expiry.and_then(|expiry| Instant::now().checked_add(expiry.left(wall))),
        })
    }
}
