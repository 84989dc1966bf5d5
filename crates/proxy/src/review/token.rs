//! Is this token good, and whose is it?

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Identity, METADATA, Metadata, map_or_default, null_is_default, status};

/// Which audiences a token must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audiences {
    /// One of these; any when empty.
    pub wanted: Vec<String>,
    /// Whether a review that names none is good enough (`--allow-empty-audience`, deviation A7).
    pub accept_unnamed: bool,
}

/// What a TokenReview said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenVerdict {
    /// The token is this one's.
    Authenticated {
        /// Whose it is.
        identity: Identity,
        /// Those of the wanted audiences it has.
        audiences: Vec<String>,
    },
    /// The token is not good; the reason is for the log.
    Rejected(String),
    /// The answer is no answer.
    Error(String),
}

#[derive(Serialize)]
struct Question<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: Metadata,
    spec: Spec<'a>,
    status: EmptyStatus,
}

#[derive(Serialize)]
struct Spec<'a> {
    token: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    audiences: &'a [String],
}

#[derive(Serialize, Default)]
struct EmptyStatus {
    user: EmptyUser,
}

#[derive(Serialize, Default)]
struct EmptyUser {}

/// The body of the question.
pub fn token_request(token: &str, audiences: &[String]) -> Vec<u8> {
    let question = Question {
        kind: "TokenReview",
        api_version: "authentication.k8s.io/v1",
        metadata: METADATA,
        spec: Spec { token, audiences },
        status: EmptyStatus::default(),
    };
    serde_json::to_vec(&question).unwrap_or_default()
}

/// The body of the question as the log may show it.
pub fn masked_token_request(audiences: &[String]) -> String {
    String::from_utf8(token_request("<masked>", audiences)).unwrap_or_default()
}

/// An answer as the log may show it: a TokenReview comes back with the token in it.
pub fn masked_answer(body: &[u8]) -> String {
    let Ok(mut answer) = serde_json::from_slice::<Value>(body) else {
        return "<not shown: this is no JSON, and may have a token in it>".to_owned();
    };
    if let Some(token) = answer.pointer_mut("/spec/token") {
        *token = "<masked>".into();
    }
    answer.to_string()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(deserialize_with = "null_is_default")]
    authenticated: bool,
    #[serde(deserialize_with = "map_or_default")]
    user: Identity,
    #[serde(deserialize_with = "null_is_default")]
    audiences: Vec<String>,
    #[serde(deserialize_with = "null_is_default")]
    error: String,
}

/// What the body of the answer means.
pub fn token_verdict(body: &[u8], audiences: &Audiences) -> TokenVerdict {
    let status: Status = match status(body, "TokenReview") {
        Ok(status) => status,
        Err(problem) => return TokenVerdict::Error(problem),
    };
    if !status.authenticated {
        // A real API server fills this in for every bad token: it is a rejection, not a failure.
        let why = Some(status.error).filter(|error| !error.is_empty());
        return TokenVerdict::Rejected(why.unwrap_or_else(|| "invalid bearer token".to_owned()));
    }
    match audiences.shared(status.audiences) {
        Some(shared) => TokenVerdict::Authenticated {
            identity: status.user.authenticated(),
            audiences: shared,
        },
        None => TokenVerdict::Rejected("the token is for other audiences".to_owned()),
    }
}

impl Audiences {
    /// Those of the wanted audiences the token has; nothing when it has none of them.
    fn shared(&self, named: Vec<String>) -> Option<Vec<String>> {
        if self.wanted.is_empty() {
            return Some(named);
        }
        if named.is_empty() {
            return self.accept_unnamed.then(|| self.wanted.clone());
        }
        let mut shared = self.wanted.clone();
        shared.retain(|audience| named.contains(audience));
        (!shared.is_empty()).then_some(shared)
    }
}
