//! Putting the two questions to the API server: what the decision engine asks through.
//!
//! A question is sent once and its answer read; remembering, repeating and giving up are the
//! engine's, the words of the question are `review`'s.

use crate::apiserver::{ApiServer, NotAnswered};
use crate::attributes::Check;
use crate::decision::{Answer, Digest, Failure, Keys, Reviewer, Token, Verdict};
use crate::review::{
    ACCESS_REVIEWS, AccessVerdict, Audiences, Identity, TOKEN_REVIEWS, TokenVerdict,
    access_request, access_verdict, masked_answer, masked_token_request, token_request,
    token_verdict,
};
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// Whose token it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// This one's.
    Known {
        /// Who it is.
        identity: Arc<Identity>,
        /// The same, as a part of keys.
        digest: Digest,
    },
    /// Nobody's; the reason is for the log.
    Unknown(Box<str>),
}

impl Login {
    /// The login of this one.
    pub fn known(mut identity: Identity, keys: &Keys) -> Self {
        identity.groups.shrink_to_fit();
        let Identity {
            user,
            uid,
            groups,
            extra,
        } = &identity;
        let digest = keys.identity(user, uid, groups, extra);
        Self::Known {
            identity: Arc::new(identity),
            digest,
        }
    }
}

impl Answer for Login {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Known { .. } => Verdict::Positive,
            Self::Unknown(_) => Verdict::Negative,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Unknown(reason) => reason.len(),
            Self::Known { identity, .. } => {
                let groups: usize = identity.groups.iter().map(|it| it.len() + 24).sum();
                let extra = identity.extra.iter().map(|(key, values)| {
                    key.len() + 48 + values.iter().map(|it| it.len() + 24).sum::<usize>()
                });
                size_of::<Identity>()
                    + identity.user.len()
                    + identity.uid.len()
                    + groups
                    + extra.sum::<usize>()
            }
        }
    }
}

/// Whether a caller may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Yes.
    Allowed,
    /// No, or nobody said yes; the reason is for the log.
    Denied(Box<str>),
}

impl Answer for Access {
    fn verdict(&self) -> Verdict {
        match self {
            Self::Allowed => Verdict::Positive,
            Self::Denied(_) => Verdict::Negative,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Allowed => 0,
            Self::Denied(reason) => reason.len(),
        }
    }
}

/// Asks whose a token is.
#[derive(Debug)]
pub struct TokenReviewer {
    /// Who is asked.
    pub server: Arc<ApiServer>,
    /// Makes identities parts of keys.
    pub keys: Arc<Keys>,
    /// Whether a review that names no audience is good enough (deviation A7).
    pub accept_unnamed: bool,
    /// How long one question may take.
    pub deadline: Duration,
}

impl Reviewer for TokenReviewer {
    type Question = Token;
    type Answer = Login;

    async fn turn(&self) {
        self.server.turn().await;
    }

    async fn review(&self, token: &Token) -> Result<Login, Failure> {
        tracing::trace!("Request Body: {}", masked_token_request(&token.audiences));
        let body = token_request(&token.text, &token.audiences);
        let body = ask(&self.server, TOKEN_REVIEWS, body, self.deadline).await?;
        tracing::trace!("Response Body: {}", masked_answer(&body));
        let audiences = Audiences {
            wanted: token.audiences.to_vec(),
            accept_unnamed: self.accept_unnamed,
        };
        match token_verdict(&body, &audiences) {
            TokenVerdict::Authenticated { identity, .. } => {
                Ok(Login::known(identity.authenticated(), &self.keys))
            }
            TokenVerdict::Rejected(reason) => Ok(Login::Unknown(reason.into())),
            TokenVerdict::Error(problem) => Err(Failure::Unusable(problem.into())),
        }
    }
}

/// Asks whether someone may do something.
#[derive(Debug)]
pub struct AccessReviewer {
    /// Who is asked.
    pub server: Arc<ApiServer>,
    /// How long one question may take.
    pub deadline: Duration,
}

impl Reviewer for AccessReviewer {
    type Question = (Arc<Identity>, Check);
    type Answer = Access;

    async fn turn(&self) {
        self.server.turn().await;
    }

    async fn review(&self, (identity, check): &(Arc<Identity>, Check)) -> Result<Access, Failure> {
        let body = access_request(identity, check);
        tracing::trace!("Request Body: {}", String::from_utf8_lossy(&body));
        let body = ask(&self.server, ACCESS_REVIEWS, body, self.deadline).await?;
        tracing::trace!("Response Body: {}", masked_answer(&body));
        match access_verdict(&body) {
            AccessVerdict::Allowed(_) => Ok(Access::Allowed),
            AccessVerdict::Denied(reason) | AccessVerdict::NoOpinion(reason) => {
                Ok(Access::Denied(reason.into()))
            }
            AccessVerdict::Error(problem) => Err(Failure::Unusable(problem.into())),
        }
    }
}

async fn ask(
    server: &ApiServer,
    path: &str,
    body: Vec<u8>,
    deadline: Duration,
) -> Result<hyper::body::Bytes, Failure> {
    let answer = server
        .post(path, body.into(), deadline)
        .await
        .map_err(failure)?;
    match answer.status {
        StatusCode::CREATED | StatusCode::OK => Ok(answer.body),
        status => Err(Failure::Status {
            code: status.as_u16(),
            retry_after: answer.retry_after,
        }),
    }
}

fn failure(error: NotAnswered) -> Failure {
    match error {
        NotAnswered::Refused { .. } => Failure::ConnectionRefused,
        NotAnswered::Broken(_) | NotAnswered::NotWhole => Failure::ConnectionLost,
        NotAnswered::TooSlow { .. } => Failure::TimedOut,
        NotAnswered::TooLarge | NotAnswered::PathNotUsable { .. } => {
            Failure::Unusable(error.to_string().into())
        }
        NotAnswered::NotConnected { ref source, .. } => {
            Failure::Unreachable(format!("{error}: {source}").into())
        }
        NotAnswered::NotTrusted(_) | NotAnswered::NotAuthenticated(_) => {
            Failure::Unreachable(error.to_string().into())
        }
    }
}
