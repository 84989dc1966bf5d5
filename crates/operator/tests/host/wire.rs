//! The cluster's TLS profile on the wire: from the real type of OpenShift through the operator to
//! handshakes with the real programs. What is accepted is the table of docs/nmstate.md;
//! `KEELSON_WRITE_DOCS=1 cargo test -p keelson-operator --test host wire` writes it.

use std::fmt::Write;

use keelson_testbed::passage;
use keelson_tls::Profile;
use keelson_tls::profile::Kind;
use serde_json::{Value, json};

use crate::delivered::{custom, named};
use crate::matrix;
use crate::offers::{OFFERS, make};
use crate::played::Played;
use crate::stage::Stage;

const PAGE: &str = "docs/nmstate.md";

/// What a profile lets through, as both webhook and metrics serve it.
async fn accepted(pods: &[Played], profile: &Profile) -> Vec<bool> {
    let [webhook, metrics] = pods else {
        panic!("both are played");
    };
    let hash = profile.hash();
    futures::future::join(webhook.loads(&hash), metrics.loads(&hash)).await;
    let one = make(OFFERS, webhook.served_at());
    let other = make(OFFERS, metrics.served_at());
    let (one, other) = futures::future::join(one, other).await;
    assert_eq!(one, other, "webhook and metrics serve the same profile");
    one
}

fn table(columns: &[(&str, Vec<bool>)]) -> String {
    let mut table = "| Offered |".to_owned();
    for (name, _) in columns {
        let _ = write!(table, " {name} |");
    }
    let _ = writeln!(table, "\n|---|{}", "---|".repeat(columns.len()));
    for (row, offer) in OFFERS.iter().enumerate() {
        let _ = write!(table, "| {} |", offer.what);
        for (_, accepted) in columns {
            let _ = write!(table, " {} |", if accepted[row] { "yes" } else { "" });
        }
        table.push('\n');
    }
    table
}

fn cluster(name: &str) -> Value {
    json!({"tlsSecurityProfile": {"type": name, name.to_lowercase(): {}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn every_profile_of_the_cluster_is_seen_on_the_wire_without_a_restart() {
    let stage = Stage::enter("wire").await;
    stage.cluster_profile(cluster("Old")).await;
    let _operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    let pods = stage.play_both().await;
    let mut columns = vec![("Old", accepted(&pods, &named(Kind::Old)).await)];
    for (name, kind) in [
        ("Intermediate", Kind::Intermediate),
        ("Modern", Kind::Modern),
    ] {
        stage.cluster_profile(cluster(name)).await;
        columns.push((name, accepted(&pods, &named(kind)).await));
    }
    let body = json!({
        "ciphers": ["ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256"],
        "minTLSVersion": "VersionTLS12",
    });
    stage.cluster_profile(custom(body.clone())).await;
    let good = Profile::parse(body.to_string().as_bytes()).expect("a profile");
    columns.push(("Custom", accepted(&pods, &good).await));

    let bad = json!({"ciphers": ["DES-CBC3-SHA"], "minTLSVersion": "VersionTLS12"});
    stage.cluster_profile(custom(bad)).await;
    let unusable = "TLSProfileUnusable";
    stage.says("nmstate", unusable, "True", unusable).await;
    columns.push(("unusable", accepted(&pods, &good).await));
    stage.cluster_profile(cluster("Modern")).await;
    columns.push(("Modern again", accepted(&pods, &named(Kind::Modern)).await));

    // Whatever the cluster wants: none is none.
    stage.source(json!({"source": "None"})).await;
    columns.push(("None", accepted(&pods, &Profile::LibraryDefaults).await));

    let of = |column: &str| {
        &columns
            .iter()
            .find(|it| it.0 == column)
            .expect("a column")
            .1
    };
    let row = |what: &str| OFFERS.iter().position(|it| it.what == what).expect("a row");
    assert_eq!(of("unusable"), of("Custom"), "the last good one stays");
    assert_eq!(of("Modern again"), of("Modern"));
    assert!(!of("Modern")[row("TLS 1.2")] && of("None")[row("TLS 1.2")]);
    let only = "TLS 1.2 ECDHE-ECDSA-AES256-GCM-SHA384";
    assert!(of("Intermediate")[row(only)] && !of("Custom")[row(only)]);
    passage(PAGE, "handshakes", &table(&columns));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_plain_cluster_every_source_is_seen_on_the_wire() {
    let stage = Stage::enter("sources").await;
    let _operator = stage.running_operator().await;
    stage.nmstate("nmstate", json!({})).await;
    let pods = stage.play_both().await;
    let row = matrix::row(&stage, &pods, None).await;
    passage(PAGE, "sources on a plain cluster", &row);
}
