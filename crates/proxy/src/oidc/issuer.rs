//! An issuer as the proxy knows it: its keys, and the tokens of it that were accepted.

use super::Rejected;
use super::claims::{identity, meant_for, timely};
use super::fetch::{NotFound, key_address, keys};
use super::signature::{Algorithm, KeySet, Proof};
use super::token::Signed;
use crate::apiserver::Pem;
use crate::decision::{Answer, Digest, Keys};
use crate::reviewers::Login;
use crate::settings::Oidc;
use arc_swap::ArcSwapOption;
use quick_cache::{Weighter, sync::Cache};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How often the issuer is asked, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Between two attempts to find it.
    pub retry: Duration,
    /// Between two fetches of keys on account of tokens that name one we do not have.
    pub floor: Duration,
    /// Between two fetches of keys without such an account, so that a withdrawn key ends.
    pub renew: Duration,
    /// For one answer.
    pub answer: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(10),
            floor: Duration::from_secs(10),
            renew: Duration::from_secs(10 * 60),
            answer: Duration::from_secs(30),
        }
    }
}

impl Pace {
    /// Whether keys may be fetched again on account of a token.
    pub fn allows(&self, last: Option<Instant>, now: Instant) -> bool {
        last.is_none_or(|last| now.duration_since(last) >= self.floor)
    }
}

/// How many accepted tokens are remembered, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// At most; never past the token's own end.
    pub time: Duration,
    /// At most.
    pub tokens: usize,
}

/// Room for one token on average: a name and a few dozen groups.
const BYTES_EACH: u64 = 2 << 10;

/// An issuer of tokens.
pub struct Issuer {
    oidc: Oidc,
    authority: Pem,
    pace: Pace,
    time: Duration,
    digests: Arc<Keys>,
    known: ArcSwapOption<Known>,
    refetched: Mutex<Option<Instant>>,
    accepted: Cache<Digest, Arc<Accepted>, Bytes>,
}

/// What is known of an issuer once it was reached.
#[derive(Debug)]
struct Known {
    address: String,
    keys: KeySet,
}

struct Accepted {
    login: Login,
    since: SystemTime,
    until: SystemTime,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Digest, Arc<Accepted>> for Bytes {
    fn weight(&self, _key: &Digest, accepted: &Arc<Accepted>) -> u64 {
        let bytes = u64::try_from(accepted.login.bytes()).unwrap_or(u64::MAX);
        bytes.max(BYTES_EACH)
    }
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer")
            .field("oidc", &self.oidc)
            .finish_non_exhaustive()
    }
}

impl Issuer {
    /// An issuer nobody has asked yet, whose certificate must chain to the authorities in this file.
    pub fn new(oidc: Oidc, authorities: PathBuf, digests: Arc<Keys>, memory: Memory) -> Self {
        let room = u64::try_from(memory.tokens).unwrap_or(u64::MAX);
        let room = room.saturating_mul(BYTES_EACH);
        Self {
            oidc,
            authority: Pem::File(authorities),
            pace: Pace::default(),
            time: memory.time,
            digests,
            known: ArcSwapOption::empty(),
            refetched: Mutex::default(),
            accepted: Cache::with_weighter(memory.tokens, room, Bytes),
        }
    }

    /// The same, at another pace.
    #[must_use]
    pub fn at(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Finds the issuer, as often as it takes, and then keeps up with its keys.
    pub async fn follow(self: Arc<Self>) {
        let mut told = None;
        loop {
            let found = match self.known.load_full() {
                None => self.find().await,
                Some(known) => self.fetch_keys(&known).await,
            };
            let ready = match found {
                Ok(known) => {
                    if told.take().is_some() || self.known.load().is_none() {
                        tracing::info!(issuer = self.oidc.issuer, "the issuer's keys are known");
                    }
                    self.known.store(Some(Arc::new(known)));
                    true
                }
                Err(error) => {
                    let error = error.to_string();
                    if told.as_ref() != Some(&error) {
                        tracing::warn!(
                            issuer = self.oidc.issuer,
                            error,
                            "the issuer's keys were not fetched"
                        );
                    }
                    told = Some(error);
                    false
                }
            };
            tokio::time::sleep(match ready {
                true => self.pace.renew,
                false => self.pace.retry,
            })
            .await;
        }
    }

    async fn find(&self) -> Result<Known, NotFound> {
        let within = self.pace.answer;
        let address = key_address(&self.oidc.issuer, &self.authority, within).await?;
        let keys = keys(&address, &self.authority, within).await?;
        Ok(Known { address, keys })
    }

    async fn fetch_keys(&self, known: &Known) -> Result<Known, NotFound> {
        let keys = keys(&known.address, &self.authority, self.pace.answer).await?;
        Ok(Known {
            address: known.address.clone(),
            keys,
        })
    }

    /// Whose token this is.
    pub async fn know(&self, token: &str, now: SystemTime) -> Result<Login, Rejected> {
        let key = self.digests.token(token, &[&self.oidc.issuer]);
        if let Some(accepted) = self.accepted.get(&key)
            && (accepted.since..accepted.until).contains(&now)
        {
            return Ok(accepted.login.clone());
        }
        let signed = Signed::read(token)?;
        meant_for(&signed.claims, &self.oidc)?;
        let end = timely(&signed.claims, now)?;
        self.check_signature(&signed).await?;
        let login = Login::known(identity(&signed.claims, &self.oidc)?, &self.digests);
        let accepted = Accepted {
            login: login.clone(),
            since: now,
            until: end.min(now + self.time),
        };
        self.accepted.insert(key, Arc::new(accepted));
        Ok(login)
    }

    async fn check_signature(&self, signed: &Signed<'_>) -> Result<(), Rejected> {
        let named = self.oidc.sign_algs.contains(&signed.algorithm);
        let algorithm = Algorithm::named(&signed.algorithm).filter(|_| named);
        let algorithm = algorithm.ok_or_else(|| Rejected::Algorithm(signed.algorithm.clone()))?;
        let prove = |known: &Known| {
            let message = signed.message.as_bytes();
            let name = signed.key.as_deref();
            known
                .keys
                .prove(algorithm, name, message, &signed.signature)
        };
        let known = self.known.load_full().ok_or(Rejected::NotReady)?;
        let proof = match prove(&known) {
            Proof::NoSuchKey => match self.refetch(&known).await {
                Some(known) => prove(&known),
                None => Proof::NoSuchKey,
            },
            proof => proof,
        };
        match proof {
            Proof::Good => Ok(()),
            Proof::Bad => Err(Rejected::Signature),
            Proof::NoSuchKey => Err(Rejected::UnknownKey),
        }
    }

    /// The keys, if there may be others than those seen. One fetches; who waited for that finds what
    /// it brought.
    async fn refetch(&self, seen: &Arc<Known>) -> Option<Arc<Known>> {
        let mut last = self.refetched.lock().await;
        let known = self.known.load_full()?;
        if !Arc::ptr_eq(&known, seen) {
            return Some(known);
        }
        if !self.pace.allows(*last, Instant::now()) {
            return None;
        }
        *last = Some(Instant::now());
        let fetched = self.fetch_keys(&known).await;
        // From the end of a slow fetch too: who waited must not begin the next one.
        *last = Some(Instant::now());
        match fetched {
            Ok(fetched) => {
                let fetched = Arc::new(fetched);
                self.known.store(Some(Arc::clone(&fetched)));
                Some(fetched)
            }
            Err(error) => {
                tracing::warn!(%error, "the issuer's keys were not fetched again");
                None
            }
        }
    }
}
