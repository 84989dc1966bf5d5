//! Places at which a test may stop the controller: before and after every write and every step.
//!
//! In the shipped program nobody stands there, and passing costs nothing.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use keelson_cluster::Key;
use keelson_plan::{Step, Task};

/// A place in the work on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Before a step is done.
    BeforeStep(Step),
    /// After a step was done, before it is known to have been.
    AfterStep(Step),
    /// Between two effects of one task.
    Within(Task),
    /// Before the status is written.
    BeforeWrite,
    /// After the status was written.
    AfterWrite,
}

/// Who stands at the points.
type Guard = dyn Fn(&Key, Point) -> BoxFuture<'static, ()> + Send + Sync;

/// The points of a controller.
#[derive(Clone, Default)]
pub struct Points(Option<Arc<Guard>>);

impl Points {
    /// Points at which someone stands. Whoever passes waits for what the guard returns.
    pub fn guarded(
        guard: impl Fn(&Key, Point) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(guard)))
    }

    pub(crate) async fn pass(&self, key: &Key, point: Point) {
        if let Some(guard) = &self.0 {
            guard(key, point).await;
        }
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "Points (guarded)",
            None => "Points",
        })
    }
}
