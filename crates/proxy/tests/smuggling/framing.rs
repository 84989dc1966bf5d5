//! Where a body ends: lengths, chunks, and both.

use super::row::{Row, Said, Then, arrives, row};

fn post(headers: &str, body: &str) -> String {
    format!("POST /open HTTP/1.1\r\nHost: node\r\n{headers}\r\n{body}")
}

fn chunked(body: &str) -> String {
    post("Transfer-Encoding: chunked\r\n", body)
}

/// A request that must stay a body.
const HIDDEN: &str = "GET /open/hidden HTTP/1.1\r\nHost: node\r\n\r\n";

pub(crate) fn rows() -> Vec<Row> {
    [lengths(), encodings(), chunks(), bodies()].concat()
}

fn lengths() -> Vec<Row> {
    let sized = || arrives("POST /open", &["Content-Length: 5"], "hello");
    let length = |value: &str| post(&format!("Content-Length: {value}\r\n"), "hello");
    let no_number = "Only digits are a length; a lenient reader finds another end.";
    vec![
        row("`Content-Length: 5`", length("5")).passes(sized(), "Forwarded.", "The plain case."),
        row(
            "the same `Content-Length` twice",
            post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
        )
        .passes(sized(), "Forwarded with one.", "There is one reading (RFC 9110 8.6)."),
        row(
            "two different `Content-Length`",
            post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
        )
        .refused(400, "Whoever takes the other one sees another request."),
        row("`Content-Length: 5, 5`", length("5, 5"))
            .refused(400, "A list is not a number to every reader."),
        row("`Content-Length: +5`", length("+5")).refused(400, no_number),
        row("`Content-Length: 0x5`", length("0x5")).refused(400, no_number),
        row("`Content-Length: -5`", length("-5")).refused(400, no_number),
        row("`Content-Length: 5 0`", length("5 0")).refused(400, no_number),
        row("an empty `Content-Length`", length("")).refused(400, no_number),
        row(
            "`Content-Length: 99999999999999999999`",
            length("99999999999999999999"),
        )
        .refused(400, "A number that overflows is another number."),
        row(
            "`Content-Length` and `Transfer-Encoding: chunked`",
            post(
                "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                "5\r\nhello\r\n0\r\n\r\n",
            ),
        )
        .passes(
            arrives("POST /open", &["Transfer-Encoding: chunked"], "hello"),
            "Forwarded in chunks, without the length.",
            "Chunks win (RFC 9112 6.3), and what follows is not read: it may be the other reading's.",
        )
        .and_ends(),
        row(
            "`Transfer-Encoding: chunked` and then `Content-Length`",
            post(
                "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
                "5\r\nhello\r\n0\r\n\r\n",
            ),
        )
        .passes(
            arrives("POST /open", &["Transfer-Encoding: chunked"], "hello"),
            "The same.",
            "The order means nothing.",
        )
        .and_ends(),
    ]
}

fn encodings() -> Vec<Row> {
    let encoding = |value: &str| {
        post(
            &format!("Transfer-Encoding: {value}\r\n"),
            "5\r\nhello\r\n0\r\n\r\n",
        )
    };
    let in_chunks = || arrives("POST /open", &["Transfer-Encoding: chunked"], "hello");
    let not_ours = "We undo chunks and nothing else; what we cannot undo we cannot check.";
    vec![
        row("`Transfer-Encoding: chunked`", encoding("chunked")).passes(
            in_chunks(),
            "Forwarded in chunks of our own.",
            "The plain case.",
        ),
        row("`Transfer-Encoding: CHUNKED`", encoding("CHUNKED")).passes(
            in_chunks(),
            "Forwarded as `chunked`.",
            "Codings have no case.",
        ),
        row(
            "`Transfer-Encoding` with blanks and a tab around `chunked`",
            encoding("\t  chunked \t"),
        )
        .passes(
            in_chunks(),
            "Forwarded as `chunked`.",
            "Blanks around a value are not part of it; the upstream sees none.",
        ),
        row(
            "`Transfer-Encoding` with a vertical tab before `chunked`",
            encoding("\x0bchunked"),
        )
        .refused(400, "A control byte that some readers skip."),
        row("`Transfer-Encoding: xchunked`", encoding("xchunked")).refused(400, not_ours),
        row("`Transfer-Encoding: identity`", encoding("identity")).refused(400, not_ours),
        row(
            "`Transfer-Encoding: chunked, identity`",
            encoding("chunked, identity"),
        )
        .refused(400, "Chunks must be the last coding, or the end is unknown."),
        row(
            "`Transfer-Encoding: gzip, chunked`",
            encoding("gzip, chunked"),
        )
        .refused(400, not_ours),
        row(
            "`Transfer-Encoding: chunked, chunked`",
            encoding("chunked, chunked"),
        )
        .refused(400, "One reader undoes it once, another twice."),
        row(
            "`Transfer-Encoding: identity` and `Transfer-Encoding: chunked`",
            post(
                "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
                "5\r\nhello\r\n0\r\n\r\n",
            ),
        )
        .refused(400, "Some readers take the first line, some the last."),
        row(
            "`Transfer-Encoding: chunked` twice",
            post(
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                "5\r\nhello\r\n0\r\n\r\n",
            ),
        )
        .refused(400, "The same as a list of two."),
        row(
            "`Transfer-Encoding: chunked` in HTTP/1.0",
            "POST /open HTTP/1.0\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        )
        .refused(400, "HTTP/1.0 has no chunks; its readers take them for the next request."),
    ]
}

fn chunks() -> Vec<Row> {
    let bad = |arrives, body: &str| {
        let why = "The end of the body cannot be found; the upstream's request breaks off, if it was begun.";
        row(arrives, chunked(body)).refused(400, why).breaking_off()
    };
    let in_chunks = || arrives("POST /open", &["Transfer-Encoding: chunked"], "hello");
    vec![
        bad("a chunk size that is no number", "zz\r\nhello\r\n0\r\n\r\n"),
        bad("a chunk size `0x5`", "0x5\r\nhello\r\n0\r\n\r\n"),
        bad("a chunk size `+5`", "+5\r\nhello\r\n0\r\n\r\n"),
        bad("a chunk size `-5`", "-5\r\nhello\r\n0\r\n\r\n"),
        bad("an empty chunk size", "\r\nhello\r\n0\r\n\r\n"),
        bad(
            "a chunk size that overflows",
            "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        ),
        bad("a chunk size line that ends with LF alone", "5\nhello\r\n0\r\n\r\n"),
        bad(
            "a chunk extension with LF inside",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
        ),
        row("a chunk size with zeros before it", chunked("0005\r\nhello\r\n0\r\n\r\n")).passes(
            in_chunks(),
            "Forwarded with our own sizes.",
            "One reading.",
        ),
        row(
            "a chunk extension",
            chunked("5;name=value\r\nhello\r\n0\r\n\r\n"),
        )
        .passes(
            in_chunks(),
            "Forwarded without it.",
            "An extension is between two neighbours (RFC 9112 7.1.1).",
        ),
        row(
            "trailers, among them `Content-Length`, `Host` and `X-Remote-User`",
            chunked("5\r\nhello\r\n0\r\nContent-Length: 99\r\nHost: other\r\nX-Remote-User: root\r\n\r\n"),
        )
        .passes(
            in_chunks(),
            "Forwarded without trailers.",
            "A reader that merges trailers into headers would believe them.",
        ),
    ]
}

fn bodies() -> Vec<Row> {
    let length = HIDDEN.len();
    let hidden = post(&format!("Content-Length: {length}\r\n"), HIDDEN);
    let unfinished = row(
        "chunks without the last one, then the end of the connection",
        chunked("5\r\nhello\r\n"),
    )
    .cut()
    .refused(
        400,
        "An unfinished body is not a shorter body; the upstream's request breaks off too.",
    )
    .breaking_off();
    let short = row(
        "a body shorter than its `Content-Length`, then the end of the connection",
        post("Content-Length: 9\r\n", "hello"),
    )
    .cut()
    .refused(
        400,
        "The upstream's request breaks off and its connection is not used again: the missing bytes would be the next caller's.",
    )
    .breaking_off();
    let body: &'static str = HIDDEN;
    vec![
        row("a body that looks like a request", &hidden).passes(
            arrives(
                "POST /open",
                &[&format!("Content-Length: {length}")],
                body,
            ),
            "Forwarded as a body.",
            "It is one.",
        ),
        row(
            "a refused request (401) with a body that looks like a request",
            hidden.replace("/open HTTP", "/guarded HTTP"),
        )
        .answered(
            401,
            "The body is skipped.",
            "What was refused must not come back as the next request.",
        ),
        unfinished,
        short,
        row(
            "two requests at once",
            "GET /open/1 HTTP/1.1\r\nHost: node\r\n\r\nGET /open/2 HTTP/1.1\r\nHost: node\r\n\r\n",
        )
        .passes(arrives("GET /open/1", &[], ""), "", "")
        .passes(
            arrives("GET /open/2", &[], ""),
            "Each is checked and forwarded, in order.",
            "Pipelining is legal.",
        ),
        {
            let mut row = row(
                "an open request with a guarded one behind it",
                "GET /open/1 HTTP/1.1\r\nHost: node\r\n\r\nGET /guarded HTTP/1.1\r\nHost: node\r\n\r\n",
            )
            .passes(
                arrives("GET /open/1", &[], ""),
                "The first passes, the second is 401.",
                "Every request of a connection is checked for itself.",
            );
            row.said.push(Said::Status(401));
            row
        },
        {
            let mut row = row(
                "`Expect: 100-continue` with a body",
                post("Content-Length: 5\r\nExpect: 100-continue\r\n", "hello"),
            );
            row.said.push(Said::Status(100));
            row.passes(
                arrives(
                    "POST /open",
                    &["Content-Length: 5", "Expect: 100-continue"],
                    "hello",
                ),
                "100 is said when the body is wanted; the header is forwarded.",
                "The upstream may still refuse.",
            )
        },
        row(
            "`Expect: 100-continue` without a token",
            "POST /guarded HTTP/1.1\r\nHost: node\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        )
        .told(
            Said::Status(401),
            Then::Ends,
            "Refused; what comes next is read as the body that was announced, the rest of it is refused.",
            "A body not sent is still a body announced.",
        )
        .then_said(Said::Status(400)),
    ]
}
