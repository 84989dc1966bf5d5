//! Who asks an AWS API: the environment, the container's endpoint, or the machine's metadata service,
//! in this order, as AWS's own programs look.

use crate::fetch::{self, fetch};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long one answer may take. Both endpoints are on the machine or on its link.
const ANSWER: Duration = Duration::from_secs(2);
/// How long an answer may be.
const LIMIT: usize = 64 * 1024;
const CONTAINER: &str = "http://169.254.170.2";
const METADATA: &str = "http://169.254.169.254";
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

/// Keys to sign with.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Which key it is.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: String,
    /// What shows that the key is good for now.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.access_key_id;
        f.debug_struct("Credentials")
            .field("id", id)
            .finish_non_exhaustive()
    }
}

/// Why there are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCredentials {
    /// Half of a key.
    #[error(
        "there are no credentials for the EC2 API: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set both or neither"
    )]
    Half,
    /// A place that was named and does not give any.
    #[error("there are no credentials for the EC2 API: {place} {problem}")]
    Place {
        /// The place.
        place: String,
        /// What is wrong with it.
        problem: Problem,
    },
    /// No place was named, and the machine's service, where everyone looks last, does not give any.
    #[error(
        "there are no credentials for the EC2 API: AWS_ACCESS_KEY_ID is not set, and the machine's metadata \
         service at {place} {problem}; set the variables, or give the pod a role, or name peers by another source"
    )]
    Nowhere {
        /// The service.
        place: String,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It does not answer.
    #[error(transparent)]
    NoAnswer(#[from] fetch::Trouble),
    /// It refuses.
    #[error("answers {0}")]
    Refused(StatusCode),
    /// It answers something else. What, is not said: it may be half of a key.
    #[error("answers something else than credentials")]
    Unlike,
    /// A file it needs.
    #[error("needs {path}, which cannot be read: {problem}")]
    File {
        /// The file.
        path: String,
        /// What the system says.
        problem: String,
    },
    /// It is not to be asked.
    #[error("is not to be asked, as AWS_EC2_METADATA_DISABLED says")]
    Disabled,
}

impl NoCredentials {
    /// Whether trying again may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Half => false,
            Self::Place { problem, .. } | Self::Nowhere { problem, .. } => match problem {
                Problem::NoAnswer(fetch::Trouble::Address) | Problem::Disabled => false,
                Problem::Refused(status) => !status.is_client_error(),
                _ => true,
            },
        }
    }
}

/// Where to look, as the environment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// In the environment itself.
    Given(Credentials),
    /// Half of it.
    Half,
    /// At an endpoint made for the container.
    Container {
        /// The endpoint.
        url: String,
        /// What shows who asks.
        token: Option<Token>,
    },
    /// At the machine's metadata service.
    Machine {
        /// The service.
        base: String,
        /// Whether it is not to be asked.
        disabled: bool,
    },
}

/// What shows who asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Token {
    /// The text itself.
    Text(String),
    /// The file it is in; it changes.
    File(PathBuf),
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl Sources {
    /// Reads the environment. A variable that is empty is not set.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
            (Some(access_key_id), Some(secret_access_key)) => {
                return Self::Given(Credentials {
                    access_key_id,
                    secret_access_key,
                    session_token: set("AWS_SESSION_TOKEN"),
                });
            }
            (None, None) => {}
            _ => return Self::Half,
        }
        let relative = set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let relative = relative.map(|path| format!("{CONTAINER}{path}"));
        if let Some(url) = relative.or_else(|| set("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
            let file = set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
            let text = set("AWS_CONTAINER_AUTHORIZATION_TOKEN");
            let token = file.map(|path| Token::File(path.into()));
            return Self::Container {
                url,
                token: token.or(text.map(Token::Text)),
            };
        }
        let base = set("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let base = base.unwrap_or_else(|| METADATA.to_owned());
        Self::Machine {
            base: base.trim_end_matches('/').to_owned(),
            disabled: set("AWS_EC2_METADATA_DISABLED")
                .is_some_and(|text| text.eq_ignore_ascii_case("true")),
        }
    }

    /// Looks.
    pub async fn find(self) -> Result<Credentials, NoCredentials> {
        match self {
            Self::Given(credentials) => Ok(credentials),
            Self::Half => Err(NoCredentials::Half),
            Self::Container { url, token } => {
                let found = of_container(&url, token).await;
                found.map_err(|problem| NoCredentials::Place {
                    place: url,
                    problem,
                })
            }
            Self::Machine { base, disabled } => {
                let found = match disabled {
                    true => Err(Problem::Disabled),
                    false => of_machine(&base).await,
                };
                found.map_err(|problem| NoCredentials::Nowhere {
                    place: base,
                    problem,
                })
            }
        }
    }
}

async fn of_container(url: &str, token: Option<Token>) -> Result<Credentials, Problem> {
    let token = match token {
        Some(Token::Text(text)) => Some(text),
        Some(Token::File(path)) => {
            let shown = path.display().to_string();
            let reading = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
            let text = reading.map_err(std::io::Error::from).flatten();
            let text = text.map_err(|error| Problem::File {
                path: shown,
                problem: error.to_string(),
            })?;
            Some(text.trim().to_owned())
        }
        None => None,
    };
    let headers = token
        .iter()
        .map(|text| (header::AUTHORIZATION.as_str(), text.as_str()));
    keys(&ask(Method::GET, url, headers).await?)
}

/// A token first, then the name of the machine's role, then its keys.
async fn of_machine(base: &str) -> Result<Credentials, Problem> {
    let minute = [("x-aws-ec2-metadata-token-ttl-seconds", "60")];
    let token = ask(Method::PUT, &format!("{base}/latest/api/token"), minute).await?;
    let token = text(&token)?;
    let shown = [("x-aws-ec2-metadata-token", token)];
    let roles = ask(Method::GET, &format!("{base}{ROLES}"), shown).await?;
    let role = text(&roles)?.lines().next().unwrap_or_default();
    keys(&ask(Method::GET, &format!("{base}{ROLES}{role}"), shown).await?)
}

async fn ask<'a>(
    method: Method,
    url: &str,
    headers: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> Result<Vec<u8>, Problem> {
    let url: Uri = url.parse().map_err(|_| fetch::Trouble::Address)?;
    let mut question = Request::new(Full::default());
    *question.method_mut() = method;
    *question.uri_mut() = url;
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value).map_err(|_| Problem::Unlike)?;
        value.set_sensitive(true);
        question.headers_mut().insert(name, value);
    }
    let answer = fetch(question, LIMIT, ANSWER).await?;
    match answer.status {
        StatusCode::OK => Ok(answer.body),
        status => Err(Problem::Refused(status)),
    }
}

fn text(body: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::Unlike)?;
    let text = text.trim();
    (!text.is_empty()).then_some(text).ok_or(Problem::Unlike)
}

/// The keys in an answer of either endpoint.
pub fn keys(body: &[u8]) -> Result<Credentials, Problem> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Said {
        access_key_id: String,
        secret_access_key: String,
        token: Option<String>,
    }
    let said: Said = serde_json::from_slice(body).map_err(|_| Problem::Unlike)?;
    Ok(Credentials {
        access_key_id: said.access_key_id,
        secret_access_key: said.secret_access_key,
        session_token: said.token.filter(|token| !token.is_empty()),
    })
}
