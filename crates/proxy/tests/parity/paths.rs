//! One path or three, and what of a query is checked and what is forwarded.

use crate::case::{Case, Group, ask, compare, get};
use crate::expect::{proxies, refuses};
use crate::stage::{BY_PERMITTED, Place, Stage};

const BY_QUERY: &str = "
authorization:
  rewrites:
    byQueryParameter:
      name: namespace
  resourceAttributes:
    apiGroup: sei.io
    resource: seinodetasks
    namespace: '{{ .Value }}'
";

const LENIENT: Option<&[&str]> = Some(&["--lenient-paths"]);

pub(crate) fn groups() -> Vec<Group> {
    vec![ignored(), queries(), prefixed()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_are_read_as_the_reference_reads_them_or_differ_by_name() {
    compare(&Stage::new("paths").await, groups()).await;
}

fn ignored() -> Group {
    let unauthorized = || refuses(401, "Unauthorized\n").reviews(0, 0);
    let ambiguous = || refuses(400, "Bad Request\n").reviews(0, 0);
    let open = |name, path: &str| Case::same("IgnorePath", name, get(path, &[]), proxies());
    Group {
        place: Place::default(),
        config: "",
        flags: &["--ignore-paths=/metrics,/api/v1/*,/api/*/x,/v0/healthz"],
        cases: vec![
            open("an ignored path", "/metrics"),
            open("a path a pattern ignores", "/api/v1/labels"),
            open("a star may stand for nothing", "/api/v1/"),
            Case::same("IgnorePath", "another path", get("/", &[]), unauthorized()),
            Case::same(
                "IgnorePath",
                "a star does not reach over a slash",
                get("/api/v1/label/job/values", &[]),
                unauthorized(),
            ),
            Case::same(
                "IgnorePath",
                "a path in other letters",
                get("/Metrics", &[]),
                unauthorized(),
            ),
            Case::same(
                "A4",
                "an encoded letter is a letter, and stays encoded",
                get("/v0/health%7A", &[]),
                proxies().seen("GET /v0/health%7A HTTP/1.1"),
            ),
            Case::differs(
                "A4",
                "encoded dots under an ignored pattern",
                get("/api/%2e%2e/x", &[]),
                proxies().seen("GET /api/%2e%2e/x HTTP/1.1"),
                ambiguous(),
                LENIENT,
            ),
            Case::differs(
                "A4",
                "an encoded slash in an ignored path",
                get("/v0%2Fhealthz", &[]),
                proxies().seen("GET /v0%2Fhealthz HTTP/1.1"),
                ambiguous(),
                LENIENT,
            ),
            Case::differs(
                "A4",
                "an encoded backslash",
                get("/api/v1/..%5Csecret", &[]),
                proxies().seen("GET /api/v1/..%5Csecret HTTP/1.1"),
                ambiguous(),
                LENIENT,
            ),
            Case::differs(
                "A4",
                "an encoded NUL",
                get("/api/v1/a%00b", &[]),
                proxies().seen("GET /api/v1/a%00b HTTP/1.1"),
                ambiguous(),
                LENIENT,
            ),
            Case::differs(
                "A4",
                "an encoded slash where someone is asked for",
                get("/secret%2Fmetrics", &[]),
                unauthorized(),
                ambiguous(),
                LENIENT,
            ),
            Case::same(
                "2.2",
                "the path of a request for permission",
                get("/metrics/", &["Authorization: Bearer {denied}"]),
                refuses(
                    403,
                    "Forbidden (user={denied-user}, verb=get, resource=, subresource=)\n",
                )
                .reviews(1, 1),
            ),
            Case::same(
                "2.2",
                "a method nobody has heard of",
                ask("BREW", "/metrics/", &["Authorization: Bearer {denied}"]),
                refuses(
                    403,
                    "Forbidden (user={denied-user}, verb=*, resource=, subresource=)\n",
                ),
            ),
        ],
    }
}

fn queries() -> Group {
    const RAW: Option<&[&str]> = Some(&["--raw-query"]);
    Group {
        place: Place::default(),
        config: BY_QUERY,
        flags: &[],
        cases: vec![
            Case::same(
                "A5",
                "a query that is read whole is forwarded as it came",
                get("/tasks?x=%41+b&namespace={namespace}&&y", &[BY_PERMITTED]),
                proxies().seen("GET /tasks?x=%41+b&namespace={namespace}&&y HTTP/1.1"),
            ),
            Case::differs(
                "A5",
                "a second value behind a semicolon",
                get(
                    "/tasks?namespace={namespace}&namespace=other;x",
                    &[BY_PERMITTED],
                ),
                proxies().seen("GET /tasks?namespace={namespace}&namespace=other;x HTTP/1.1"),
                proxies().seen("GET /tasks?namespace={namespace} HTTP/1.1"),
                RAW,
            ),
            Case::differs(
                "A5",
                "a second value that cannot be decoded",
                get(
                    "/tasks?namespace={namespace}&namespace=%zz",
                    &[BY_PERMITTED],
                ),
                proxies().seen("GET /tasks?namespace={namespace}&namespace=%zz HTTP/1.1"),
                proxies().seen("GET /tasks?namespace={namespace} HTTP/1.1"),
                RAW,
            ),
            Case::same(
                "1.4",
                "a value that is there and empty asks about the whole cluster",
                get("/tasks?namespace=", &[BY_PERMITTED]),
                refuses(
                    403,
                    "Forbidden (user={user}, verb=get, resource=seinodetasks, subresource=)\n",
                )
                .reviews(1, 1),
            ),
        ],
    }
}

fn prefixed() -> Group {
    Group {
        place: Place::default(),
        config: "",
        flags: &["--upstream={upstream}/base/?k=v", "--ignore-paths=/a"],
        cases: vec![
            Case::same(
                "2.3",
                "the upstream's own path and query come first",
                get("/a?x=1", &[]),
                proxies().seen("GET /base/a?k=v&x=1 HTTP/1.1"),
            ),
            Case::same(
                "2.3",
                "the upstream's own query alone",
                get("/a", &[]),
                proxies().seen("GET /base/a?k=v HTTP/1.1"),
            ),
        ],
    }
}
