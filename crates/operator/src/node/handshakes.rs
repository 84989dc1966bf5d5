//! Handshakes that found what they should, believed while nothing changed that they depend on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keelson_cluster::Key;
use keelson_plan::Tls;
use tokio::time::Instant;

use crate::sidecar::Spoken;

/// How long a handshake is believed.
const BELIEVED: Duration = Duration::from_secs(600);

/// What a handshake's result depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    /// Identity of the pod.
    pub pod: String,
    /// Identity of the proxy's container.
    pub proxy: Option<String>,
    /// Version of the proxy's configuration.
    pub config: Option<String>,
    /// Fingerprint of the certificate in the Secret.
    pub secret: Option<String>,
    /// What the spec asks for.
    pub wanted: Option<Tls>,
}

struct Believed {
    ground: Ground,
    spoken: Spoken,
    at: Instant,
}

impl Believed {
    fn holds(&self, ground: &Ground) -> bool {
        self.ground == *ground && self.at.elapsed() < BELIEVED
    }
}

/// What is believed of each node.
#[derive(Default)]
pub struct Handshakes(Mutex<HashMap<Key, Believed>>);

impl Handshakes {
    /// What a handshake on this ground would find.
    pub fn believed(&self, key: &Key, ground: &Ground) -> Option<Spoken> {
        let known = self.known();
        let believed = known.get(key).filter(|it| it.holds(ground))?;
        Some(believed.spoken.clone())
    }

    /// A handshake on this ground, or belief in one, found what it should.
    pub fn believe(&self, key: &Key, ground: Ground, spoken: &Spoken) {
        let mut known = self.known();
        if !known.get(key).is_some_and(|it| it.holds(&ground)) {
            let believed = Believed {
                ground,
                spoken: spoken.clone(),
                at: Instant::now(),
            };
            known.insert(key.clone(), believed);
        }
    }

    /// Looks at a node's port again.
    pub fn forget(&self, key: &Key) {
        self.known().remove(key);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Key, Believed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
