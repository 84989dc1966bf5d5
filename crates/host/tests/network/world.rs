//! A host with a real NetworkManager, and a handler on it that never hears of an API server: what it is
//! to bring about are the policies it starts with.

use crate::common::homes::{Home, Start};
use keelson_host::handler::points::Point;
use keelson_testbed::{Host, Network, Process};
use serde_json::{Value, json};
use std::ops::Deref;

pub(crate) use crate::common::homes::SOON;

/// How long a checkpoint lasts here, in seconds.
pub(crate) const CHECKPOINT: u32 = 20;

/// A host, and the network it is on.
pub(crate) struct World {
    home: Home,
    pub(crate) network: Network,
}

impl Deref for World {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl World {
    /// A host on a network with nothing else in it.
    pub(crate) async fn new() -> Self {
        let network = Network::bare().expect("a switch");
        let host = Host::start(&network).await.expect("a host");
        let home = Home { host };
        home.keep_a_spare().await;
        Self { home, network }
    }

    /// Puts a policy into the folder of those a host starts with.
    pub(crate) fn policy(&self, name: &str, desired: &Value) {
        self.bootstrap(name, desired);
    }

    /// A handler, not started, that stops at a point if one is named.
    pub(crate) fn handler(&self, stop: Option<Point>) -> Process {
        self.handler_with(stop, &[])
    }

    /// The same, told more.
    pub(crate) fn handler_with(&self, stop: Option<Point>, more: &[&str]) -> Process {
        self.handler_probing(stop, 2, more)
    }

    /// The same, with probes that have so many seconds.
    pub(crate) fn handler_probing(
        &self,
        stop: Option<Point>,
        seconds: u32,
        more: &[&str],
    ) -> Process {
        let words = [
            &format!("--checkpoint-timeout-seconds={CHECKPOINT}"),
            &format!("--probe-timeout-seconds={seconds}"),
            "--server-patience-seconds=0",
            "--initial-backoff-seconds=600",
            "--max-backoff-seconds=600",
        ];
        let words = words.iter().chain(more).map(|&word| word.to_owned());
        self.home.handler(Start {
            node: "here".to_owned(),
            kubeconfig: self.nowhere(),
            stop,
            words: words.collect(),
        })
    }

    /// Where there is no API server: nobody listens there.
    fn nowhere(&self) -> String {
        let server = format!("https://{}:1", self.network.address());
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        })
        .to_string()
    }
}
