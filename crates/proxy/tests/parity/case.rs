//! A case: one request, and what comes of it, from both programs alike or with a difference that
//! is named. A difference that is declared and not there fails as one that is there and not
//! declared does.

use crate::expect::{Expect, Observed};
use crate::stage::{Place, Stage};
use crate::subject::{Running, Subject};
use crate::wire::Answer;
use keelson_testbed::faults::{Fault, On, Outage, Rule};
use std::net::SocketAddr;

/// Requests to the same two programs.
pub(crate) struct Group {
    pub(crate) place: Place,
    pub(crate) config: &'static str,
    pub(crate) flags: &'static [&'static str],
    pub(crate) cases: Vec<Case>,
}

pub(crate) struct Case {
    /// The row of the outcome table or of the list of deviations, or the line of the checklist.
    pub(crate) row: &'static str,
    pub(crate) name: &'static str,
    request: String,
    times: usize,
    trouble: Trouble,
    pub(crate) verdict: Verdict,
}

/// What is wrong with the API server during a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Nothing,
    /// It refuses every connection.
    Away,
    /// It does not let the proxy ask about tokens.
    NoTokenReviews,
    /// It does not let the proxy ask about access.
    NoAccessReviews,
}

pub(crate) enum Verdict {
    Same(Expect),
    Differs {
        reference: Expect,
        ours: Expect,
        /// The flags that make ours behave as the reference, where there are any.
        restore: Option<&'static [&'static str]>,
    },
}

/// A request as most clients send it. Without `Accept-Encoding` the reference would add one (A12).
pub(crate) fn ask(method: &str, target: &str, headers: &[&str]) -> String {
    let lines: String = headers.iter().map(|it| format!("{it}\r\n")).collect();
    format!(
        "{method} {target} HTTP/1.1\r\nHost: node.example\r\nAccept-Encoding: identity\r\n{lines}\r\n"
    )
}

pub(crate) fn get(target: &str, headers: &[&str]) -> String {
    ask("GET", target, headers)
}

impl Case {
    fn with(
        row: &'static str,
        name: &'static str,
        request: impl Into<String>,
        verdict: Verdict,
    ) -> Self {
        Self {
            row,
            name,
            request: request.into(),
            times: 1,
            trouble: Trouble::Nothing,
            verdict,
        }
    }

    /// Both do this.
    pub(crate) fn same(
        row: &'static str,
        name: &'static str,
        request: impl Into<String>,
        both: Expect,
    ) -> Self {
        Self::with(row, name, request, Verdict::Same(both))
    }

    /// Each does its own, and the flags, if any, make ours do the reference's.
    pub(crate) fn differs(
        row: &'static str,
        name: &'static str,
        request: impl Into<String>,
        reference: Expect,
        ours: Expect,
        restore: Option<&'static [&'static str]>,
    ) -> Self {
        let verdict = Verdict::Differs {
            reference,
            ours,
            restore,
        };
        Self::with(row, name, request, verdict)
    }

    /// The request is sent this often, each time on a connection of its own; the last answer counts.
    pub(crate) fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    pub(crate) fn during(mut self, trouble: Trouble) -> Self {
        self.trouble = trouble;
        self
    }

    async fn observe(&self, stage: &Stage, subject: &Running) -> Observed {
        let request = stage.filled_with_tokens(&self.request).await;
        subject.upstream.take();
        subject.faults.forget();
        let _trouble = Held::begin(self.trouble, subject);
        let mut answer = Answer::default();
        for _ in 0..self.times {
            answer = subject.door.exchange(request.as_bytes()).await;
        }
        let requests = subject.upstream.take();
        Observed {
            answer,
            requests: requests
                .iter()
                .map(|it| arrived(it, subject.upstream.address))
                .collect(),
            reviews: subject.reviews(),
        }
    }

    /// What is wrong, if anything.
    async fn judge(&self, stage: &Stage, pair: &Pair) -> Result<(), String> {
        let reference = self.observe(stage, &pair.reference).await;
        let ours = self.observe(stage, &pair.ours).await;
        match &self.verdict {
            Verdict::Same(both) => {
                both.holds("kube-rbac-proxy", stage, &reference)?;
                both.holds("keelson-proxy", stage, &ours)?;
                alike("keelson-proxy", &reference, &ours)
            }
            Verdict::Differs {
                reference: theirs,
                ours: wanted,
                restore,
            } => {
                theirs.holds("kube-rbac-proxy", stage, &reference)?;
                wanted.holds("keelson-proxy", stage, &ours)?;
                if reference == ours {
                    return Err(format!("there is no difference: both did {ours:#?}"));
                }
                let Some(flags) = restore else { return Ok(()) };
                let restored = pair.restored(flags);
                let restored = self.observe(stage, restored).await;
                alike(
                    &format!("keelson-proxy {}", flags.join(" ")),
                    &reference,
                    &restored,
                )
            }
        }
    }
}

fn alike(who: &str, reference: &Observed, ours: &Observed) -> Result<(), String> {
    match reference == ours {
        true => Ok(()),
        false => Err(format!(
            "{who} did {ours:#?}\nand kube-rbac-proxy {reference:#?}"
        )),
    }
}

/// The lines of a request. Tokens are new in every case and not compared, and every subject has an
/// upstream of its own.
fn arrived(bytes: &[u8], upstream: SocketAddr) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).replace(&upstream.to_string(), "{upstream}");
    let mut lines: Vec<String> = text.split("\r\n").map(str::to_owned).collect();
    for line in &mut lines {
        if let Some(at) = line.find("Bearer ey") {
            line.replace_range(at.., "Bearer {token}");
        }
    }
    lines.retain(|line| !line.is_empty());
    lines[1..].sort();
    lines
}

/// Trouble of the API server, over when dropped.
enum Held {
    Nothing,
    Away { _outage: Outage },
    Refused { _rule: Rule },
}

impl Held {
    fn begin(trouble: Trouble, subject: &Running) -> Self {
        let refuse = |resource| Held::Refused {
            _rule: subject
                .faults
                .inject(Fault::Forbidden, On::every().resource(resource)),
        };
        match trouble {
            Trouble::Nothing => Held::Nothing,
            Trouble::Away => Held::Away {
                _outage: subject.faults.refuse(),
            },
            Trouble::NoTokenReviews => refuse("tokenreviews"),
            Trouble::NoAccessReviews => refuse("subjectaccessreviews"),
        }
    }
}

/// Both programs with the same flags, and ours with those that restore the reference's ways.
struct Pair {
    reference: Running,
    ours: Running,
    restored: Vec<(&'static [&'static str], Running)>,
}

impl Pair {
    fn restored(&self, flags: &[&str]) -> &Running {
        let found = self.restored.iter().find(|(given, _)| *given == flags);
        &found.expect("started with the others").1
    }
}

impl Group {
    async fn start(&self, stage: &Stage) -> Pair {
        let start = async |subject, more: &[&str]| {
            let flags = [self.flags, more].concat();
            stage.start(subject, self.place, self.config, &flags).await
        };
        let mut restored: Vec<(&'static [&'static str], Running)> = Vec::new();
        for case in &self.cases {
            if let Verdict::Differs {
                restore: Some(flags),
                ..
            } = &case.verdict
                && !restored.iter().any(|(given, _)| given == flags)
            {
                restored.push((flags, start(Subject::Keelson, flags).await));
            }
        }
        Pair {
            reference: start(Subject::KubeRbacProxy, &[]).await,
            ours: start(Subject::Keelson, &[]).await,
            restored,
        }
    }
}

/// Runs every case of every group, and tells of all that fail.
pub(crate) async fn compare(stage: &Stage, groups: Vec<Group>) {
    let mut failed = Vec::new();
    for group in groups {
        let pair = group.start(stage).await;
        for case in &group.cases {
            if let Err(why) = case.judge(stage, &pair).await {
                failed.push(format!("{} {}: {why}", case.row, case.name));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
