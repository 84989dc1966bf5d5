//! A stage for the operator: a real control plane with a real cert-manager, on which the kubelets, the
//! proxies and the sidecars of all nodes are played.
//!
//! [`Stage::shared`] is one for all tests of a binary; each test takes a [`Scene`], a namespace of its
//! own with clients and makers of nodes. Pods are played at the level of their status; claims get
//! volumes; proxies and sidecars of all nodes answer at one address, [`Stage::address`], and are told
//! apart by the name they are called by. What a proxy serves follows the node's real ConfigMap and
//! Secret, and what a sidecar has approved survives its pod. Everything that was seen is in the
//! [`ledger`], with everything that must never happen.
//!
//! What is played is decided by one value without IO, [`world::World`].
#![allow(
    dead_code,
    unused_imports,
    reason = "every test binary uses a part of it"
)]

mod answer;
mod container;
mod door;
mod kubelet;
pub(crate) mod ledger;
pub(crate) mod objects;
pub(crate) mod place;
mod player;
pub(crate) mod pod;
mod proxy;
pub(crate) mod scene;
pub(crate) mod script;
pub(crate) mod shared;
mod sidecar;
mod volume;
pub(crate) mod waiting;
pub(crate) mod world;

use std::net::SocketAddr;
use std::sync::Arc;

use keelson_testbed::Cluster;
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, mpsc};

pub(crate) use objects::platform;
pub(crate) use place::Place;
pub(crate) use proxy::Files;
pub(crate) use scene::Scene;
pub(crate) use script::Fault;

use shared::Shared;

/// The stage.
#[derive(Debug)]
pub(crate) struct Stage {
    cluster: &'static Cluster,
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Of its own, because it outlives the runtime of the test that happened to raise it.
    _runtime: Runtime,
}

impl Stage {
    /// The stage all tests of this binary share, on a control plane with cert-manager.
    pub(crate) async fn shared() -> &'static Self {
        static KEPT: OnceCell<Stage> = OnceCell::const_new();
        let raise = async || Self::raise(Cluster::shared_certificates().await).await;
        KEPT.get_or_init(raise).await
    }

    /// Raises a stage on a cluster, and installs the types of the operator there.
    pub(crate) async fn raise(cluster: &'static Cluster) -> Self {
        cluster.install_crds().await.expect("the operator's types");
        // The garbage collector learns of new types every 30 seconds, or when it starts: without this
        // the first node that is deleted keeps its objects for as long.
        let controllers = cluster.component("kube-controller-manager");
        controllers.stop().await;
        controllers
            .start()
            .expect("the controller manager, once more");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stage")
            .enable_all()
            .build()
            .expect("a runtime");
        let (deeds, to_do) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(deeds));
        let opening = runtime.spawn(door::listen());
        let (listener, address) = opening.await.expect("a task").expect("a port on loopback");
        // A client belongs to the runtime it is made on.
        let client = {
            let _inside = runtime.enter();
            cluster.client()
        };
        runtime.spawn(player::play(client.clone(), Arc::clone(&shared), to_do));
        runtime.spawn(door::open(listener, client, Arc::clone(&shared)));
        Self {
            cluster,
            shared,
            address,
            _runtime: runtime,
        }
    }

    /// The cluster the stage stands on.
    pub(crate) fn cluster(&self) -> &'static Cluster {
        self.cluster
    }

    /// Where the proxies of all nodes answer.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the script of everyone; what it says of time holds from the next event on.
    pub(crate) fn script(&self, write: impl FnOnce(&mut script::Script)) {
        self.shared.look(|world| write(&mut world.script));
    }

    /// Plays nothing any more, for anyone. A test binary has one stage: pause a [`Scene`]'s nodes
    /// where other tests run beside it.
    pub(crate) fn pause(&self) {
        self.script(|script| script.paused = true);
    }

    /// Plays on.
    pub(crate) fn resume(&self) {
        self.shared.happen(|world| {
            world.script.paused = false;
            world.consider_all()
        });
    }
}
