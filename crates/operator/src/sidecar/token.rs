//! Tokens for calls to sidecars: asked of the API server, one for each node, kept while they are good.
//!
//! They are of an account that may do nothing but call sidecars; the operator's own token is never
//! sent to a pod. Where there is no token there is no call. No token is part of any sentence.

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

use super::Audience;
use super::sweep::Sweep;

/// The ServiceAccount whose tokens are sent to sidecars.
pub const ACCOUNT: &str = "keelson-sidecar-client";

/// How long a token is good; the API server gives none for less.
const LIFE: Duration = Duration::from_mins(10);
/// How long asking for one may take.
const ASK: Duration = Duration::from_secs(5);

/// A token. It does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    /// A token of this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text, for the header it is sent in.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// The API server took too long.
    #[error("the API server gave no token for the sidecar within {0:?}")]
    Deadline(Duration),
    /// The API server said no, or could not be asked.
    #[error("the API server gave no token for the sidecar: {0}")]
    Refused(String),
    /// What it gave is none.
    #[error("the API server answered with a token that is empty or cannot be sent")]
    Unusable,
    /// Nobody waits for the answer any more: the program ends.
    #[error("asking for a token was given up")]
    GivenUp,
}

/// Where tokens come from.
pub trait Tokens: Send + Sync {
    /// A token for the sidecar of this node.
    fn token<'a>(
        &'a self,
        namespace: &'a str,
        node: &'a str,
        audience: Audience,
    ) -> BoxFuture<'a, Result<Token, NoToken>>;

    /// This token was not accepted: it is not to be given out again.
    fn drop_token(&self, namespace: &str, node: &str, audience: Audience, token: &Token);
}

/// A token as it was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The token.
    pub token: Token,
    /// How long it is good, from when it was asked for. A time of day would be that of another
    /// machine's clock.
    pub life: Duration,
}

/// Who issues tokens for [`ACCOUNT`].
pub trait Issue: Send + Sync {
    /// Issues one for these audiences, or for the API server's own where there are none; the failure
    /// is a sentence. Its deadline is the caller's.
    fn issue(
        &self,
        audiences: Vec<String>,
        life: Duration,
    ) -> BoxFuture<'static, Result<Issued, String>>;
}

/// The API server, by TokenRequest.
pub struct Accounts {
    api: Api<ServiceAccount>,
    namespace: String,
}

impl Accounts {
    /// For the account in the operator's own namespace.
    pub fn new(client: kube::Client, namespace: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
        }
    }
}

impl Issue for Accounts {
    fn issue(
        &self,
        audiences: Vec<String>,
        life: Duration,
    ) -> BoxFuture<'static, Result<Issued, String>> {
        let (api, namespace) = (self.api.clone(), self.namespace.clone());
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences,
                expiration_seconds: i64::try_from(life.as_secs()).ok(),
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        async move {
            let made = api
                .create_token_request(ACCOUNT, &PostParams::default(), &request)
                .await
                .map_err(|error| refusal(&namespace, &error))?;
            // The API server may have shortened it, and says so.
            let seconds = made.spec.expiration_seconds.unwrap_or_default();
            let token = made.status.map(|status| status.token);
            Ok(Issued {
                token: Token::new(&token.unwrap_or_default()),
                life: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            })
        }
        .boxed()
    }
}

fn refusal(namespace: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 404 => format!(
            "there is no ServiceAccount {namespace}/{ACCOUNT}: install it with the operator's roles"
        ),
        kube::Error::Api(status) if status.code == 403 => format!(
            "the operator may not create serviceaccounts/token for {namespace}/{ACCOUNT}: bind the role that is installed with it"
        ),
        other => super::error::chain(other),
    }
}

/// Whose sidecar, and which audience.
type Key = (String, String, Audience);
type Asked = Shared<BoxFuture<'static, Result<Arc<Held>, NoToken>>>;

/// Tokens asked of an issuer: one request at a time for each node, its answer kept for four fifths of
/// the token's life.
pub struct Requested {
    issuer: Arc<dyn Issue>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    slots: HashMap<Key, Slot>,
    sweep: Sweep,
}

struct Slot {
    asked: Asked,
    since: Instant,
}

struct Held {
    token: Token,
    until: Instant,
}

impl Slot {
    /// Whether the slot is worth waiting for. One that nobody waited for to the end does not know its
    /// outcome; it is of use only while it can still be under way.
    fn usable(&self, now: Instant) -> bool {
        match self.asked.peek() {
            Some(Ok(held)) => now < held.until,
            Some(Err(_)) => false,
            None => now < self.since + ASK,
        }
    }

    fn holds(&self, token: &Token) -> bool {
        matches!(self.asked.peek(), Some(Ok(held)) if held.token == *token)
    }
}

impl Requested {
    /// From this issuer.
    pub fn new(issuer: Arc<dyn Issue>) -> Self {
        Self {
            issuer,
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was asked before, if it is of use, or a new request.
    fn asked(&self, key: Key) -> Asked {
        let now = Instant::now();
        let mut kept = self.kept();
        if kept.sweep.due(now) {
            kept.slots.retain(|_, slot| slot.usable(now));
        }
        if let Some(slot) = kept.slots.get(&key).filter(|slot| slot.usable(now)) {
            return slot.asked.clone();
        }
        let asked = ask(self.issuer.as_ref(), &key, now);
        let slot = Slot {
            asked: asked.clone(),
            since: now,
        };
        kept.slots.insert(key, slot);
        asked
    }
}

/// On a task of its own: a caller that gives up takes nobody's answer away.
fn ask(issuer: &dyn Issue, (namespace, node, audience): &Key, now: Instant) -> Asked {
    let audiences = match audience {
        Audience::Node => vec![keelson_render::names::audience(node, namespace)],
        Audience::ApiServer => Vec::new(),
    };
    let issuing = issuer.issue(audiences, LIFE);
    let asking = tokio::spawn(async move {
        let issued = timeout(ASK, issuing).await;
        let issued = issued.map_err(|_| NoToken::Deadline(ASK))?;
        let issued = issued.map_err(NoToken::Refused)?;
        if issued.token.secret().is_empty() {
            return Err(NoToken::Unusable);
        }
        Ok(Arc::new(Held {
            until: now + issued.life.mul_f64(0.8),
            token: issued.token,
        }))
    });
    let asked = async { asking.await.unwrap_or(Err(NoToken::GivenUp)) };
    asked.boxed().shared()
}

impl Tokens for Requested {
    fn token<'a>(
        &'a self,
        namespace: &'a str,
        node: &'a str,
        audience: Audience,
    ) -> BoxFuture<'a, Result<Token, NoToken>> {
        let key = (namespace.to_owned(), node.to_owned(), audience);
        async move { Ok(self.asked(key).await?.token.clone()) }.boxed()
    }

    fn drop_token(&self, namespace: &str, node: &str, audience: Audience, token: &Token) {
        let key = (namespace.to_owned(), node.to_owned(), audience);
        let mut kept = self.kept();
        if kept.slots.get(&key).is_some_and(|slot| slot.holds(token)) {
            kept.slots.remove(&key);
        }
    }
}
