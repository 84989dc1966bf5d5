//! Which machines of a cloud region run and carry certain tags, from the EC2 API.
//!
//! One action of one API, asked for page by page. Who asks is in [`credentials`], the signature in
//! [`sign`], the answer in [`answer`].

pub mod answer;
pub mod credentials;
pub mod sign;

use crate::fetch::{self, fetch};
use answer::{Page, Unlike};
use credentials::{Credentials, NoCredentials, Sources};
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::Full;
use jiff::Timestamp;
use sign::{Question, Scope};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// How long one page may take.
const PAGE: Duration = Duration::from_secs(15);
/// How long a page may be; a thousand machines are about five of these megabytes.
const PAGE_LIMIT: usize = 16 * 1024 * 1024;
/// Nobody has as many machines with one tag: whoever goes on answering pages is not EC2.
const PAGES: usize = 100;
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// Why it is not known which machines run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A region no host name can be made of.
    #[error("{0:?} is not a region; use a name such as eu-central-1")]
    Region(String),
    /// An endpoint that is no URL.
    #[error(
        "{0:?} is not a URL; AWS_ENDPOINT_URL and what begins so must be one, such as https://host"
    )]
    Endpoint(String),
    /// Nobody to ask as.
    #[error(transparent)]
    NoCredentials(#[from] NoCredentials),
    /// No answer.
    #[error("the EC2 API at {endpoint} {problem}")]
    NoAnswer {
        /// Where it was asked.
        endpoint: String,
        /// What is wrong.
        problem: fetch::Trouble,
    },
    /// A refusal.
    #[error("the EC2 API at {endpoint} answers {status}: {said}")]
    Refused {
        /// Where it was asked.
        endpoint: String,
        /// The status.
        status: StatusCode,
        /// What it says.
        said: String,
    },
    /// An answer that is none.
    #[error("the EC2 API at {endpoint} answers something else than was asked: {problem}")]
    Unlike {
        /// Where it was asked.
        endpoint: String,
        /// What is wrong.
        problem: Unlike,
    },
}

impl Trouble {
    /// Whether trying again may help: servers come back, names do not change.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Region(_) | Self::Endpoint(_) | Self::Unlike { .. } => false,
            Self::NoCredentials(none) => none.is_passing(),
            Self::NoAnswer { .. } => true,
            Self::Refused { status, said, .. } => {
                status.is_server_error() || said.starts_with("RequestLimitExceeded")
            }
        }
    }
}

/// The addresses of all machines of a region that run and carry all the tags: the public one where
/// there is one, otherwise the private one.
pub async fn running(
    variable: impl Fn(&str) -> Option<String>,
    region: &str,
    tags: &BTreeMap<String, String>,
) -> Result<Vec<String>, Trouble> {
    let endpoint = endpoint(&variable, "ec2", region)?;
    let tokens = self::endpoint(&variable, "sts", region)?;
    let credentials = Sources::read(&variable).find(&tokens).await?;
    let mut addresses = Vec::new();
    let mut next = None;
    for _ in 0..PAGES {
        let body = form(tags, next.as_deref());
        let page = page(&endpoint, region, &credentials, body).await?;
        addresses.extend(page.addresses);
        next = page.next;
        if next.is_none() {
            return Ok(addresses);
        }
    }
    Err(Trouble::Unlike {
        endpoint: endpoint.to_string(),
        problem: Unlike::Endless(PAGES),
    })
}

/// Where a service of a region is.
pub fn endpoint(
    variable: impl Fn(&str) -> Option<String>,
    service: &str,
    region: &str,
) -> Result<Uri, Trouble> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if region.is_empty() || !region.bytes().all(plain) {
        return Err(Trouble::Region(region.to_owned()));
    }
    let own = format!("AWS_ENDPOINT_URL_{}", service.to_ascii_uppercase());
    let given = [own.as_str(), "AWS_ENDPOINT_URL"]
        .into_iter()
        .find_map(|name| variable(name).filter(|text| !text.is_empty()));
    let text = given.unwrap_or_else(|| {
        let domain = match region.starts_with("cn-") {
            true => "amazonaws.com.cn",
            false => "amazonaws.com",
        };
        format!("https://{service}.{region}.{domain}")
    });
    let url: Option<Uri> = text.parse().ok();
    url.filter(|url| url.scheme().is_some() && url.authority().is_some())
        .ok_or(Trouble::Endpoint(text))
}

/// What is asked, as a form.
pub fn form(tags: &BTreeMap<String, String>, next: Option<&str>) -> String {
    let mut body = "Action=DescribeInstances&Version=2016-11-15&MaxResults=1000".to_owned();
    let state = ("instance-state-name".to_owned(), "running");
    let tags = tags
        .iter()
        .map(|(key, value)| (format!("tag:{key}"), value.as_str()));
    for (number, (name, value)) in std::iter::once(state).chain(tags).enumerate() {
        let (number, name, value) = (number + 1, escaped(&name), escaped(value));
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "&Filter.{number}.Name={name}&Filter.{number}.Value.1={value}"
        );
    }
    if let Some(next) = next {
        let _ = write!(body, "&NextToken={}", escaped(next));
    }
    body
}

/// A text in a form: whatever is not a letter or digit, as percent and its bytes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

async fn page(
    endpoint: &Uri,
    region: &str,
    credentials: &Credentials,
    body: String,
) -> Result<Page, Trouble> {
    let at = endpoint.to_string();
    let question = signed(endpoint, region, credentials, body, Timestamp::now());
    let question = question.ok_or_else(|| Trouble::Endpoint(at.clone()))?;
    let answer = fetch(question, PAGE_LIMIT, PAGE).await;
    let answer = answer.map_err(|problem| Trouble::NoAnswer {
        endpoint: at.clone(),
        problem,
    })?;
    if answer.status != StatusCode::OK {
        return Err(Trouble::Refused {
            endpoint: at,
            status: answer.status,
            said: answer::refusal(&answer.body).unwrap_or_else(|| answer.sample()),
        });
    }
    let page = match answer.whole {
        true => answer::page(&answer.body),
        false => Err(Unlike::Long(PAGE_LIMIT)),
    };
    page.map_err(|problem| Trouble::Unlike {
        endpoint: at,
        problem,
    })
}

/// The request for one page. Nothing where a header cannot hold what stands in it.
fn signed(
    endpoint: &Uri,
    region: &str,
    credentials: &Credentials,
    body: String,
    at: Timestamp,
) -> Option<Request<Full<hyper::body::Bytes>>> {
    let path = match endpoint.path() {
        "" => "/",
        path => path,
    };
    let host = endpoint.authority()?.as_str();
    let mut headers = vec![("content-type", FORM), ("host", host)];
    let time = sign::time(at);
    headers.push(("x-amz-date", &time));
    if let Some(token) = &credentials.session_token {
        headers.push(("x-amz-security-token", token));
    }
    let question = Question {
        method: "POST",
        path,
        query: "",
        headers: &headers,
        body: body.as_bytes(),
    };
    let scope = Scope {
        region,
        service: "ec2",
    };
    let authorization = sign::authorization(&question, credentials, &scope, at);
    let mut request = Request::post(endpoint.clone());
    for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
        let name = HeaderName::try_from(*name).ok()?;
        request = request.header(name, HeaderValue::try_from(*value).ok()?);
    }
    let mut secret = HeaderValue::try_from(authorization).ok()?;
    secret.set_sensitive(true);
    let request = request.header(header::AUTHORIZATION, secret);
    request.body(Full::from(body)).ok()
}
