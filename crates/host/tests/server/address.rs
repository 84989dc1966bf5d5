//! Where the API server is, and that a new place is found by a process that goes on. It takes the
//! longest of these tests, because files are read anew only after a while without a word: so it is the
//! first in the order of names, and the others run beside it.

use crate::common::client::Tls;
use crate::common::program::Folder;
use crate::world::{cluster, has};
use keelson_testbed::until;
use std::time::Duration;

#[tokio::test]
async fn a_way_to_the_api_server_that_changes_while_it_is_away_is_found() {
    let cluster = cluster().await;
    let faults = cluster.faults().expect("a proxy");
    let _gone = faults.refuse();
    let folder = Folder::certified(cluster.authority());
    let metrics = folder.start_at(&faults.kubeconfig(), &["metrics", "--metrics-auth=None"]);
    metrics.healthy().await;
    metrics.folder.write("kubeconfig", &cluster.kubeconfig());
    let synced = "keelson_host_source_synced{source=\"states\"}";
    let look = async || {
        let tls = Tls::of(cluster.authority());
        let page = tls.get(metrics.address(), "/metrics", "").await.body;
        match has(&page, synced, Some(1)) {
            true => Ok(()),
            false => Err(page),
        }
    };
    let found = until("the new way", Duration::from_secs(60), look).await;
    found.expect("the new way");
}
