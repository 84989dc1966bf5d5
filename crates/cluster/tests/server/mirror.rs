//! A mirror beside the real API server: it shows what is there, tells of every change, and keeps
//! nothing else.

use crate::stage::{Stage, soon};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use keelson_cluster::{Key, Mirror, Needed};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use serde_json::{from_value, json};
use std::cell::Cell;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) type Told = (String, Option<String>, Option<String>);

/// A mirror of the values of ConfigMaps, and what it tells of.
pub(crate) struct Followed {
    pub(crate) mirror: Mirror<String>,
    told: mpsc::UnboundedReceiver<Told>,
    task: JoinHandle<()>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Followed {
    pub(crate) fn new(api: Api<ConfigMap>, config: Config) -> Self {
        let mirror = Mirror::new("ConfigMaps");
        let (tell, told) = mpsc::unbounded_channel();
        // What cannot be shared between threads can still be kept by one.
        let looked_at = Cell::new(0);
        let keep = move |map: ConfigMap| {
            looked_at.set(looked_at.get() + 1);
            map.data?.remove("value")
        };
        let changed = move |key: &Key, before: Option<&String>, after: Option<&String>| {
            let _ = tell.send((key.name.clone(), before.cloned(), after.cloned()));
        };
        let following = mirror.clone().follow(api, config, keep, changed);
        Self {
            mirror,
            told,
            task: tokio::spawn(following),
        }
    }

    /// The next change it tells of.
    pub(crate) async fn told(&mut self) -> Told {
        soon("a change", self.told.recv()).await.expect("a mirror")
    }

    /// The changes up to the one that makes `name` what is expected; each must be expected.
    pub(crate) async fn settles(&mut self, name: &str, value: Option<&str>) -> Vec<Told> {
        let mut seen = Vec::new();
        loop {
            let told = self.told().await;
            let last = told.0 == name && told.2.as_deref() == value;
            seen.push(told);
            if last {
                return seen;
            }
        }
    }

    pub(crate) fn nothing_more(&mut self) -> bool {
        self.told.try_recv().is_err()
    }
}

pub(crate) fn change(name: &str, before: Option<&str>, after: Option<&str>) -> Told {
    let own = |text: &str| text.to_owned();
    (own(name), before.map(own), after.map(own))
}

pub(crate) fn key(stage: &Stage, name: &str) -> Key {
    Key {
        namespace: stage.name().to_owned(),
        name: name.to_owned(),
    }
}

/// Only the ConfigMaps a test makes itself: every namespace has one more.
pub(crate) fn own() -> Config {
    Config::default().fields("metadata.name!=kube-root-ca.crt")
}

#[tokio::test]
async fn a_mirror_shows_what_is_there_and_tells_of_every_change() {
    let stage = Stage::new("mirror").await;
    stage.put("a", "1").await;
    let mut followed = Followed::new(stage.maps(), own());
    soon("the first list", followed.mirror.synced()).await;
    assert!(followed.mirror.is_synced());
    assert_eq!(followed.told().await, change("a", None, Some("1")));
    let a = followed.mirror.get(&key(&stage, "a"));
    assert_eq!(a.as_deref().map(String::as_str), Some("1"));
    stage.put("a", "2").await;
    assert_eq!(followed.told().await, change("a", Some("1"), Some("2")));
    stage.put("b", "1").await;
    assert_eq!(followed.told().await, change("b", None, Some("1")));
    assert_eq!(followed.mirror.len(), 2);
    stage.remove("a").await;
    assert_eq!(followed.told().await, change("a", Some("2"), None));
    assert_eq!(followed.mirror.get(&key(&stage, "a")), None);
    let all = followed.mirror.all();
    assert_eq!(all, [(key(&stage, "b"), Arc::new("1".to_owned()))]);
    assert_eq!(followed.mirror.readiness(), Ok(()));
}

#[tokio::test]
async fn the_answer_to_a_write_is_known_at_once_and_told_of_once() {
    let stage = Stage::new("mirror-note").await;
    stage.put("a", "1").await;
    let mut followed = Followed::new(stage.maps(), own());
    assert_eq!(followed.told().await, change("a", None, Some("1")));
    let written = stage.put("a", "2").await;
    let version = written.metadata.resource_version.expect("a version");
    let a = key(&stage, "a");
    followed.mirror.note(a.clone(), &version, "2".to_owned());
    let known = followed.mirror.get(&a).expect("what we wrote");
    assert_eq!(*known, "2");
    // Whether the event was there first or not, it is told of as one change.
    assert_eq!(followed.told().await, change("a", Some("1"), Some("2")));
    stage.put("a", "3").await;
    assert_eq!(followed.told().await, change("a", Some("2"), Some("3")));
    assert!(followed.nothing_more());
}

#[tokio::test]
async fn what_leaves_the_selector_or_is_not_worth_keeping_is_gone() {
    let stage = Stage::new("mirror-selector").await;
    let config = Config::default().labels("sei.io/node=atlas");
    let mut followed = Followed::new(stage.maps(), config);
    let calls = stage.calls();
    let map = |label: &str, data: serde_json::Value| {
        let map = from_value::<ConfigMap>(json!({
            "metadata": {
                "name": "a",
                "namespace": stage.name(),
                "labels": { "sei.io/node": label },
            },
            "data": data,
        }));
        map.expect("a ConfigMap")
    };
    let value = json!({ "value": "1" });
    calls
        .apply(&map("atlas", value.clone()))
        .await
        .expect("applied");
    assert_eq!(followed.told().await, change("a", None, Some("1")));
    calls
        .apply(&map("other", value.clone()))
        .await
        .expect("applied");
    assert_eq!(followed.told().await, change("a", Some("1"), None));
    calls.apply(&map("atlas", value)).await.expect("applied");
    assert_eq!(followed.told().await, change("a", None, Some("1")));
    calls
        .apply(&map("atlas", json!({})))
        .await
        .expect("applied");
    assert_eq!(followed.told().await, change("a", Some("1"), None));
    assert!(followed.mirror.is_empty());
}

#[tokio::test]
async fn secrets_are_watched_without_what_is_in_them() {
    let stage = Stage::new("mirror-secrets").await;
    let client: Client = stage.client();
    let secret: Secret = from_value(json!({
        "metadata": { "name": "tls", "namespace": stage.name(), "annotations": { "a": "b" } },
        "stringData": { "key": "private" },
    }))
    .expect("a Secret");
    stage.calls().create(&secret).await.expect("an answer");
    let api: Api<PartialObjectMeta<Secret>> = Api::namespaced(client, stage.name());
    let mirror: Mirror<String> = Mirror::new("Secrets");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let keep = move |secret: PartialObjectMeta<Secret>| {
        let kind = secret.types.map(|types| types.kind).unwrap_or_default();
        kept.lock().expect("a lock").push(kind);
        secret.metadata.uid
    };
    let config = Config::default().fields("metadata.name=tls");
    let following = mirror.clone().follow(api, config, keep, |_, _, _| {});
    let task = tokio::spawn(following);
    soon("the Secrets", mirror.synced()).await;
    assert_eq!(mirror.len(), 1);
    assert_eq!(*seen.lock().expect("a lock"), ["PartialObjectMetadata"]);
    let watches = stage.faults.watches();
    assert!(
        watches
            .iter()
            .all(|call| call.name.as_deref() == Some("tls")),
        "{watches:?}"
    );
    task.abort();
}

#[tokio::test]
async fn that_the_server_does_not_have_a_type_is_an_answer_though_no_list() {
    let stage = Stage::new("mirror-no-type").await;
    let kind = GroupVersionKind::gvk("example.com", "v1", "Nothing");
    let resource = ApiResource::from_gvk(&kind);
    let api = Api::<DynamicObject>::namespaced_with(stage.client(), stage.name(), &resource);
    let mirror = Mirror::<()>::new("Nothings");
    assert!(!mirror.is_absent());
    let following = mirror
        .clone()
        .follow(api, Config::default(), |_| None, |_, _, _| {});
    let following = tokio::spawn(following);
    soon("an answer", Needed::known([mirror.answered()])).await;
    assert!(mirror.is_absent());
    let said = Needed::readiness([mirror.answered(), mirror.listed()]);
    assert_eq!(said, Err("Nothings are not known yet".to_owned()));
    following.abort();
}
