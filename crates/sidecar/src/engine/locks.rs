//! One lock each for data, configuration, process and uploads, so that two tasks never write one thing.

use super::policy::Lock;
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The locks.
#[derive(Debug, Default)]
pub struct Locks {
    data: Arc<Mutex<()>>,
    configuration: Arc<Mutex<()>>,
    process: Arc<Mutex<()>>,
    upload: Arc<Mutex<()>>,
}

/// A lock that is held; it is given back when this goes.
#[derive(Debug)]
pub struct Held(#[allow(dead_code, reason = "held, not read")] OwnedMutexGuard<()>);

impl Locks {
    /// Waits for one lock. Who takes several takes them in the order of [`Lock`].
    pub async fn take(&self, lock: Lock) -> Held {
        let lock = match lock {
            Lock::Data => &self.data,
            Lock::Configuration => &self.configuration,
            Lock::Process => &self.process,
            Lock::Upload => &self.upload,
        };
        Held(Arc::clone(lock).lock_owned().await)
    }
}
