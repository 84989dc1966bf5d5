//! What HTTP itself says about a request that may be passed on: one host, one framing, a path.
//!
//! The server's parser has refused what cannot be read at all. Refused here is what it reads and
//! another server could read differently; `docs/proxy-request-hygiene.md` has every case. Paths have
//! a module of their own.

use http::header::{COOKIE, HOST, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Version};

/// Why a request is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// CONNECT: a success would turn the connection into a tunnel that nobody checks.
    #[error("CONNECT is not served")]
    Connect,
    /// A target that is neither a path nor a URL.
    #[error("the target is not a path")]
    Target,
    /// HTTP/1.1 and HTTP/2 name a host.
    #[error("the request names no host")]
    NoHost,
    /// Several `Host` lines.
    #[error("the request names more than one host")]
    Hosts,
    /// Bytes that no host has.
    #[error("the request's host is malformed")]
    Host,
    /// Something other than one `chunked`.
    #[error("the request's Transfer-Encoding is not chunked alone")]
    Encoding,
}

/// Looks at a request's head before anything is decided about it.
pub fn examine<B>(request: &Request<B>) -> Result<(), Fault> {
    if request.method() == Method::CONNECT {
        return Err(Fault::Connect);
    }
    if request.uri().path().is_empty() {
        return Err(Fault::Target);
    }
    one_host(request)?;
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Fault::Encoding),
    }
}

fn one_host<B>(request: &Request<B>) -> Result<(), Fault> {
    let mut lines = request.headers().get_all(HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(Fault::Hosts);
    }
    let http2 = request.version() == Version::HTTP_2;
    let authority = request.uri().authority();
    // A URL as the target does not make up for a missing line in HTTP/1.1.
    let named = line.is_some() || (http2 && authority.is_some());
    if !named && request.version() != Version::HTTP_10 {
        return Err(Fault::NoHost);
    }
    // In HTTP/1.1 a user before the host is cut off later: there it is part of the URL.
    let authority = authority.filter(|_| http2).map(|it| it.as_str().as_bytes());
    let line = line.map(HeaderValue::as_bytes);
    let texts = [authority, line];
    match texts.into_iter().flatten().all(is_host) {
        true => Ok(()),
        false => Err(Fault::Host),
    }
}

/// The bytes of a host and a port, as Go's server has them; none at all is legal.
fn is_host(text: &[u8]) -> bool {
    text.iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"!$%&'()*+,-.:;=[]_~".contains(byte))
}

/// A cookie that HTTP/2 sent in crumbs is one line again: servers of HTTP/1.1 read one.
pub fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if crumbs.len() < 2 {
        return;
    }
    if let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(COOKIE, cookie);
    }
}
