//! The outcome table, row by row: what a caller gets from either program.

use crate::case::{Case, Group, Trouble, ask, compare, get};
use crate::expect::{answers, proxies, refuses};
use crate::fake::Script;
use crate::stage::{BY_DENIED, BY_PERMITTED, Place, Stage, TASKS};
use crate::subject::{Subject, free};

const BY_QUERY: &str = "
authorization:
  rewrites:
    byQueryParameter:
      name: namespace
  resourceAttributes:
    apiGroup: sei.io
    resource: seinodetasks
    subresource: log
    namespace: '{{ .Value }}'
";

pub(crate) fn groups() -> Vec<Group> {
    vec![
        on_a_resource(),
        in_trouble(),
        by_query(),
        allowed_paths(),
        over_tls(),
        torn(),
        odd_name(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_is_the_references_or_differs_by_name() {
    compare(&Stage::new("outcomes").await, groups()).await;
}

fn on_a_resource() -> Group {
    let unauthorized = || refuses(401, "Unauthorized\n");
    Group {
        place: Place::default(),
        config: TASKS,
        flags: &["--ignore-paths=/healthz,/dies"],
        cases: vec![
            Case::differs(
                "2 A17",
                "OPTIONS * is answered to anyone, and by us refused",
                ask("OPTIONS", "*", &[]),
                answers(200, ""),
                refuses(400, "Bad Request\n").reviews(0, 0),
                Some(&["--compat-options-star"]),
            ),
            // v0.19.1, built with Go 1.26 here, says 307 as v0.22 does; v0.21.0 says 301 as we do.
            Case::differs(
                "3",
                "an unclean path is led to the clean one before anyone is asked",
                get("/a/../b//c?x=1", &[]),
                answers(307, "<a href=\"/b/c?x=1\">Temporary Redirect</a>.\n\n")
                    .header("location", "/b/c?x=1")
                    .reviews(0, 0),
                answers(301, "<a href=\"/b/c?x=1\">Moved Permanently</a>.\n\n")
                    .header("location", "/b/c?x=1")
                    .header("content-type", "text/html; charset=utf-8")
                    .reviews(0, 0),
                None,
            ),
            Case::same(
                "6",
                "an ignored path is for everyone",
                get("/healthz", &[]),
                proxies().seen("GET /healthz HTTP/1.1").reviews(0, 0),
            ),
            Case::same("7", "no credential", get("/tasks", &[]), unauthorized().reviews(0, 0)),
            Case::same(
                "7",
                "another kind of credential",
                get("/tasks", &["Authorization: Basic YTpi"]),
                unauthorized().reviews(0, 0),
            ),
            Case::same(
                "7",
                "two blanks before the token",
                get("/tasks", &["Authorization: Bearer  x"]),
                unauthorized().reviews(0, 0),
            ),
            Case::same(
                "7",
                "a token nobody issued",
                get("/tasks", &["Authorization: Bearer made-up"]),
                unauthorized().reviews(1, 0),
            ),
            Case::same(
                "10",
                "known, and not permitted",
                get("/tasks", &[BY_DENIED]),
                refuses(
                    403,
                    "Forbidden (user={denied-user}, verb=get, resource=seinodetasks, subresource=)\n",
                )
                .reviews(1, 1),
            ),
            Case::same(
                "10",
                "a method that is no verb needs the verb *",
                ask("HEAD", "/tasks", &[BY_PERMITTED]),
                refuses(403, "").reviews(1, 1),
            ),
            Case::same(
                "10",
                "known and permitted",
                get("/tasks?a=b;c&d=%zz", &[BY_PERMITTED]),
                proxies()
                    .seen("GET /tasks?a=b;c&d=%zz HTTP/1.1")
                    .seen("X-Forwarded-For: 127.0.0.1")
                    .seen("Host: node.example")
                    .unseen("authorization")
                    .reviews(1, 1),
            ),
            Case::same(
                "10",
                "a body goes along",
                format!(
                    "{}{{\"a\":1}}",
                    ask("POST", "/tasks", &[BY_PERMITTED, "Content-Length: 7"])
                ),
                proxies().seen("{\"a\":1}").reviews(1, 1),
            ),
            Case::same(
                "10",
                "an answer is remembered",
                get("/tasks", &[BY_PERMITTED]),
                proxies().forwarded(3).reviews(1, 1),
            )
            .times(3),
            Case::same(
                "12",
                "an upstream that hangs up before it answers",
                ask("POST", "/drops", &[BY_PERMITTED, "Content-Length: 0"]),
                answers(502, "").without("content-type").forwarded(1),
            ),
            Case::same(
                "13",
                "an upstream that dies amid its answer",
                get("/dies", &[]),
                answers(200, "5\r\nhello\r\n").cut_short().forwarded(1),
            ),
        ],
    }
}

fn in_trouble() -> Group {
    Group {
        place: Place::default(),
        config: TASKS,
        flags: &[],
        cases: vec![
            Case::same(
                "7",
                "the API server will not say whose token it is",
                get("/tasks", &[BY_PERMITTED]),
                refuses(401, "Unauthorized\n").reviews(1, 0),
            )
            .during(Trouble::NoTokenReviews),
            Case::same(
                "11",
                "the API server will not say whether they may",
                get("/tasks", &[BY_PERMITTED]),
                refuses(
                    500,
                    "Authorization error (user={user}, verb=get, resource=seinodetasks, subresource=)\n",
                )
                .reviews(1, 1),
            )
            .during(Trouble::NoAccessReviews),
            Case::same(
                "7",
                "the API server is away",
                get("/tasks", &[BY_PERMITTED]),
                refuses(401, "Unauthorized\n"),
            )
            .during(Trouble::Away),
        ],
    }
}

fn by_query() -> Group {
    Group {
        place: Place::default(),
        config: BY_QUERY,
        flags: &[],
        cases: vec![
            Case::same(
                "9",
                "no value to check",
                get("/tasks", &[BY_PERMITTED]),
                refuses(
                    400,
                    "Bad Request. The request or configuration is malformed.\n",
                )
                .reviews(1, 0),
            ),
            Case::same(
                "9",
                "a name in other letters is another name",
                get("/tasks?Namespace={namespace}", &[BY_PERMITTED]),
                refuses(
                    400,
                    "Bad Request. The request or configuration is malformed.\n",
                ),
            ),
            Case::same(
                "10",
                "a value that is permitted",
                get("/tasks?namespace={namespace}", &[BY_PERMITTED]),
                proxies()
                    .seen("GET /tasks?namespace={namespace} HTTP/1.1")
                    .reviews(1, 1),
            ),
            Case::same(
                "10",
                "one of two values is not permitted",
                get(
                    "/tasks?namespace={namespace}&namespace=default",
                    &[BY_PERMITTED],
                ),
                refuses(
                    403,
                    "Forbidden (user={user}, verb=get, resource=seinodetasks, subresource=log)\n",
                )
                .reviews(1, 2),
            ),
        ],
    }
}

fn allowed_paths() -> Group {
    Group {
        place: Place::default(),
        config: "",
        flags: &["--allow-paths=/metrics,/api/v1/label/*/values"],
        cases: vec![
            Case::same(
                "4",
                "a path that is not allowed, before anyone is asked",
                get("/", &[BY_PERMITTED]),
                refuses(404, "404 page not found\n").reviews(0, 0),
            ),
            Case::same(
                "4",
                "a star does not reach over a slash",
                get("/api/v1/label/name", &[BY_PERMITTED]),
                refuses(404, "404 page not found\n").reviews(0, 0),
            ),
            Case::same(
                "AllowPath",
                "an allowed path, then the caller",
                get("/metrics", &[BY_PERMITTED]),
                proxies().reviews(1, 1),
            ),
            Case::same(
                "AllowPath",
                "a path that a pattern allows",
                get("/api/v1/label/job/values", &[BY_PERMITTED]),
                proxies().reviews(1, 1),
            ),
            Case::same(
                "AllowPath",
                "an allowed path without a credential",
                get("/metrics", &[]),
                refuses(401, "Unauthorized\n"),
            ),
        ],
    }
}

fn over_tls() -> Group {
    Group {
        place: Place::TLS,
        config: "",
        flags: &[],
        cases: vec![
            Case::same(
                "Basics",
                "without a role",
                get("/metrics", &[BY_DENIED]),
                refuses(
                    403,
                    "Forbidden (user={denied-user}, verb=get, resource=, subresource=)\n",
                ),
            ),
            Case::same(
                "Basics",
                "with a role",
                get("/metrics", &[BY_PERMITTED]),
                proxies().seen("GET /metrics HTTP/1.1").reviews(1, 1),
            ),
        ],
    }
}

fn torn() -> Group {
    Group {
        place: Place::scripted(Script::Torn),
        config: TASKS,
        flags: &[],
        cases: vec![Case::same(
            "11",
            "allowed and denied at once",
            get("/tasks", &["Authorization: Bearer any"]),
            refuses(
                500,
                "Authorization error (user=ada, verb=get, resource=seinodetasks, subresource=)\n",
            )
            .reviews(1, 1),
        )],
    }
}

fn odd_name() -> Group {
    Group {
        place: Place::scripted(Script::OddName),
        config: TASKS,
        flags: &["--auth-header-fields-enabled"],
        cases: vec![Case::differs(
            "12",
            "an identity no header can carry",
            get("/tasks", &["Authorization: Bearer any"]),
            answers(502, "").without("content-type"),
            refuses(500, "Internal Server Error\n"),
            None,
        )],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_upstream_the_answer_is_502_and_empty() {
    let stage = Stage::new("gone").await;
    let nowhere = format!("--upstream=http://{}", free());
    let mut said = Vec::new();
    for subject in [Subject::KubeRbacProxy, Subject::Keelson] {
        let running = stage
            .plain(subject, "", &[&nowhere, "--ignore-paths=/x"])
            .await;
        let answer = running.door.exchange(get("/x", &[]).as_bytes()).await;
        assert_eq!((answer.status, answer.body.as_str()), (Some(502), ""));
        assert_eq!(answer.header("content-type"), None);
        said.push(answer);
    }
    assert_eq!(said[0], said[1]);
}
