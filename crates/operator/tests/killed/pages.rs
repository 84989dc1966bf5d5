//! What the program says of itself.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_api::SeiNode;
use keelson_testbed::faults::{Fault, On, Pause};
use kube::api::PostParams;
use serde_json::json;

use crate::program::{Program, Way, until_page};
use crate::stage::Stage;

/// Series of the original, and what must be among their labels.
const SERIES: [(&str, &[&str]); 8] = [
    (
        "sei_controller_seinode_phase",
        &["namespace", "name", "phase"],
    ),
    (
        "sei_controller_seinode_phase_transitions_total",
        &["controller", "namespace", "from_phase", "to_phase"],
    ),
    (
        "sei_controller_seinode_phase_duration_seconds_bucket",
        &["namespace", "chain_id", "phase", "le"],
    ),
    (
        "sei_controller_seinode_sidecar_health_probes_total",
        &["controller", "namespace", "outcome"],
    ),
    (
        "sei_controller_seinode_sidecar_ready",
        &["namespace", "name"],
    ),
    (
        "sei_controller_plan_duration_seconds_bucket",
        &["controller", "namespace", "plan_type", "outcome", "le"],
    ),
    ("sei_controller_plan_active", &["controller", "namespace"]),
    (
        "sei_controller_reconcile_errors_total",
        &["controller", "namespace"],
    ),
];

/// The first line of a series.
fn line<'a>(page: &'a str, series: &str) -> Option<&'a str> {
    let start = format!("{series}{{");
    page.lines().find(|it| it.starts_with(&start))
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_every_series_of_the_original_and_forget_a_node_that_is_gone() {
    let scene = Stage::shared().await.scene("metrics").await;
    let way = Way::of(&scene).await;
    // A look that ends in an error, for the series of errors.
    let writes = On::writes().resource("seinodes").next(1);
    let rule = scene.faults().inject(Fault::Internal, writes);
    let program = Program::start(&scene, &way, &[]);
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    assert_eq!(rule.clear(), 1);
    let [metrics, _] = program.addresses().await;
    // What is so can be read before what was done is counted.
    let running = format!(
        r#"sei_controller_seinode_phase{{namespace="{}",name="node",phase="Running"}} 1"#,
        scene.namespace()
    );
    let page = until_page(metrics, "/metrics", |status, page| {
        let has = |series: &str| line(page, series).is_some();
        status == 200 && page.contains(&running) && SERIES.iter().all(|(series, _)| has(series))
    })
    .await;
    for (series, labels) in SERIES {
        let line = line(&page, series).expect("a line");
        for label in labels {
            assert!(line.contains(&format!("{label}=\"")), "{label} in {line}");
        }
    }
    scene.delete::<SeiNode>("node").await;
    until_page(metrics, "/metrics", |_, page| {
        !page.contains(r#"name="node""#)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_names_a_watch_that_is_not_there_yet() {
    let scene = Stage::shared().await.scene("unsynced").await;
    let way = Way::of(&scene).await;
    let held = Fault::SlowRequest(Pause::UntilCleared);
    let sets = On::every().resource("statefulsets");
    let rule = scene.faults().inject(held, sets);
    for more in [&[] as &[&str], &["--leader-elect=false"]] {
        let program = Program::start(&scene, &way, more);
        let [_, probes] = program.addresses().await;
        until_page(probes, "/readyz", |status, page| {
            status == 503 && page.contains("StatefulSets") && !page.contains("rights")
        })
        .await;
        program.stop().await;
    }
    drop(rule);
    let program = Program::start(&scene, &way, &[]);
    let [_, probes] = program.addresses().await;
    until_page(probes, "/readyz", |status, _| status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_names_a_right_that_is_missing() {
    let scene = Stage::shared().await.scene("rightless").await;
    let account = json!({ "metadata": { "name": "rightless" } });
    scene.create::<ServiceAccount>(account).await;
    let asked = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let accounts = scene.api::<ServiceAccount>();
    let params = PostParams::default();
    let token = accounts.create_token_request("rightless", &params, &asked);
    let token = token.await.expect("a token").status.expect("a token").token;
    let way = Way::with_token(&scene, &token);
    // With a lease it would end at once: that right is missing too.
    let program = Program::start(&scene, &way, &["--leader-elect=false"]);
    let [_, probes] = program.addresses().await;
    until_page(probes, "/readyz", |status, page| {
        status == 503 && page.contains("seinodes") && page.contains("statefulsets")
    })
    .await;
}
