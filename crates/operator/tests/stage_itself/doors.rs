//! Proxies let callers in, in the mode their files say.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use keelson_api::SeiNode;
use keelson_api::names::Port;
use keelson_render::{Node, certificate};
use keelson_testbed::Authority;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::timeout;

use crate::caller::{Caller, HANGS, Told};
use crate::rendered::{apply_all, apply_proxy_config, running};
use crate::stage::objects::{original_proxy, tls_by_issuer, tls_by_secret};
use crate::stage::{Fault, Files, Scene, Stage, platform};

/// A scene with one node whose pod runs.
async fn scene(name: &str) -> (Scene, SeiNode) {
    let scene = Stage::shared().await.scene(name).await;
    let node = scene.full_node("n", json!({})).await;
    apply_all(&scene, &node, &platform()).await;
    running(&scene, "n-0").await;
    (scene, node)
}

/// Orders the certificate of a node from the real cert-manager.
async fn order(scene: &Scene, node: &SeiNode) {
    let node = Node::read(node).expect("a node");
    let certificate = certificate::certificate(&node).expect("a certificate");
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "cert-manager.io",
        "v1",
        "Certificate",
    ));
    let api = Api::<DynamicObject>::namespaced_with(scene.client(), scene.namespace(), &kind);
    let params = PatchParams::apply("test").force();
    let applied = api
        .patch(
            &certificate.metadata.name.clone().expect("a name"),
            &params,
            &Patch::Apply(&certificate),
        )
        .await;
    applied.expect("a Certificate");
    scene
        .until_object("issuance", "n-sidecar-tls", |it: Option<&Secret>| {
            it.is_some_and(|it| {
                it.data
                    .as_ref()
                    .is_some_and(|it| it.contains_key("tls.crt"))
            })
        })
        .await;
}

#[tokio::test]
async fn open_paths_are_open_and_the_rest_needs_a_token_that_is_counted() {
    let (scene, _) = scene("tokens").await;
    let caller = Caller::new(&scene, "n");
    for path in ["/v0/healthz", "/v0/livez", "/v0/metrics", "/v0/startupz"] {
        assert_ne!(
            caller.anonymous().get(path).await.status(),
            Some(401),
            "{path}"
        );
    }
    for path in ["/v0/status", "/v0/node-id", "/v0/tasks"] {
        assert_eq!(
            caller.anonymous().get(path).await.status(),
            Some(401),
            "{path}"
        );
        assert_eq!(caller.get(path).await.status(), Some(200), "{path}");
    }
    let node_id = caller.get("/v0/node-id").await.body()["nodeId"].clone();
    assert_eq!(node_id.as_str().map(str::len), Some(40));
    let seen = scene.seen("n");
    assert_eq!((seen.with_token, seen.without_token), (4, 7));
    assert_eq!(seen.shown.len(), 1, "one token: {:?}", seen.shown);
    assert!(seen.shown[0].plaintext && seen.shown[0].token == "a-token");
    assert_eq!(
        Caller::new(&scene, "nobody").get("/v0/healthz").await,
        Told::Closed
    );
}

#[tokio::test]
async fn tokens_are_shown_to_the_api_server_where_that_is_asked_for() {
    let (scene, _) = scene("reviews").await;
    scene.script("n", |it| it.reviews = true);
    let accounts = scene.api::<ServiceAccount>();
    let token = async |audience: &str| {
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![audience.to_owned()],
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let made = accounts.create_token_request("default", &params, &request);
        made.await.expect("a token").status.expect("a status").token
    };
    let mine = token(&format!("keelson-sidecar/{}/n", scene.namespace())).await;
    let foreign = token("keelson-sidecar/elsewhere/n").await;
    for (token, status) in [(mine.as_str(), 200), (&foreign, 401), ("a-token", 401)] {
        let mut caller = Caller::new(&scene, "n");
        caller.token = Some(token);
        assert_eq!(caller.get("/v0/status").await.status(), Some(status));
    }
}

#[tokio::test]
async fn tls_comes_and_goes_with_the_files_and_a_token_in_plaintext_nobody_asked_for_is_written_down()
 {
    let (scene, node) = scene("toggle").await;
    let authority = scene.issuer("toggle-ca").await;
    let plain = Caller::new(&scene, "n");
    let trusted = authority.certificate().to_owned();
    let tls = plain.over_tls(&trusted);
    assert_eq!(plain.get("/v0/status").await.status(), Some(200));
    assert_eq!(tls.get("/v0/status").await, Told::Closed);

    let wished = scene
        .edit("n", json!({ "sidecar": tls_by_issuer("toggle-ca") }))
        .await;
    order(&scene, &wished).await;
    apply_proxy_config(&scene, &wished, &platform()).await;
    scene.until_serving("n", "required").await;
    assert_eq!(tls.get("/v0/status").await.status(), Some(200));
    assert_eq!(
        plain.anonymous().get("/v0/healthz").await.status(),
        Some(400)
    );
    let stranger = Authority::new("a stranger").expect("an authority");
    let stranger = stranger.certificate().to_owned();
    assert_eq!(
        plain.over_tls(&stranger).get("/v0/status").await,
        Told::Closed
    );
    let mut health = plain.anonymous();
    health.port = Some(Port::ProxyHealth.number());
    let loaded = health.get("/loaded").await;
    assert_eq!(loaded.body()["tlsMode"], "required");
    let (_, fingerprint) = scene.serving("n").expect("a proxy");
    assert_eq!(
        loaded.body()["fingerprint"].as_str(),
        fingerprint.as_deref()
    );
    assert_eq!(scene.violations(), Vec::<String>::new());

    apply_proxy_config(&scene, &node, &platform()).await;
    scene.until_serving("n", "off").await;
    assert_eq!(tls.get("/v0/status").await, Told::Closed);
    assert_eq!(
        plain.anonymous().get("/v0/healthz").await.status(),
        Some(503)
    );
    assert_eq!(
        scene.violations(),
        Vec::<String>::new(),
        "no token was shown"
    );
    assert_eq!(plain.get("/v0/status").await.status(), Some(200));
    let found = scene.violations();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("in plaintext"), "{found:?}");

    // Nobody had asked for that. Once somebody does, it is what shall be.
    scene.edit("n", json!({ "sidecar": { "tls": null } })).await;
    assert_eq!(plain.get("/v0/status").await.status(), Some(200));
    assert_eq!(scene.violations(), found);
    // Asked for again, it shall not be so any more.
    scene
        .edit("n", json!({ "sidecar": tls_by_issuer("toggle-ca") }))
        .await;
    assert_eq!(plain.get("/v0/status").await.status(), Some(200));
    assert_eq!(scene.violations().len(), 2);
    assert_eq!(scene.seen("n").created.len(), 1, "all of it on one pod");
}

#[tokio::test]
async fn a_connection_that_is_older_than_the_mode_gets_one_more_answer() {
    let (scene, _) = scene("older").await;
    let authority = Authority::new("older").expect("an authority");
    scene.tls_secret("n-sidecar-tls", "n", &authority).await;
    let caller = Caller::new(&scene, "n").anonymous();
    let mut kept = caller.connect().await;
    assert_eq!(kept.get("/v0/livez").await.status(), Some(200));
    let wished = json!({ "sidecar": tls_by_secret("n-sidecar-tls") });
    let wished = scene.edit("n", wished).await;
    apply_proxy_config(&scene, &wished, &platform()).await;
    scene.until_serving("n", "required").await;
    assert_eq!(
        caller.get("/v0/livez").await.status(),
        Some(400),
        "a new one"
    );
    assert_eq!(
        kept.get("/v0/livez").await.status(),
        Some(200),
        "an old one"
    );
    assert_eq!(kept.get("/v0/livez").await, Told::Closed);
}

#[tokio::test]
async fn certificates_come_from_issuers_of_the_whole_cluster_too() {
    let (scene, _) = scene("issuers").await;
    let name = format!("{}-ca", scene.namespace());
    let authority = scene.cluster_issuer(&name).await;
    let wished = json!({ "sidecar": { "tls": { "issuerName": name } } });
    let wished = scene.edit("n", wished).await;
    order(&scene, &wished).await;
    apply_proxy_config(&scene, &wished, &platform()).await;
    scene.until_serving("n", "required").await;
    let trusted = authority.certificate().to_owned();
    let caller = Caller::new(&scene, "n").over_tls(&trusted);
    assert_eq!(caller.get("/v0/status").await.status(), Some(200));
}

#[tokio::test]
async fn a_proxy_without_a_usable_pair_keeps_what_it_has_and_after_a_start_serves_nothing() {
    let (scene, _) = scene("closed").await;
    let wished = scene
        .edit("n", json!({ "sidecar": tls_by_issuer("missing") }))
        .await;
    apply_proxy_config(&scene, &wished, &platform()).await;
    let asks = |files: &Files| {
        files
            .config
            .as_ref()
            .is_some_and(|it| it.contains("required"))
    };
    scene.until_files("n", asks).await;
    let caller = Caller::new(&scene, "n");
    let mut health = caller.anonymous();
    health.port = Some(Port::ProxyHealth.number());
    assert_eq!(
        scene.serving("n"),
        Some(("off", None)),
        "the last whole state stays"
    );
    assert_eq!(caller.get("/v0/status").await.status(), Some(200));

    scene.delete::<Pod>("n-0").await;
    scene.until_serving("n", "shut").await;
    assert_eq!(caller.get("/v0/status").await, Told::Closed);
    assert_eq!(health.get("/readyz").await.status(), Some(503));

    let authority = Authority::new("late").expect("an authority");
    scene.tls_secret("n-sidecar-tls", "n", &authority).await;
    scene.until_serving("n", "required").await;
    let trusted = authority.certificate().to_owned();
    assert_eq!(
        caller.over_tls(&trusted).get("/v0/status").await.status(),
        Some(200)
    );
    scene.delete::<Secret>("n-sidecar-tls").await;
    scene.until_files("n", |files| files.pair.is_none()).await;
    assert_eq!(
        caller.over_tls(&trusted).get("/v0/status").await.status(),
        Some(200)
    );
}

#[tokio::test]
async fn a_touch_brings_the_files_at_once() {
    let (scene, _) = scene("touch").await;
    scene.script("n", |it| it.refresh = Duration::from_secs(3600));
    let authority = Authority::new("touch").expect("an authority");
    scene.tls_secret("n-sidecar-tls", "n", &authority).await;
    let wished = scene
        .edit("n", json!({ "sidecar": tls_by_secret("n-sidecar-tls") }))
        .await;
    apply_proxy_config(&scene, &wished, &platform()).await;
    // Another node of the same namespace sees its files, so the watch has passed these.
    let other = scene
        .full_node(
            "other",
            json!({ "sidecar": tls_by_secret("n-sidecar-tls") }),
        )
        .await;
    apply_all(&scene, &other, &platform()).await;
    scene.until_serving("other", "required").await;
    assert_eq!(scene.serving("n"), Some(("off", None)));
    scene.touch("n-0").await;
    scene.until_serving("n", "required").await;
}

#[tokio::test]
async fn kube_rbac_proxy_serves_what_its_flags_say_for_as_long_as_its_pod_lives() {
    let scene = Stage::shared().await.scene("original").await;
    let node = scene.full_node("n", json!({})).await;
    apply_all(&scene, &node, &original_proxy()).await;
    running(&scene, "n-0").await;
    assert_eq!(scene.serving("n"), Some(("off", None)));
    let authority = Authority::new("original").expect("an authority");
    scene.tls_secret("mine", "n", &authority).await;
    let wished = scene
        .edit("n", json!({ "sidecar": tls_by_secret("mine") }))
        .await;
    apply_all(&scene, &wished, &original_proxy()).await;
    assert_eq!(
        scene.serving("n"),
        Some(("off", None)),
        "its flags are what they were"
    );
    scene.delete::<Pod>("n-0").await;
    scene.until_serving("n", "required").await;
    let trusted = authority.certificate().to_owned();
    let caller = Caller::new(&scene, "n").over_tls(&trusted);
    assert_eq!(caller.get("/v0/status").await.status(), Some(200));
}

#[tokio::test]
async fn a_sidecar_misbehaves_as_it_is_scripted_to() {
    let (scene, _) = scene("faults").await;
    let caller = Caller::new(&scene, "n");
    let status = async || caller.get("/v0/status").await;
    scene.fault("n", Some(Fault::BlackHole));
    assert!(
        timeout(HANGS, status()).await.is_err(),
        "nothing is answered"
    );
    scene.fault("n", Some(Fault::Refuse));
    assert_eq!(status().await, Told::Closed);
    scene.fault("n", Some(Fault::Slow(HANGS)));
    assert!(timeout(HANGS / 2, status()).await.is_err(), "not yet");
    assert_eq!(status().await.status(), Some(200));
    scene.fault("n", Some(Fault::Status(500)));
    assert_eq!(status().await.status(), Some(500));
    scene.fault("n", Some(Fault::UnauthorizedOnce));
    assert_eq!(status().await.status(), Some(401));
    assert_eq!(status().await.status(), Some(200));
    scene.fault("n", Some(Fault::Cut));
    let told = caller
        .submit(&crate::caller::task_id(1), "mark-ready", json!({}))
        .await;
    assert_eq!(told, Told::Closed);
    scene.fault("n", None);
    assert_eq!(
        caller.get("/v0/healthz").await.status(),
        Some(200),
        "it was carried out"
    );
}

#[tokio::test]
async fn the_operators_calls_are_counted_apart_from_the_players() {
    let (scene, _) = scene("calls").await;
    assert_eq!(scene.faults().calls().len(), 0);
    let pods = Api::<Pod>::namespaced(scene.operator_client(), scene.namespace());
    pods.get("n-0").await.expect("a pod");
    assert_eq!(scene.faults().calls().len(), 1);
}
