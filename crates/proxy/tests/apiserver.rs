//! The client of the API server against a real one, well and ill.

use http::StatusCode;
use hyper::body::Bytes;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_proxy::apiserver::{Answer, ApiServer, NotAnswered};
use keelson_testbed::Cluster;
use keelson_testbed::faults::{Fault, FaultProxy, On};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

fn client(kubeconfig: &str) -> ApiServer {
    ApiServer::from_kubeconfig(kubeconfig, Path::new("/")).expect("a client")
}

async fn review(server: &ApiServer, token: &str) -> Result<Answer, NotAnswered> {
    let question = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": { "token": token, "audiences": ["keelson-sidecar"] },
    });
    server
        .post(TOKEN_REVIEWS, Bytes::from(question.to_string()), SOON)
        .await
}

async fn token(cluster: &Cluster, namespace: &str) -> String {
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), namespace);
    let request: TokenRequest = serde_json::from_value(json!({
        "metadata": {}, "spec": { "audiences": ["keelson-sidecar"], "expirationSeconds": 600 },
    }))
    .expect("a request");
    let made = accounts
        .create_token_request("default", &PostParams::default(), &request)
        .await;
    made.expect("a token").status.expect("a status").token
}

fn status(answer: &Answer) -> Value {
    serde_json::from_slice::<Value>(&answer.body).expect("JSON")["status"].clone()
}

struct Stage {
    faults: FaultProxy,
    server: ApiServer,
}

async fn stage() -> Stage {
    let faults = Cluster::shared().await.faults().expect("a proxy");
    let server = client(&faults.kubeconfig());
    Stage { faults, server }
}

#[tokio::test]
async fn a_real_token_is_known_and_a_made_up_one_is_not() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("reviews").await;
    let server = client(&cluster.kubeconfig());
    let token = token(cluster, namespace.name()).await;

    let answer = review(&server, &token).await.expect("an answer");
    assert_eq!(answer.status, StatusCode::CREATED);
    let user = format!("system:serviceaccount:{}:default", namespace.name());
    assert_eq!(status(&answer)["user"]["username"], user);
    assert_eq!(status(&answer)["audiences"], json!(["keelson-sidecar"]));

    let answer = review(&server, "made-up").await.expect("an answer");
    assert_ne!(status(&answer)["authenticated"], json!(true));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_from_one_that_is_silent() {
    let Stage { faults, server } = stage().await;
    review(&server, "any").await.expect("an answer");

    let outage = faults.refuse();
    let refused = review(&server, "any").await.expect_err("nobody listens");
    assert!(
        matches!(
            refused,
            NotAnswered::Refused { .. } | NotAnswered::Broken(_)
        ),
        "{refused:?}"
    );
    let refused = review(&server, "any").await.expect_err("nobody listens");
    assert!(
        matches!(refused, NotAnswered::Refused { .. }),
        "{refused:?}"
    );
    outage.clear();
    review(&server, "any").await.expect("an answer again");

    let outage = faults.black_hole();
    let body = Bytes::from_static(b"{}");
    let silent = server
        .post(TOKEN_REVIEWS, body, Duration::from_millis(300))
        .await;
    let silent = silent.expect_err("nobody answers");
    assert!(matches!(silent, NotAnswered::TooSlow { .. }), "{silent:?}");
    outage.clear();
    review(&server, "any")
        .await
        .expect("an answer again, on a new connection");
}

#[tokio::test]
async fn a_server_nobody_trusts_is_never_told_the_token() {
    let Stage { faults, server } = stage().await;
    let outage = faults.distrust();
    let refused = review(&server, "any").await.expect_err("a stranger");
    assert!(
        matches!(refused, NotAnswered::NotConnected { .. }),
        "{refused:?}"
    );
    assert!(faults.calls().is_empty(), "{:?}", faults.calls());
    outage.clear();
    review(&server, "any").await.expect("an answer");
}

#[tokio::test]
async fn a_busy_server_is_heard_with_the_time_it_asks_for() {
    let Stage { faults, server } = stage().await;
    let retry_after = Duration::from_secs(7);
    let busy = faults.inject(Fault::TooManyRequests { retry_after }, On::writes());
    let answer = review(&server, "any").await.expect("an answer");
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.retry_after, Some(retry_after));
    assert_eq!(busy.clear(), 1, "nothing is retried here");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_no_answer() {
    let Stage { faults, server } = stage().await;
    let cut = faults.inject(Fault::Reset, On::writes().next(1));
    let broken = review(&server, "any").await.expect_err("half an answer");
    let expected = matches!(broken, NotAnswered::Broken(_) | NotAnswered::NotWhole);
    assert!(expected, "{broken:?}");
    assert_eq!(cut.clear(), 1);
    review(&server, "any")
        .await
        .expect("an answer on a new connection");
}
