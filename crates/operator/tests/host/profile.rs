//! The cluster's TLS profile, from the real type of OpenShift to the ConfigMap and the pods' hash.

use keelson_tls::Profile;
use keelson_tls::profile::Kind;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::delivered::{custom, named};
use crate::stage::{Operator, Stage};

async fn begin(stage: &Stage) -> Operator {
    stage
        .cluster_profile(json!({"tlsSecurityProfile": {"type": "Old", "old": {}}}))
        .await;
    let operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    stage
        .says("nmstate", "Progressing", "True", "Deploying")
        .await;
    operator
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clusters_profile_is_delivered_from_old_to_unusable_and_back() {
    let stage = Stage::enter("profile").await;
    let operator = begin(&stage).await;
    stage.delivers(&named(Kind::Old)).await;
    let said = stage
        .says(
            "nmstate",
            "TLSProfileNotFullyHonored",
            "True",
            "TLSProfileNotFullyHonored",
        )
        .await;
    assert!(said.contains("DES-CBC3-SHA"), "{said}");
    for (kind, name) in [
        (Kind::Intermediate, "Intermediate"),
        (Kind::Modern, "Modern"),
    ] {
        let marker = name.to_lowercase();
        stage
            .cluster_profile(json!({"tlsSecurityProfile": {"type": name, marker: {}}}))
            .await;
        stage.delivers(&named(kind)).await;
        stage
            .says(
                "nmstate",
                "TLSProfileNotFullyHonored",
                "False",
                "TLSProfileHonored",
            )
            .await;
    }
    let body =
        json!({"ciphers": ["ECDHE-ECDSA-AES128-GCM-SHA256"], "minTLSVersion": "VersionTLS12"});
    stage.cluster_profile(custom(body.clone())).await;
    let good = Profile::parse(body.to_string().as_bytes()).expect("a profile");
    stage.delivers(&good).await;
    // Nothing of it can be served: what was in force stays, and nothing else is held up.
    let bad = json!({"ciphers": ["DES-CBC3-SHA"], "minTLSVersion": "VersionTLS12"});
    stage.cluster_profile(custom(bad)).await;
    let said = stage
        .says(
            "nmstate",
            "TLSProfileUnusable",
            "True",
            "TLSProfileUnusable",
        )
        .await;
    assert!(said.contains("DES-CBC3-SHA"), "{said}");
    stage.delivers(&good).await;
    let how = PatchParams::default();
    let debug = json!({"spec": {"logLevel": "debug"}});
    operator.faults.forget();
    stage
        .nmstates()
        .patch("nmstate", &how, &Patch::Merge(&debug))
        .await
        .expect("changed");
    let daemon_set =
        |call: &keelson_testbed::faults::Call| call.verb.writes() && call.resource == "daemonsets";
    operator
        .faults
        .called("the handler to be changed", daemon_set)
        .await
        .expect("a write");
    stage
        .cluster_profile(json!({"tlsSecurityProfile": {"type": "Modern", "modern": {}}}))
        .await;
    stage.delivers(&named(Kind::Modern)).await;
    stage
        .says(
            "nmstate",
            "TLSProfileUnusable",
            "False",
            "TLSProfileHonored",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_map_is_written_before_the_workloads_that_are_stamped_for_it() {
    let stage = Stage::enter("order").await;
    let operator = begin(&stage).await;
    stage.delivers(&named(Kind::Old)).await;
    operator.faults.forget();
    stage
        .cluster_profile(json!({"tlsSecurityProfile": {"type": "Modern", "modern": {}}}))
        .await;
    stage.delivers(&named(Kind::Modern)).await;
    let writes = operator.faults.writes();
    let place = |resource: &str| writes.iter().position(|call| call.resource == resource);
    let (map, workload) = (place("configmaps"), place("deployments"));
    assert!(map.is_some() && map < workload, "{writes:?}");
    // Nothing but what has to change is written: the handler serves no profile.
    assert_eq!(place("daemonsets"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_source_is_delivered_with_the_clusters_profile_there() {
    let stage = Stage::enter("source").await;
    let _operator = begin(&stage).await;
    stage.delivers(&named(Kind::Old)).await;
    stage.source(json!({"source": "None"})).await;
    stage.delivers(&Profile::LibraryDefaults).await;
    stage
        .source(json!({"source": "Explicit", "profile": {"type": "Modern"}}))
        .await;
    stage.delivers(&named(Kind::Modern)).await;
    stage
        .source(json!({"source": "Cluster", "profile": null}))
        .await;
    stage.delivers(&named(Kind::Old)).await;
    stage
        .api_servers()
        .delete("cluster", &Default::default())
        .await
        .expect("deleted");
    stage
        .says(
            "nmstate",
            "TLSProfileUnusable",
            "True",
            "TLSProfileUnusable",
        )
        .await;
    stage.delivers(&named(Kind::Old)).await;
    stage.source(json!({"source": "Auto"})).await;
    stage.delivers(&named(Kind::Intermediate)).await;
}
