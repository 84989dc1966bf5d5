//! What the proxy itself answers, in one table: status, body and headers, as the reference has them.
//!
//! The upstream's answers are not outcomes. `Date` and `Content-Length` are the server's to add.

use std::fmt;

use http::header::{
    CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, StatusCode};

/// All a client gets that speaks plain HTTP to a TLS port.
pub const PLAIN_HTTP_TO_TLS: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// An answer the proxy gives itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `OPTIONS *` under `--compat-options-star`.
    OptionsStar,
    /// `OPTIONS *` (deviation A17).
    OptionsStarRefused,
    /// The path is not clean: go to this one.
    Redirect(String),
    /// The path, or another part of the request, could be read in two ways (deviation A4).
    Ambiguous,
    /// The path is not on the allow-list.
    NotFound,
    /// No credential, or none that is good.
    Unauthorized,
    /// It could not be found out whose the credential is.
    AuthenticationFailed,
    /// A request without a user reached authorization.
    UserMissing,
    /// Rewrites are configured and the request has no value for them, too many, or one in a form.
    Malformed,
    /// Not permitted.
    Forbidden(Subject),
    /// It could not be found out whether it is permitted.
    AuthorizationFailed(Subject),
    /// The API server cannot be asked (`--unavailable-status=503`), or too many wait for it.
    Unavailable,
    /// The identity cannot be told to the upstream.
    Internal,
    /// The upstream cannot be reached, or hung up before it answered.
    BadGateway,
}

/// What a refusal says about the request: never more than the reference does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The user's name.
    pub user: String,
    /// The verb of the first check that failed.
    pub verb: String,
    /// Its resource.
    pub resource: String,
    /// Its subresource.
    pub subresource: String,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "(user={}, verb={}, resource={}, subresource={})",
            self.user, self.verb, self.resource, self.subresource
        )
    }
}

/// An outcome as a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// All headers but the server's own.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: String,
}

impl Outcome {
    /// Its label in metrics and logs; stable.
    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::OptionsStar => "options_star",
            Outcome::OptionsStarRefused => "options_star_refused",
            Outcome::Redirect(_) => "redirect",
            Outcome::Ambiguous => "ambiguous",
            Outcome::NotFound => "not_found",
            Outcome::Unauthorized => "unauthorized",
            Outcome::AuthenticationFailed => "authentication_failed",
            Outcome::UserMissing => "user_missing",
            Outcome::Malformed => "malformed",
            Outcome::Forbidden(_) => "forbidden",
            Outcome::AuthorizationFailed(_) => "authorization_failed",
            Outcome::Unavailable => "unavailable",
            Outcome::Internal => "internal",
            Outcome::BadGateway => "bad_gateway",
        }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        match self {
            Outcome::OptionsStar => StatusCode::OK,
            Outcome::Redirect(_) => StatusCode::MOVED_PERMANENTLY,
            Outcome::OptionsStarRefused
            | Outcome::Ambiguous
            | Outcome::UserMissing
            | Outcome::Malformed => StatusCode::BAD_REQUEST,
            Outcome::NotFound => StatusCode::NOT_FOUND,
            Outcome::Unauthorized | Outcome::AuthenticationFailed => StatusCode::UNAUTHORIZED,
            Outcome::Forbidden(_) => StatusCode::FORBIDDEN,
            Outcome::AuthorizationFailed(_) | Outcome::Internal => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Outcome::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Outcome::BadGateway => StatusCode::BAD_GATEWAY,
        }
    }

    /// The text of an error reply, without the line end; nothing for replies without one.
    fn text(&self) -> Option<String> {
        Some(match self {
            Outcome::OptionsStar | Outcome::Redirect(_) | Outcome::BadGateway => return None,
            Outcome::OptionsStarRefused | Outcome::Ambiguous => "Bad Request".to_owned(),
            Outcome::NotFound => "404 page not found".to_owned(),
            Outcome::Unauthorized | Outcome::AuthenticationFailed => "Unauthorized".to_owned(),
            Outcome::UserMissing => "user not in context".to_owned(),
            Outcome::Malformed => {
                "Bad Request. The request or configuration is malformed.".to_owned()
            }
            Outcome::Forbidden(subject) => format!("Forbidden {subject}"),
            Outcome::AuthorizationFailed(subject) => format!("Authorization error {subject}"),
            Outcome::Unavailable => "Service Unavailable".to_owned(),
            Outcome::Internal => "Internal Server Error".to_owned(),
        })
    }

    /// The response to a request with this method.
    pub fn reply(&self, method: &Method) -> Reply {
        let mut reply = Reply {
            status: self.status(),
            headers: Vec::new(),
            body: String::new(),
        };
        if let Some(text) = self.text() {
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            let nosniff = HeaderValue::from_static("nosniff");
            reply.headers = vec![(CONTENT_TYPE, plain), (X_CONTENT_TYPE_OPTIONS, nosniff)];
            reply.body = format!("{text}\n");
        }
        match self {
            Outcome::Redirect(location) => redirect(&mut reply, location, method),
            Outcome::Unavailable => {
                let soon = HeaderValue::from_static("1");
                reply.headers.push((RETRY_AFTER, soon));
            }
            _ => {}
        }
        reply
    }
}

/// As Go's `http.Redirect`: a type for those who may read a body, a body for those who do.
fn redirect(reply: &mut Reply, location: &str, method: &Method) {
    // Only an escaped path gets here, so this is the last defence and not a case.
    let Ok(value) = HeaderValue::from_str(location) else {
        *reply = Outcome::Ambiguous.reply(method);
        return;
    };
    if method == Method::GET || method == Method::HEAD {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        reply.headers.push((CONTENT_TYPE, html));
    }
    if method == Method::GET {
        let escaped = html_escaped(location);
        reply.body = format!("<a href=\"{escaped}\">Moved Permanently</a>.\n\n");
    }
    reply.headers.push((LOCATION, value));
}

fn html_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
