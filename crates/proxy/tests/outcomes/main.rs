//! What a caller gets: the outcomes of the reference, on the wire, with tokens, audiences and
//! permissions of a real API server.

#[path = "../common/mod.rs"]
mod common;
mod stage;
mod tunnel;

use http::StatusCode;
use stage::{Ask, Stage};

#[tokio::test]
async fn without_a_credential_the_answer_is_401_and_says_nothing_more() {
    let stage = Stage::new("none").await;
    for ask in [
        Ask::get("/v0/tasks"),
        Ask::get("/v0/tasks").header("authorization", "Basic dXNlcjpwYXNz"),
        Ask::get("/v0/tasks").header("authorization", "Bearer  two-blanks"),
        Ask::get("/v0/tasks").bearer("made-up"),
    ] {
        let answer = stage.ask(ask).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (StatusCode::UNAUTHORIZED, "Unauthorized\n")
        );
        assert_eq!(answer.header("www-authenticate"), None);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!(stage.upstream_saw(), 0);
}

#[tokio::test]
async fn a_known_caller_without_permission_gets_403_with_who_and_what() {
    let stage = Stage::new("denied").await;
    let token = stage.token(&["keelson-sidecar"]).await;
    let answer = stage.ask(Ask::get("/v0/tasks").bearer(&token)).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let who = stage.user();
    assert_eq!(
        answer.body,
        format!("Forbidden (user={who}, verb=get, resource=seinodetasks, subresource=)\n")
    );
    assert_eq!(stage.upstream_saw(), 0);
}

#[tokio::test]
async fn a_permitted_caller_reaches_the_upstream_under_their_own_name() {
    let stage = Stage::new("allowed").await;
    stage.permit("get").await;
    let token = stage.token(&["keelson-sidecar"]).await;
    let answer = stage
        .ask(Ask::get("/v0/tasks?limit=3").bearer(&token))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    let seen = answer.seen();
    assert_eq!(seen.target, "/v0/tasks?limit=3");
    assert_eq!(seen.header("x-remote-user"), Some(stage.user().as_str()));
    assert!(
        seen.header("x-remote-groups")
            .is_some_and(|it| it.contains("system:serviceaccounts"))
    );
    assert_eq!(seen.header("authorization"), None, "the token stays here");

    let answer = stage.ask(Ask::post("/v0/tasks", "{}").bearer(&token)).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "get is not create");
}

#[tokio::test]
async fn a_token_for_another_audience_is_nobodys() {
    let stage = Stage::new("audience").await;
    stage.permit("get").await;
    let token = stage.token(&["somebody-else"]).await;
    let answer = stage.ask(Ask::get("/v0/tasks").bearer(&token)).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn identity_that_a_client_sends_never_arrives() {
    let stage = Stage::new("spoof").await;
    stage.permit("get").await;
    let token = stage.token(&["keelson-sidecar"]).await;
    // A1, A2: by name, by another spelling, by having ours removed, and where nobody asks who.
    let asks = [
        Ask::get("/v0/tasks")
            .bearer(&token)
            .header("x-remote-user", "root"),
        Ask::get("/v0/tasks")
            .bearer(&token)
            .header("X_Remote_User", "root"),
        Ask::get("/v0/tasks")
            .bearer(&token)
            .header("connection", "x-remote-user, x-remote-groups"),
        Ask::get("/v0/tasks")
            .bearer(&token)
            .header("x-remote-extra-scopes", "all"),
    ];
    for ask in asks {
        let answer = stage.ask(ask).await;
        let seen = answer.seen();
        assert_eq!(seen.header("x-remote-user"), Some(stage.user().as_str()));
        assert_eq!(
            seen.count("x-remote-user") + seen.count("x_remote_user"),
            1,
            "{seen:?}"
        );
        assert_eq!(seen.header("x-remote-extra-scopes"), None);
    }
    let answer = stage
        .ask(Ask::get("/v0/healthz").header("x-remote-user", "root"))
        .await;
    assert_eq!(answer.seen().header("x-remote-user"), None);
}

#[tokio::test]
async fn paths_are_allowed_ignored_cleaned_or_refused_before_anyone_is_asked() {
    let stage = Stage::new("paths").await;
    let rows = [
        ("/v0/healthz", StatusCode::OK),
        ("/elsewhere", StatusCode::NOT_FOUND),
        ("/v0//healthz", StatusCode::MOVED_PERMANENTLY),
        ("/v0/../v0/healthz", StatusCode::MOVED_PERMANENTLY),
        ("/v0%2Fhealthz", StatusCode::BAD_REQUEST),
        ("/v0/%2e%2e/healthz", StatusCode::BAD_REQUEST),
        ("/v0/a%5Cb", StatusCode::BAD_REQUEST),
    ];
    for (path, status) in rows {
        assert_eq!(stage.ask(Ask::get(path)).await.status, status, "{path}");
    }
    let answer = stage.ask(Ask::get("/v0//healthz?a=b")).await;
    assert_eq!(answer.header("location"), Some("/v0/healthz?a=b"));
    assert_eq!(stage.reviews(), 0, "the API server was not asked");
}

#[tokio::test]
async fn an_answer_is_asked_for_once_and_then_remembered() {
    let stage = Stage::new("cache").await;
    stage.permit("get").await;
    let token = stage.token(&["keelson-sidecar"]).await;
    for _ in 0..20 {
        let answer = stage.ask(Ask::get("/v0/tasks").bearer(&token)).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    assert_eq!(
        stage.reviews(),
        2,
        "one TokenReview, one SubjectAccessReview"
    );
}

#[tokio::test]
async fn with_the_api_server_away_known_callers_go_on_and_others_are_refused() {
    let stage = Stage::new("outage").await;
    stage.permit("get").await;
    let token = stage.token(&["keelson-sidecar"]).await;
    assert_eq!(
        stage.ask(Ask::get("/v0/tasks").bearer(&token)).await.status,
        StatusCode::OK
    );

    let outage = stage.faults.refuse();
    assert_eq!(
        stage.ask(Ask::get("/v0/tasks").bearer(&token)).await.status,
        StatusCode::OK
    );
    assert_eq!(
        stage.ask(Ask::get("/v0/healthz")).await.status,
        StatusCode::OK
    );
    let unknown = stage.ask(Ask::get("/v0/tasks").bearer("new")).await;
    assert_eq!(unknown.status, StatusCode::UNAUTHORIZED);
    let unasked = stage.ask(Ask::post("/v0/tasks", "{}").bearer(&token)).await;
    assert_eq!(unasked.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        unasked.body.starts_with("Authorization error (user="),
        "{}",
        unasked.body
    );
    outage.clear();

    stage.right_again(&token).await;
}

#[tokio::test]
async fn an_upstream_that_is_gone_is_502_with_an_empty_body() {
    let stage = Stage::without_upstream("gone").await;
    let answer = stage.ask(Ask::get("/v0/healthz")).await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (StatusCode::BAD_GATEWAY, "")
    );
    assert_eq!(answer.header("content-type"), None);
}

#[tokio::test]
async fn a_websocket_is_tunnelled_once_its_caller_is_permitted() {
    let stage = Stage::before_a_tunnel("tunnel").await;
    stage.permit("get").await;
    let token = stage.token(&["keelson-sidecar"]).await;
    let credential = format!("Authorization: Bearer {token}\r\n");
    let mut tunnel = stage.upgrade("/v0/tasks", "websocket", &credential).await;
    assert!(tunnel.head.starts_with("HTTP/1.1 101"), "{}", tunnel.head);
    assert_eq!(tunnel.echo("over the tunnel").await, "over the tunnel");

    let refused = stage.upgrade("/v0/tasks", "websocket", "").await;
    assert!(refused.head.starts_with("HTTP/1.1 401"), "{}", refused.head);
}

#[tokio::test]
async fn no_tunnel_is_opened_for_h2c_or_where_nobody_is_asked_who_they_are() {
    let stage = Stage::before_a_tunnel("no-tunnel").await;
    stage.permit("get").await;
    let token = stage.token(&["keelson-sidecar"]).await;
    let credential = format!("Authorization: Bearer {token}\r\n");
    // A3: the upstream would say yes to both.
    let h2c = stage.upgrade("/v0/tasks", "h2c", &credential).await;
    assert!(h2c.head.starts_with("HTTP/1.1 200"), "{}", h2c.head);
    let exempt = stage.upgrade("/v0/healthz", "websocket", "").await;
    assert!(exempt.head.starts_with("HTTP/1.1 200"), "{}", exempt.head);
}
