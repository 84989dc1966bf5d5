//! Who stands at the points: notes who passes, and holds a node at the spot it is aimed at until all are
//! let go, or for ever.

use std::collections::HashMap;
use std::fmt;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use keelson_cluster::Key;
use keelson_operator::node::points::{Point, Points};
use tokio::sync::watch;

/// A point, and how often it was passed up to then: from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) point: Point,
    pub(crate) time: u32,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.point {
            Point::BeforeStep(step) => write!(f, "before {step}")?,
            Point::AfterStep(step) => write!(f, "after {step}")?,
            Point::Within(task) => write!(f, "within {}", task.type_())?,
            Point::BeforeWrite => f.write_str("before a write")?,
            Point::AfterWrite => f.write_str("after a write")?,
        }
        write!(f, ", time {}", self.time)
    }
}

#[derive(Debug, Default)]
struct Watched {
    passed: Vec<Spot>,
    times: HashMap<Point, u32>,
    aim: Option<Spot>,
    cut: bool,
}

/// The guard of one operator. Clones stand at the same points.
#[derive(Clone, Default)]
pub(crate) struct Guard(Arc<Inner>);

#[derive(Default)]
struct Inner {
    nodes: Mutex<HashMap<String, Watched>>,
    bell: watch::Sender<()>,
    open: watch::Sender<bool>,
}

impl Guard {
    /// The points it stands at.
    pub(crate) fn points(&self) -> Points {
        let guard = self.clone();
        Points::guarded(move |key, point| guard.pass(key, point))
    }

    /// Has a node held at this spot, counted from now on; at none where there is none.
    pub(crate) fn aim(&self, node: &str, aim: Option<Spot>) {
        let watched = Watched {
            aim,
            ..Watched::default()
        };
        self.nodes().insert(node.to_owned(), watched);
    }

    /// Where a node has passed since it was aimed at.
    pub(crate) fn passed(&self, node: &str) -> Vec<Spot> {
        let nodes = self.nodes();
        nodes
            .get(node)
            .map_or_else(Vec::new, |it| it.passed.clone())
    }

    /// Whether a node is held, or was.
    pub(crate) fn has_cut(&self, node: &str) -> bool {
        self.nodes().get(node).is_some_and(|it| it.cut)
    }

    /// Rings whenever a node is held.
    pub(crate) fn bell(&self) -> watch::Receiver<()> {
        self.0.bell.subscribe()
    }

    /// Lets everyone go, and holds nobody any more.
    pub(crate) fn let_go(&self) {
        self.0.open.send_replace(true);
    }

    fn pass(&self, key: &Key, point: Point) -> BoxFuture<'static, ()> {
        let mut nodes = self.nodes();
        let watched = nodes.entry(key.name.clone()).or_default();
        let time = watched.times.entry(point).or_default();
        *time += 1;
        let spot = Spot { point, time: *time };
        watched.passed.push(spot);
        if watched.aim != Some(spot) {
            return ready(()).boxed();
        }
        watched.cut = true;
        drop(nodes);
        let mut open = self.0.open.subscribe();
        self.0.bell.send_replace(());
        async move {
            // Nobody can let go whom nobody guards any more.
            if open.wait_for(|open| *open).await.is_err() {
                pending::<()>().await;
            }
        }
        .boxed()
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.0.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
