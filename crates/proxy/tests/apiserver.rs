//! The client of the API server against a real one, well and ill.

use http::StatusCode;
use hyper::body::Bytes;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use keelson_proxy::apiserver::{Answer, ApiServer, NotAnswered};
use keelson_proxy::decision::limiter::Rate;
use keelson_proxy::decision::pace::Pace;
use keelson_proxy::decision::{Engine, Inquiry, Keys, Refusal, Settings, Token};
use keelson_proxy::reviewers::TokenReviewer;
use keelson_testbed::faults::{Fault, FaultProxy, On};
use keelson_testbed::{Cluster, until};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

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

/// Asks this often at once.
async fn crowd(server: &ApiServer, size: usize) {
    let asked = (0..size).map(|_| review(server, "any"));
    for answer in futures::future::join_all(asked).await {
        answer.expect("an answer");
    }
}

/// Asks where no byte moves, and then again, which must not meet another silent connection.
async fn let_go(server: &ApiServer) {
    let body = Bytes::from_static(b"{}");
    let silent = server
        .post(TOKEN_REVIEWS, body, Duration::from_millis(300))
        .await;
    let silent = silent.expect_err("no byte moves");
    assert!(matches!(silent, NotAnswered::TooSlow { .. }), "{silent:?}");
    let again = review(server, "any").await;
    again.expect("an answer on a new connection, while the old ones are silent");
}

#[tokio::test]
async fn connections_that_have_gone_silent_are_let_go_all_at_once() {
    let Stage { faults, server } = stage().await;
    crowd(&server, 4).await;
    let frozen = faults.freeze();
    let_go(&server).await;
    frozen.clear();
    crowd(&server, 4).await;
}

/// Passes bytes to the API server as they are, HTTP/2 included; connections that are there when it is
/// told so fall silent. Also how many there have been.
async fn relay(kubeconfig: &str) -> (String, watch::Sender<()>, Arc<AtomicUsize>) {
    let at = kubeconfig.find("https://").expect("a server") + "https://".len();
    let end = at + kubeconfig[at..].find('"').expect("its end");
    let target = kubeconfig[at..end].to_owned();
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address").to_string();
    let through = kubeconfig.replace(&target, &address);
    let (silence, accepted) = (watch::Sender::new(()), Arc::new(AtomicUsize::new(0)));
    let (silenced, count) = (silence.clone(), Arc::clone(&accepted));
    tokio::spawn(async move {
        while let Ok((mut outside, _)) = socket.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let (target, mut silent) = (target.clone(), silenced.subscribe());
            tokio::spawn(async move {
                let mut inside = TcpStream::connect(target).await.expect("a server");
                tokio::select! {
                    _ = copy_bidirectional(&mut outside, &mut inside) => {}
                    _ = silent.changed() => std::future::pending().await,
                }
            });
        }
    });
    (through, silence, accepted)
}

#[tokio::test]
async fn a_shared_connection_that_has_gone_silent_is_let_go() {
    let cluster = Cluster::shared().await;
    let (kubeconfig, silence, accepted) = relay(&cluster.kubeconfig()).await;
    let server = client(&kubeconfig);
    crowd(&server, 1).await;
    crowd(&server, 8).await;
    let one = accepted.load(Ordering::SeqCst);
    assert_eq!(one, 1, "many calls share one connection of HTTP/2");
    silence.send_replace(());
    let_go(&server).await;
    assert_eq!(accepted.load(Ordering::SeqCst), 2);
}

/// Asks about a token through an engine, as the proxy does.
async fn decided(engine: &Engine<u32, TokenReviewer>, key: u32) -> Result<(), Refusal> {
    let token = Token {
        text: format!("made-up-{key}").into(),
        audiences: Arc::new([]),
    };
    let inquiry = || {
        Ok(Inquiry {
            question: token,
            not_after: None,
        })
    };
    engine.decide(&key, None, inquiry).await.map(drop)
}

fn engine(server: ApiServer, deadline: Duration) -> Engine<u32, TokenReviewer> {
    let reviewer = TokenReviewer {
        server: Arc::new(server),
        keys: Arc::new(Keys::random().expect("randomness")),
        accept_unnamed: false,
        deadline,
    };
    Engine::new(reviewer, Settings::tokens())
}

#[tokio::test]
async fn decisions_are_right_again_within_a_second_of_a_silent_server_s_return() {
    let Stage { faults, server } = stage().await;
    let engine = engine(server, Duration::from_millis(200));
    decided(&engine, 0).await.expect("a decision");
    let hole = faults.black_hole();
    let mut key = 1;
    while !engine.breaker().open() {
        decided(&engine, key).await.expect_err("nobody answers");
        key += 1;
    }
    hole.clear();
    // A probe is due once a second; a busy machine may need a moment more for it.
    until("a decision", Duration::from_secs(2), async || {
        key += 1;
        decided(&engine, key).await.map_err(|it| it.to_string())
    })
    .await
    .expect("the server is found again");
}

#[tokio::test]
async fn no_more_calls_are_made_than_the_rate_allows_and_none_is_lost() {
    let faults = Cluster::shared().await.faults().expect("a proxy");
    let pace = Pace::new(Rate {
        per_second: 10.0,
        burst: 3,
    });
    let server = client(&faults.kubeconfig()).paced(Some(pace));
    let engine = engine(server, SOON);
    let began = Instant::now();
    let all = futures::future::join_all((0..10).map(|key| decided(&engine, key)));
    for decision in all.await {
        decision.expect("a decision, if later");
    }
    let took = began.elapsed();
    // Three at once, and seven more at ten a second.
    assert!(took >= Duration::from_millis(690), "{took:?}");
    assert_eq!(faults.calls().len(), 10);
}
