//! What each source of the profile comes to on one platform, on the wire of webhook and metrics.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use futures::future::join_all;
use keelson_tls::Profile;
use keelson_tls::profile::Kind;
use serde_json::json;

use crate::delivered::named;
use crate::offers::{VERSIONS, make};
use crate::played::Played;
use crate::stage::Stage;

/// What pods serve, once they have loaded it: its name, and the versions they accept.
async fn served(pods: &[Played], name: &str, profile: &Profile) -> String {
    let looks = pods.iter().map(async |pod| {
        pod.loads(&profile.hash()).await;
        let accepted = make(VERSIONS, pod.served_at()).await;
        let versions = VERSIONS.iter().zip(accepted).filter(|(_, it)| *it);
        let versions: Vec<&str> = versions.map(|(offer, _)| offer.what).collect();
        format!("{name}: TLS {}", versions.join(" and "))
    });
    let mut seen = join_all(looks).await;
    seen.dedup();
    assert_eq!(seen.len(), 1, "webhook and metrics differ: {seen:?}");
    seen.remove(0)
}

/// The lines of the four sources, where the cluster has this profile of its own or none. The NMState
/// says nothing yet.
pub(crate) async fn row(stage: &Stage, pods: &[Played], cluster: Option<Kind>) -> String {
    let (name, own) = match cluster {
        Some(kind) => ("the cluster's, Modern", named(kind)),
        None => ("Intermediate", named(Kind::Intermediate)),
    };
    let auto = served(pods, name, &own).await;
    let body = json!({
        "ciphers": [
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "TLS_AES_256_GCM_SHA384",
        ],
        "minTLSVersion": "VersionTLS12",
    });
    let written = json!({"type": "Custom", "custom": body});
    stage
        .source(json!({"source": "Explicit", "profile": written}))
        .await;
    let profile = Profile::parse(body.to_string().as_bytes()).expect("a profile");
    let explicit = served(pods, "the written one", &profile).await;
    stage
        .source(json!({"source": "None", "profile": null}))
        .await;
    let library = Profile::LibraryDefaults;
    let none = served(pods, "the library's", &library).await;
    stage.source(json!({"source": "Cluster"})).await;
    let only = match cluster {
        Some(_) => served(pods, name, &own).await,
        None => {
            let unusable = "TLSProfileUnusable";
            stage.says("nmstate", unusable, "True", unusable).await;
            let stays = served(pods, "what was in force, the library's", &library).await;
            format!("`{unusable}`; {stays}")
        }
    };
    format!(
        "| Source | Served |\n|---|---|\n| `Auto` | {auto} |\n| `Cluster` | {only} |\n| `Explicit` | {explicit} |\n| `None` | {none} |\n"
    )
}
