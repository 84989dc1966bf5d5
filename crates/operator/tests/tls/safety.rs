//! What must never happen: a token in the clear where TLS was spoken, and a difference made of silence.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use keelson_api::SeiNode;
use keelson_api::names::Annotation;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_render::Platform;
use keelson_testbed::Authority;
use keelson_testbed::faults::{Fault as ApiFault, On, Verb};
use keelson_wire::TaskType;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::operator::Operator;
use crate::stage::ledger::Seen;
use crate::stage::objects::{self, original_proxy, tls_by_issuer, tls_by_secret};
use crate::stage::{Fault, Files, Scene, Stage, platform};
use crate::story::{Cost, poke, said};

/// A running node with TLS from the Secret `given`.
async fn running(scene: &Scene) -> SeiNode {
    let authority = Authority::new("given").expect("an authority");
    scene.tls_secret("given", "node", &authority).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret("given") }))
        .await;
    scene.settled("node").await
}

async fn silence_is_no_difference(name: &str, platform: Platform, fault: Fault) {
    let scene = Stage::shared().await.scene(name).await;
    let first = Operator::start(&scene, platform.clone()).await;
    let before = running(&scene).await.status.expect("a status");
    let seen = scene.seen("node");
    // Another operator knows nothing of what the first has seen, and has to look for itself.
    drop(first);
    scene.fault("node", Some(fault));
    scene.faults().forget();
    let _operator = Operator::start(&scene, platform).await;
    let silent = scene.until_status("silence", "node", |node, _| {
        let (status, reason, _) = said(node, NodeCondition::SidecarReady);
        (status.as_str(), reason.as_str()) == ("Unknown", "Unreachable")
    });
    let status = silent.await.status.expect("a status");
    assert_eq!(status.plan, None);
    assert_eq!(status.current_sidecar_tls, before.current_sidecar_tls);
    assert_eq!(status.sidecar_url, before.sidecar_url);

    scene.fault("node", None);
    poke(&scene, "node", "heard").await;
    let ready = (NodeCondition::SidecarReady, NodeReason::SidecarReady);
    let node = scene.until_condition("node", ready.0, true, ready.1).await;
    assert_eq!(node.status.expect("a status").plan, None);
    assert_eq!(Cost::between(&seen, &scene.seen("node")), Cost::NOTHING);
    let writes = scene.faults().writes().into_iter();
    let made: Vec<_> = writes
        .filter(|it| !["seinodes", "events", "serviceaccounts"].contains(&it.resource.as_str()))
        .collect();
    assert!(made.is_empty(), "{made:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_hangs_up_is_unknown_and_no_difference() {
    silence_is_no_difference("refused", platform(), Fault::Refuse).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_never_answers_is_unknown_and_no_difference() {
    silence_is_no_difference("hole", original_proxy(), Fault::BlackHole).await;
}

/// Has the proxy of the node told to speak `to` instead of `from`, whatever the operator thinks of it.
async fn tell_proxy(scene: &Scene, from: &str, to: &str) {
    let name = "node-rbac-proxy-config";
    let maps = scene.api::<ConfigMap>();
    let map = maps.get(name).await.expect("a ConfigMap");
    let text = &map.data.expect("data")["config.yaml"];
    assert!(text.contains(from), "{text}");
    let data = json!({ "config.yaml": text.replace(from, to) });
    let patch = Patch::Merge(json!({ "data": data }));
    let patched = maps.patch(name, &PatchParams::default(), &patch).await;
    patched.expect("an edit");
    // Nobody is nudged: once it is served, nothing of it is on its way any more.
    scene.until_serving("node", to).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_spoke_tls_gets_no_token_in_the_clear_whatever_it_speaks_and_the_status_says() {
    let scene = Stage::shared().await.scene("downgrade").await;
    let _operator = Operator::start(&scene, platform()).await;
    running(&scene).await;
    no_downgrade(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_does_a_pod_that_came_without_a_plan() {
    let scene = Stage::shared().await.scene("rescheduled").await;
    let _operator = Operator::start(&scene, platform()).await;
    running(&scene).await;
    let born = scene.seen("node");
    scene.delete::<Pod>("node-0").await;
    let another = |seen: &Seen| seen.created.len() > born.created.len();
    scene.until_seen("another pod", "node", another).await;
    let spoke = |pod: &Pod| {
        let other = pod.uid().is_some_and(|uid| !born.created.contains(&uid));
        other
            && pod
                .annotations()
                .contains_key(Annotation::SpokeTls.as_str())
    };
    scene.until_pod("a mark", "node-0", spoke).await;
    scene.settled("node").await;
    no_downgrade(&scene).await;
}

async fn no_downgrade(scene: &Scene) {
    let before = scene.seen("node");
    // The sidecar is at a task, and the operator asks after it again and again.
    scene.script("node", |script| {
        script.takes(TaskType::ConfigPatch, Duration::from_secs(10));
    });
    let overrides = json!({ "network.p2p.max_connections": "77" });
    scene.edit("node", json!({ "overrides": overrides })).await;
    let submitted = |seen: &Seen| seen.types().contains(&TaskType::ConfigPatch);
    scene.until_seen("a task", "node", submitted).await;
    tell_proxy(scene, "required", "off").await;
    // Whoever can write the status says that there was never TLS.
    let nothing = json!({ "status": { "currentSidecarTLS": null, "sidecarURL": null } });
    let nodes = scene.api::<SeiNode>();
    let params = PatchParams::default();
    let lied = nodes
        .patch_status("node", &params, &Patch::Merge(nothing))
        .await;
    lied.expect("a status");
    let why = "the sidecar of the pod node-0 does not answer (it speaks plaintext where TLS was spoken before, so no token is sent)";
    let waits = scene.until_status("a wait", "node", |_, status| {
        let mut tasks = status.plan.iter().flat_map(|it| &it.tasks);
        tasks.any(|it| it.waiting_on.as_deref() == Some(why))
    });
    waits.await;
    let shown = scene.seen("node").shown;
    assert!(shown.iter().all(|it| !it.plaintext), "{shown:?}");
    tell_proxy(scene, "off", "required").await;

    let node = scene.settled("node").await;
    let served = node.status.expect("a status").current_sidecar_tls;
    let served = served.expect("TLS");
    assert_eq!(served.secret_name.as_deref(), Some("given"));
    let seen = scene.seen("node");
    assert!(
        seen.shown.iter().all(|it| !it.plaintext),
        "{:?}",
        seen.shown
    );
    assert_eq!(Cost::between(&before, &seen).pods, 0);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_waits_at_a_proxy_that_speaks_plaintext_though_its_configuration_says_tls() {
    let scene = Stage::shared().await.scene("stubborn").await;
    let _operator = Operator::start(&scene, platform()).await;
    running(&scene).await;
    let before = scene.seen("node");
    let rule = scene.faults().inject(
        ApiFault::Unavailable,
        On::verb(Verb::Patch).resource("configmaps"),
    );
    tell_proxy(&scene, "required", "off").await;
    // From now on the files stay as they are, whatever the ConfigMap says.
    scene.script("node", |script| script.refresh = Duration::from_secs(3600));
    scene.pause("node");
    rule.clear();
    scene
        .edit(
            "node",
            json!({ "overrides": { "network.p2p.max_connections": "77" } }),
        )
        .await;
    let waits = scene.until_status("a wait", "node", |_, status| {
        let tasks = status.plan.iter().flat_map(|it| &it.tasks);
        // Which step waits is a matter of when the port was looked at.
        let mut waiting = tasks.filter_map(|it| it.waiting_on.as_deref());
        waiting.any(|it| it.contains("plaintext"))
    });
    let node = waits.await;
    let (status, reason, _) = said(&node, NodeCondition::SidecarReady);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("Unknown", "Unreachable")
    );
    let seen = scene.seen("node");
    assert_eq!(seen.submitted.len(), before.submitted.len());
    assert!(
        seen.shown.iter().all(|it| !it.plaintext),
        "{:?}",
        seen.shown
    );

    scene.script("node", |script| script.refresh = Duration::ZERO);
    scene.resume("node");
    scene.touch("node-0").await;
    scene.settled("node").await;
    assert_eq!(scene.violations(), Vec::<String>::new());
    assert_eq!(Cost::between(&before, &scene.seen("node")).pods, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_nobody_vouches_for_is_neither_trusted_nor_a_difference() {
    let scene = Stage::shared().await.scene("untrusted").await;
    let operator = Operator::start(&scene, platform()).await;
    let before = running(&scene).await.status.expect("a status");
    drop(operator);
    // While nobody looks, the proxy gets a pair of another authority's and keeps it.
    let other = Authority::new("other").expect("an authority");
    let pem = objects::identity(&other, "node", scene.namespace());
    let secret = objects::tls_secret("given", &pem, &other);
    scene.secret(&secret).await;
    let loaded = |files: &Files| {
        let pair = files.pair.as_ref();
        pair.is_some_and(|pair| pair.certificate == pem.certificate.as_bytes())
    };
    scene.until_files("node", loaded).await;
    scene.script("node", |script| script.refresh = Duration::from_secs(3600));
    scene.pause("node");
    let given = Authority::new("given").expect("an authority");
    scene.tls_secret("given", "node", &given).await;
    let seen = scene.seen("node");

    let _operator = Operator::start(&scene, platform()).await;
    let silent = scene.until_status("no trust", "node", |node, _| {
        said(node, NodeCondition::SidecarReady).0 == "Unknown"
    });
    let status = silent.await.status.expect("a status");
    assert_eq!(status.plan, None);
    assert_eq!(status.current_sidecar_tls, before.current_sidecar_tls);
    assert_eq!(scene.seen("node").with_token, seen.with_token);

    scene.resume("node");
    scene.touch("node-0").await;
    poke(&scene, "node", "trusted").await;
    let ready = (NodeCondition::SidecarReady, NodeReason::SidecarReady);
    let node = scene.until_condition("node", ready.0, true, ready.1).await;
    assert_eq!(node.status.expect("a status").plan, None);
    assert_eq!(Cost::between(&seen, &scene.seen("node")), Cost::NOTHING);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_born_with_tls_never_speaks_plaintext() {
    let scene = Stage::shared().await.scene("born").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("x").await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    born_with_tls(
        &scene,
        &[
            "apply-sidecar-cert",
            "wait-for-sidecar-tls-secret",
            "apply-rbac-proxy-config",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_born_with_tls_and_the_original_proxy_never_speaks_plaintext() {
    let scene = Stage::shared().await.scene("born-original").await;
    let _operator = Operator::start(&scene, original_proxy()).await;
    scene.issuer("x").await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    born_with_tls(
        &scene,
        &[
            "apply-sidecar-cert",
            "wait-for-sidecar-tls-secret",
            "apply-rbac-proxy-config",
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_with_tls_never_speaks_plaintext_in_either_pod() {
    let scene = Stage::shared().await.scene("bootstrap").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("x").await;
    scene
        .bootstrapped("node", 100, json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    born_with_tls(
        &scene,
        &[
            "apply-sidecar-cert",
            "wait-for-sidecar-tls-secret",
            "apply-rbac-proxy-config",
        ],
    )
    .await;
    let seen = scene.seen("node");
    let pods: std::collections::BTreeSet<_> = seen.shown.iter().map(|it| &it.pod).collect();
    assert_eq!(pods.len(), 2, "{:?}", seen.shown);
}

/// Looks at the first plan, and then at every token there was.
async fn born_with_tls(scene: &Scene, first: &[&str]) {
    let begun = scene.until_status("a plan", "node", |_, status| status.plan.is_some());
    let plan = begun.await.status.expect("a status").plan.expect("a plan");
    let tasks = crate::story::tasks(&plan);
    let certificate: Vec<_> = tasks
        .iter()
        .copied()
        .filter(|it| first.contains(it))
        .collect();
    assert_eq!(certificate, first);
    let last = tasks.iter().position(|it| *it == first[2]).expect("a task");
    let pods = ["deploy-bootstrap-job", "apply-statefulset"];
    let pod = tasks
        .iter()
        .position(|it| pods.contains(it))
        .expect("a pod");
    let observed = tasks
        .iter()
        .position(|it| *it == "observe-sidecar-tls")
        .expect("a handshake");
    let told = tasks
        .iter()
        .position(|it| *it == "configure-genesis")
        .expect("a task");
    assert!(last < pod && pod < observed && observed < told, "{tasks:?}");
    scene.settled("node").await;
    let seen = scene.seen("node");
    assert!(!seen.shown.is_empty());
    assert!(
        seen.shown.iter().all(|it| !it.plaintext),
        "{:?}",
        seen.shown
    );
    assert_eq!(scene.violations(), Vec::<String>::new());
}
