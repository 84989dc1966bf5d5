//! What the program says of itself.

use std::collections::BTreeSet;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_api::SeiNode;
use keelson_api::task::PlanKind;
use keelson_testbed::faults::{Fault, On, Pause};
use keelson_wire::TaskType;
use kube::api::PostParams;
use serde_json::json;

use crate::process::{Program, Way, page, until_page};
use crate::stage::ledger::Seen;
use crate::stage::objects::tls_by_issuer;
use crate::stage::{Stage, script};

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

/// Every kind of plan a node has.
const PLANS: [PlanKind; 7] = [
    PlanKind::Init,
    PlanKind::Bootstrap,
    PlanKind::Genesis,
    PlanKind::NodeUpdate,
    PlanKind::TlsToggle,
    PlanKind::NodeUpdateTls,
    PlanKind::MarkReadyReapply,
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

/// The value of a series with these labels and no others.
fn value(page: &str, series: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let start = format!("{series}{{");
    let mut lines = page.lines().filter_map(|it| it.strip_prefix(&start));
    lines.find_map(|line| {
        let (found, value) = line.split_once("} ")?;
        let found: BTreeSet<_> = found.split(',').map(str::to_owned).collect();
        let wanted = labels.iter().map(|(name, is)| format!("{name}=\"{is}\""));
        (found == wanted.collect()).then(|| value.parse().ok())?
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_say_what_is_so_and_how_every_kind_of_plan_ended() {
    let scene = Stage::shared().await.scene("values").await;
    let namespace = scene.namespace();
    let way = Way::of(&scene).await;
    scene.issuer("x").await;
    let program = Program::start(&scene, &way, &[]);
    let [metrics, _] = program.addresses().await;
    let until = async |series: &str, labels: &[(&str, &str)], expected: f64| {
        let holds = |_, page: &str| value(page, series, labels) == Some(expected);
        until_page(metrics, "/metrics", holds).await;
    };
    let active = "sei_controller_plan_active";
    let here = [("controller", "seinode"), ("namespace", namespace)];
    let ready = "sei_controller_seinode_sidecar_ready";
    let node = [("namespace", namespace), ("name", "node")];

    scene.script("node", |script| script.hangs(TaskType::ConfigApply, true));
    scene.full_node("node", json!({})).await;
    until(active, &here, 1.).await;
    let waits = |seen: &Seen| seen.types().contains(&TaskType::ConfigApply);
    scene.until_seen("a task that hangs", "node", waits).await;
    scene.release("node", TaskType::ConfigApply);
    scene.settled("node").await;
    until(active, &here, 0.).await;
    until(ready, &node, 1.).await;

    scene.bootstrapped("replayed", 100, json!({})).await;
    let ceremony = json!({ "genesisCeremony": {
        "chainId": "born-1", "stakingAmount": "1usei", "accountBalance": "2usei",
    }});
    scene.node("member", "validator", ceremony, json!({})).await;
    for edit in [
        json!({ "overrides": { "logging.level": "debug" } }),
        json!({ "sidecar": tls_by_issuer("x") }),
        json!({ "image": "registry.example/seid:v6.1.0", "sidecar": { "tls": null } }),
    ] {
        scene.edit("node", edit).await;
        scene.settled("node").await;
    }
    scene.disapprove("node");
    scene.touch("node-0").await;
    let lost = scene.events("node", "SidecarReadinessLost").await;
    let told = "the sidecar answers and has not approved the start of the process";
    assert_eq!(lost, [told]);
    for name in ["replayed", "member"] {
        scene.settled(name).await;
    }
    for kind in PLANS {
        let kind = ("plan_type", kind.as_str());
        let labels = [here[0], here[1], kind, ("outcome", "complete")];
        until("sei_controller_plan_duration_seconds_count", &labels, 1.).await;
    }
    let (_, page) = page(metrics, "/metrics").await;
    let stay = [
        ("namespace", namespace),
        ("chain_id", "pacific-1"),
        ("phase", "Initializing"),
    ];
    let took = "sei_controller_seinode_phase_duration_seconds_sum";
    let took = value(&page, took, &stay);
    assert!(took.is_some_and(|it| it > 0.), "{took:?} in {page}");
    let labels = [
        here[0],
        here[1],
        ("plan_type", "bootstrap"),
        ("outcome", "complete"),
    ];
    let took = value(&page, "sei_controller_plan_duration_seconds_sum", &labels);
    assert!(took.is_some_and(|it| it > 0.), "{took:?} in {page}");

    scene.fault("node", Some(script::Fault::Refuse));
    scene.touch("node-0").await;
    until(ready, &node, 0.).await;
    scene.fault("node", None);
    scene.touch("node-0").await;
    until(ready, &node, 1.).await;
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
    let way = Way::with_token(&scene.faults().kubeconfig(), &token);
    // With a lease it would end at once: that right is missing too.
    let program = Program::start(&scene, &way, &["--leader-elect=false"]);
    let [_, probes] = program.addresses().await;
    until_page(probes, "/readyz", |status, page| {
        status == 503 && page.contains("seinodes") && page.contains("statefulsets")
    })
    .await;
}
