//! What is expected of an exchange, and what there is to see of one.

use crate::stage::Stage;
use crate::wire::Answer;

/// Everything there is to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) answer: Answer,
    /// What arrived at the upstream: the request line, then the rest in order of the alphabet.
    pub(crate) requests: Vec<Vec<String>>,
    pub(crate) reviews: (usize, usize),
}

/// What is expected of an exchange; what is not mentioned is compared between the programs only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expect {
    status: Option<u16>,
    says: Option<&'static str>,
    headers: Vec<(&'static str, Option<&'static str>)>,
    forwarded: usize,
    seen: Vec<&'static str>,
    unseen: Vec<&'static str>,
    reviews: Option<(usize, usize)>,
    cut_short: bool,
}

/// The proxy answers itself.
pub(crate) fn answers(status: u16, says: &'static str) -> Expect {
    Expect {
        status: Some(status),
        says: Some(says),
        ..Expect::default()
    }
}

/// An error the proxy tells in words.
pub(crate) fn refuses(status: u16, says: &'static str) -> Expect {
    answers(status, says)
        .header("content-type", "text/plain; charset=utf-8")
        .header("x-content-type-options", "nosniff")
        .without("www-authenticate")
}

/// The request arrives at the upstream, once, and its answer at the client.
pub(crate) fn proxies() -> Expect {
    Expect {
        forwarded: 1,
        ..answers(200, "hello")
    }
}

impl Expect {
    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, Some(value)));
        self
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.headers.push((name, None));
        self
    }

    /// The upstream sees this line, exactly once.
    pub(crate) fn seen(mut self, line: &'static str) -> Self {
        self.seen.push(line);
        self
    }

    /// No line the upstream sees starts like this, in any case of letters.
    pub(crate) fn unseen(mut self, start: &'static str) -> Self {
        self.unseen.push(start);
        self
    }

    pub(crate) fn forwarded(mut self, times: usize) -> Self {
        self.forwarded = times;
        self
    }

    pub(crate) fn cut_short(mut self) -> Self {
        self.cut_short = true;
        self
    }

    /// How often the API server is asked about tokens and about access.
    pub(crate) fn reviews(mut self, tokens: usize, access: usize) -> Self {
        self.reviews = Some((tokens, access));
        self
    }

    /// Whether it is so, and if not, what is not.
    pub(crate) fn holds(
        &self,
        who: &str,
        stage: &Stage,
        observed: &Observed,
    ) -> Result<(), String> {
        let answer = &observed.answer;
        let says = self.says.map(|it| stage.filled(it));
        let mut wrong = Vec::new();
        let mut check = |right: bool, what: String| {
            if !right {
                wrong.push(what);
            }
        };
        check(
            answer.status == self.status,
            format!("status {:?}", self.status),
        );
        check(
            says.as_ref().is_none_or(|it| *it == answer.body),
            format!("body {says:?}"),
        );
        check(
            answer.cut_short == self.cut_short,
            format!("cut short: {}", self.cut_short),
        );
        for (name, value) in &self.headers {
            check(
                answer.header(name) == *value,
                format!("header {name} {value:?}"),
            );
        }
        let forwarded = observed.requests.len();
        check(
            forwarded == self.forwarded,
            format!("forwarded {} times", self.forwarded),
        );
        for request in &observed.requests {
            for line in &self.seen {
                let line = stage.filled(line);
                let count = request.iter().filter(|it| **it == line).count();
                check(count == 1, format!("upstream sees {line:?}"));
            }
            for start in &self.unseen {
                let starts = |it: &String| it.to_lowercase().starts_with(start);
                check(
                    !request.iter().any(starts),
                    format!("upstream does not see {start:?}"),
                );
            }
        }
        let reviews = self.reviews.unwrap_or(observed.reviews);
        check(reviews == observed.reviews, format!("reviews {reviews:?}"));
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{who}: expected {}; it did {observed:#?}",
                wrong.join(", ")
            )),
        }
    }
}
