//! A client of our own, for rows in which every caller matters: each on a connection, each with its
//! own time.

use anyhow::Context;
use futures::future::join_all;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Nobody waits longer than this for an answer.
const PATIENCE: Duration = Duration::from_secs(180);

/// One answer, or why there was none, and how long it took.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) told: Result<StatusCode, String>,
    pub(crate) after: Duration,
}

/// A connection to a proxy.
pub(crate) struct Caller(SendRequest<Empty<Bytes>>);

impl Caller {
    pub(crate) async fn connect(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(Self(sender))
    }

    pub(crate) async fn ask(&mut self, method: Method, token: &str) -> Answer {
        let started = Instant::now();
        let told = match timeout(PATIENCE, self.told(method, token)).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err(format!("no answer within {PATIENCE:?}")),
        };
        Answer {
            told,
            after: started.elapsed(),
        }
    }

    async fn told(&mut self, method: Method, token: &str) -> anyhow::Result<StatusCode> {
        let request = Request::builder()
            .method(method)
            .uri("/tenth")
            .header("host", "bench")
            .header("authorization", format!("Bearer {token}"))
            .body(Empty::new())?;
        self.0.ready().await.context("the connection ended")?;
        let answer = self.0.send_request(request).await?;
        let status = answer.status();
        answer.into_body().collect().await?;
        Ok(status)
    }
}

/// Each token on a connection of its own, all at once. Connections are made before.
pub(crate) async fn at_once(port: u16, tokens: &[String]) -> anyhow::Result<Vec<Answer>> {
    let mut callers = Vec::new();
    for token in tokens {
        callers.push((Caller::connect(port).await?, token));
    }
    let asked = callers
        .iter_mut()
        .map(|(caller, token)| caller.ask(Method::GET, token));
    Ok(join_all(asked).await)
}

/// How many answers were good.
pub(crate) fn good(answers: &[Answer]) -> usize {
    answers.iter().filter(|it| is_good(it)).count()
}

fn is_good(answer: &Answer) -> bool {
    matches!(&answer.told, Ok(status) if status.is_success())
}

/// What the other answers were, with how many of each.
pub(crate) fn others(answers: &[Answer]) -> Vec<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    for answer in answers.iter().filter(|it| !is_good(it)) {
        let what = match &answer.told {
            Ok(status) => status.as_u16().to_string(),
            Err(why) => why.clone(),
        };
        *counts.entry(what).or_default() += 1;
    }
    let each = counts.into_iter();
    each.map(|(what, count)| format!("{count} × {what}"))
        .collect()
}

/// Times of answers, in milliseconds.
pub(crate) fn milliseconds(answers: &[Answer]) -> Vec<f64> {
    let each = answers.iter();
    each.map(|it| it.after.as_secs_f64() * 1000.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_not_good_are_told_apart_and_counted() {
        let answer = |told| Answer {
            told,
            after: Duration::from_millis(3),
        };
        let answers = [
            answer(Ok(StatusCode::OK)),
            answer(Ok(StatusCode::UNAUTHORIZED)),
            answer(Err("reset".to_owned())),
            answer(Ok(StatusCode::UNAUTHORIZED)),
        ];
        assert_eq!(good(&answers), 1);
        assert_eq!(others(&answers), ["2 × 401", "1 × reset"]);
        assert_eq!(milliseconds(&answers)[0], 3.0);
    }
}
