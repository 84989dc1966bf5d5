//! The world behind a lock, with a bell for those who wait for something in it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::world::{Deed, World};

/// How long a test waits for anything: a busy machine of two cores may need most of it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The world, for everyone who has to do with it.
#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    bell: watch::Sender<()>,
    deeds: mpsc::UnboundedSender<Deed>,
}

impl Shared {
    pub(crate) fn new(deeds: mpsc::UnboundedSender<Deed>) -> Self {
        Self {
            world: Mutex::default(),
            bell: watch::Sender::new(()),
            deeds,
        }
    }

    /// Changes the world and has done what follows from it.
    pub(crate) fn act<T>(&self, act: impl FnOnce(&mut World) -> (T, Vec<Deed>)) -> T {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, deeds) = act(&mut world);
        drop(world);
        for deed in deeds {
            // Whoever does them ends only with the stage.
            let _ = self.deeds.send(deed);
        }
        self.bell.send_replace(());
        told
    }

    /// The same for what tells nothing.
    pub(crate) fn happen(&self, act: impl FnOnce(&mut World) -> Vec<Deed>) {
        self.act(|world| ((), act(world)));
    }

    /// Looks at the world, or writes what nobody waits for.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until a look finds what it looks for; one that does not says what it saw.
    pub(crate) async fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&mut World) -> Result<T, String>,
    ) -> T {
        let mut bell = self.bell.subscribe();
        let mut last = String::new();
        let waiting = async {
            loop {
                match self.look(&mut look) {
                    Ok(found) => break found,
                    Err(seen) => last = seen,
                }
                if bell.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        match timeout(DEADLINE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("{what} did not happen within {DEADLINE:?}: {last}"),
        }
    }
}
