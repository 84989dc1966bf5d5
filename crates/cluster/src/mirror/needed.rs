//! What has to be known before something can be decided, of whatever types: said once, to be waited
//! for and to be told of.

use tokio::sync::watch;

/// One thing that has to be known.
#[derive(Clone, Debug)]
pub struct Needed {
    what: &'static str,
    known: watch::Receiver<bool>,
}

impl Needed {
    pub(super) fn new(what: &'static str, known: watch::Receiver<bool>) -> Self {
        Self { what, known }
    }

    /// Whether all of it is known; otherwise what is not.
    pub fn readiness(all: impl IntoIterator<Item = Self>) -> Result<(), String> {
        let missing = all.into_iter().filter(|it| !*it.known.borrow());
        let missing: Vec<_> = missing
            .map(|it| format!("{} are not known yet", it.what))
            .collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(missing.join("; ")),
        }
    }

    /// Waits until all of it is known; for ever where nobody can learn it any more.
    pub async fn known(all: impl IntoIterator<Item = Self>) {
        for mut needed in all {
            if needed.known.wait_for(|known| *known).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
