//! The reference's own end-to-end checklist, and what its consumer relies on, for both programs.

use crate::case::{Case, Group, compare, get};
use crate::expect::{proxies, refuses};
use crate::stage::{Place, Stage};
use crate::subject::{Subject, free};
use http::Request;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

const BOTH: [Subject; 2] = [Subject::KubeRbacProxy, Subject::Keelson];
const OPEN: &str = "--ignore-paths=/open";

const TASKS_OF_A_NODE: &str = "
authorization:
  resourceAttributes:
    namespace: '{namespace}'
    apiGroup: sei.io
    apiVersion: v1alpha1
    resource: seinodetasks
    name: rpc-0
";

pub(crate) fn groups() -> Vec<Group> {
    vec![consumer(), removed_flags(), one_removed_flag()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_consumer_and_old_manifests_find_what_they_rely_on() {
    compare(&Stage::new("checklist").await, groups()).await;
}

fn consumer() -> Group {
    let open = |path: &str| get(path, &[]);
    Group {
        place: Place::default(),
        config: TASKS_OF_A_NODE,
        flags: &[
            "--upstream={upstream}/",
            "--ignore-paths=/v0/healthz,/v0/startupz,/v0/livez,/v0/metrics",
            "--auth-header-fields-enabled=true",
            "--v=0",
        ],
        cases: vec![
            Case::same(
                "sei",
                "a probe is for everyone",
                open("/v0/livez"),
                proxies(),
            ),
            Case::same("sei", "another probe", open("/v0/healthz"), proxies()),
            Case::same(
                "sei",
                "tasks, for someone permitted",
                get("/v0/tasks", &["Authorization: Bearer {token}"]),
                proxies()
                    .seen("GET /v0/tasks HTTP/1.1")
                    .seen("X-Remote-User: {user}")
                    .reviews(1, 1),
            ),
            Case::same(
                "sei",
                "tasks, for someone else",
                get("/v0/tasks", &["Authorization: Bearer {denied}"]),
                refuses(
                    403,
                    "Forbidden (user={denied-user}, verb=get, resource=seinodetasks, subresource=)\n",
                ),
            ),
            Case::same(
                "sei",
                "names a client gives itself twice",
                get(
                    "/v0/tasks",
                    &[
                        "Authorization: Bearer {token}",
                        "X-Remote-User: a",
                        "X-Remote-User: b",
                    ],
                ),
                proxies().seen("X-Remote-User: {user}"),
            ),
            Case::differs(
                "sei",
                "a name with underscores beside the true one",
                get(
                    "/v0/tasks",
                    &["Authorization: Bearer {token}", "X_Remote_User: root"],
                ),
                proxies()
                    .seen("X-Remote-User: {user}")
                    .seen("X_remote_user: root"),
                proxies().seen("X-Remote-User: {user}").unseen("x_remote"),
                Some(&["--trust-inbound-identity-headers"]),
            ),
        ],
    }
}

fn removed_flags() -> Group {
    Group {
        place: Place::default(),
        config: "",
        flags: &[
            OPEN,
            "--logtostderr=true",
            "--add-dir-header=true",
            "--alsologtostderr=true",
            "--log-backtrace-at=x:1",
            "--log-dir=/nowhere",
            "--log-file=/nowhere",
            "--log-file-max-size=5",
            "--one-output=true",
            "--skip-headers=true",
            "--skip-log-headers=true",
            "--stderrthreshold=INFO",
        ],
        cases: vec![Case::same(
            "Flags",
            "every removed flag at once",
            get("/open", &[]),
            proxies(),
        )],
    }
}

fn one_removed_flag() -> Group {
    Group {
        place: Place::default(),
        config: "",
        flags: &[OPEN, "--logtostderr=true", "--tls_min_version=VersionTLS12"],
        cases: vec![Case::same(
            "Flags",
            "the one in countless manifests, and a name with underscores",
            get("/open", &[]),
            proxies(),
        )],
    }
}

/// Asks over HTTP/2, and says what came.
async fn over_http2<S>(stream: S, uri: &str) -> (u16, String)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let made = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = made.expect("HTTP/2");
    tokio::spawn(connection);
    let request = Request::get(uri)
        .header("accept-encoding", "identity")
        .body(Empty::<Bytes>::new());
    let answer = sender.send_request(request.expect("a request")).await;
    let answer = answer.expect("an answer");
    let status = answer.status().as_u16();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_comes_in_with_and_without_tls_and_goes_on_as_the_same_request() {
    let stage = Stage::new("http2").await;
    let mut seen = Vec::new();
    for subject in BOTH {
        let plain = stage.plain(subject, "", &[OPEN]).await;
        let stream = TcpStream::connect(plain.door.address)
            .await
            .expect("a connection");
        let said = over_http2(stream, "http://node.example/open").await;
        assert_eq!(said, (200, "hello".to_owned()), "{subject:?}, plain");
        let place = Place::TLS;
        let tls = stage.start(subject, place, "", &[OPEN]).await;
        let (stream, _) = tls
            .door
            .handshake(stage.authority.certificate(), &["h2", "http/1.1"])
            .await;
        let said = over_http2(stream, "https://node.example/open").await;
        assert_eq!(said, (200, "hello".to_owned()), "{subject:?}, TLS");
        let lines = |request: Vec<u8>| {
            let text = String::from_utf8_lossy(&request).into_owned();
            let mut lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let requests = [plain.upstream.take(), tls.upstream.take()].concat();
        seen.push(requests.into_iter().map(lines).collect::<Vec<_>>());
    }
    assert!(
        seen[0][0].contains(&"Host: node.example".to_owned()),
        "{seen:?}"
    );
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_is_agreed_on_unless_it_is_disabled() {
    let stage = Stage::new("alpn").await;
    let place = Place::TLS;
    for subject in BOTH {
        for (flags, wanted) in [
            (&[OPEN][..], "h2"),
            (&[OPEN, "--http2-disable"], "http/1.1"),
        ] {
            let running = stage.start(subject, place, "", flags).await;
            let root = stage.authority.certificate();
            let (_, agreed) = running.door.handshake(root, &["h2", "http/1.1"]).await;
            assert_eq!(agreed.as_deref(), Some(wanted), "{subject:?}");
        }
    }
}

/// An upstream that speaks HTTP/2 without TLS and nothing else.
async fn h2c_only() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(async |request: Request<Incoming>| {
                let text = format!("{:?} {}", request.version(), request.uri().path());
                let answer = http::Response::builder().header("content-type", "text/plain");
                let answer = answer.body(Full::<Bytes>::from(text));
                Ok::<_, Infallible>(answer.expect("an answer"))
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_speaks_only_h2c_is_reached() {
    let stage = Stage::new("h2c").await;
    let upstream = format!("--upstream=http://{}", h2c_only().await);
    let mut said = Vec::new();
    for subject in BOTH {
        let flags = [OPEN, &upstream, "--upstream-force-h2c"];
        let running = stage.plain(subject, "", &flags).await;
        let answer = running.door.exchange(get("/open", &[]).as_bytes()).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (Some(200), "HTTP/2.0 /open")
        );
        said.push(answer);
    }
    assert_eq!(said[0], said[1]);
}

/// At the loudest level both write what they ask, and neither what a token says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_masked_at_the_loudest_level() {
    let stage = Stage::new("masking").await;
    for subject in BOTH {
        let running = stage.plain(subject, "", &["--v=10"]).await;
        let token = stage.filled_with_tokens("{token}").await;
        let bearer = format!("Authorization: Bearer {token}");
        let answer = running
            .door
            .exchange(get("/metrics", &[&bearer]).as_bytes())
            .await;
        assert_eq!(answer.status, Some(200));
        let log = running.log();
        assert!(!log.contains(&token), "{subject:?} wrote the token");
        let masked = log.replace('\\', "");
        assert!(
            masked.contains(r#""token":"<masked>""#),
            "{subject:?}: {log}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_of_an_upstream_that_is_away_fails() {
    let stage = Stage::new("probe").await;
    let upstream = format!("--upstream=http://{}", free());
    for subject in BOTH {
        let running = stage
            .plain(subject, "", &[&upstream, "--ignore-paths=/v0/livez"])
            .await;
        let answer = running
            .door
            .exchange(get("/v0/livez", &[]).as_bytes())
            .await;
        assert_eq!(answer.status, Some(502), "{subject:?}");
    }
}
