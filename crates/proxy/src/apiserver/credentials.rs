//! Who we are towards the API server: a token in hand, in a file that is rotated, or from a
//! program that makes one.
//!
//! Tokens live in [`Token`], which shows nothing when printed.

use http::HeaderValue;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// A rotated file is read again this often.
const FILE_LIFE: Duration = Duration::from_secs(60);
/// A program that says nothing of expiry is asked again this often.
const PROGRAM_LIFE: Duration = Duration::from_secs(300);
const PROGRAM_DEADLINE: Duration = Duration::from_secs(10);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum NotAuthenticated {
    /// The file is not there.
    #[error("the token file {path} was not read", path = path.display())]
    FileNotRead {
        /// The file.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// The program did not give one.
    #[error("the credential program {program} gave no token: {why}")]
    ProgramFailed {
        /// Which one.
        program: String,
        /// What happened instead.
        why: String,
    },
    /// A token with bytes that no header may have.
    #[error("the token for the API server has bytes that no header may have")]
    NotAHeader,
}

/// A secret that does not print.
#[derive(Clone)]
pub(super) struct Token(HeaderValue);

impl Token {
    pub(super) fn new(text: &str) -> Result<Self, NotAuthenticated> {
        let header = HeaderValue::from_str(&format!("Bearer {}", text.trim()));
        let mut header = header.map_err(|_| NotAuthenticated::NotAHeader)?;
        header.set_sensitive(true);
        Ok(Self(header))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where the token comes from.
#[derive(Debug)]
pub(super) enum Source {
    /// The handshake says who we are.
    None,
    Fixed(Token),
    File(PathBuf),
    Program(Program),
}

/// A credential program of a kubeconfig.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) api_version: String,
}

/// A source, and the token it gave last.
#[derive(Debug)]
pub(super) struct Credentials {
    source: Source,
    kept: Mutex<Option<(Token, Instant)>>,
}

impl From<Source> for Credentials {
    fn from(source: Source) -> Self {
        Self {
            source,
            kept: Mutex::new(None),
        }
    }
}

impl Credentials {
    /// The `Authorization` header to send now. A file that has gone, or a program that fails, does
    /// not take away a token that still lives.
    pub(super) async fn authorization(&self) -> Result<Option<HeaderValue>, NotAuthenticated> {
        match &self.source {
            Source::None => return Ok(None),
            Source::Fixed(token) => return Ok(Some(token.0.clone())),
            Source::File(_) | Source::Program(_) => {}
        }
        let mut kept = self.kept.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(Some(token.0.clone()));
        }
        let made = match &self.source {
            Source::File(path) => read(path).map(|token| (token, FILE_LIFE)),
            Source::Program(program) => program.run().await,
            Source::None | Source::Fixed(_) => return Ok(None),
        };
        match (made, &*kept) {
            (Ok((token, life)), _) => {
                *kept = Some((token.clone(), Instant::now() + life));
                Ok(Some(token.0))
            }
            (Err(_), Some((token, _))) if matches!(self.source, Source::File(_)) => {
                Ok(Some(token.0.clone()))
            }
            (Err(error), _) => Err(error),
        }
    }
}

fn read(path: &std::path::Path) -> Result<Token, NotAuthenticated> {
    let text = std::fs::read_to_string(path).map_err(|source| NotAuthenticated::FileNotRead {
        path: path.to_owned(),
        source,
    })?;
    Token::new(&text)
}

/// What a credential program prints.
#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    token: Option<String>,
    expiration_timestamp: Option<jiff::Timestamp>,
}

impl Program {
    async fn run(&self) -> Result<(Token, Duration), NotAuthenticated> {
        let failed = |why: String| NotAuthenticated::ProgramFailed {
            program: self.command.clone(),
            why,
        };
        let asks = serde_json::json!({
            "apiVersion": self.api_version, "kind": "ExecCredential", "spec": { "interactive": false },
        });
        let output = Command::new(&self.command)
            .args(&self.args)
            .envs(self.env.iter().cloned())
            .env("KUBERNETES_EXEC_INFO", asks.to_string())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = timeout(PROGRAM_DEADLINE, output)
            .await
            .map_err(|_| failed(format!("no answer within {PROGRAM_DEADLINE:?}")))?
            .map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(format!("it ended with {}", output.status)));
        }
        let said: ExecCredential =
            serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
        let status = said
            .status
            .ok_or_else(|| failed("it printed no status".into()))?;
        let token = status
            .token
            .ok_or_else(|| failed("it printed no token".into()))?;
        Ok((Token::new(&token)?, life(status.expiration_timestamp)))
    }
}

/// How long a program's token is used: a little less than it lives.
fn life(expires: Option<jiff::Timestamp>) -> Duration {
    let Some(expires) = expires else {
        return PROGRAM_LIFE;
    };
    let left = expires.duration_since(jiff::Timestamp::now()).as_secs() - 10;
    Duration::from_secs(u64::try_from(left).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn header(credentials: &Credentials) -> String {
        let header = credentials
            .authorization()
            .await
            .expect("a token")
            .expect("a header");
        header.to_str().expect("text").to_owned()
    }

    #[test]
    fn a_token_never_prints() {
        let source = Source::Fixed(Token::new("secret-token").expect("a token"));
        assert!(!format!("{source:?}").contains("secret"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rotated_file_is_read_again_and_one_that_is_gone_keeps_the_last_token() {
        let path = std::env::temp_dir().join(format!("keelson-token-{}", std::process::id()));
        std::fs::write(&path, "one\n").expect("a file");
        let credentials = Credentials::from(Source::File(path.clone()));
        assert_eq!(header(&credentials).await, "Bearer one");
        std::fs::write(&path, "two\n").expect("a file");
        assert_eq!(
            header(&credentials).await,
            "Bearer one",
            "not before its time"
        );
        tokio::time::advance(FILE_LIFE).await;
        assert_eq!(header(&credentials).await, "Bearer two");
        std::fs::remove_file(&path).expect("removal");
        tokio::time::advance(FILE_LIFE).await;
        assert_eq!(header(&credentials).await, "Bearer two");
    }

    #[tokio::test]
    async fn a_program_gives_a_token_or_the_reason_why_not() {
        let program = |script: &str| {
            Credentials::from(Source::Program(Program {
                command: "sh".into(),
                args: vec!["-c".into(), script.into()],
                env: vec![("WHO".into(), "someone".into())],
                api_version: "client.authentication.k8s.io/v1".into(),
            }))
        };
        let good = program(r#"echo "{\"status\":{\"token\":\"of-$WHO\"}}""#);
        assert_eq!(header(&good).await, "Bearer of-someone");
        for (script, why) in [
            ("exit 3", "exit status: 3"),
            ("echo '{}'", "no status"),
            (r#"echo '{"status":{}}'"#, "no token"),
        ] {
            let said = program(script)
                .authorization()
                .await
                .expect_err(script)
                .to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_token_that_has_expired_is_not_kept() {
        assert_eq!(life(Some(jiff::Timestamp::UNIX_EPOCH)), Duration::ZERO);
        assert_eq!(life(None), PROGRAM_LIFE);
    }
}
