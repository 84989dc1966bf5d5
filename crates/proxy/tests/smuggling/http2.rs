//! HTTP/2, turned into HTTP/1.1: what has no second meaning there must not get one here.

use super::frames::{request, request_trailed, request_with};
use super::row::{Row, Said, Then, Wire, arrives, exactly, row};

type Field<'a> = (&'a str, &'a str);

const METHOD: Field<'_> = (":method", "GET");
const SCHEME: Field<'_> = (":scheme", "http");
const PATH: Field<'_> = (":path", "/open");
const AUTHORITY: Field<'_> = (":authority", "node");
const PROTOCOL_ERROR: u32 = 1;

fn h2(arrives: &'static str, frames: Vec<u8>) -> Row {
    Row {
        wire: Wire::Http2(frames),
        ..row(arrives, "")
    }
}

/// The usual pseudo-headers, and these.
fn with(fields: &[Field<'_>]) -> Vec<u8> {
    request(&[&[METHOD, SCHEME, PATH, AUTHORITY], fields].concat())
}

fn posted(fields: &[Field<'_>], body: &str) -> Vec<u8> {
    let usual = [(":method", "POST"), SCHEME, PATH, AUTHORITY];
    request_with(&[&usual, fields].concat(), body)
}

fn reset(row: Row, why: &'static str) -> Row {
    row.told(Said::Reset(PROTOCOL_ERROR), Then::GoesOn, "Refused.", why)
}

fn given_up(row: Row, why: &'static str) -> Row {
    row.told(
        Said::GoAway(PROTOCOL_ERROR),
        Then::Ends,
        "Refused, with the connection.",
        why,
    )
}

pub(crate) fn rows() -> Vec<Row> {
    [pseudo(), fields(), bodies()].concat()
}

fn pseudo() -> Vec<Row> {
    let malformed = "Malformed (RFC 9113 8.3).";
    vec![
        h2("a plain request", with(&[])).passes(
            arrives("GET /open", &[], ""),
            "Forwarded; `:authority` becomes `Host`.",
            "The plain case.",
        ),
        h2(
            "a guarded path",
            request(&[METHOD, SCHEME, (":path", "/guarded"), AUTHORITY]),
        )
        .told(
            Said::Status(401),
            Then::GoesOn,
            "Checked like any other.",
            "The version opens no door.",
        ),
        reset(
            h2(
                "a pseudo-header after a header",
                request(&[METHOD, SCHEME, AUTHORITY, ("x-a", "1"), PATH]),
            ),
            malformed,
        ),
        reset(
            h2(
                "two `:path`",
                request(&[METHOD, SCHEME, PATH, (":path", "/guarded"), AUTHORITY]),
            ),
            malformed,
        ),
        reset(
            h2("no `:method`", request(&[SCHEME, PATH, AUTHORITY])),
            malformed,
        ),
        reset(
            h2("no `:path`", request(&[METHOD, SCHEME, AUTHORITY])),
            malformed,
        ),
        reset(
            h2("no `:scheme`", request(&[METHOD, PATH, AUTHORITY])),
            malformed,
        ),
        given_up(
            h2(
                "an unknown pseudo-header",
                request(&[METHOD, SCHEME, PATH, AUTHORITY, (":evil", "1")]),
            ),
            malformed,
        ),
        reset(
            h2(
                "`:status` in a request",
                request(&[METHOD, SCHEME, PATH, AUTHORITY, (":status", "200")]),
            ),
            malformed,
        ),
        reset(
            h2(
                "an empty `:path`",
                request(&[METHOD, SCHEME, (":path", ""), AUTHORITY]),
            ),
            malformed,
        ),
        reset(
            h2(
                "a `:path` without a slash",
                request(&[METHOD, SCHEME, (":path", "open"), AUTHORITY]),
            ),
            malformed,
        ),
        reset(
            h2(
                "a `:path` with a blank and a version",
                request(&[METHOD, SCHEME, (":path", "/open HTTP/1.1"), AUTHORITY]),
            ),
            "In HTTP/1.1 it would be another request line.",
        ),
        reset(
            h2(
                "a `:path` with CRLF",
                request(&[METHOD, SCHEME, (":path", "/open\r\nX-A: 1"), AUTHORITY]),
            ),
            "In HTTP/1.1 it would be another header.",
        ),
        given_up(
            h2(
                "a `:method` with a blank",
                request(&[(":method", "GET /guarded"), SCHEME, PATH, AUTHORITY]),
            ),
            "In HTTP/1.1 it would be another request line.",
        ),
        h2(
            "`:authority` and another `host`",
            with(&[("host", "other")]),
        )
        .passes(
            arrives("GET /open", &[], ""),
            "Forwarded with `:authority`.",
            "The upstream gets one host (RFC 9113 8.3.1).",
        ),
        h2(
            "`host` alone",
            request(&[METHOD, SCHEME, PATH, ("host", "other")]),
        )
        .passes(
            exactly(
                "GET /open",
                &["Host: other", "X-Forwarded-For: 127.0.0.1"],
                "",
            ),
            "Forwarded.",
            "Legal.",
        ),
        h2(
            "neither `:authority` nor `host`",
            request(&[METHOD, SCHEME, PATH]),
        )
        .answered(400, "Refused.", "The HTTP/1.1 it becomes needs a host."),
        h2(
            "`host` twice",
            request(&[METHOD, SCHEME, PATH, ("host", "node"), ("host", "other")]),
        )
        .answered(400, "Refused.", "As in HTTP/1.1."),
        h2(
            "an `:authority` with a user",
            request(&[METHOD, SCHEME, PATH, (":authority", "root@node")]),
        )
        .answered(400, "Refused.", "Not allowed (RFC 9113 8.3.1)."),
        h2(
            "CONNECT",
            request(&[(":method", "CONNECT"), (":authority", "other:443")]),
        )
        .answered(400, "Refused.", "We are no tunnel to places."),
        reset(
            h2(
                "extended CONNECT (`:protocol: websocket`)",
                request(&[
                    (":method", "CONNECT"),
                    (":protocol", "websocket"),
                    SCHEME,
                    PATH,
                    AUTHORITY,
                ]),
            ),
            "Not offered.",
        ),
    ]
}

fn fields() -> Vec<Row> {
    let malformed = "Malformed (RFC 9113 8.2).";
    let between = "About a connection that HTTP/2 does not have (RFC 9113 8.2.2).";
    vec![
        given_up(h2("a name in upper case", with(&[("X-A", "1")])), malformed),
        given_up(h2("a name with a blank", with(&[("x a", "1")])), malformed),
        given_up(
            h2("a name with a colon inside", with(&[("x:a", "1")])),
            malformed,
        ),
        given_up(h2("an empty name", with(&[("", "1")])), malformed),
        given_up(
            h2(
                "CRLF in a value",
                with(&[("x-a", "1\r\nX-Remote-User: root")]),
            ),
            "In HTTP/1.1 it would be another header.",
        ),
        given_up(
            h2("LF in a value", with(&[("x-a", "1\nX-B: 2")])),
            malformed,
        ),
        given_up(h2("NUL in a value", with(&[("x-a", "1\u{0}")])), malformed),
        reset(
            h2("`connection`", with(&[("connection", "x-remote-user")])),
            between,
        ),
        reset(
            h2(
                "`transfer-encoding: chunked`",
                posted(&[("transfer-encoding", "chunked")], "hello"),
            ),
            between,
        ),
        reset(h2("`upgrade`", with(&[("upgrade", "websocket")])), between),
        reset(h2("`keep-alive`", with(&[("keep-alive", "9")])), between),
        reset(h2("`te: gzip`", with(&[("te", "gzip")])), between),
        h2("`te: trailers`", with(&[("te", "trailers")])).passes(
            arrives("GET /open", &["Te: trailers"], ""),
            "Forwarded.",
            "The one value that is allowed.",
        ),
        h2(
            "`x-remote-user` and `x_remote_user`",
            with(&[("x-remote-user", "root"), ("x_remote_user", "root")]),
        )
        .passes(
            arrives("GET /open", &[], ""),
            "Forwarded without them.",
            "As in HTTP/1.1.",
        ),
        h2(
            "a cookie in crumbs",
            with(&[("cookie", "a=1"), ("cookie", "b=2")]),
        )
        .passes(
            arrives("GET /open", &["Cookie: a=1; b=2"], ""),
            "Forwarded as one.",
            "Servers of HTTP/1.1 read one line (RFC 9113 8.2.3).",
        ),
    ]
}

fn bodies() -> Vec<Row> {
    let sized = |length: &'static str, body: &str| posted(&[("content-length", length)], body);
    let shorter = {
        let row = h2("less DATA than `content-length`", sized("9", "hello"));
        reset(
            row,
            "Malformed (RFC 9113 8.1.1); the upstream's request breaks off, if it was begun.",
        )
        .breaking_off()
    };
    let longer = {
        let row = h2("more DATA than `content-length`", sized("2", "hello"));
        reset(row, "The same; the rest would be the next request.").breaking_off()
    };
    vec![
        h2("a body with its length", sized("5", "hello")).passes(
            arrives("POST /open", &["Content-Length: 5"], "hello"),
            "Forwarded.",
            "The plain case.",
        ),
        h2("a body without a length", posted(&[], "hello")).passes(
            arrives("POST /open", &["Transfer-Encoding: chunked"], "hello"),
            "Forwarded in chunks.",
            "HTTP/1.1 needs one of the two.",
        ),
        shorter,
        longer,
        reset(
            h2(
                "a `content-length` that is no number",
                sized("5, 5", "hello"),
            ),
            "As in HTTP/1.1.",
        ),
        h2(
            "trailers, among them `x-remote-user`",
            request_trailed(
                &[(":method", "POST"), SCHEME, PATH, AUTHORITY],
                "hello",
                &[("x-remote-user", "root"), ("x-a", "1")],
            ),
        )
        .passes(
            arrives("POST /open", &["Transfer-Encoding: chunked"], "hello"),
            "Forwarded without trailers.",
            "As in HTTP/1.1.",
        ),
    ]
}
