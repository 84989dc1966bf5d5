//! Targets, hosts and methods.

use super::row::{Row, arrives, exactly, row};

fn request(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\n{headers}\r\n")
}

const FORWARDED: &str = "X-Forwarded-For: 127.0.0.1";

pub(crate) fn rows() -> Vec<Row> {
    [hosts(), forms(), methods()].concat()
}

fn hosts() -> Vec<Row> {
    let other = |host: &str| exactly("GET /open", &[&format!("Host: {host}"), FORWARDED], "");
    vec![
        row("no `Host` in HTTP/1.1", request("GET /open", ""))
            .refused(400, "Required (RFC 9112 3.2)."),
        row(
            "two `Host`",
            request("GET /open", "Host: node\r\nHost: other\r\n"),
        )
        .refused(400, "One server routes by the first, another by the last."),
        row(
            "the same `Host` twice",
            request("GET /open", "Host: node\r\nHost: node\r\n"),
        )
        .refused(400, "The same rule."),
        row(
            "a `Host` with a blank inside",
            request("GET /open", "Host: node other\r\n"),
        )
        .refused(400, "No host."),
        row(
            "a `Host` with a path",
            request("GET /open", "Host: node/guarded\r\n"),
        )
        .refused(400, "A server that joins host and path finds another path."),
        row(
            "a `Host` with a user",
            request("GET /open", "Host: root@node\r\n"),
        )
        .refused(400, "No part of a host, and read in two ways."),
        row("an empty `Host`", request("GET /open", "Host:\r\n")).passes(
            exactly("GET /open", &["Host: ", FORWARDED], ""),
            "Forwarded.",
            "Legal for a target without an authority.",
        ),
        row(
            "an odd but legal `Host`",
            request("GET /open", "Host: [::1]:8443\r\n"),
        )
        .passes(
            other("[::1]:8443"),
            "Forwarded.",
            "The upstream sees the host the client named.",
        ),
        row("HTTP/1.0 without `Host`", "GET /open HTTP/1.0\r\n\r\n")
            .passes(
                exactly("GET /open", &["Host: {upstream}", FORWARDED], ""),
                "Forwarded as HTTP/1.1 with the upstream's own host.",
                "Legal in HTTP/1.0, and not in the HTTP/1.1 it becomes.",
            )
            .and_ends(),
        row(
            "an absolute target with another host than `Host`",
            request("GET http://other:81/open", "Host: node\r\n"),
        )
        .passes(
            other("other:81"),
            "Forwarded as a path, with the target's host.",
            "The target wins (RFC 9112 3.2.2); the upstream gets one host.",
        ),
        row(
            "an absolute target with a user",
            request("GET http://root:secret@other/open", "Host: node\r\n"),
        )
        .passes(
            other("other"),
            "Forwarded with the host alone.",
            "A password is no host.",
        ),
    ]
}

fn forms() -> Vec<Row> {
    let get = |target: &str| request(&format!("GET {target}"), "Host: node\r\n");
    vec![
        row(
            "an absolute target of a guarded path",
            get("http://node/guarded"),
        )
        .answered(
            401,
            "Checked like the path alone.",
            "The form of a target opens no door.",
        ),
        row("an absolute target without a path", get("http://node")).answered(
            401,
            "Checked as `/`.",
            "That is its path.",
        ),
        row("a target without a slash", get("open"))
            .refused(400, "Only CONNECT names a host, and CONNECT is refused."),
        row("the target `*` with GET", get("*")).answered(
            301,
            "The client is sent to `/*`.",
            "As kube-rbac-proxy; nothing is forwarded.",
        ),
        row("`OPTIONS *`", request("OPTIONS *", "Host: node\r\n")).answered(
            400,
            "Refused (`--compat-options-star` answers 200).",
            "It names no path that could be checked.",
        ),
        row("a fragment", get("/open#/../guarded")).passes(
            arrives("GET /open", &[], ""),
            "Forwarded without it.",
            "A fragment is not sent; what was matched is what arrives.",
        ),
        row(
            "a query with a second `?` and an absolute URL",
            get("/open?x=http://y/?z"),
        )
        .passes(
            arrives("GET /open?x=http://y/?z", &[], ""),
            "Forwarded as it is.",
            "A query is the upstream's.",
        ),
        row("`/open/../guarded`", get("/open/../guarded")).answered(
            301,
            "The client is sent to the clean path.",
            "As kube-rbac-proxy; nothing is forwarded.",
        ),
        row("`/open/..%2fguarded`", get("/open/..%2fguarded")).answered(
            400,
            "Refused.",
            "A separator to one server and not to another.",
        ),
        row("`/open/%2e%2e/guarded`", get("/open/%2e%2e/guarded")).answered(
            400,
            "Refused.",
            "A dot segment in disguise.",
        ),
        row("`/open/..;/guarded`", get("/open/..;/guarded")).answered(
            400,
            "Refused.",
            "Some servers cut parameters first.",
        ),
        row("`/open/a%00b`", get("/open/a%00b")).answered(
            400,
            "Refused.",
            "Some readers end a text there.",
        ),
        row("`/open/a\\b`", get("/open/a\\b")).answered(
            400,
            "Refused.",
            "A slash to some servers.",
        ),
        row("`/open/%zz`", get("/open/%zz")).answered(400, "Refused.", "No escape."),
        row("`//other/open`", get("//other/open")).answered(
            301,
            "The client is sent to the clean path, on the same host.",
            "Not a host, whatever it looks like.",
        ),
    ]
}

fn methods() -> Vec<Row> {
    let with = |line: &str| request(line, "Host: node\r\n");
    vec![
        row("`CONNECT other:443`", with("CONNECT other:443"))
            .refused(400, "We are no tunnel to places."),
        row("`CONNECT /open`", with("CONNECT /open"))
            .refused(400, "A 200 to it would turn the connection into a tunnel."),
        row("a method in lower case, open path", with("get /open")).passes(
            arrives("get /open", &[], ""),
            "Forwarded as it is.",
            "Another method (RFC 9110 9.1), with the verb `*` where it is checked.",
        ),
        row(
            "a method in lower case, guarded path that allows `get`",
            "get /guarded HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {token}\r\n\r\n",
        )
        .answered(
            403,
            "Refused.",
            "`get` is not GET: its verb is `*`, which is not allowed.",
        ),
        row("a method with a colon", with("GE:T /open")).refused(400, "No token."),
        row("a method with a NUL", with("GE\0T /open")).refused(400, "No token."),
        row("no method", with(" /open")).refused(400, "No token."),
        row(
            "`PRI * HTTP/2.0` that goes on as something else",
            "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        )
        .refused(400, "Almost HTTP/2 is no HTTP."),
    ]
}
