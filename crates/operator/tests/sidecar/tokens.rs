//! Tokens of a real API server: for whom they are, how long they are kept, and that there is no call
//! without one.

use crate::server::{Server, answer};
use crate::stage::{NAMESPACE, NODE, account, whom, with_tokens};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use http::header::AUTHORIZATION;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewStatus};
use keelson_operator::sidecar::{
    ACCOUNT, Accounts, Audience, CallError, Issue, Issued, NoToken, Requested, Token, Tokens,
    Transport,
};
use keelson_testbed::Cluster;
use keelson_testbed::faults::{Fault, FaultProxy, On};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x1234);
const OVER: Transport = Transport::Plaintext;

/// An API server that can be told to misbehave, and the account in a namespace of its own.
struct Stage {
    faults: FaultProxy,
    namespace: String,
    tokens: Arc<Requested>,
}

async fn stage(test: &str) -> Stage {
    let cluster = Cluster::shared_pods().await;
    let namespace = cluster.namespace(test).await.name().to_owned();
    account(cluster, &namespace).await;
    let faults = cluster.faults().expect("a proxy");
    let issuer = Accounts::new(faults.client(), &namespace);
    let tokens = Arc::new(Requested::new(Arc::new(issuer)));
    Stage {
        faults,
        namespace,
        tokens,
    }
}

impl Stage {
    async fn token(&self, audience: Audience) -> Token {
        let token = self.tokens.token(NAMESPACE, NODE, audience).await;
        token.expect("a token")
    }

    /// How many tokens were asked for.
    fn requests(&self) -> usize {
        let calls = self.faults.calls();
        let token = Some("token".to_owned());
        calls.iter().filter(|it| it.subresource == token).count()
    }
}

/// What the API server says of a token that is sent to this audience; none: its own.
async fn review(token: &Token, audience: Option<&str>) -> TokenReviewStatus {
    let reviews = Api::<TokenReview>::all(Cluster::shared_pods().await.client());
    let review = serde_json::from_value(json!({
        "metadata": {}, "spec": { "token": token.secret(), "audiences": audience.as_slice() },
    }));
    let review = review.expect("a review");
    let made = reviews.create(&PostParams::default(), &review).await;
    made.expect("an answer").status.expect("a status")
}

#[tokio::test]
async fn a_token_is_for_one_node_and_of_the_account_for_sidecars() {
    let stage = stage("audience").await;
    let token = stage.token(Audience::Node).await;

    let ours = "keelson-sidecar/sei/pacific";
    let status = review(&token, Some(ours)).await;
    assert_eq!(status.authenticated, Some(true));
    assert_eq!(status.audiences, Some(vec![ours.to_owned()]));
    let account = format!("system:serviceaccount:{}:{ACCOUNT}", stage.namespace);
    assert_eq!(status.user.and_then(|it| it.username), Some(account));
    for other in [Some("keelson-sidecar/sei/atlantic"), None] {
        let status = review(&token, other).await;
        assert_ne!(status.authenticated, Some(true), "{other:?}");
    }
}

#[tokio::test]
async fn a_proxy_without_an_audience_gets_a_token_for_the_api_servers() {
    let stage = stage("default").await;
    let token = stage.token(Audience::ApiServer).await;
    assert_eq!(review(&token, None).await.authenticated, Some(true));
    let status = review(&token, Some("keelson-sidecar/sei/pacific")).await;
    assert_ne!(status.authenticated, Some(true));
    assert_ne!(stage.token(Audience::Node).await, token);
}

#[tokio::test]
async fn a_token_is_good_for_ten_minutes_and_given_out_for_eight() {
    let stage = stage("eight").await;
    let issuer = Accounts::new(stage.faults.client(), &stage.namespace);
    let issued = issuer.issue(Vec::new(), Duration::from_mins(10)).await;
    assert_eq!(issued.expect("a token").life, Duration::from_mins(10));
    stage.faults.forget();

    for (wait, requests) in [(0, 1), (450, 1), (30, 2)] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(wait)).await;
        tokio::time::resume();
        stage.token(Audience::Node).await;
        assert_eq!(stage.requests(), requests, "{wait} s later");
    }
}

#[tokio::test]
async fn callers_at_the_same_time_share_one_request_and_another_node_has_its_own() {
    let stage = stage("flight").await;
    let slow = Fault::SlowAnswer(keelson_testbed::faults::Pause::UntilCleared);
    let held = stage
        .faults
        .inject(slow, On::every().subresource("token").next(1));
    let same = join_all((0..20).map(|_| stage.token(Audience::Node)));
    let other = async {
        held.hit(1).await.expect("a request");
        // The first is still under way, and holds nobody else up.
        let token = stage.tokens.token(NAMESPACE, "atlantic", Audience::Node);
        let token = token.await.expect("a token");
        held.clear();
        token
    };
    let (same, other) = tokio::join!(same, other);
    assert!(same.iter().all(|it| *it == same[0]));
    assert_ne!(other, same[0]);
    assert_eq!(stage.requests(), 2);
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_replaced_and_a_newer_one_stays() {
    let stage = stage("dropped").await;
    let refuses = Server::plaintext(|_| answer(401, "Unauthorized\n")).await;
    let sidecars = with_tokens(&[("pod", refuses.address)], stage.tokens.clone());
    let first = stage.token(Audience::Node).await;

    let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;

    assert_eq!(asked, Err(CallError::Unauthorized));
    let sent = &refuses.ledger().seen[0];
    let bearer = format!("Bearer {}", first.secret());
    assert_eq!(sent.header(AUTHORIZATION), Some(bearer.as_str()));
    let second = stage.token(Audience::Node).await;
    assert_ne!(second, first);
    // Somebody else's refusal of the first comes late.
    stage
        .tokens
        .drop_token(NAMESPACE, NODE, Audience::Node, &first);
    assert_eq!(stage.token(Audience::Node).await, second);
    assert_eq!(stage.requests(), 2);
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    let stage = stage("closed").await;
    let server = Server::plaintext(|_| answer(404, "")).await;
    let sidecars = with_tokens(&[("pod", server.address)], stage.tokens.clone());
    let silent = stage
        .faults
        .inject(Fault::BlackHole, On::every().subresource("token"));
    let begun = Instant::now();

    let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;

    let late = NoToken::Deadline(Duration::from_secs(5));
    assert_eq!(asked, Err(CallError::NoToken(late.clone())));
    assert!(CallError::NoToken(late).passes_by_itself());
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_secs(5), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
    assert_eq!(server.ledger().opened, 0);

    // What failed is not remembered.
    silent.clear();
    let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;
    assert_eq!(asked, Ok(None));
}

#[tokio::test]
async fn what_the_install_lacks_is_named() {
    let stage = stage("lacks").await;
    let forbidden = stage
        .faults
        .inject(Fault::Forbidden, On::every().subresource("token"));
    let refused = stage.tokens.token(NAMESPACE, NODE, Audience::Node).await;
    let sentence = refused.expect_err("no right").to_string();
    let account = format!("{}/{ACCOUNT}", stage.namespace);
    assert_eq!(
        sentence,
        format!(
            "the API server gave no token for the sidecar: the operator may not create serviceaccounts/token for {account}: bind the role that is installed with it"
        )
    );
    forbidden.clear();

    let issuer = Accounts::new(stage.faults.client(), "default");
    let nobody = Requested::new(Arc::new(issuer));
    let refused = nobody.token(NAMESPACE, NODE, Audience::Node).await;
    let sentence = refused.expect_err("no account").to_string();
    assert_eq!(
        sentence,
        "the API server gave no token for the sidecar: there is no ServiceAccount default/keelson-sidecar-client: install it with the operator's roles"
    );
}

/// An issuer that answers when it is told to, which a real one does not.
struct Scripted {
    asked: AtomicUsize,
    answers: watch::Sender<usize>,
    text: &'static str,
}

impl Scripted {
    fn new(text: &'static str) -> Arc<Self> {
        Arc::new(Self {
            asked: AtomicUsize::new(0),
            answers: watch::Sender::new(0),
            text,
        })
    }
}

impl Issue for Scripted {
    fn issue(&self, _: Vec<String>, life: Duration) -> BoxFuture<'static, Result<Issued, String>> {
        let mine = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.subscribe();
        let token = Token::new(self.text);
        async move {
            let told = answers.wait_for(|answered| *answered > mine).await;
            told.map_err(|gone| gone.to_string())?;
            Ok(Issued { token, life })
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_takes_nobodys_answer_away() {
    let issuer = Scripted::new("a-word");
    let tokens = Arc::new(Requested::new(issuer.clone()));
    let impatient = tokens.token(NAMESPACE, NODE, Audience::Node);
    assert_eq!(impatient.now_or_never(), None);
    issuer.answers.send_replace(1);
    let token = tokens.token(NAMESPACE, NODE, Audience::Node).await;
    assert_eq!(token, Ok(Token::new("a-word")));
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_nobody_waited_for_is_not_waited_for_later() {
    let issuer = Scripted::new("a-word");
    let tokens = Arc::new(Requested::new(issuer.clone()));
    let impatient = tokens.token(NAMESPACE, NODE, Audience::Node);
    assert_eq!(impatient.now_or_never(), None);
    // It has failed by now, and nobody was told.
    tokio::time::advance(Duration::from_secs(6)).await;
    issuer.answers.send_replace(2);
    let token = tokens.token(NAMESPACE, NODE, Audience::Node).await;
    assert_eq!(token, Ok(Token::new("a-word")));
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_token_that_cannot_be_sent_is_none() {
    for text in ["", "two\nlines"] {
        let issuer = Scripted::new(text);
        issuer.answers.send_replace(1);
        let server = Server::plaintext(|_| answer(404, "")).await;
        let tokens = Arc::new(Requested::new(issuer));
        let sidecars = with_tokens(&[("pod", server.address)], tokens);
        let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;
        assert_eq!(asked, Err(CallError::NoToken(NoToken::Unusable)));
        assert!(server.ledger().seen.is_empty());
    }
}

#[test]
fn a_token_does_not_show_itself() {
    let token = Token::new("a-secret-word");
    let issued = Issued {
        token: token.clone(),
        life: Duration::from_mins(10),
    };
    for shown in [format!("{token:?}"), format!("{issued:?}")] {
        assert!(!shown.contains("secret-word"), "{shown}");
    }
}
