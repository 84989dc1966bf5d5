//! One line of the table: what arrives, what comes back, and what the upstream gets to see.

use std::fmt;

/// What a client is told, one thing for each request it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// An answer with this status.
    Status(u16),
    /// The stream was reset with this code of HTTP/2.
    Reset(u32),
    /// The connection was given up with this code of HTTP/2.
    GoAway(u32),
    /// The connection ended without a word.
    Closed,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Status(code) => write!(f, "{code}"),
            Said::Reset(code) => write!(f, "stream reset ({})", error_name(*code)),
            Said::GoAway(code) => write!(f, "GOAWAY ({})", error_name(*code)),
            Said::Closed => f.write_str("closed without an answer"),
        }
    }
}

fn error_name(code: u32) -> String {
    match code {
        0x1 => "PROTOCOL_ERROR".to_owned(),
        0x9 => "COMPRESSION_ERROR".to_owned(),
        code => format!("{code:#x}"),
    }
}

/// Whether the connection can be used for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    GoesOn,
    Ends,
}

/// A request as the upstream read it. The order of header lines means nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrived {
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// False where the connection ended inside the request.
    pub(crate) whole: bool,
}

impl fmt::Debug for Arrived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arrived {
            line,
            headers,
            body,
            whole,
        } = self;
        write!(f, "{line:?} {headers:?} body {body:?} whole {whole}")
    }
}

/// What the upstream should read: `Host: node` and `X-Forwarded-For: 127.0.0.1` are always there.
pub(crate) fn arrives(line: &str, headers: &[&str], body: &str) -> Arrived {
    let usual = ["Host: node", "X-Forwarded-For: 127.0.0.1"];
    exactly(line, &[&usual, headers].concat(), body)
}

/// What the upstream should read, every header named.
pub(crate) fn exactly(line: &str, headers: &[&str], body: &str) -> Arrived {
    let mut headers: Vec<String> = headers.iter().map(|&line| line.to_owned()).collect();
    headers.sort();
    Arrived {
        line: format!("{line} HTTP/1.1"),
        headers,
        body: body.to_owned(),
        whole: true,
    }
}

/// How a row's bytes are sent.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    /// HTTP/1.1, as they are; a harmless request follows on the same connection.
    Http1(Vec<u8>),
    /// HTTP/1.1, and then the client sends no more.
    Cut(Vec<u8>),
    /// HTTP/2: frames of stream 1; a harmless request follows on stream 3.
    Http2(Vec<u8>),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) arrives: &'static str,
    pub(crate) wire: Wire,
    pub(crate) said: Vec<Said>,
    pub(crate) then: Then,
    pub(crate) upstream: Vec<Arrived>,
    /// Whether the upstream may have seen the beginning of a request that then broke off.
    pub(crate) breaks_off: bool,
    pub(crate) does: &'static str,
    pub(crate) why: &'static str,
}

/// A row of HTTP/1.1, to be completed.
pub(crate) fn row(arrives: &'static str, bytes: impl AsRef<[u8]>) -> Row {
    Row {
        arrives,
        wire: Wire::Http1(bytes.as_ref().to_vec()),
        said: Vec::new(),
        then: Then::Ends,
        upstream: Vec::new(),
        breaks_off: false,
        does: "",
        why: "",
    }
}

impl Row {
    /// The client sends nothing more.
    pub(crate) fn cut(mut self) -> Self {
        if let Wire::Http1(bytes) = self.wire {
            self.wire = Wire::Cut(bytes);
        }
        self
    }

    /// Nothing passes, and the connection ends.
    pub(crate) fn refused(self, code: u16, why: &'static str) -> Self {
        self.told(Said::Status(code), Then::Ends, "Refused.", why)
    }

    /// Nothing passes; the message was whole, so the connection may go on.
    pub(crate) fn answered(self, code: u16, does: &'static str, why: &'static str) -> Self {
        self.told(Said::Status(code), Then::GoesOn, does, why)
    }

    /// Nothing passes, and this is said.
    pub(crate) fn told(
        mut self,
        said: Said,
        then: Then,
        does: &'static str,
        why: &'static str,
    ) -> Self {
        self.said = vec![said];
        (self.then, self.does, self.why) = (then, does, why);
        self
    }

    /// It passes like this.
    pub(crate) fn passes(
        mut self,
        as_this: Arrived,
        does: &'static str,
        why: &'static str,
    ) -> Self {
        self.said.push(Said::Status(200));
        self.upstream.push(as_this);
        (self.then, self.does, self.why) = (Then::GoesOn, does, why);
        self
    }

    /// This is said too.
    pub(crate) fn then_said(mut self, said: Said) -> Self {
        self.said.push(said);
        self
    }

    /// The upstream may have seen its beginning, and then the end of the connection.
    pub(crate) fn breaking_off(mut self) -> Self {
        self.breaks_off = true;
        self
    }

    /// The connection is not used again.
    pub(crate) fn and_ends(mut self) -> Self {
        self.then = Then::Ends;
        self
    }

    /// The line of the documentation.
    pub(crate) fn documented(&self) -> String {
        let said: Vec<String> = self.said.iter().map(Said::to_string).collect();
        let then = match (self.then, &self.said[..]) {
            (Then::GoesOn, _) => "",
            (Then::Ends, [.., Said::GoAway(_) | Said::Closed]) => "",
            (Then::Ends, _) => ", connection closed",
        };
        format!(
            "| {} | {}{then}. {} | {} |",
            self.arrives,
            said.join(", "),
            self.does,
            self.why
        )
    }
}
