//! Heads: lines, line ends, bytes and sizes.

use super::row::{Row, arrives, row};

fn get(headers: &str) -> String {
    format!("GET /open HTTP/1.1\r\nHost: node\r\n{headers}\r\n")
}

pub(crate) fn rows() -> Vec<Row> {
    let plain = || arrives("GET /open", &[], "");
    let line_ends = "A reader that takes it for a line end finds another header here.";
    let many = "X-Filler: 1\r\n";
    vec![
        row("a header folded over two lines", get("X-A: 1\r\n 2\r\n"))
            .refused(400, "Obsolete (RFC 9112 5.2), and read in three ways."),
        row(
            "a first header line that begins with a blank",
            "GET /open HTTP/1.1\r\n X-A: 1\r\nHost: node\r\n\r\n",
        )
        .refused(
            400,
            "A fold of the request line to some, a header to others.",
        ),
        row("a blank before the colon", get("X-A : 1\r\n"))
            .refused(400, "Some drop the blank, some the line (RFC 9112 5.1)."),
        row(
            "a blank before the colon of `Transfer-Encoding`",
            get("Transfer-Encoding : chunked\r\n"),
        )
        .refused(400, "The same, as an attack."),
        row("a header without a colon", get("X-A\r\n")).refused(400, "No reading at all."),
        row("a header without a name", get(": 1\r\n")).refused(400, "No reading at all."),
        row(
            "line ends of LF alone",
            "GET /open HTTP/1.1\nHost: node\nX-A: 1\n\n",
        )
        .passes(
            arrives("GET /open", &["X-A: 1"], ""),
            "Forwarded with CRLF.",
            "Allowed (RFC 9112 2.2), and the upstream sees one kind of line end.",
        ),
        row("CR alone inside a value", get("X-A: 1\rX-B: 2\r\n")).refused(400, line_ends),
        row(
            "CR alone at the end of a line",
            "GET /open HTTP/1.1\rHost: node\r\r",
        )
        .refused(400, line_ends),
        row("NUL in a value", get("X-A: 1\0 2\r\n")).refused(400, "Some readers end a text there."),
        row("NUL in a name", get("X-\0A: 1\r\n")).refused(400, "Some readers end a text there."),
        row("a control byte in a value", get("X-A: 1\x01\r\n"))
            .refused(400, "No text (RFC 9110 5.5)."),
        row("bytes beyond ASCII in a value", get("X-A: é\r\n")).passes(
            arrives("GET /open", &["X-A: é"], ""),
            "Forwarded as they are.",
            "Legal though obsolete; names and hosts in the wild have them.",
        ),
        row(
            "empty lines before the request",
            format!("\r\n\r\n{}", get("")),
        )
        .passes(
            plain(),
            "Skipped.",
            "Old clients end a body with one (RFC 9112 2.2).",
        ),
        row(
            "a head of more than 64 KiB",
            get(&format!("X-A: {}\r\n", "a".repeat(70_000))),
        )
        .refused(431, "Memory is bounded (`--max-header-bytes`)."),
        row("more than 1024 headers", get(&many.repeat(1100)))
            .refused(431, "Memory is bounded (`--max-headers`)."),
        row("1000 headers", get(&many.repeat(1000))).passes(
            arrives("GET /open", &["X-Filler: 1"; 1000], ""),
            "Forwarded.",
            "Cookies and gateways make many.",
        ),
        row(
            "a target of 60 KiB",
            format!(
                "GET /open?{} HTTP/1.1\r\nHost: node\r\n\r\n",
                "a".repeat(60_000)
            ),
        )
        .passes(
            arrives(&format!("GET /open?{}", "a".repeat(60_000)), &[], ""),
            "Forwarded.",
            "Long queries are legal.",
        ),
        row(
            "a target of 64 KiB",
            format!(
                "GET /open?{} HTTP/1.1\r\nHost: node\r\n\r\n",
                "a".repeat(65_530)
            ),
        )
        .refused(431, "The head is then longer than 64 KiB."),
        row("HTTP/0.9 (`GET /open`)", "GET /open\r\n\r\n")
            .refused(400, "No headers, so no credentials and no host."),
        row(
            "the version `HTTP/2.0` in a request line",
            "GET /open HTTP/2.0\r\nHost: node\r\n\r\n",
        )
        .refused(400, "HTTP/2 does not look like this."),
        row(
            "the version `HTTP/1.2`",
            "GET /open HTTP/1.2\r\nHost: node\r\n\r\n",
        )
        .refused(400, "There is none."),
        row(
            "the version `http/1.1`",
            "GET /open http/1.1\r\nHost: node\r\n\r\n",
        )
        .refused(400, "The name is in upper case (RFC 9112 2.3)."),
        row(
            "two blanks in the request line",
            "GET  /open HTTP/1.1\r\nHost: node\r\n\r\n",
        )
        .refused(
            400,
            "One is the separator; a lenient reader finds another target.",
        ),
        row(
            "a tab in the request line",
            "GET\t/open HTTP/1.1\r\nHost: node\r\n\r\n",
        )
        .refused(400, "The same."),
        row(
            "a blank after the version",
            "GET /open HTTP/1.1 \r\nHost: node\r\n\r\n",
        )
        .refused(400, "The same."),
    ]
}

/// With room for heads of 128 KiB.
pub(crate) fn large() -> Vec<Row> {
    let target = |length: usize| {
        let filler = "a".repeat(length);
        format!("GET /open?{filler} HTTP/1.1\r\nHost: node\r\n\r\n")
    };
    vec![
        row("a target of 64 KiB", target(65_530)).refused(
            414,
            "A target has at most 65534 bytes, however large a head may be.",
        ),
        row(
            "a head of 100 KiB",
            get(&format!("X-A: {}\r\n", "a".repeat(100_000))),
        )
        .passes(
            arrives("GET /open", &[&format!("X-A: {}", "a".repeat(100_000))], ""),
            "Forwarded.",
            "There is room.",
        ),
    ]
}
