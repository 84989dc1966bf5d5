//! HTTP/1.1 at its edges: what a proxy must look after, and requests that could be read in two
//! ways.
//!
//! Most differences here are not of our choosing: they are Go's HTTP server and hyper, each reading
//! what the standard leaves open. They stand under `HTTP`, so that a new one is noticed.

use crate::case::{Case, Group, ask, compare, get};
use crate::expect::{Expect, answers, proxies, refuses};
use crate::stage::{Place, Stage};

pub(crate) fn groups() -> Vec<Group> {
    vec![looked_after(), refused(), read_in_two_ways(), sizes()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_at_its_edges_is_the_references_or_differs_by_name() {
    compare(&Stage::new("protocol").await, groups()).await;
}

fn open(cases: Vec<Case>) -> Group {
    Group {
        place: Place::default(),
        config: "",
        flags: &["--ignore-paths=/*"],
        cases,
    }
}

fn raw(head: &str) -> String {
    format!("{head}\r\nAccept-Encoding: identity\r\n\r\n")
}

fn same(name: &'static str, request: String, both: Expect) -> Case {
    Case::same("2.3", name, request, both)
}

fn differs(name: &'static str, request: String, reference: Expect, ours: Expect) -> Case {
    Case::differs("HTTP", name, request, reference, ours, None)
}

fn looked_after() -> Group {
    open(vec![
        differs(
            "the kind of a body the upstream does not name is guessed there",
            get("/bare", &[]),
            proxies().header("content-type", "text/plain; charset=utf-8"),
            proxies().without("content-type"),
        ),
        same(
            "headers for one hop stay behind, trailers come along",
            get("/rich", &["TE: trailers"]),
            answers(418, "5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n")
                .without("x-hop")
                .without("keep-alive")
                .without("proxy-authenticate")
                .header("server", "teapot")
                .forwarded(1),
        ),
        same(
            "an answer without a body",
            get("/unchanged", &[]),
            answers(304, "").forwarded(1),
        ),
        same(
            "an answer to HEAD",
            ask("HEAD", "/a", &[]),
            answers(200, "").forwarded(1),
        ),
        same("HTTP/1.0", raw("GET /a HTTP/1.0\r\nHost: n"), proxies()),
        same(
            "an old client that names no host gets the upstream's",
            raw("GET /a HTTP/1.0"),
            proxies().seen("Host: {upstream}"),
        ),
        same(
            "a promise to send a body is kept",
            format!(
                "{}hello",
                ask("POST", "/a", &["Content-Length: 5", "Expect: 100-continue"])
            ),
            proxies().seen("hello"),
        ),
        same(
            "a GET with a body",
            format!("{}hello", ask("GET", "/a", &["Content-Length: 5"])),
            proxies().seen("hello"),
        ),
        same(
            "headers that come twice",
            get(
                "/a",
                &["Cookie: a=1", "Cookie: b=2", "X-Two: 1", "X-Two: 2"],
            ),
            proxies().seen("X-Two: 1").seen("X-Two: 2"),
        ),
        same(
            "an agent's name",
            get("/a", &["User-Agent: me"]),
            proxies().seen("User-Agent: me"),
        ),
        same(
            "a method in small letters",
            ask("get", "/a", &[]),
            proxies(),
        ),
        same(
            "bytes beyond ASCII in a header",
            get("/a", &["X-A: \u{e4}"]),
            proxies(),
        ),
    ])
}

fn refused() -> Group {
    let empty = |status| answers(status, "").header("connection", "close");
    let told = || refuses(400, "Bad Request\n");
    let go = |words| answers(400, words).header("connection", "close");
    open(vec![
        differs(
            "no host",
            raw("GET /a HTTP/1.1"),
            go("400 Bad Request: missing required Host header"),
            told(),
        ),
        differs(
            "two hosts",
            raw("GET /a HTTP/1.1\r\nHost: a\r\nHost: b"),
            go("400 Bad Request"),
            told(),
        ),
        differs(
            "a host that is none",
            raw("GET /a HTTP/1.1\r\nHost: a b"),
            go("400 Bad Request: malformed Host header"),
            told(),
        ),
        differs(
            "a blank in a header's name",
            raw("GET /a HTTP/1.1\r\nHost: a\r\nX-A : b"),
            go("400 Bad Request: invalid header name"),
            empty(400),
        ),
        differs(
            "two lengths",
            format!(
                "{}hello",
                ask("POST", "/a", &["Content-Length: 5", "Content-Length: 6"])
            ),
            go("400 Bad Request"),
            empty(400),
        ),
        differs(
            "a path without a slash",
            "GET a HTTP/1.1\r\nHost: n\r\n\r\n".into(),
            go("400 Bad Request"),
            told(),
        ),
        differs(
            "an escape that is none",
            get("/a%zz", &[]),
            go("400 Bad Request"),
            told(),
        ),
        differs(
            "a coding nobody knows",
            ask("POST", "/a", &["Transfer-Encoding: gzip"]),
            answers(501, "Unsupported transfer encoding"),
            empty(400),
        ),
        differs(
            "two codings",
            format!(
                "{}5\r\nhello\r\n0\r\n\r\n",
                ask("POST", "/a", &["Transfer-Encoding: gzip, chunked"])
            ),
            answers(501, "Unsupported transfer encoding"),
            told(),
        ),
        differs(
            "a tunnel to somewhere else",
            "CONNECT node.example:80 HTTP/1.1\r\nHost: node.example:80\r\n\r\n".into(),
            refuses(404, "404 page not found\n"),
            refuses(400, "Bad Request\n").header("connection", "close"),
        ),
        differs(
            "a query with a character that no URL has",
            get("/a?x=<y>", &[]),
            proxies().seen("GET /a?x=<y> HTTP/1.1"),
            empty(400),
        ),
    ])
}

fn read_in_two_ways() -> Group {
    open(vec![
        differs(
            "a header on two lines",
            raw("GET /a HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c"),
            proxies().seen("X-A: b c"),
            answers(400, "").header("connection", "close"),
        ),
        differs(
            "a length beside chunks: the chunks count, and we hang up afterwards",
            format!(
                "{}5\r\nhello\r\n0\r\n\r\n",
                ask(
                    "POST",
                    "/a",
                    &["Content-Length: 3", "Transfer-Encoding: chunked"]
                )
            ),
            proxies().unseen("content-length").without("connection"),
            proxies()
                .unseen("content-length")
                .header("connection", "close"),
        ),
        same(
            "the same length twice",
            format!(
                "{}hello",
                ask("POST", "/a", &["Content-Length: 5", "Content-Length: 5"])
            ),
            proxies().seen("Content-Length: 5"),
        ),
        differs(
            "letters beyond ASCII in a path are encoded there",
            get("/\u{e4}", &[]),
            proxies().seen("GET /%C3%A4 HTTP/1.1"),
            proxies().seen("GET /\u{e4} HTTP/1.1"),
        ),
        differs(
            "a quote in a path is encoded there",
            get("/a\"b", &[]),
            proxies().seen("GET /a%22b HTTP/1.1"),
            proxies().seen("GET /a\"b HTTP/1.1"),
        ),
        same(
            "a query of nothing",
            get("/a?", &[]),
            proxies().seen("GET /a? HTTP/1.1"),
        ),
        differs(
            "a fragment is part of the path there",
            get("/a#b", &[]),
            proxies().seen("GET /a%23b HTTP/1.1"),
            proxies().seen("GET /a HTTP/1.1"),
        ),
        // Go 1.26 escapes what is escaped once more; Go 1.25, of v0.21.0, does not.
        differs(
            "escapes in a path that is cleaned",
            get("/a//b%2Ec?x=1", &[]),
            answers(
                307,
                "<a href=\"/a/b%252Ec?x=1\">Temporary Redirect</a>.\n\n",
            )
            .header("location", "/a/b%252Ec?x=1"),
            answers(301, "<a href=\"/a/b%2Ec?x=1\">Moved Permanently</a>.\n\n")
                .header("location", "/a/b%2Ec?x=1"),
        ),
        differs(
            "a POST to a path that is cleaned",
            ask("POST", "//a", &["Content-Length: 0"]),
            answers(307, "")
                .header("location", "/a")
                .without("content-type"),
            answers(301, "")
                .header("location", "/a")
                .without("content-type"),
        ),
    ])
}

fn sizes() -> Group {
    const LARGE: Option<&[&str]> = Some(&["--max-header-bytes=1048576"]);
    let too_large = || answers(431, "").header("connection", "close");
    let header = format!("X-Long: {}", "a".repeat(100_000));
    open(vec![
        Case::differs(
            "8.2",
            "a hundred thousand bytes of header",
            get("/a", &[&header]),
            proxies(),
            too_large(),
            LARGE,
        ),
        Case::same(
            "8.2",
            "sixty thousand bytes of path",
            get(&format!("/{}", "a".repeat(60_000)), &[]),
            proxies(),
        ),
        Case::differs(
            "8.2",
            "seventy thousand bytes of path",
            get(&format!("/{}", "a".repeat(70_000)), &[]),
            proxies(),
            too_large(),
            None,
        ),
        Case::differs(
            "8.2",
            "more than a million bytes of header",
            get("/a", &[&format!("X-Long: {}", "a".repeat(1_100_000))]),
            answers(431, "431 Request Header Fields Too Large"),
            too_large(),
            None,
        ),
    ])
}
