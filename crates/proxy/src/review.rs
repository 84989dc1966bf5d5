//! What the API server is asked and what its answers mean: TokenReview and SubjectAccessReview, as
//! little of them as we need.
//!
//! Bytes in, a verdict out. Sending, retrying and remembering are done elsewhere.

mod access;
mod extra;
mod token;

pub use access::{AccessVerdict, access_request, access_verdict};
pub use extra::Extra;
pub use token::{
    Audiences, TokenVerdict, masked_answer, masked_token_request, token_request, token_verdict,
};

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Where TokenReviews are posted.
pub const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
/// Where SubjectAccessReviews are posted.
pub const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The extra attribute that names the very credential, so that audit logs can tell them apart.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The group of everyone who is somebody.
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// Who a caller is. All of it is part of every question about what they may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// The name.
    #[serde(rename = "username", deserialize_with = "null_is_default")]
    pub user: String,
    /// The uid.
    #[serde(deserialize_with = "null_is_default")]
    pub uid: String,
    /// The groups, in the server's order.
    #[serde(deserialize_with = "null_is_default")]
    pub groups: Vec<String>,
    /// Pod, node, credential and the like.
    #[serde(deserialize_with = "null_is_default")]
    pub extra: Extra,
}

impl Identity {
    /// The identity with the group of the authenticated, which every authenticator but OpenID
    /// Connect's adds.
    pub fn authenticated(mut self) -> Identity {
        let settled = self.user == ANONYMOUS
            || self
                .groups
                .iter()
                .any(|group| matches!(group.as_str(), AUTHENTICATED | UNAUTHENTICATED));
        if !settled {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// Go writes an empty list as null.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// As [`null_is_default`], and nothing but a map: the decoder would also take a list, by position.
fn map_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let map: Map<String, Value> = null_is_default(deserializer)?;
    serde_json::from_value(Value::Object(map)).map_err(D::Error::custom)
}

/// The metadata of an object that is only a question.
#[derive(Serialize)]
struct Metadata {
    #[serde(rename = "creationTimestamp")]
    creation_timestamp: (),
}

const METADATA: Metadata = Metadata {
    creation_timestamp: (),
};

/// The message of a `Status`, which the server sends instead of a review when it refuses; nothing
/// when it has none.
pub fn failure_message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Status {
        kind: String,
        #[serde(default, deserialize_with = "null_is_default")]
        message: String,
    }
    let status: Status = serde_json::from_slice(body).ok()?;
    (status.kind == "Status" && !status.message.is_empty()).then_some(status.message)
}

/// The status of a review of this kind; the default one when there is none.
fn status<T: DeserializeOwned + Default>(body: &[u8], kind: &str) -> Result<T, String> {
    let mut review: Map<String, Value> = serde_json::from_slice(body).map_err(|_| not_a(kind))?;
    // Servers of one kind of object may leave it out.
    if review.get("kind").is_some_and(|found| found != kind) {
        return Err(failure_message(body).unwrap_or_else(|| not_a(kind)));
    }
    match review.remove("status") {
        None | Some(Value::Null) => Ok(T::default()),
        // Checked here: the decoder would also take a list, by position.
        Some(status) if status.is_object() => {
            serde_json::from_value(status).map_err(|_| not_a(kind))
        }
        Some(_) => Err(not_a(kind)),
    }
}

/// Never with what was sent: it may hold the token.
fn not_a(kind: &str) -> String {
    format!("the API server's answer is not a {kind}")
}
