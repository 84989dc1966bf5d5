//! Who asks an AWS API: the keys of the environment, the role of a token the cluster gives the pod, the
//! container's endpoint, or the machine's metadata service, in this order, as AWS's own programs look.

use super::{FORM, answer, escaped};
use crate::fetch::{self, fetch};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long one answer may take. Both endpoints are on the machine or on its link.
const ANSWER: Duration = Duration::from_secs(2);
/// How long the service of tokens may take, which is not.
const ROLE: Duration = Duration::from_secs(15);
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
    /// It refuses, and says why.
    #[error("answers {status}: {said}")]
    Denied {
        /// The status.
        status: StatusCode,
        /// What it says.
        said: String,
    },
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
                Problem::Refused(status) | Problem::Denied { status, .. } => {
                    !status.is_client_error()
                }
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
    /// At the service that gives a role to whoever shows a token of the cluster.
    Role {
        /// The role.
        arn: String,
        /// What the session is called in the cloud's records.
        session: String,
        /// The file of the token; it changes.
        token: PathBuf,
    },
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
        if let (Some(token), Some(arn)) = (set("AWS_WEB_IDENTITY_TOKEN_FILE"), set("AWS_ROLE_ARN"))
        {
            let session = set("AWS_ROLE_SESSION_NAME");
            return Self::Role {
                arn,
                session: session.unwrap_or_else(|| "keelson-sidecar".to_owned()),
                token: token.into(),
            };
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

    /// Looks. The service that gives roles is where it is said to be.
    pub async fn find(self, tokens: &Uri) -> Result<Credentials, NoCredentials> {
        match self {
            Self::Given(credentials) => Ok(credentials),
            Self::Half => Err(NoCredentials::Half),
            Self::Role {
                arn,
                session,
                token,
            } => {
                let found = of_role(tokens, &arn, &session, token).await;
                found.map_err(|problem| NoCredentials::Place {
                    place: format!("the service of tokens at {tokens}"),
                    problem,
                })
            }
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

/// The words of a file, without what is around them.
async fn words(path: PathBuf) -> Result<String, Problem> {
    let shown = path.display().to_string();
    let reading = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
    let text = reading.map_err(std::io::Error::from).flatten();
    let text = text.map_err(|error| Problem::File {
        path: shown,
        problem: error.to_string(),
    })?;
    Ok(text.trim().to_owned())
}

/// The request is not signed: the token says who asks.
async fn of_role(
    tokens: &Uri,
    arn: &str,
    session: &str,
    token: PathBuf,
) -> Result<Credentials, Problem> {
    let body = format!(
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}\
         &WebIdentityToken={}",
        escaped(arn),
        escaped(session),
        escaped(&words(token).await?)
    );
    let mut question = Request::new(Full::from(body));
    *question.method_mut() = Method::POST;
    *question.uri_mut() = tokens.clone();
    let form = HeaderValue::from_static(FORM);
    question.headers_mut().insert(header::CONTENT_TYPE, form);
    let answer = fetch(question, LIMIT, ROLE).await?;
    match answer.status {
        StatusCode::OK => answer::keys(&answer.body).ok_or(Problem::Unlike),
        status => Err(Problem::Denied {
            status,
            said: answer::refusal(&answer.body).unwrap_or_default(),
        }),
    }
}

async fn of_container(url: &str, token: Option<Token>) -> Result<Credentials, Problem> {
    let token = match token {
        Some(Token::Text(text)) => Some(text),
        Some(Token::File(path)) => Some(words(path).await?),
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
