//! The profile on the wire of OpenShift, with certificates of RSA keys; and the two fields that the
//! published type of its settings does not have, on a derived one.

use futures::future::join_all;
use keelson_testbed::passage;
use keelson_tls::Profile;
use keelson_tls::profile::Kind;
use serde_json::{Value, json};

use crate::delivered::{custom, named};
use crate::matrix;
use crate::offers::s_client;
use crate::played::Played;
use crate::stage::Stage;

async fn played(stage: &Stage) -> [Played; 2] {
    stage.make_key_pairs().await;
    stage.nmstate("nmstate", json!({})).await;
    stage.play_both().await
}

#[tokio::test(flavor = "multi_thread")]
async fn on_openshift_every_source_is_seen_on_the_wire() {
    let stage = Stage::enter("sources").await;
    stage
        .cluster_profile(json!({"tlsSecurityProfile": {"type": "Modern", "modern": {}}}))
        .await;
    let _operator = stage.running_operator().await;
    let pods = played(&stage).await;
    let row = matrix::row(&stage, &pods, Some(Kind::Modern)).await;
    passage("docs/nmstate.md", "sources on OpenShift", &row);
}

fn with_groups(groups: &[&str]) -> Value {
    json!({
        "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"],
        "minTLSVersion": "VersionTLS12",
        "groups": groups,
    })
}

/// Which of them it is where a client offers several is the client's choice: rustls has it so.
#[tokio::test(flavor = "multi_thread")]
async fn groups_of_the_cluster_are_accepted_and_no_others() {
    let stage = Stage::enter("groups").await;
    let (first, second) = (&["secp384r1"][..], &["secp256r1", "secp384r1"][..]);
    stage.cluster_profile(custom(with_groups(first))).await;
    let _operator = stage.running_operator().await;
    let pods = played(&stage).await;
    for (groups, agreed) in [
        (first, [None, Some("secp384r1"), None, Some("secp384r1")]),
        (
            second,
            [
                Some("prime256v1"),
                Some("secp384r1"),
                None,
                Some("prime256v1"),
            ],
        ),
    ] {
        let body = with_groups(groups);
        stage.cluster_profile(custom(body.clone())).await;
        let profile = Profile::parse(body.to_string().as_bytes()).expect("a profile");
        join_all(pods.iter().map(async |pod| {
            pod.loads(&profile.hash()).await;
            let offers = ["P-256", "P-384", "X25519", "P-256:P-384"];
            for (offer, agreed) in offers.into_iter().zip(agreed) {
                let said = s_client(pod.served_at(), &["-tls1_2", "-groups", offer]).await;
                let so = match agreed {
                    Some(group) => said.contains(&format!("Temp Key: ECDH, {group}")),
                    None => said.contains("SSL alert number 40"),
                };
                assert!(so, "{offer} where {groups:?} are listed: {said}");
            }
        }))
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adherence_decides_whether_a_profile_not_fully_honoured_is_a_failure() {
    let stage = Stage::enter("adherence").await;
    let old = |adherence: &str| {
        json!({
            "tlsSecurityProfile": {"type": "Old", "old": {}},
            "tlsAdherence": adherence,
        })
    };
    stage.cluster_profile(old("StrictAllComponents")).await;
    let _operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    let partly = "TLSProfileNotFullyHonored";
    let said = stage.says("nmstate", "Degraded", "True", partly).await;
    assert!(said.contains("DES-CBC3-SHA"), "{said}");
    stage.delivers(&named(Kind::Old)).await;
    stage
        .cluster_profile(old("LegacyAdheringComponentsOnly"))
        .await;
    stage
        .says("nmstate", "Degraded", "False", "Deploying")
        .await;
    let said = stage.says("nmstate", partly, "True", partly).await;
    assert!(said.contains("DES-CBC3-SHA"), "{said}");
}
