//! Connections that have become something else: as long as bytes pass in both directions, the
//! connection is there, takes its place, and is waited for like any other.

use std::future::Future;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tunnels of one connection.
#[derive(Clone, Debug, Default)]
pub struct Tunnels {
    running: TaskTracker,
    cut: CancellationToken,
}

impl Tunnels {
    /// Runs a tunnel until it ends, or is cut because the connection's time is over.
    pub fn open(&self, tunnel: impl Future<Output = ()> + Send + 'static) {
        let cut = self.cut.clone();
        self.running.spawn(async move {
            tokio::select! {
                () = cut.cancelled() => {}
                () = tunnel => {}
            }
        });
    }

    /// Ends when there is none any more.
    pub(super) async fn over(&self) {
        self.running.close();
        self.running.wait().await;
    }

    /// Ends all there are.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }
}
