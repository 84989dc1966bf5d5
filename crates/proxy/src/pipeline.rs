//! A request's way through the proxy: path, who, may they, on to the upstream.
//!
//! The order is the reference's and stands in `Pipeline::answer`, once. Each step is a question to
//! someone else: the path to `path`, the caller to `doorkeeper`, the headers to `headers`, the rest to
//! the upstream. Whatever stops a request is an [`Outcome`]; nothing that stops one lets it through.

mod doorkeeper;
mod forwarding;
mod trail;

pub use doorkeeper::{Doorkeeper, Entrant, Outage};

use crate::attributes::{self, RuleGroups};
use crate::config::Authorization;
use crate::headers::{self, Caller, Proof};
use crate::hygiene;
use crate::metrics::{Counts, Credential, Login, PROXIED, Ruling, Source};
use crate::outcome::Outcome;
use crate::path::{self, Reading, Rules, Standing};
use crate::query::{self, Query};
use crate::serve::{Origin, Respond};
use crate::target::Target;
use crate::upstream::{Leased, Upstream};
use arc_swap::ArcSwap;
use forwarding::{Ways, forwarded};
use http::header::{CONNECTION, HOST};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, Uri, Version};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use trail::Trail;

/// What the proxy answers with: words of its own, or the upstream's stream.
pub type AnswerBody = Either<Full<Bytes>, Leased>;

/// What the configuration file says, as one unit: it is replaced whole.
#[derive(Debug, Default)]
pub struct Policy {
    /// Who needs which permission.
    pub authorization: Authorization,
    /// Which paths are served, and which to anyone.
    pub paths: Rules,
}

/// What the flags say; it stays as long as the process.
#[derive(Debug, Default)]
pub struct Habits {
    /// How paths are read.
    pub paths: path::Mode,
    /// How queries are forwarded where a rewrite reads them.
    pub query: query::Policy,
    /// What becomes of headers.
    pub headers: headers::Policy,
    /// How requests become checks.
    pub attributes: attributes::Policy,
    /// Whether the groups of static rules count.
    pub rule_groups: RuleGroups,
    /// What `OPTIONS *` gets.
    pub options_star: OptionsStar,
    /// Whether every request gets a line in the log.
    pub access_log: bool,
}

/// What `OPTIONS *` gets (deviation A17).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptionsStar {
    /// 400.
    #[default]
    Refused,
    /// 200, without asking who.
    Answered,
}

/// The way through the proxy.
#[derive(Debug)]
pub struct Pipeline {
    /// What the configuration says now.
    pub policy: ArcSwap<Policy>,
    /// What the flags say.
    pub habits: Habits,
    /// Who knows callers and their rights.
    pub doorkeeper: Doorkeeper,
    /// Where requests go.
    pub target: Target,
    /// The connections there.
    pub upstream: Upstream,
    /// What is counted.
    pub counts: Counts,
}

impl Respond for Pipeline {
    type Body = AnswerBody;
    type Unanswered = std::convert::Infallible;

    async fn respond(
        self: Arc<Self>,
        origin: Arc<Origin>,
        request: Request<Incoming>,
    ) -> Result<Response<AnswerBody>, Self::Unanswered> {
        let (method, http1) = (
            request.method().clone(),
            request.version() <= Version::HTTP_11,
        );
        let mut trail = Trail::new(&self.counts, &request, self.habits.access_log);
        let clear = hygiene::examine(&request);
        let answer = match clear {
            Ok(()) => self.answer(&origin, request, &mut trail).await,
            Err(fault) => {
                tracing::debug!(%fault, "a request that could be read in two ways");
                Err(Outcome::Ambiguous)
            }
        };
        let outcome = answer.as_ref().map_or_else(Outcome::as_str, |_| PROXIED);
        let mut answer = answer.unwrap_or_else(|outcome| told(&outcome, &method));
        if clear.is_err() && http1 {
            // What comes next on this connection may be the other reading's.
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        trail.end(&self.counts, &method, answer.status(), outcome);
        Ok(answer)
    }
}

impl Pipeline {
    async fn answer(
        &self,
        origin: &Origin,
        request: Request<Incoming>,
        trail: &mut Trail,
    ) -> Result<Response<AnswerBody>, Outcome> {
        self.refuse_options_star(&request)?;
        let policy = self.policy.load_full();
        // Shares the request's bytes; the path outlives the request it came with.
        let target = request.uri().path_and_query().cloned();
        let raw_path = target.as_ref().map_or("", PathAndQuery::path);
        let path = match path::read(raw_path, self.habits.paths) {
            Err(_) => return Err(Outcome::Ambiguous),
            Ok(Reading::Redirect(to)) => return Err(redirect(&request, to)),
            Ok(Reading::Clean(path)) => path,
        };
        match policy.paths.standing(&path) {
            Standing::Absent => Err(Outcome::NotFound),
            Standing::Exempt => {
                trail.source = Source::Exempt;
                let caller = Caller::Exempt;
                self.forward(origin, request, caller, None, trail).await
            }
            Standing::Guarded => {
                self.guarded(origin, request, &policy, &path.decoded, trail)
                    .await
            }
        }
    }

    async fn guarded(
        &self,
        origin: &Origin,
        request: Request<Incoming>,
        policy: &Policy,
        path: &str,
        trail: &mut Trail,
    ) -> Result<Response<AnswerBody>, Outcome> {
        let began = Instant::now();
        let entrant = self.identify(origin, &request).await?;
        if trail.logged() {
            trail.user = Some(entrant.identity().user.clone());
        }
        let rewrites = policy.authorization.rewrites.as_ref();
        let checked = rewrites.map_or("", |rewrites| &rewrites.header);
        if headers::is_hop_by_hop(request.headers(), checked) {
            // It would be checked and then not be there for the upstream.
            return Err(Outcome::Malformed);
        }
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let asked = attributes::Asked {
            method: request.method(),
            path,
            query: &query,
            headers: request.headers(),
        };
        let checks = attributes::checks(&policy.authorization, asked, self.habits.attributes)
            .map_err(|_| Outcome::Malformed)?;
        let rules = &policy.authorization.rules;
        let left = checks.into_iter().filter(|check| {
            let groups = self.habits.rule_groups;
            let known = attributes::allowed_statically(rules, check, entrant.identity(), groups);
            if known {
                self.counts.ruled(Source::Static, Ruling::Allowed);
            }
            !known
        });
        let left = left.collect();
        let admitted = self.doorkeeper.admit(&entrant, left, &self.counts).await;
        let (source, admitted) = admitted;
        trail.source = source;
        self.counts.decided(began.elapsed());
        admitted?;
        let reads_query = rewrites.is_some_and(|rewrites| !rewrites.query.is_empty());
        let caller = Caller::Known {
            identity: entrant.identity(),
            proof: entrant.proof(),
        };
        let query = reads_query.then_some(&query);
        self.forward(origin, request, caller, query, trail).await
    }

    /// Who this is, counted.
    async fn identify(
        &self,
        origin: &Origin,
        request: &Request<Incoming>,
    ) -> Result<Entrant, Outcome> {
        let greeted = self.doorkeeper.greet(origin, request.headers()).await;
        let (credential, login) = match &greeted {
            Ok(entrant) => {
                let credential = match entrant.proof() {
                    Proof::Bearer => Credential::Bearer,
                    Proof::Subprotocol(_) => Credential::Websocket,
                    Proof::Certificate => Credential::Certificate,
                };
                (credential, Login::Accepted)
            }
            Err(outcome) => {
                let login = match outcome {
                    Outcome::Unauthorized => Login::Refused,
                    _ => Login::Failed,
                };
                (trail::shown(origin, request.headers()), login)
            }
        };
        self.counts.authenticated(credential, login);
        greeted
    }

    /// Sends the request on as this caller. A query that was checked is forwarded as it was read.
    async fn forward(
        &self,
        origin: &Origin,
        mut request: Request<Incoming>,
        caller: Caller<'_>,
        checked: Option<&Query>,
        trail: &mut Trail,
    ) -> Result<Response<AnswerBody>, Outcome> {
        let raw = request.uri().query().unwrap_or_default();
        let query = match checked {
            Some(query) => query.forwarded(raw, self.habits.query),
            None => Ok(raw.into()),
        };
        let query = query.map_err(|_| Outcome::Malformed)?;
        let uri = self.uri(request.uri(), &query)?;
        let host = forwarding::host(&request, &self.target.place);
        let http1 = request.version() <= Version::HTTP_11;
        let told = headers::forward(
            request.headers_mut(),
            &self.habits.headers,
            caller,
            Some(origin.peer.ip()),
        )
        .map_err(|_| Outcome::Internal)?;
        if let Some(host) = host {
            request.headers_mut().insert(HOST, host);
        }
        if !http1 {
            hygiene::join_cookies(request.headers_mut());
        }
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_11;
        let upgrade = told.upgrade.filter(|_| http1);
        let began = Instant::now();
        let ways = Ways {
            upstream: &self.upstream,
            tunnels: &origin.tunnels,
            counts: &self.counts,
        };
        let answer = forwarded(ways, request, upgrade).await;
        let took = began.elapsed();
        self.counts.forwarded(took);
        trail.upstream = Some(took);
        answer
    }

    /// Where the upstream gets it: the client's own words where nothing is added to them, and written
    /// anew otherwise.
    fn uri(&self, asked: &Uri, query: &str) -> Result<Uri, Outcome> {
        let path = self.target.path(asked.path());
        let joined = query::joined(&self.target.query, query);
        let same = matches!((&path, &joined), (Cow::Borrowed(_), Cow::Borrowed(joined))
            if *joined == asked.query().unwrap_or_default());
        if let Some(words) = asked.path_and_query().filter(|_| same) {
            return Ok(words.clone().into());
        }
        let uri = match joined.is_empty() {
            true => path.parse(),
            false => format!("{path}?{joined}").parse(),
        };
        uri.map_err(|_| Outcome::Ambiguous)
    }

    fn refuse_options_star(&self, request: &Request<Incoming>) -> Result<(), Outcome> {
        let star = request.method() == Method::OPTIONS && request.uri().path() == "*";
        match (star, self.habits.options_star) {
            (false, _) => Ok(()),
            (true, OptionsStar::Refused) => Err(Outcome::OptionsStarRefused),
            (true, OptionsStar::Answered) => Err(Outcome::OptionsStar),
        }
    }
}

/// A cleaned path keeps its query.
fn redirect(request: &Request<Incoming>, to: String) -> Outcome {
    match request.uri().query() {
        Some(query) => Outcome::Redirect(format!("{to}?{query}")),
        None => Outcome::Redirect(to),
    }
}

fn told(outcome: &Outcome, method: &Method) -> Response<AnswerBody> {
    let reply = outcome.reply(method);
    let mut response = Response::new(Either::Left(Full::from(reply.body)));
    *response.status_mut() = reply.status;
    response.headers_mut().extend(reply.headers);
    response
}
