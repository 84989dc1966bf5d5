//! Identity and hop-by-hop headers: nobody speaks for another, nobody removes what we say.

use super::row::{Row, arrives, exactly, row};

fn open(headers: &str) -> String {
    format!("GET /open HTTP/1.1\r\nHost: node\r\n{headers}\r\n")
}

fn guarded(headers: &str) -> String {
    format!(
        "GET /guarded HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {{token}}\r\n{headers}\r\n"
    )
}

/// What the upstream is told of a caller with a token.
const USER: &str = "X-Remote-User: system:serviceaccount:{namespace}:default";
const GROUPS: &str = "X-Remote-Groups: system:serviceaccounts|system:serviceaccounts:{namespace}|system:authenticated";

pub(crate) fn rows() -> Vec<Row> {
    [spoofs(), hops(), upgrades()].concat()
}

fn spoofs() -> Vec<Row> {
    let known = || arrives("GET /guarded", &[USER, GROUPS], "");
    let ours_only = "Only what we found out is told.";
    vec![
        row("a token", guarded("")).passes(
            known(),
            "Forwarded with who it is, without the token.",
            "The plain case.",
        ),
        row("`X-Remote-User` and a token", guarded("X-Remote-User: root\r\n")).passes(
            known(),
            "Forwarded with ours alone.",
            ours_only,
        ),
        row(
            "`x-remote-user`, `X-REMOTE-GROUPS` and a token",
            guarded("x-remote-user: root\r\nX-REMOTE-GROUPS: system:masters\r\n"),
        )
        .passes(known(), "Forwarded with ours alone.", "Names have no case."),
        row(
            "`X_Remote_User`, `X-Remote_Groups` and a token",
            guarded("X_Remote_User: root\r\nX-Remote_Groups: system:masters\r\n"),
        )
        .passes(
            known(),
            "Forwarded with ours alone.",
            "To gateways of the CGI kind they are the same names.",
        ),
        row(
            "`X-Remote-Group`, `X-Remote-Extra-A`, `X-Remote-Uid`, `Impersonate-User` and a token",
            guarded("X-Remote-Group: a\r\nX-Remote-Extra-A: a\r\nX-Remote-Uid: a\r\nImpersonate-User: a\r\n"),
        )
        .passes(
            known(),
            "Forwarded without them.",
            "Kubernetes' own names of the same things.",
        ),
        row(
            "`X-Remote-User` on an open path",
            open("X-Remote-User: root\r\nImpersonate_User: root\r\n"),
        )
        .passes(
            arrives("GET /open", &[], ""),
            "Forwarded without it.",
            "An open path is open to everybody, not as anybody.",
        ),
        row(
            "a bearer token on an open path",
            open("Authorization: Bearer abc\r\nAuthorization: Basic eA==\r\n"),
        )
        .passes(
            arrives("GET /open", &["Authorization: Basic eA=="], ""),
            "Forwarded without the token; other schemes pass.",
            "Nobody checked it, and it may be good elsewhere.",
        ),
        row(
            "two `Authorization`, the token second",
            "GET /guarded HTTP/1.1\r\nHost: node\r\nAuthorization: Basic eA==\r\nAuthorization: Bearer {token}\r\n\r\n",
        )
        .answered(401, "Refused.", "The first one counts, as with kube-rbac-proxy."),
        row(
            "two `Authorization`, the token first",
            guarded("Authorization: Bearer other\r\n"),
        )
        .passes(
            known(),
            "Forwarded without both.",
            "The upstream sees no credential that was not checked.",
        ),
        row(
            "`X-Forwarded-For` of the client's own",
            open("X-Forwarded-For: 192.0.2.1\r\n"),
        )
        .passes(
            exactly(
                "GET /open",
                &["Host: node", "X-Forwarded-For: 192.0.2.1, 127.0.0.1"],
                "",
            ),
            "The client's address is added.",
            "As kube-rbac-proxy (`--forwarded-for`); only the last one is ours.",
        ),
    ]
}

fn hops() -> Vec<Row> {
    let known = || arrives("GET /guarded", &[USER, GROUPS], "");
    vec![
        row(
            "`Connection` that names our identity headers, and a token",
            guarded("Connection: x-remote-user, x-remote-groups, x_remote_user\r\n"),
        )
        .passes(
            known(),
            "Forwarded with ours.",
            "Ours are added after hop-by-hop headers are removed.",
        ),
        row(
            "`Connection` that names `Authorization`",
            guarded("Connection: authorization\r\n"),
        )
        .passes(
            known(),
            "The token counts and ends here.",
            "It is for us.",
        ),
        row(
            "`Connection` that names `Host` and `X-Forwarded-For`",
            guarded("Connection: host, x-forwarded-for\r\n"),
        )
        .passes(
            known(),
            "Forwarded with both.",
            "The upstream routes by the one and logs the other.",
        ),
        row(
            "`Connection` that names `Content-Length`",
            "POST /open HTTP/1.1\r\nHost: node\r\nConnection: content-length\r\nContent-Length: 5\r\n\r\nhello",
        )
        .passes(
            arrives("POST /open", &["Content-Length: 5"], "hello"),
            "Forwarded with its length.",
            "A body without one would be the next request.",
        ),
        row(
            "`Connection` that names `Transfer-Encoding`",
            "POST /open HTTP/1.1\r\nHost: node\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        )
        .passes(
            arrives("POST /open", &["Transfer-Encoding: chunked"], "hello"),
            "Forwarded in chunks.",
            "The same.",
        ),
        row(
            "hop-by-hop headers, named and by definition",
            open("Connection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: 9\r\nProxy-Connection: x\r\nProxy-Authorization: x\r\nTE: trailers, gzip\r\nTrailer: x\r\n"),
        )
        .passes(
            arrives("GET /open", &["Te: trailers"], ""),
            "Forwarded without them, but with the offer of trailers.",
            "They are about our connection, not the upstream's.",
        ),
    ]
}

fn upgrades() -> Vec<Row> {
    let known = || arrives("GET /guarded", &[USER, GROUPS], "");
    let h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    vec![
        row("`Upgrade: h2c` on an open path", open(h2c)).passes(
            arrives("GET /open", &[], ""),
            "Forwarded without the offer.",
            "Requests inside such a tunnel are checked by nobody.",
        ),
        row("`Upgrade: h2c` with a token", guarded(h2c)).passes(
            known(),
            "Forwarded without the offer.",
            "One permission is not permission for everything.",
        ),
        row(
            "`Upgrade: websocket` on an open path",
            open("Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        )
        .passes(
            arrives("GET /open", &[], ""),
            "Forwarded without the offer (`--allow-upgrade-on-ignored`).",
            "The same.",
        ),
        row(
            "`Upgrade: websocket, h2c` with a token",
            guarded("Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n"),
        )
        .passes(
            known(),
            "Forwarded without the offer.",
            "The upstream would choose.",
        ),
        row(
            "`Upgrade: websocket` with a token",
            guarded("Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        )
        .passes(
            arrives(
                "GET /guarded",
                &[USER, GROUPS, "Connection: Upgrade", "Upgrade: websocket"],
                "",
            ),
            "Forwarded; this upstream does not agree, and the connection goes on.",
            "A tunnel is only opened when both sides named the same protocol.",
        ),
    ]
}

/// With a rewrite: the tenant is a header's value, and tenant `a` is everybody's with a token.
pub(crate) fn tenants() -> Vec<Row> {
    let tenant = |tenant: &'static str| arrives("GET /guarded", &[USER, GROUPS, tenant], "");
    vec![
        row("`X-Tenant: a`", guarded("X-Tenant: a\r\n")).passes(
            tenant("X-Tenant: a"),
            "Forwarded with it.",
            "The plain case.",
        ),
        row("`X-Tenant: b`", guarded("X-Tenant: b\r\n")).answered(
            403,
            "Refused.",
            "Not permitted.",
        ),
        row(
            "`X-Tenant: a` and `X-Tenant: b`",
            guarded("X-Tenant: a\r\nX-Tenant: b\r\n"),
        )
        .answered(403, "Refused.", "Every value has to be permitted."),
        row(
            "`X-Tenant: a` that `Connection` names",
            guarded("Connection: X-Tenant\r\nX-Tenant: a\r\n"),
        )
        .answered(
            400,
            "Refused.",
            "The upstream would not see the tenant that was checked.",
        ),
    ]
}
