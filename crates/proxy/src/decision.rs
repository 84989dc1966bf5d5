//! The decision engine: who a token is and what an identity may do, remembered for as long as that
//! is safe.
//!
//! One [`Engine`] serves both questions put to the API server, TokenReview and SubjectAccessReview.
//! It remembers answers for a bounded time in bounded space, renews the ones in use before they run
//! out, asks once however many callers wait, and stops asking a server that is down. It is generic
//! over the key and the answer: what is in a review, how it travels and which status a refusal
//! becomes are for others.
//!
//! Time is tokio's clock, so tests run on a paused one. Wall time is needed only for the `exp` of a
//! token and comes in as a value.

pub mod authn;
pub mod breaker;
pub mod counters;
pub mod engine;
mod entry;
pub mod failure;
mod flight;
mod gate;
pub mod jwt;
pub mod key;
pub mod lifetime;
pub mod limiter;
pub mod pace;
pub mod retry;
mod review;
pub mod settings;
mod slots;
mod store;

pub use authn::{Authentication, Token};
pub use counters::Counters;
pub use engine::{Decision, Engine, Provenance, Size};
pub use failure::{Failure, Refusal};
pub use key::{Digest, Keys};
pub use settings::Settings;

use std::{future::Future, hash::Hash};
use tokio::time::Instant;

/// Whether an answer opens the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Authenticated, or allowed.
    Positive,
    /// Not authenticated, denied, or no opinion.
    Negative,
}

/// What a review says, as far as the engine must know.
pub trait Answer: Send + Sync + 'static {
    /// Whether it opens the door.
    fn verdict(&self) -> Verdict;

    /// Roughly the bytes it keeps on the heap.
    fn bytes(&self) -> usize;
}

/// Puts one question to the API server, once: retries, deadlines and bounds are the engine's.
///
/// The future may be dropped at any await, when its deadline has passed.
pub trait Reviewer: Send + Sync + 'static {
    /// What is asked. It lives as long as the review and is not kept.
    type Question: Send + Sync + 'static;
    /// What is answered.
    type Answer: Answer;

    /// Asks.
    fn review(
        &self,
        question: &Self::Question,
    ) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;

    /// Waits until another call may be made at all; at once, unless calls are limited in rate.
    fn turn(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// A question and how long its subject can be valid at all.
#[derive(Clone, Debug)]
pub struct Inquiry<Q> {
    /// What to ask.
    pub question: Q,
    /// The end of the subject's own life (a token's `exp`); no answer is kept beyond it.
    pub not_after: Option<Instant>,
}

/// What an answer is remembered under.
pub trait Key: Clone + Eq + Hash + Send + Sync + 'static {}

impl<T: Clone + Eq + Hash + Send + Sync + 'static> Key for T {}
