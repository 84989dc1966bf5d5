//! A kubelet that has not heard of a new TLS profile gives a new pod the file of before.

use super::{Hosts, INTERMEDIATE, MODERN, PROMISED, Replica, is_soak};
use crate::world::PATIENCE;
use keelson_api::NMState;
use keelson_api::host::TLS_CONFIG_MAP;
use keelson_testbed::faults::{Fault, FaultProxy, On, Pause};
use keelson_testbed::{Cluster, until};
use kube::Api;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The kubelet behind a proxy that misbehaves; it is as it was however the test ends.
struct Behind<'a> {
    cluster: &'a Cluster,
    faults: FaultProxy,
    relay: JoinHandle<()>,
    file: PathBuf,
    own: String,
}

impl<'a> Behind<'a> {
    async fn begin(cluster: &'a Cluster) -> Self {
        let faults = cluster.faults().expect("a proxy");
        let inside = cluster.listen().expect("a port inside");
        let address = inside.local_addr().expect("an address");
        inside.set_nonblocking(true).expect("a port");
        let inside = TcpListener::from_std(inside).expect("a port");
        let relay = tokio::spawn(carry(inside, faults.address()));
        let node = format!("pki/system-node-{}.kubeconfig", cluster.node());
        let file = cluster.folder().join(node);
        let own = std::fs::read_to_string(&file).expect("a kubeconfig");
        // A certificate does not pass through a proxy, a token does.
        let mut other: Value = serde_json::from_str(&faults.kubeconfig()).expect("JSON");
        let server = &mut other["clusters"][0]["cluster"];
        server["server"] = json!(format!("https://{address}"));
        server["tls-server-name"] = json!("localhost");
        let behind = Self {
            cluster,
            faults,
            relay,
            file,
            own,
        };
        behind.restart(&other.to_string()).await;
        behind
    }

    async fn restart(&self, kubeconfig: &str) {
        let kubelet = self.cluster.component("kubelet");
        kubelet.stop().await;
        std::fs::write(&self.file, kubeconfig).expect("a kubeconfig");
        kubelet.start().expect("a kubelet");
    }
}

impl Drop for Behind<'_> {
    fn drop(&mut self) {
        tokio::task::block_in_place(|| {
            let back = self.restart(&self.own);
            tokio::runtime::Handle::current().block_on(back);
        });
        self.relay.abort();
    }
}

/// Carries connections from inside the cluster to the proxy.
async fn carry(inside: TcpListener, to: std::net::SocketAddr) {
    while let Ok((mut caller, _)) = inside.accept().await {
        tokio::spawn(async move {
            if let Ok(mut proxy) = TcpStream::connect(to).await {
                let _ = tokio::io::copy_bidirectional(&mut caller, &mut proxy).await;
            }
        });
    }
}

/// Waits until all pods are other ones than these, and says which.
async fn others(hosts: &Hosts, than: &[Replica]) -> Vec<Replica> {
    let rolled = until("new pods", PATIENCE, async || {
        let now = hosts.replicas().await?;
        match now
            .iter()
            .any(|it| than.iter().any(|old| old.uid == it.uid))
        {
            true => Err(format!("{now:?}")),
            false => Ok(now),
        }
    });
    rolled.await.expect("new pods")
}

/// What the operator says while pods serve another profile than they should.
async fn said(hosts: &Hosts) -> Result<String, String> {
    let nmstates = Api::<NMState>::all(hosts.world.cluster.client());
    let nmstate = nmstates.get("nmstate").await;
    let status = nmstate.map_err(|error| error.to_string())?.status;
    let all = status.unwrap_or_default().conditions;
    let loading = all
        .iter()
        .find(|it| it.reason.as_deref() == Some("TLSProfileLoading"));
    let message = loading.and_then(|it| it.message.clone());
    message.ok_or_else(|| format!("{all:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pod_with_the_file_of_before_says_so_and_has_its_own_soon_after_the_kubelet_heard() {
    if !is_soak("a kubelet that hears late of a TLS profile") {
        return;
    }
    let hosts = Hosts::enter_alone().await;
    let kubelet = Behind::begin(&hosts.world.cluster).await;
    // That a profile arrives through the proxy is the sign that the kubelet knows the one there is.
    hosts.profile("Modern");
    let before = hosts.settled(MODERN).await;
    // Whatever the kubelet asks about this ConfigMap from now on is answered late.
    let fault = Fault::SlowAnswer(Pause::UntilCleared);
    let profile = On::every().resource("configmaps").name(TLS_CONFIG_MAP);
    let late = kubelet.faults.inject(fault, profile);
    kubelet.faults.cut_watches();
    late.hit(1).await.expect("a kubelet that asks again");
    hosts.profile("Intermediate");

    let new = others(&hosts, &before).await;
    for replica in &new {
        let told = until("a report", PATIENCE, async || hosts.told(replica));
        let told = told.await.expect("a report");
        assert!(told["error"].is_null(), "{told}");
        assert_ne!(told["loaded"], told["stamped"], "{}: {told}", replica.name);
    }
    let wire = hosts.trusted().await.expect("a bundle");
    for replica in &new {
        assert_eq!(wire.sessions(replica), Ok(MODERN), "{}", replica.name);
    }
    let names = until("a word of the operator", PATIENCE, async || {
        let said = said(&hosts).await?;
        match new.iter().all(|it| said.contains(&it.name)) {
            true => Ok(said),
            false => Err(said),
        }
    });
    println!("the operator says: {}", names.await.expect("a word"));

    late.clear();
    let heard = Instant::now();
    let equal = until("the profile they were made for", PROMISED, async || {
        for replica in &new {
            let told = hosts.told(replica)?;
            if told["loaded"] != told["stamped"] {
                return Err(format!("{}: {told}", replica.name));
            }
        }
        Ok(())
    });
    equal.await.expect("the profile in time");
    println!(
        "loaded is what was stamped {:.1?} after the kubelet heard",
        heard.elapsed()
    );
    let settled = hosts.settled(INTERMEDIATE).await;
    assert!(
        settled
            .iter()
            .all(|it| new.iter().any(|new| new.uid == it.uid))
    );
    drop(kubelet);
}
