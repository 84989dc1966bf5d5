//! One call: with a token or without, on a connection that waits or a new one, within its deadline.
//!
//! A request is sent once. It is sent again, on a new connection, only where the kept one turned out
//! to be dead before a byte was written, or where asking twice changes nothing.

use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

use super::connection::{Connection, Unsent};
use super::error::{CallError, chain, verdict};
use super::token::Token;
use super::{Audience, Sidecars, Transport, Whom};

/// No answer of a sidecar is near this.
const LARGEST_ANSWER: usize = 1 << 20;

/// What is asked.
#[derive(Debug)]
pub(super) struct Call {
    /// What is being done, for the sentence that says it took too long.
    pub(super) what: &'static str,
    /// How long it may take, once there is a token.
    pub(super) after: Duration,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Bytes,
}

impl Call {
    pub(super) fn get(what: &'static str, after: Duration, path: &str) -> Self {
        Self {
            what,
            after,
            method: Method::GET,
            path: path.to_owned(),
            body: Bytes::new(),
        }
    }

    fn request(
        &self,
        whom: &Whom,
        token: Option<&Token>,
    ) -> Result<Request<Full<Bytes>>, CallError> {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(header::HOST, whom.host());
        if !self.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, bearer(token)?);
        }
        request
            .body(Full::new(self.body.clone()))
            .map_err(|error| CallError::Garbled(format!("no request can be made: {error}")))
    }
}

fn bearer(token: &Token) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.secret()))
        .map_err(|_| super::NoToken::Unusable)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    body: Bytes,
}

impl Answer {
    /// Whether what was asked for was done.
    pub(super) fn accepted(&self) -> Result<(), CallError> {
        verdict(self.status, &self.body)
    }

    /// The body, as what it has to be.
    pub(super) fn read<T: DeserializeOwned>(&self, expected: &str) -> Result<T, CallError> {
        serde_json::from_slice(&self.body).map_err(|_| self.garbled(expected))
    }

    /// What was expected is not what came. The body is not repeated: it may hold parameters.
    pub(super) fn garbled(&self, expected: &str) -> CallError {
        CallError::Garbled(format!(
            "{} bytes with status {} are not {expected}",
            self.body.len(),
            self.status.as_u16(),
        ))
    }
}

impl Sidecars {
    /// Asks with a token. One that is not accepted is not used again.
    pub(super) async fn authorized(
        &self,
        whom: &Whom,
        over: &Transport,
        audience: Audience,
        call: &Call,
    ) -> Result<Answer, CallError> {
        let (namespace, node) = (&whom.namespace, &whom.node);
        // The address first: no token is asked for a pod that cannot be called.
        self.address(whom)?;
        let token = self.tokens.token(namespace, node, audience).await?;
        let answer = self.answer(whom, over, call, Some(&token)).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            self.tokens.drop_token(namespace, node, audience, &token);
        }
        Ok(answer)
    }

    /// Asks, within the call's deadline.
    pub(super) async fn answer(
        &self,
        whom: &Whom,
        over: &Transport,
        call: &Call,
        token: Option<&Token>,
    ) -> Result<Answer, CallError> {
        let late = CallError::Deadline {
            what: call.what,
            after: call.after,
        };
        let asked = Box::pin(self.asked(whom, over, call, token));
        let answered = timeout(call.after, asked).await.unwrap_or(Err(late));
        let late = matches!(answered, Err(CallError::Deadline { .. }));
        self.late.note(whom, late);
        let (answer, connection) = answered?;
        if let Some(connection) = connection {
            self.pool.put(&whom.pod_uid, over, connection);
        }
        Ok(answer)
    }

    async fn asked(
        &self,
        whom: &Whom,
        over: &Transport,
        call: &Call,
        token: Option<&Token>,
    ) -> Result<(Answer, Option<Connection>), CallError> {
        let address = self.address(whom)?;
        if let Some(kept) = self.pool.take(&whom.pod_uid, over) {
            match kept.ask(call.request(whom, token)?).await {
                Ok(answered) => return Ok(answered),
                Err(Unsent::Nothing) => {}
                Err(Unsent::Perhaps(_)) if call.method == Method::GET => {}
                Err(Unsent::Perhaps(error) | Unsent::Answer(error)) => return Err(error),
            }
        }
        let new = Connection::open(address, &whom.name(), over).await?;
        match new.ask(call.request(whom, token)?).await {
            Ok(answered) => Ok(answered),
            Err(Unsent::Perhaps(error) | Unsent::Answer(error)) => Err(error),
            Err(Unsent::Nothing) => {
                let why = "it closed a new connection at once";
                Err(CallError::Unreachable(why.to_owned()))
            }
        }
    }
}

/// Reads an answer to its end.
pub(super) async fn whole(answer: http::Response<Incoming>) -> Result<Answer, CallError> {
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, LARGEST_ANSWER).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => CallError::Garbled(format!("it is larger than {LARGEST_ANSWER} bytes")),
        false => {
            let why = chain(error.as_ref());
            CallError::Unreachable(format!("the answer did not arrive in full: {why}"))
        }
    })?;
    Ok(Answer {
        status: parts.status,
        body: body.to_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Dial, NoToken, Tokens};
    use super::*;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::net::TcpListener;
    use uuid::Uuid;

    struct At(SocketAddr);

    impl Dial for At {
        fn address(&self, _: &Whom) -> Option<SocketAddr> {
            Some(self.0)
        }
    }

    struct Any;

    impl Tokens for Any {
        fn token<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            _: Audience,
        ) -> BoxFuture<'a, Result<Token, NoToken>> {
            async { Ok(Token::new("any")) }.boxed()
        }

        fn drop_token(&self, _: &str, _: &str, _: Audience, _: &Token) {}
    }

    /// Answers one request.
    async fn answer_one(listener: TcpListener) {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
        stream.write_all(answer).await.expect("an answer");
    }

    #[tokio::test]
    async fn a_change_of_which_nothing_was_sent_goes_out_on_a_new_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = At(listener.local_addr().expect("an address"));
        let sidecars = Sidecars::new(Arc::new(at), Arc::new(Any));
        let (near, far) = duplex(1024);
        let over = Transport::Plaintext;
        let dead = Connection::over(near, Vec::new());
        sidecars.pool.put("pod", &over, dead);
        assert_eq!(sidecars.kept(), 1);
        drop(far);
        let whom = Whom {
            namespace: "sei".to_owned(),
            node: "pacific".to_owned(),
            pod_uid: "pod".to_owned(),
            ip: None,
        };

        tokio::spawn(answer_one(listener));
        let id = Uuid::from_u128(1);
        let done = sidecars.call_off(&whom, &over, Audience::Node, id).await;

        assert_eq!(done, Ok(()));
    }
}
