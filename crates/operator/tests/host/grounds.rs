//! The control planes that tests take turns on.
//!
//! NMStates belong to a whole cluster and one counts, so a test has a cluster to itself. There are as
//! many as tests run side by side on two cores. The first that is free is taken, so tests that run one
//! after the other have one. What a test leaves is for the next to clear.

use std::pin::pin;

use futures::future::{Either, select};
use keelson_testbed::{Cluster, Size};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// A control plane and the turn on it. How it started is kept, good or bad: one that cannot is tried
/// once, not once a test.
struct Ground {
    turn: Mutex<()>,
    cluster: OnceCell<Result<Cluster, String>>,
}

impl Ground {
    const fn new() -> Self {
        Self {
            turn: Mutex::const_new(()),
            cluster: OnceCell::const_new(),
        }
    }
}

static GROUNDS: [Ground; 2] = [const { Ground::new() }; 2];

/// One test's turn on a cluster.
pub(crate) struct Turn {
    pub(crate) cluster: &'static Cluster,
    _turn: MutexGuard<'static, ()>,
}

impl Turn {
    /// Waits for a cluster that no other test has, with the types of this binary.
    ///
    /// # Panics
    /// With the reason, where it cannot start.
    pub(crate) async fn take() -> Self {
        let [one, other] = &GROUNDS;
        let (ground, turn) = match select(pin!(one.turn.lock()), pin!(other.turn.lock())).await {
            Either::Left((turn, _)) => (one, turn),
            Either::Right((turn, _)) => (other, turn),
        };
        match ground.cluster.get_or_init(start).await {
            Ok(cluster) => Self {
                cluster,
                _turn: turn,
            },
            Err(reason) => panic!("a cluster could not start: {reason}"),
        }
    }
}

async fn start() -> Result<Cluster, String> {
    let cluster = Cluster::start(Size::ControlPlane).await;
    let cluster = cluster.map_err(|error| error.to_string())?;
    crate::stage::install(&cluster).await;
    Ok(cluster)
}
