//! What a mirror does when the watch is cut, expires, is refused, goes silent, or has nothing to
//! watch: it gets there, and says meanwhile why it does not.

use crate::mirror::{Followed, change, key, own};
use crate::stage::{Stage, holds, soon};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use keelson_cluster::Mirror;
use keelson_testbed::faults::{Fault, On, Verb};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// Waits until the mirror says something with these words in it.
async fn says(mirror: &Mirror<String>, words: &str) {
    let said = || mirror.readiness().is_err_and(|said| said.contains(words));
    holds(words, said).await;
}

#[tokio::test]
async fn changes_while_a_watch_is_cut_are_told_of_afterwards_without_a_new_list() {
    let stage = Stage::new("mirror-cut").await;
    stage.put("a", "1").await;
    stage.put("b", "1").await;
    let mut followed = Followed::new(stage.maps(), own());
    soon("the first list", followed.mirror.synced()).await;
    followed.told().await;
    followed.told().await;
    // What was told already is not told again.
    stage.put("b", "1b").await;
    assert_eq!(followed.told().await, change("b", Some("1"), Some("1b")));
    let closed = stage.faults.inject(Fault::Unavailable, On::watches());
    assert_eq!(stage.faults.cut_watches(), 1);
    stage.remove("a").await;
    stage.put("b", "2").await;
    stage.put("c", "1").await;
    closed.hit(1).await.expect("an attempt");
    stage.faults.forget();
    closed.clear();
    let told = followed.settles("c", Some("1")).await;
    let expected = [
        change("a", Some("1"), None),
        change("b", Some("1b"), Some("2")),
        change("c", None, Some("1")),
    ];
    assert_eq!(told, expected);
    assert!(followed.mirror.is_synced(), "once and for all");
    let lists = stage.faults.calls();
    let lists = lists.iter().filter(|call| call.verb == Verb::List);
    assert_eq!(lists.count(), 0);
}

#[tokio::test]
async fn what_vanished_before_a_new_list_is_told_of() {
    let stage = Stage::new("mirror-gone").await;
    stage.put("a", "1").await;
    stage.put("b", "1").await;
    let mut followed = Followed::new(stage.maps(), own());
    soon("the first list", followed.mirror.synced()).await;
    followed.told().await;
    followed.told().await;
    stage.faults.watching(1).await.expect("a watch");
    // The version is too old for the one that runs, and for those that would resume from it.
    let expired = stage.faults.inject(Fault::Expired, On::watches().nth(2));
    let closed = stage
        .faults
        .inject(Fault::Unavailable, On::watches().next(1));
    assert_eq!(stage.faults.cut_watches(), 1);
    stage.remove("a").await;
    stage.put("c", "1").await;
    closed.hit(1).await.expect("an attempt");
    drop(closed);
    let told = followed.settles("a", None).await;
    assert!(told.contains(&change("c", None, Some("1"))), "{told:?}");
    assert!(told.contains(&change("a", Some("1"), None)), "{told:?}");
    assert_eq!(followed.mirror.get(&key(&stage, "a")), None);
    drop(expired);
    stage.faults.watching(1).await.expect("a watch again");
    stage.faults.expire_watches();
    stage.put("b", "2").await;
    let told = followed.settles("b", Some("2")).await;
    assert_eq!(told.last(), Some(&change("b", Some("1"), Some("2"))));
}

#[tokio::test]
async fn a_list_is_read_page_by_page_and_followed_from_its_end() {
    let stage = Stage::new("mirror-pages").await;
    for name in ["a", "b", "c", "d", "e"] {
        stage.put(name, "1").await;
    }
    let mut followed = Followed::new(stage.maps(), own().page_size(2));
    soon("the first list", followed.mirror.synced()).await;
    assert_eq!(followed.mirror.len(), 5);
    let calls = stage.faults.calls();
    let lists = calls.iter().filter(|call| call.verb == Verb::List).count();
    assert_eq!(lists, 3, "{calls:?}");
    stage.faults.watching(1).await.expect("a watch");
    stage.remove("c").await;
    followed.settles("c", None).await;
    // And what vanished while nobody watched.
    let closed = stage
        .faults
        .inject(Fault::Unavailable, On::watches().next(1));
    let expired = stage.faults.inject(Fault::Gone, On::watches().nth(2));
    stage.faults.cut_watches();
    stage.remove("d").await;
    closed.hit(1).await.expect("an attempt");
    expired.hit(1).await.expect("another");
    followed.settles("d", None).await;
    assert_eq!(followed.mirror.len(), 3);
}

#[tokio::test]
async fn a_watch_that_does_not_begin_is_named_with_its_reason() {
    let stage = Stage::new("mirror-named").await;
    let failing = stage.faults.inject(Fault::Unavailable, On::every());
    let followed = Followed::new(stage.maps(), own());
    says(
        &followed.mirror,
        "the watch of ConfigMaps has not listed everything yet: ",
    )
    .await;
    says(
        &followed.mirror,
        "listing ConfigMaps failed: the API server answered 503",
    )
    .await;
    assert!(!followed.mirror.is_synced());
    failing.clear();
    let refusing = stage.faults.inject(Fault::Forbidden, On::every());
    says(&followed.mirror, "listing ConfigMaps was refused").await;
    refusing.clear();
    let outage = stage.faults.refuse();
    says(&followed.mirror, "onnection refused").await;
    outage.clear();
    soon("the first list", followed.mirror.synced()).await;
    assert_eq!(followed.mirror.readiness(), Ok(()));
}

#[tokio::test]
async fn a_connection_that_fell_silent_is_noticed() {
    let stage = Stage::new("mirror-silent").await;
    stage.put("a", "1").await;
    let mut followed = Followed::new(stage.maps(), own().timeout(5));
    soon("the first list", followed.mirror.synced()).await;
    followed.told().await;
    let frozen = stage.faults.freeze();
    let began = Instant::now();
    stage.put("a", "2").await;
    assert_eq!(followed.told().await, change("a", Some("1"), Some("2")));
    println!(
        "a silent watch of 5 s was noticed after {:?}",
        began.elapsed()
    );
    assert!(began.elapsed() < Duration::from_secs(40));
    drop(frozen);
}

#[tokio::test]
async fn a_watch_that_the_server_ends_goes_on_without_trouble() {
    let stage = Stage::new("mirror-turns").await;
    let mut followed = Followed::new(stage.maps(), own().timeout(2));
    soon("the first list", followed.mirror.synced()).await;
    let opened = |stage: &Stage| {
        let calls = stage.faults.calls();
        calls.iter().filter(|call| call.verb == Verb::Watch).count()
    };
    holds("a third watch", || opened(&stage) >= 3).await;
    assert_eq!(followed.mirror.readiness(), Ok(()));
    assert!(followed.mirror.last_event() < Duration::from_secs(5));
    stage.put("a", "1").await;
    assert_eq!(followed.told().await, change("a", None, Some("1")));
    let calls = stage.faults.calls();
    let lists = calls.iter().filter(|call| call.verb == Verb::List);
    assert_eq!(lists.count(), 1, "{calls:?}");
}

#[tokio::test]
async fn a_type_that_is_not_installed_is_named_and_found_once_it_is() {
    let stage = Stage::new("mirror-type").await;
    let kind = GroupVersionKind::gvk("test.keelson.dev", "v1", "Widget");
    let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
    let mirror: Mirror<String> = Mirror::new("Widgets");
    let api: Api<DynamicObject> = Api::namespaced_with(stage.client(), stage.name(), &resource);
    let keep = |object: DynamicObject| object.metadata.name;
    let task = tokio::spawn(
        mirror
            .clone()
            .follow(api.clone(), own(), keep, |_, _, _| {}),
    );
    says(&mirror, "listing Widgets: ").await;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.test.keelson.dev" },
        "spec": {
            "group": "test.keelson.dev",
            "scope": "Namespaced",
            "names": { "kind": "Widget", "plural": "widgets", "singular": "widget" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let crds: Api<CustomResourceDefinition> = Api::all(stage.cluster.client());
    let how = PatchParams::apply("test").force();
    let installed = crds
        .patch("widgets.test.keelson.dev", &how, &Patch::Apply(&crd))
        .await;
    installed.expect("a type");
    soon("the Widgets", mirror.synced()).await;
    let widget = DynamicObject::new("one", &resource).within(stage.name());
    let made = api.create(&PostParams::default(), &widget).await;
    made.expect("a Widget");
    holds("the Widget is known", || !mirror.is_empty()).await;
    task.abort();
}
