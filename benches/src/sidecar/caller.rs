//! A caller of the sidecar's API on a connection it keeps.

use anyhow::{Context, anyhow};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// Nobody waits longer than this for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
#[derive(Debug)]
pub(crate) struct Caller(BufReader<TcpStream>);

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.body)
            .with_context(|| format!("an answer that is no JSON: {self:?}"))
    }
}

impl Caller {
    pub(crate) fn connect(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.ask("GET", path, "")
    }

    /// Submits a task.
    pub(crate) fn submit(&mut self, task: &Value) -> anyhow::Result<Answer> {
        self.ask("POST", "/v0/tasks", &task.to_string())
    }

    /// Submits a task and waits until it has ended well, looking every so often.
    pub(crate) fn perform(
        &mut self,
        task: &Value,
        limit: Duration,
        every: Duration,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        let answer = self.submit(task)?;
        anyhow::ensure!(answer.status == 201, "a task is not accepted: {answer:?}");
        let id = answer.json()?["id"].as_str().context("an id")?.to_owned();
        loop {
            let task = self.get(&format!("/v0/tasks/{id}"))?.json()?;
            match task["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("running") => {}
                _ => anyhow::bail!("a task did not end well: {task}"),
            }
            anyhow::ensure!(
                begun.elapsed() < limit,
                "a task is not done within {limit:?}: {task}"
            );
            std::thread::sleep(every);
        }
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            anyhow::ensure!(self.0.read_line(&mut line)? > 0, "the connection ended");
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ") {
                None => status = line.split(' ').nth(1).and_then(|it| it.parse().ok()),
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse()?;
                }
                Some(_) => {}
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Answer {
            status: status.ok_or_else(|| anyhow!("an answer without a status"))?,
            body: String::from_utf8(body)?,
        })
    }
}
