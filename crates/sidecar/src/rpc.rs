//! A node's RPC: how high it is, who it is, and the hash of a block.
//!
//! Sei's nodes answer a GET with the bare result, others wrap it in a JSON-RPC envelope; both are
//! understood. What an answer means is a pure function of its bytes. Nothing is tried twice here:
//! whoever asks knows whether to ask again.

use crate::fetch::{self, Answer, fetch};
use http::{Request, StatusCode, Uri};
use http_body_util::Full;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// How long an answer may take where the answer is needed.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take where the question is only whether the node serves.
pub const GLANCE: Duration = Duration::from_millis(500);

/// A status is small.
const STATUS_LIMIT: usize = 1024 * 1024;
/// A block comes with its transactions, in base64.
const BLOCK_LIMIT: usize = 32 * 1024 * 1024;

/// The RPC of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rpc {
    base: String,
    patience: Duration,
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who it is among peers.
    pub node_id: String,
    /// The chain.
    pub network: String,
    /// Its last block.
    pub height: u64,
    /// Whether it is behind others and knows.
    pub catching_up: bool,
}

/// Why there is no answer of use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url} {problem}")]
pub struct Trouble {
    /// What was asked.
    pub url: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// There is none.
    #[error(transparent)]
    NoAnswer(#[from] fetch::Trouble),
    /// The server refuses.
    #[error("answers {status}: {body}")]
    Refused {
        /// The status.
        status: StatusCode,
        /// The beginning of what it says.
        body: String,
    },
    /// The node refuses.
    #[error("answers with the error {0}")]
    Rpc(String),
    /// It is too long.
    #[error("answers more than {0} bytes")]
    Long(usize),
    /// It is something else.
    #[error("answers something else than was asked: {0}")]
    Unlike(String),
}

impl Trouble {
    /// Whether nobody is there at all: the port is closed, or the host is.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self.problem,
            Problem::NoAnswer(fetch::Trouble::Unreachable(_))
        )
    }
}

impl Rpc {
    /// The RPC at a URL such as `http://localhost:26657`, whose answers may take so long.
    pub fn new(base: &str, patience: Duration) -> Self {
        Self {
            base: base.trim_end_matches('/').to_owned(),
            patience,
        }
    }

    /// What the node says of itself.
    pub async fn status(&self) -> Result<Status, Trouble> {
        let url = format!("{}/status", self.base);
        self.get(&url, STATUS_LIMIT, status).await
    }

    /// The hash of the block at a height: 64 hexadecimal digits, as the node writes them.
    pub async fn block_hash(&self, height: u64) -> Result<String, Trouble> {
        let url = format!("{}/block?height={height}", self.base);
        self.get(&url, BLOCK_LIMIT, block_hash).await
    }

    async fn get<T>(
        &self,
        url: &str,
        limit: usize,
        understand: fn(&[u8]) -> Result<T, Problem>,
    ) -> Result<T, Trouble> {
        let trouble = |problem| Trouble {
            url: url.to_owned(),
            problem,
        };
        let uri: Uri = url
            .parse()
            .map_err(|_| fetch::Trouble::Address)
            .map_err(Problem::from)
            .map_err(trouble)?;
        let mut question = Request::new(Full::default());
        *question.uri_mut() = uri;
        let answer = fetch(question, limit, self.patience).await;
        let answer = answer.map_err(Problem::from).map_err(trouble)?;
        accepted(&answer).and_then(understand).map_err(trouble)
    }
}

/// The body of an answer that is one.
fn accepted(answer: &Answer) -> Result<&[u8], Problem> {
    if answer.status != StatusCode::OK {
        return Err(Problem::Refused {
            status: answer.status,
            body: answer.sample(),
        });
    }
    if !answer.whole {
        return Err(Problem::Long(answer.body.len()));
    }
    Ok(&answer.body)
}

/// What a node says of itself, from its answer to `/status`.
pub fn status(body: &[u8]) -> Result<Status, Problem> {
    #[derive(Deserialize)]
    struct Said {
        node_info: NodeInfo,
        sync_info: SyncInfo,
    }
    #[derive(Deserialize)]
    struct NodeInfo {
        id: String,
        network: String,
    }
    #[derive(Deserialize)]
    struct SyncInfo {
        latest_block_height: String,
        catching_up: bool,
    }
    let said: Said = result(body)?;
    let height = said.sync_info.latest_block_height;
    Ok(Status {
        node_id: said.node_info.id,
        network: said.node_info.network,
        height: height
            .parse()
            .map_err(|_| Problem::Unlike(format!("latest_block_height is {height:?}")))?,
        catching_up: said.sync_info.catching_up,
    })
}

/// The hash of a block, from the answer to `/block`.
pub fn block_hash(body: &[u8]) -> Result<String, Problem> {
    #[derive(Deserialize)]
    struct Said {
        block_id: BlockId,
    }
    #[derive(Deserialize)]
    struct BlockId {
        hash: String,
    }
    let hash = result::<Said>(body)?.block_id.hash;
    if hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(hash);
    }
    let problem = format!("block_id.hash is {hash:?} and not 64 hexadecimal digits");
    Err(Problem::Unlike(problem))
}

/// What stands in the envelope where there is one, and otherwise all of it. A block is read twice
/// rather than kept twice.
fn result<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    #[derive(Deserialize)]
    struct Envelope {
        jsonrpc: Option<Value>,
        error: Option<Value>,
    }
    #[derive(Deserialize)]
    struct Wrapped<T> {
        result: T,
    }
    let unlike = |error: serde_json::Error| Problem::Unlike(error.to_string());
    let envelope: Envelope = serde_json::from_slice(body).map_err(unlike)?;
    if envelope.jsonrpc != Some(Value::from("2.0")) {
        return serde_json::from_slice(body).map_err(unlike);
    }
    if let Some(error) = envelope.error {
        return Err(Problem::Rpc(error.to_string()));
    }
    let wrapped: Wrapped<T> = serde_json::from_slice(body).map_err(unlike)?;
    Ok(wrapped.result)
}
