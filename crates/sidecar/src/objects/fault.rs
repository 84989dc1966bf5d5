//! What can go wrong with an object, in classes, each with its sentence and what to do.
//!
//! Of a server's answer only its code and message are told: the rest of it may hold an access key or
//! what was signed.

use super::{Place, PlaceKind};
use crate::work::Trouble;
use object_store::Error;
use object_store::client::HttpError;
use std::fmt::{self, Display};
use std::time::Duration;

/// How much of a cause is told.
const CAUSE: usize = 300;

/// The class of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no such bucket or folder.
    NoSuchBucket,
    /// There is no such object.
    NoSuchKey,
    /// Whoever asks may not.
    AccessDenied,
    /// There is nobody to ask as.
    NoCredentials,
    /// The server has too much to do.
    Busy,
    /// The server was not reached, or was lost.
    Network,
    /// Another object stands under the key than the one that was begun.
    Replaced,
    /// The disk is full.
    Full,
    /// Something else a server has a code for.
    Api(String),
    /// Something else.
    Unexpected,
}

/// What went wrong with a bucket or an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}: {problem}{}", cause.as_deref().map(|it| format!(": {it}")).unwrap_or_default())]
pub struct Fault {
    /// Its class.
    pub kind: Kind,
    /// What the back end said.
    pub cause: Option<String>,
    place: &'static str,
    what: String,
    problem: &'static str,
}

impl Fault {
    /// Whether trying again may help.
    pub fn retryable(&self) -> bool {
        matches!(self.kind, Kind::Busy | Kind::Network)
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            Kind::NoSuchBucket => {
                Some("check the bucket's name and region, and the object store's endpoint")
            }
            Kind::NoSuchKey => Some("check that the object was uploaded under this key"),
            Kind::AccessDenied => {
                Some("check the credentials and what the bucket allows them to do")
            }
            Kind::NoCredentials => {
                Some("give the pod a role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
            }
            Kind::Busy => Some("the server is overloaded; submit the task again later"),
            Kind::Network => Some("check the endpoint and the network between it and the pod"),
            Kind::Replaced => {
                Some("submit the task again: it begins with the object that is there now")
            }
            Kind::Full => Some("make room on the volume"),
            Kind::Api(_) | Kind::Unexpected => None,
        }
    }

    /// The trouble of a task that met the fault.
    pub fn trouble(&self, task: &'static str, operation: &'static str) -> Trouble {
        Trouble {
            task,
            operation,
            what: self.to_string(),
            hint: self.hint(),
            retryable: self.retryable(),
        }
    }
}

/// What was being done when something went wrong.
#[derive(Clone, Debug)]
pub(super) struct Doing {
    pub(super) verb: &'static str,
    pub(super) place: Place,
    pub(super) key: String,
}

impl Doing {
    /// Whether nothing can be lost on the way.
    pub(super) fn is_folder(&self) -> bool {
        self.place.kind == PlaceKind::Folder
    }

    /// The fault of an error.
    pub(super) fn fault(&self, error: &Error) -> Fault {
        let text = error.to_string();
        let answer = Answer::in_text(&text);
        let kind = kind(error, &text, &answer, self.place.kind);
        self.fault_of(kind, cause(error, &answer))
    }

    /// The fault of an answer that did not come.
    pub(super) fn late(&self, limit: Duration) -> Fault {
        let cause = format!("nothing came for {} s", limit.as_secs());
        self.fault_of(Kind::Network, Some(cause))
    }

    /// The fault of a connection that ended before the object did.
    pub(super) fn cut(&self, at: u64, size: u64) -> Fault {
        let cause = format!("the connection ended after {at} of {size} bytes");
        self.fault_of(Kind::Network, Some(cause))
    }

    pub(super) fn replaced(&self) -> Fault {
        self.fault_of(Kind::Replaced, None)
    }

    pub(super) fn unexpected(&self, cause: impl Display) -> Fault {
        self.fault_of(Kind::Unexpected, Some(cause.to_string()))
    }

    pub(super) fn fault_of(&self, kind: Kind, cause: Option<String>) -> Fault {
        let problem = match (&kind, self.place.kind) {
            (Kind::NoSuchBucket, PlaceKind::S3) => "there is no such bucket",
            (Kind::NoSuchBucket, PlaceKind::Folder) => "there is no such folder",
            (Kind::NoSuchKey, _) => "there is no such object",
            (Kind::AccessDenied, _) => "access is denied",
            (Kind::NoCredentials, _) => "no credentials were found",
            (Kind::Busy, _) => "the server is too busy",
            (Kind::Network, _) => "the server cannot be reached or was lost",
            (Kind::Replaced, _) => "the object was replaced while it was being read",
            (Kind::Full, _) => "the disk is full",
            (Kind::Api(_), _) => "the server refuses",
            (Kind::Unexpected, _) => "it did not work",
        };
        Fault {
            kind,
            cause,
            place: match self.place.kind {
                PlaceKind::S3 => "S3",
                PlaceKind::Folder => "folder",
            },
            what: format!("{} {}/{}", self.verb, self.place.bucket, self.key),
            problem,
        }
    }
}

/// What a server says in an answer that is an error.
struct Answer<'a> {
    status: Option<u16>,
    code: Option<&'a str>,
    message: Option<&'a str>,
}

impl<'a> Answer<'a> {
    /// The library keeps the answer in its text and nowhere else.
    fn in_text(text: &'a str) -> Self {
        let status = text.split("status code: ").nth(1);
        let status = status.and_then(|it| it.get(..3)?.parse().ok());
        Self {
            status,
            code: element(text, "Code"),
            message: element(text, "Message"),
        }
    }
}

fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    let (inside, _) = after.split_once(&format!("</{name}>"))?;
    Some(inside)
}

fn kind(error: &Error, text: &str, answer: &Answer<'_>, place: PlaceKind) -> Kind {
    if let Some(kind) = answer.code.and_then(|code| of_code(code, answer.status)) {
        return kind;
    }
    if place == PlaceKind::S3 && text.contains("/latest/api/token") {
        return Kind::NoCredentials;
    }
    match error {
        Error::NotFound { .. } => return Kind::NoSuchKey,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            return Kind::AccessDenied;
        }
        Error::Precondition { .. } => return Kind::Replaced,
        _ => {}
    }
    match answer.status {
        Some(429 | 500..) => return Kind::Busy,
        Some(status) => return Kind::Api(status.to_string()),
        None => {}
    }
    if chain(error).any(|it| it.is::<HttpError>()) {
        return Kind::Network;
    }
    match chain(error).find_map(|it| it.downcast_ref::<std::io::Error>()) {
        Some(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Kind::AccessDenied,
        Some(error) if error.kind() == std::io::ErrorKind::StorageFull => Kind::Full,
        _ => Kind::Unexpected,
    }
}

fn of_code(code: &str, status: Option<u16>) -> Option<Kind> {
    Some(match code {
        "NoSuchBucket" => Kind::NoSuchBucket,
        "NoSuchKey" => Kind::NoSuchKey,
        "AccessDenied"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "ExpiredToken"
        | "InvalidToken" => Kind::AccessDenied,
        "SlowDown" | "ServiceUnavailable" | "InternalError" | "RequestTimeout" => Kind::Busy,
        "PreconditionFailed" => Kind::Replaced,
        _ if status.is_some_and(|it| it >= 500) => Kind::Busy,
        code => Kind::Api(code.to_owned()),
    })
}

/// What the back end said, short.
fn cause(error: &Error, answer: &Answer<'_>) -> Option<String> {
    let told = match (answer.code, answer.message, answer.status) {
        (Some(code), Some(message), _) => format!("{code}: {message}"),
        (Some(code), None, _) => code.to_owned(),
        (None, _, Some(status)) => format!("status {status}"),
        // The innermost says what happened; those around it say who was told.
        (None, _, None) => chain(error).last()?.to_string(),
    };
    let mut told: String = told.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = told.char_indices().nth(CAUSE) {
        told.truncate(end);
    }
    Some(told)
}

/// An error and what is behind it.
fn chain(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |it| it.source())
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(code) => f.write_str(code),
            other => write!(f, "{other:?}"),
        }
    }
}

/// The fault of a bucket that could not even be opened.
pub(super) fn unopened(place: &Place, error: &Error) -> Fault {
    let doing = Doing {
        verb: "open",
        place: place.clone(),
        key: String::new(),
    };
    let missing = chain(error).find_map(|it| it.downcast_ref::<std::io::Error>());
    if missing.is_some_and(|it| it.kind() == std::io::ErrorKind::NotFound) {
        return doing.fault_of(Kind::NoSuchBucket, cause(error, &Answer::in_text("")));
    }
    doing.fault(error)
}
