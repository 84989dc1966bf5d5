//! A running watch's stream of lines, with a hand on it: it can be told to end with `410 Gone`.
//!
//! Lines pass as they come and nothing is gathered. The farewell goes between two lines, never
//! into one. Cutting a watch off needs no help from here: its connection is reset.

use super::{answer, call::Call};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::oneshot;

/// The body of a watch's answer.
pub(super) struct Lines<B = Incoming> {
    inner: B,
    /// Taken when the watch is over.
    farewell: Option<Bytes>,
    expired: Option<oneshot::Receiver<()>>,
    ending: bool,
    between_lines: bool,
    /// Tells that the watch is over by being dropped.
    _running: Box<dyn Send>,
}

impl<B> Lines<B> {
    /// `running` is dropped with the stream.
    pub(super) fn new(
        inner: B,
        call: &Call,
        expired: oneshot::Receiver<()>,
        running: impl Send + 'static,
    ) -> Self {
        Self {
            inner,
            farewell: Some(answer::expired_event(call).into()),
            expired: Some(expired),
            ending: false,
            between_lines: true,
            _running: Box::new(running),
        }
    }

    /// Whether somebody asked for the end. A sender that is gone will not ask any more.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(expired) = &mut self.expired
            && let Poll::Ready(asked) = Pin::new(expired).poll(cx)
        {
            self.expired = None;
            self.ending = asked.is_ok();
        }
        self.ending
    }

    fn say_farewell(&mut self, rest_of_line: &[u8]) -> Option<Frame<Bytes>> {
        let mut bytes = rest_of_line.to_vec();
        bytes.extend(self.farewell.take()?);
        Some(Frame::data(bytes.into()))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Lines<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.farewell.is_none() {
            return Poll::Ready(None);
        }
        let ending = self.poll_expired(cx);
        if ending && self.between_lines {
            return Poll::Ready(self.say_farewell(&[]).map(Ok));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let end_of_line = data.iter().position(|byte| *byte == b'\n');
            if let Some(end) = end_of_line.filter(|_| ending) {
                let rest = data.slice(..=end);
                return Poll::Ready(self.say_farewell(&rest).map(Ok));
            }
            self.between_lines = data
                .last()
                .map_or(self.between_lines, |byte| *byte == b'\n');
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.farewell.is_none()
    }

    /// Unknown: the stream may end early.
    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, channel::mpsc};
    use http::Method;
    use http_body_util::{BodyExt, StreamBody};
    use std::convert::Infallible;

    type Source = mpsc::UnboundedReceiver<Result<Frame<Bytes>, Infallible>>;

    struct Stage {
        upstream: mpsc::UnboundedSender<Result<Frame<Bytes>, Infallible>>,
        expire: Option<oneshot::Sender<()>>,
        lines: Lines<StreamBody<Source>>,
    }

    fn stage() -> Stage {
        let (upstream, source) = mpsc::unbounded();
        let (expire, expired) = oneshot::channel();
        let call = Call::parse(&Method::GET, &"/api/v1/pods?watch=1".parse().unwrap());
        Stage {
            upstream,
            expire: Some(expire),
            lines: Lines::new(StreamBody::new(source), &call, expired, ()),
        }
    }

    impl Stage {
        fn send(&self, text: &'static str) {
            let frame = Frame::data(Bytes::from_static(text.as_bytes()));
            self.upstream.unbounded_send(Ok(frame)).unwrap();
        }

        fn expire(&mut self) {
            self.expire.take().unwrap().send(()).unwrap();
        }

        /// What is there to read now: none if nothing, an empty text at the end.
        fn read(&mut self) -> Option<String> {
            let frame = self.lines.frame().now_or_never()?;
            let data = frame.map(|frame| frame.unwrap().into_data().unwrap());
            Some(String::from_utf8(data.unwrap_or_default().into()).unwrap())
        }
    }

    #[test]
    fn lines_pass_as_they_come() {
        let mut stage = stage();
        assert_eq!(stage.read(), None);
        stage.send("{\"type\":");
        assert_eq!(stage.read().unwrap(), "{\"type\":");
        stage.send("1}\n");
        assert_eq!(stage.read().unwrap(), "1}\n");
        assert_eq!(stage.read(), None);
        stage.upstream.close_channel();
        assert_eq!(stage.read().unwrap(), "");
    }

    #[test]
    fn an_expired_watch_says_gone_between_two_lines_and_ends() {
        let mut stage = stage();
        stage.send("one\n");
        assert_eq!(stage.read().unwrap(), "one\n");
        stage.expire();
        assert!(stage.read().unwrap().starts_with("{\"type\":\"ERROR\""));
        stage.send("two\n");
        assert_eq!(stage.read().unwrap(), "");
    }

    #[test]
    fn an_expired_watch_finishes_the_line_it_is_in() {
        let mut stage = stage();
        stage.send("one\ntw");
        assert_eq!(stage.read().unwrap(), "one\ntw");
        stage.expire();
        assert_eq!(stage.read(), None);
        stage.send("o\nthree\n");
        let last = stage.read().unwrap();
        assert!(last.starts_with("o\n{\"type\":\"ERROR\""), "{last}");
        assert!(last.ends_with("}\n"), "{last}");
        assert_eq!(stage.read().unwrap(), "");
    }

    #[test]
    fn a_watch_goes_on_when_nobody_can_expire_it_any_more() {
        let mut stage = stage();
        stage.expire = None;
        assert_eq!(stage.read(), None);
        stage.send("one\n");
        assert_eq!(stage.read().unwrap(), "one\n");
    }
}
