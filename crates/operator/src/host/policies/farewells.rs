//! Handlers that take leave of a policy that is gone: each leads its host back first, where the policy said
//! so, when it is its turn.
//!
//! Meanwhile its enactment and its claim are its own, or more hosts would be under change at once than may
//! be. As long as fewer and fewer are left that goes on; where nothing changed for a while, somebody was
//! forgotten.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::known::Subject;

/// How long nothing may change: longer than a change with all its attempts takes.
const FAREWELL: Duration = Duration::from_secs(15 * 60);

/// Who is left, and since when it is the same.
#[derive(Debug, Default)]
pub struct Farewells(Mutex<HashMap<Subject, (BTreeSet<String>, Instant)>>);

impl Farewells {
    /// Whether these are still waited for.
    pub fn goes_on(&self, subject: &Subject, left: BTreeSet<String>) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            all.remove(subject);
            return false;
        }
        let (same, since) = match all.remove(subject) {
            Some((before, since)) if before == left => (before, since),
            _ => (left, Instant::now()),
        };
        all.insert(subject.clone(), (same, since));
        since.elapsed() < FAREWELL
    }
}
