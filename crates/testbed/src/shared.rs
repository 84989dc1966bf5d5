//! One cluster for all tests of a binary, and a namespace for each test.

use crate::cluster::{Cluster, Size};
use crate::error::chain;
use crate::failure;
use crate::manifests::ensure_namespace;
use crate::node::Pods;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::OnceCell;

/// The outcome is kept, good or bad: a cluster that cannot start is tried once, not once a test.
type Kept = OnceCell<Result<Cluster, String>>;

impl Cluster {
    /// The control plane all tests of this binary share, started by the first that asks.
    ///
    /// # Panics
    /// With the reason, where it cannot start.
    pub async fn shared() -> &'static Self {
        static KEPT: Kept = OnceCell::const_new();
        keep(&KEPT, Size::ControlPlane).await
    }

    /// The control plane with cert-manager all tests of this binary share.
    ///
    /// # Panics
    /// With the reason, where it cannot start.
    pub async fn shared_certificates() -> &'static Self {
        static KEPT: Kept = OnceCell::const_new();
        keep(&KEPT, Size::Certificates).await
    }

    /// The cluster with pods all tests of this binary share.
    ///
    /// # Panics
    /// With the reason, where it cannot start.
    pub async fn shared_pods() -> &'static Self {
        static KEPT: Kept = OnceCell::const_new();
        keep(&KEPT, Size::Pods(Pods::default())).await
    }

    /// A fresh namespace for one test, ready for pods.
    ///
    /// # Panics
    /// Where the API server does not make one.
    pub async fn namespace(&self, test: &str) -> Namespace<'_> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{test}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        if let Err(error) = ensure_namespace(&self.client(), &name).await {
            panic!(
                "namespace {name} could not be made: {}\n{}",
                chain(&error),
                self.tails(20)
            );
        }
        Namespace {
            name,
            cluster: self,
        }
    }
}

async fn keep(kept: &'static Kept, size: Size) -> &'static Cluster {
    let start = async || {
        let started = match Cluster::outside() {
            Some(outside) => outside,
            None => Cluster::start(size).await,
        };
        started.map_err(|error| chain(&error))
    };
    match kept.get_or_init(start).await {
        Ok(cluster) => cluster,
        Err(reason) => panic!("the shared cluster could not start: {reason}"),
    }
}

/// A namespace of one test. When the test fails, the tails of the cluster's logs are printed, and why.
#[derive(Debug)]
pub struct Namespace<'a> {
    name: String,
    cluster: &'a Cluster,
}

impl Namespace<'_> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        failure::tell(|| self.cluster.tails(20));
    }
}
