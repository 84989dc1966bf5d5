//! Calls: what is expected is an answer, what is not is a sentence, and each ends in time.

use crate::stage::{Stage, map, soon};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use keelson_cluster::{Error, Key, Only, Propagation};
use keelson_testbed::faults::{Fault, On};
use kube::api::{ApiResource, PartialObjectMeta};
use kube::{Api, ResourceExt};
use serde_json::{Value, from_value, json};
use std::time::Duration;
use tokio::time::Instant;

fn config_map(namespace: &str, name: &str, value: &str) -> ConfigMap {
    from_value(map(namespace, name, value)).expect("a ConfigMap")
}

#[tokio::test]
async fn what_is_not_there_is_none_and_what_exists_is_not_made_twice() {
    let stage = Stage::new("calls-absent").await;
    let (calls, namespace) = (stage.calls(), stage.name());
    let found: Option<ConfigMap> = calls.get(namespace, "a").await.expect("an answer");
    assert!(found.is_none());
    let first = config_map(namespace, "a", "1");
    assert!(calls.create(&first).await.expect("an answer").is_some());
    let again = config_map(namespace, "a", "2");
    assert!(calls.create(&again).await.expect("an answer").is_none());
    let found: ConfigMap = calls
        .get(namespace, "a")
        .await
        .expect("an answer")
        .expect("the ConfigMap");
    assert_eq!(found.data, first.data);
    let patch = json!({ "data": { "value": "3" } });
    let merged = calls.merge::<ConfigMap>(namespace, "b", &patch).await;
    assert!(merged.expect("an answer").is_none());
    let status = calls.merge_status::<Service>(namespace, "b", &patch).await;
    assert!(status.expect("an answer").is_none());
    let merged = calls.merge::<ConfigMap>(namespace, "a", &patch).await;
    let merged = merged.expect("an answer").expect("the ConfigMap");
    assert_eq!(merged.data.expect("data")["value"], "3");
    let fields = merged.metadata.managed_fields.expect("managers");
    let managers: Vec<_> = fields.into_iter().filter_map(|it| it.manager).collect();
    assert_eq!(managers, ["seinode-controller"]);
}

#[tokio::test]
async fn a_status_over_an_older_version_is_a_conflict() {
    let stage = Stage::new("calls-status").await;
    let (calls, namespace) = (stage.calls(), stage.name());
    let labels = json!({ "app": "a" });
    let set: StatefulSet = from_value(json!({
        "metadata": { "name": "a", "namespace": namespace },
        "spec": {
            "replicas": 0,
            "serviceName": "a",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "a", "image": "a" }] },
            },
        },
    }))
    .expect("a StatefulSet");
    let old = calls.create(&set).await.expect("an answer").expect("new");
    let relabel = json!({ "metadata": { "labels": { "seen": "yes" } } });
    let merged = calls.merge::<StatefulSet>(namespace, "a", &relabel).await;
    merged.expect("an answer").expect("the StatefulSet");
    let patch = |version: Option<String>| {
        json!({
            "metadata": { "resourceVersion": version },
            "status": { "replicas": 0, "currentRevision": "ours" },
        })
    };
    let late = patch(old.resource_version());
    let error = calls
        .merge_status::<StatefulSet>(namespace, "a", &late)
        .await
        .expect_err("a conflict");
    assert!(error.is_conflict() && !error.is_refused(), "{error}");
    let said = error.to_string();
    let doing = format!("writing the status of StatefulSet {namespace}/a: ");
    assert!(said.starts_with(&doing), "{said}");
    // The controller of StatefulSets writes the status too: until nobody comes between.
    soon("a status over the newest version", async {
        loop {
            let found: Option<StatefulSet> = calls.get(namespace, "a").await.expect("an answer");
            let now = patch(found.expect("the StatefulSet").resource_version());
            match calls
                .merge_status::<StatefulSet>(namespace, "a", &now)
                .await
            {
                Ok(written) => return assert!(written.is_some()),
                Err(error) => assert!(error.is_conflict(), "{error}"),
            }
        }
    })
    .await;
}

#[tokio::test]
async fn whether_an_object_is_there_is_answered_without_what_it_says() {
    let stage = Stage::new("calls-there").await;
    let (calls, namespace) = (stage.calls(), stage.name());
    let put = stage.put("a", "1").await;
    let maps = ApiResource::erase::<ConfigMap>(&());
    let at = |namespace: &str, name: &str| Key {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let found = calls.metadata_as(&maps, &at(namespace, "a")).await;
    let found = found.expect("an answer").expect("the ConfigMap");
    assert_eq!(found.uid, put.uid());
    let found = calls.metadata_as(&maps, &at(namespace, "b")).await;
    assert!(found.expect("an answer").is_none());

    // Of the whole cluster.
    let spaces = ApiResource::erase::<Namespace>(&());
    let found = calls.metadata_as(&spaces, &at("", namespace)).await;
    let found = found.expect("an answer").expect("the Namespace");
    let all = calls.list_metadata_as(&spaces).await.expect("an answer");
    assert!(all.iter().any(|it| it.uid == found.uid), "{all:?}");
    let patch = json!({
        "metadata": { "resourceVersion": "1" },
        "status": { "phase": "Active" },
    });
    let here = at("", namespace);
    let late = calls.merge_status_as(&spaces, &here, &patch).await;
    let error = late.expect_err("a conflict");
    assert!(error.is_conflict(), "{error}");
    let nowhere = at("", "no-such");
    let gone = calls.merge_status_as(&spaces, &nowhere, &patch).await;
    assert!(gone.expect("an answer").is_none());
}

#[tokio::test]
async fn only_the_object_that_is_meant_is_deleted() {
    let stage = Stage::new("calls-delete").await;
    let (calls, namespace) = (stage.calls(), stage.name());
    let old = stage.put("a", "1").await;
    let new = stage.put("a", "2").await;
    let delete = async |only: Only| {
        let how = Propagation::Background;
        calls.delete::<ConfigMap>(namespace, "a", only, how).await
    };
    let another = Only {
        uid: Some("11111111-2222-3333-4444-555555555555".to_owned()),
        ..Only::default()
    };
    let older = Only {
        version: old.resource_version(),
        ..Only::default()
    };
    for wrong in [another, older] {
        let error = delete(wrong).await.expect_err("a conflict");
        assert!(error.is_conflict(), "{error}");
    }
    let exactly = Only {
        uid: new.uid(),
        version: new.resource_version(),
    };
    assert!(delete(exactly).await.expect("an answer"));
    assert!(!delete(Only::default()).await.expect("an answer"));
}

#[tokio::test]
async fn an_apply_is_ours_and_forced_and_a_bad_one_is_a_sentence() {
    let stage = Stage::new("calls-apply").await;
    let (calls, namespace) = (stage.calls(), stage.name());
    stage.put("a", "theirs").await;
    let ours = config_map(namespace, "a", "ours");
    let written = calls.apply(&ours).await.expect("an answer");
    assert_eq!(written.data, ours.data);
    let resource = ApiResource::erase::<Service>(&());
    let service = |port: i64| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": "a", "namespace": namespace },
            "spec": { "ports": [{ "port": port }] },
        })
    };
    let error = calls.apply_as(&resource, &service(0)).await;
    let error = error.expect_err("a refusal");
    assert!(error.is_refused() && !error.is_conflict(), "{error}");
    let said = error.to_string();
    let doing = format!("applying Service {namespace}/a was refused: ");
    assert!(
        said.starts_with(&doing) && said.contains("spec.ports[0].port"),
        "{said}"
    );
    calls
        .apply_as(&resource, &service(80))
        .await
        .expect("an answer");
    let elsewhere = config_map("no-such-namespace", "a", "1");
    let error = calls.apply(&elsewhere).await.expect_err("no namespace");
    assert!(error.is_absent(), "{error}");
    assert!(error.to_string().contains("no-such-namespace"), "{error}");
    let mut nowhere = config_map(namespace, "a", "1");
    nowhere.metadata.namespace = None;
    let error = calls.apply(&nowhere).await.expect_err("no namespace");
    let said = error.to_string();
    assert_eq!(said, "applying a ConfigMap: metadata.namespace is missing");
    let nameless: Value = json!({ "metadata": { "namespace": namespace } });
    let error = calls.apply_as(&resource, &nameless).await;
    let said = error.expect_err("no name").to_string();
    assert_eq!(said, "applying a Service: metadata.name is missing");
}

#[tokio::test]
async fn a_secret_can_be_read_without_what_is_in_it() {
    let stage = Stage::new("calls-metadata").await;
    let calls = stage.calls();
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some("a".to_owned()),
            namespace: Some(stage.name().to_owned()),
            ..ObjectMeta::default()
        },
        string_data: Some([("key".to_owned(), "private".to_owned())].into()),
        ..Secret::default()
    };
    calls
        .create(&secret)
        .await
        .expect("an answer")
        .expect("new");
    let found: Option<PartialObjectMeta<Secret>> =
        calls.get(stage.name(), "a").await.expect("an answer");
    let found = found.expect("the Secret");
    assert_eq!(found.types.expect("a type").kind, "PartialObjectMetadata");
}

#[tokio::test]
async fn a_token_is_for_its_audience_and_says_when_it_ends() {
    let stage = Stage::new("calls-token").await;
    let calls = stage.calls();
    let account = serde_json::from_value::<k8s_openapi::api::core::v1::ServiceAccount>(json!({
        "metadata": { "name": "caller", "namespace": stage.name() },
    }));
    let account = account.expect("a ServiceAccount");
    calls
        .create(&account)
        .await
        .expect("an answer")
        .expect("new");
    let audience = format!("keelson-sidecar/{}/node-0", stage.name());
    let (token, ends) = calls
        .token(stage.name(), "caller", std::slice::from_ref(&audience), 600)
        .await
        .expect("a token");
    let left = ends.duration_since(Timestamp::now()).as_secs();
    assert!((500..=700).contains(&left), "{left} s");
    let reviews: Api<TokenReview> = Api::all(stage.cluster.client());
    let review = TokenReview {
        spec: TokenReviewSpec {
            audiences: Some(vec![audience.clone()]),
            token: Some(token),
        },
        ..TokenReview::default()
    };
    let review = reviews.create(&Default::default(), &review).await;
    let status = review.expect("a review").status.expect("a status");
    assert_eq!(status.authenticated, Some(true));
    assert_eq!(status.audiences, Some(vec![audience]));
    let error = calls.token(stage.name(), "nobody", &[], 600).await;
    let error = error.expect_err("no ServiceAccount");
    assert!(error.is_absent(), "{error}");
}

#[tokio::test]
async fn a_failing_server_is_asked_once_and_named() {
    let stage = Stage::new("calls-failing").await;
    let calls = stage.calls();
    for (fault, words) in [
        (Fault::Unavailable, "the API server answered 503"),
        (Fault::Internal, "the API server answered 500"),
        (Fault::Garbage, "failed: "),
        (
            Fault::TooManyRequests {
                retry_after: Duration::from_secs(1),
            },
            "the API server answered 429",
        ),
    ] {
        let rule = stage.faults.inject(fault, On::every());
        let error = calls.get::<ConfigMap>(stage.name(), "a").await;
        let error = error.expect_err("an error");
        assert!(!error.is_refused() && !error.is_conflict(), "{error}");
        let said = error.to_string();
        let doing = format!("reading ConfigMap {}/a failed: ", stage.name());
        assert!(said.starts_with(&doing) && said.contains(words), "{said}");
        assert_eq!(rule.clear(), 1, "one call");
    }
    let rule = stage.faults.inject(Fault::Forbidden, On::every());
    let error = calls.get::<ConfigMap>(stage.name(), "a").await;
    assert!(error.expect_err("a refusal").is_refused());
    rule.clear();
    let outage = stage.faults.refuse();
    let error = calls.get::<ConfigMap>(stage.name(), "a").await;
    let said = error.expect_err("an error").to_string();
    assert!(said.to_lowercase().contains("connection refused"), "{said}");
    outage.clear();
}

#[tokio::test]
async fn no_call_waits_longer_than_its_deadline() {
    let stage = Stage::new("calls-silent").await;
    let (calls, namespace) = (stage.calls(), stage.name());
    let silence = stage.faults.inject(Fault::BlackHole, On::every());
    let began = Instant::now();
    let object = config_map(namespace, "a", "1");
    let resource = ApiResource::erase::<ConfigMap>(&());
    let patch = json!({});
    let (only, how) = (Only::default(), Propagation::Background);
    let (get, apply, apply_as, create, merge, status, delete, token) = tokio::join!(
        calls.get::<ConfigMap>(namespace, "a"),
        calls.apply(&object),
        calls.apply_as(&resource, &object),
        calls.create(&object),
        calls.merge::<ConfigMap>(namespace, "a", &patch),
        calls.merge_status::<Service>(namespace, "a", &patch),
        calls.delete::<ConfigMap>(namespace, "a", only, how),
        calls.token(namespace, "a", &[], 600),
    );
    let took = began.elapsed();
    let errors = [
        get.err(),
        apply.err(),
        apply_as.err(),
        create.err(),
        merge.err(),
        status.err(),
        delete.err(),
        token.err(),
    ];
    for error in errors {
        let error = error.expect("an error");
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        assert!(
            error.to_string().contains("no answer within 10s"),
            "{error}"
        );
    }
    assert!((10..15).contains(&took.as_secs()), "{took:?}");
    silence.clear();
    // Where not even a connection comes about, it is over sooner.
    let _outage = stage.faults.black_hole();
    let began = Instant::now();
    let answer = stage.calls().get::<ConfigMap>(namespace, "a").await;
    assert!(answer.is_err());
    let took = began.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
}
