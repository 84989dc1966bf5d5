//! The socket a handler is asked on: probes of the kubelet and people on a console. The host's
//! addresses change under the handler, so it is a file.
//!
//! A question is one line, `GET path` or the path alone; the answer is one line that says whether it is
//! well, and the rest is the page.

use super::pulse::Pulse;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// Questions longer than this are none.
const LONGEST: u64 = 256;

/// The first line of a good answer, and of a bad one.
const WELL: &str = "ok";
const UNWELL: &str = "no";

/// What can be asked.
pub const LIVE: &str = "live";
/// Whether it is ready.
pub const READY: &str = "ready";
/// Everything, as JSON.
pub const STATUS: &str = "status";
/// Everything that is counted.
pub const METRICS: &str = "metrics";

/// Binds the socket. What a handler that was killed left there is taken away: only one runs, or none
/// answers.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}

/// Answers for ever.
pub async fn serve(listener: UnixListener, pulse: Arc<Pulse>, registry: Arc<Registry>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (pulse, registry) = (Arc::clone(&pulse), Arc::clone(&registry));
                tokio::spawn(async move {
                    // Who asks and hangs up is not answered.
                    let _ = timeout(PATIENCE, answer(stream, &pulse, &registry)).await;
                });
            }
            // Too many files are open: others may close some.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(mut stream: UnixStream, pulse: &Pulse, registry: &Registry) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut question = String::new();
    BufReader::new(reader.take(LONGEST))
        .read_line(&mut question)
        .await?;
    let (well, page) = page(question.trim(), pulse, registry);
    let first = if well { WELL } else { UNWELL };
    writer
        .write_all(format!("{first}\n{page}").as_bytes())
        .await?;
    writer.shutdown().await
}

fn page(question: &str, pulse: &Pulse, registry: &Registry) -> (bool, String) {
    let said = |trouble: Option<String>| (trouble.is_none(), trouble.unwrap_or_default());
    match question {
        LIVE => said(pulse.dead()),
        READY => said(pulse.dead().or_else(|| pulse.unready())),
        STATUS => (
            true,
            serde_json::to_string(&pulse.told()).unwrap_or_default(),
        ),
        METRICS => {
            let mut page = String::new();
            let encoded = encode(&mut page, registry);
            (encoded.is_ok(), page)
        }
        _ => (false, format!("there is no answer to {question:?}")),
    }
}

/// Asks a handler. The error is that nobody answers; a handler that is not well says why.
pub async fn ask(path: &Path, question: &str) -> io::Result<Result<String, String>> {
    let asked = async {
        let mut stream = UnixStream::connect(path).await?;
        stream.write_all(format!("{question}\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    let answer: io::Result<String> = timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let answer = answer?;
    let (first, page) = answer.split_once('\n').unwrap_or((UNWELL, &answer));
    Ok(match first {
        WELL => Ok(page.to_owned()),
        _ => Err(page.to_owned()),
    })
}
