//! What of a request's headers reaches the upstream, and which connections become tunnels.

use crate::case::{Case, Group, ask, compare, get};
use crate::expect::{answers, proxies, refuses};
use crate::stage::{BY_PERMITTED, Place, Stage, TASKS};

const TRUST: Option<&[&str]> = Some(&["--trust-inbound-identity-headers"]);

pub(crate) fn groups() -> Vec<Group> {
    vec![spoofed(), forwarded(), identity(), separated(), tunnels()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_arrive_as_the_reference_sends_them_or_differ_by_name() {
    compare(&Stage::new("headers").await, groups()).await;
}

fn spoofed() -> Group {
    Group {
        place: Place::default(),
        config: TASKS,
        flags: &["--ignore-paths=/healthz"],
        cases: vec![
            Case::differs(
                "A1",
                "a client names itself where identity is not told",
                get(
                    "/tasks",
                    &[BY_PERMITTED, "X-Remote-User: root", "X-Remote-Groups: all"],
                ),
                proxies()
                    .seen("X-Remote-User: root")
                    .seen("X-Remote-Groups: all"),
                proxies().unseen("x-remote-"),
                TRUST,
            ),
            Case::differs(
                "A1",
                "a client names itself on an ignored path",
                get("/healthz", &["X-Remote-User: root"]),
                proxies().seen("X-Remote-User: root"),
                proxies().unseen("x-remote-"),
                TRUST,
            ),
            Case::differs(
                "A1",
                "a client names itself with underscores",
                get("/healthz", &["X_Remote_User: root"]),
                proxies().seen("X_remote_user: root"),
                proxies().unseen("x_remote_"),
                TRUST,
            ),
            Case::differs(
                "A1",
                "a client names itself in Kubernetes' own words",
                get(
                    "/healthz",
                    &[
                        "X-Remote-Group: all",
                        "X-Remote-Uid: 0",
                        "X-Remote-Extra-Scopes: all",
                        "Impersonate-User: root",
                    ],
                ),
                proxies()
                    .seen("X-Remote-Group: all")
                    .seen("X-Remote-Uid: 0")
                    .seen("X-Remote-Extra-Scopes: all")
                    .seen("Impersonate-User: root"),
                proxies().unseen("x-remote-").unseen("impersonate-"),
                TRUST,
            ),
            Case::differs(
                "A8",
                "a token on an ignored path",
                get("/healthz", &["Authorization: Bearer secret"]),
                proxies().seen("Authorization: Bearer secret"),
                proxies().unseen("authorization"),
                Some(&["--forward-bearer-on-ignored"]),
            ),
            Case::same(
                "A8",
                "another credential on an ignored path",
                get("/healthz", &["Authorization: Basic YTpi"]),
                proxies().seen("Authorization: Basic YTpi"),
            ),
        ],
    }
}

fn forwarded() -> Group {
    Group {
        place: Place::default(),
        config: TASKS,
        flags: &["--ignore-paths=/healthz"],
        cases: vec![
            Case::differs(
                "A12",
                "a client that does not ask for compression",
                "GET /healthz HTTP/1.1\r\nHost: node.example\r\n\r\n",
                proxies().seen("Accept-Encoding: gzip"),
                proxies().unseen("accept-encoding"),
                None,
            ),
            Case::same(
                "2.3",
                "headers for one hop stay behind",
                get(
                    "/healthz",
                    &[
                        "Connection: keep-alive, X-Private",
                        "X-Private: 1",
                        "Keep-Alive: timeout=5",
                        "Proxy-Connection: keep-alive",
                        "Proxy-Authorization: Basic YTpi",
                        "TE: trailers, deflate",
                        "X-Kept: 1",
                    ],
                ),
                proxies()
                    .unseen("x-private")
                    .unseen("keep-alive")
                    .unseen("proxy-")
                    .unseen("connection")
                    .seen("Te: trailers")
                    .seen("X-Kept: 1"),
            ),
            Case::same(
                "2.3",
                "addresses a client claims come first",
                get("/healthz", &["X-Forwarded-For: 192.0.2.1"]),
                proxies().seen("X-Forwarded-For: 192.0.2.1, 127.0.0.1"),
            ),
            Case::same(
                "2.3",
                "the host of an absolute target",
                "GET http://other.example/healthz HTTP/1.1\r\nHost: node.example\r\nAccept-Encoding: identity\r\n\r\n",
                proxies()
                    .seen("GET /healthz HTTP/1.1")
                    .seen("Host: other.example"),
            ),
            Case::same(
                "2.3",
                "a body in chunks",
                format!(
                    "{}5\r\nhello\r\n0\r\n\r\n",
                    ask("POST", "/healthz", &["Transfer-Encoding: chunked"])
                ),
                proxies().seen("Transfer-Encoding: chunked").seen("hello"),
            ),
            Case::same(
                "2.3",
                "more than a hundred headers",
                get("/healthz", &["X-Many: 1"; 150]),
                proxies().unseen("nothing"),
            ),
            Case::same(
                "2.3",
                "the token of a success goes no further, nor what stands beside it",
                get("/tasks", &[BY_PERMITTED, "Authorization: Basic YTpi"]),
                proxies().unseen("authorization"),
            ),
        ],
    }
}

fn identity() -> Group {
    Group {
        place: Place::default(),
        config: TASKS,
        flags: &["--auth-header-fields-enabled=true", "--ignore-paths=/healthz"],
        cases: vec![
            Case::same(
                "2.4",
                "the upstream is told who calls",
                get("/tasks", &[BY_PERMITTED]),
                proxies().seen("X-Remote-User: {user}").seen(
                    "X-Remote-Groups: system:serviceaccounts|system:serviceaccounts:{namespace}|system:authenticated",
                ),
            ),
            Case::same(
                "2.4",
                "what a client claims is replaced",
                get(
                    "/tasks",
                    &[BY_PERMITTED, "X-Remote-User: root", "x-remote-user: admin", "X-REMOTE-GROUPS: all"],
                ),
                proxies().seen("X-Remote-User: {user}"),
            ),
            Case::differs(
                "A2",
                "a client declares identity a matter of one hop",
                get("/tasks", &[BY_PERMITTED, "Connection: X-Remote-User, X-Remote-Groups"]),
                proxies().unseen("x-remote-"),
                proxies().seen("X-Remote-User: {user}"),
                None,
            ),
        ],
    }
}

fn separated() -> Group {
    Group {
        place: Place::default(),
        config: TASKS,
        // The namespace has a dash in its name, and so has the group of its accounts.
        flags: &["--auth-header-fields-enabled", "--auth-header-groups-field-separator=-"],
        cases: vec![Case::differs(
            "A23",
            "a group with the separator in it",
            get("/tasks", &[BY_PERMITTED]),
            proxies().seen(
                "X-Remote-Groups: system:serviceaccounts-system:serviceaccounts:{namespace}-system:authenticated",
            ),
            proxies().seen("X-Remote-Groups: system:serviceaccounts-system:authenticated"),
            Some(&["--groups-separator-conflict=keep"]),
        )],
    }
}

fn tunnels() -> Group {
    let switched = || {
        answers(101, "")
            .header("connection", "Upgrade")
            .forwarded(1)
    };
    let upgrade = |path, name: &str, more: &[&str]| {
        let name = format!("Upgrade: {name}");
        get(path, &[&["Connection: Upgrade", &name][..], more].concat())
    };
    Group {
        place: Place::default(),
        config: TASKS,
        // Else the reference answers the offer of h2c on a plain port itself.
        flags: &["--http2-disable", "--ignore-paths=/healthz"],
        cases: vec![
            Case::same(
                "A3",
                "a websocket for someone permitted",
                upgrade("/tasks", "websocket", &[BY_PERMITTED]),
                switched()
                    .header("upgrade", "websocket")
                    .seen("Upgrade: websocket"),
            ),
            Case::same(
                "A3",
                "a websocket for nobody",
                upgrade("/tasks", "websocket", &[]),
                refuses(401, "Unauthorized\n"),
            ),
            Case::differs(
                "A3",
                "a tunnel of HTTP/2, unchecked from its first byte",
                upgrade("/tasks", "h2c", &[BY_PERMITTED]),
                switched().header("upgrade", "h2c"),
                proxies().unseen("upgrade").unseen("connection"),
                Some(&["--allow-upgrade=*"]),
            ),
            Case::differs(
                "A3",
                "a tunnel for anyone on an ignored path",
                upgrade("/healthz", "websocket", &[]),
                switched().header("upgrade", "websocket"),
                proxies().unseen("upgrade"),
                Some(&["--allow-upgrade-on-ignored"]),
            ),
            Case::same(
                "3.3",
                "a token among the protocols of a websocket",
                upgrade(
                    "/tasks",
                    "websocket",
                    &[
                        "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token|base64}, chat",
                    ],
                ),
                switched()
                    .seen("Sec-Websocket-Protocol: chat")
                    .reviews(1, 1),
            ),
            Case::same(
                "3.3",
                "a token among the protocols, and none beside it",
                upgrade(
                    "/tasks",
                    "websocket",
                    &[
                        "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token|base64}",
                    ],
                ),
                refuses(401, "Unauthorized\n").reviews(0, 0),
            ),
        ],
    }
}
