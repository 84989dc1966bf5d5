//! Who may read metrics: asked of the API server, by TokenReview and SubjectAccessReview, on every
//! platform.
//!
//! The questions, their retries and the memory of their answers are the proxy's. Here is how long an
//! answer is good for. While the API server is away, a yes lives on until a quarter of an hour after
//! it was given and never past the token's own end; everyone else is told to come back.

use http::{HeaderMap, Method};
use keelson_api::host::METRICS_PATH;
use keelson_proxy::apiserver::ApiServer;
use keelson_proxy::attributes::{Check, Object};
use keelson_proxy::decision::authn::EXPIRED_LEEWAY;
use keelson_proxy::decision::lifetime::Terms;
use keelson_proxy::decision::settings::Bounds;
use keelson_proxy::decision::{Authentication, Engine, Keys, Settings};
use keelson_proxy::metrics::Counts;
use keelson_proxy::outcome::Outcome;
use keelson_proxy::pipeline::{Doorkeeper, Outage};
use keelson_proxy::reviewers::{AccessReviewer, TokenReviewer};
use keelson_proxy::serve::Origin;
use keelson_proxy::settings::Authenticator;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How old a yes may become while the API server cannot be asked.
pub const LONGEST_YES: Duration = Duration::from_secs(15 * 60);

/// How long one question may take, and how long with everything: a scraper waits ten seconds.
const ONE_CALL: Duration = Duration::from_secs(2);
const IN_ALL: Duration = Duration::from_secs(4);

/// As many readers as are remembered.
const READERS: Bounds = Bounds {
    entries: 256,
    bytes: 512 << 10,
};

/// Lets readers in.
#[derive(Debug)]
pub struct Door {
    doorkeeper: Doorkeeper,
    counts: Counts,
}

impl Door {
    /// A door before the API server that a kubeconfig names, or that every pod knows. Nobody is
    /// asked yet.
    pub fn new(kubeconfig: Option<&Path>) -> Result<Self, String> {
        let server = Arc::new(server(kubeconfig)?);
        let keys = Arc::new(Keys::random().map_err(|error| error.to_string())?);
        let tokens = TokenReviewer {
            server: Arc::clone(&server),
            keys: Arc::clone(&keys),
            accept_unnamed: false,
            deadline: ONE_CALL,
        };
        let access = AccessReviewer {
            server,
            deadline: ONE_CALL,
        };
        let doorkeeper = Doorkeeper::new(
            Authentication::new(
                tokens,
                settings(Settings::tokens()),
                Arc::clone(&keys),
                Some(EXPIRED_LEEWAY),
            ),
            Engine::new(access, settings(Settings::access())),
            keys,
            Arc::default(),
            Outage::Told,
        );
        Ok(Self {
            doorkeeper: doorkeeper.asking(vec![Authenticator::TokenReview], None),
            counts: Counts::default(),
        })
    }

    /// Whether whoever asks may read metrics with this method.
    pub async fn admit(
        &self,
        origin: &Origin,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<(), Outcome> {
        let entrant = self.doorkeeper.greet(origin, headers).await?;
        let check = Check {
            verb: method.as_str().to_ascii_lowercase().into(),
            object: Object::Path(METRICS_PATH.into()),
        };
        let checks = vec![check];
        let (_, ruled) = self.doorkeeper.admit(&entrant, checks, &self.counts).await;
        ruled
    }
}

/// The usual settings, for few readers, short waits and a long outage.
fn settings(usual: Settings) -> Settings {
    Settings {
        terms: Terms {
            stale_if_error: LONGEST_YES.saturating_sub(usual.terms.positive_ttl),
            ..usual.terms
        },
        positives: READERS,
        negatives: READERS,
        deadline: IN_ALL,
        ..usual
    }
}

fn server(kubeconfig: Option<&Path>) -> Result<ApiServer, String> {
    let Some(file) = kubeconfig else {
        return ApiServer::in_cluster().map_err(|error| error.to_string());
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{} was not read: {error}", file.display()))?;
    let beside = file.parent().unwrap_or(Path::new("."));
    ApiServer::from_kubeconfig(&text, beside)
        .map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use keelson_proxy::decision::Verdict;
    use keelson_proxy::decision::lifetime::{Lifetime, Review};
    use tokio::time::Instant;

    #[test]
    fn a_yes_is_over_a_quarter_of_an_hour_after_it_was_asked_for_or_with_its_token() {
        let asked = Instant::now();
        let review = Review {
            asked,
            answered: asked,
        };
        for usual in [Settings::tokens(), Settings::access()] {
            let terms = settings(usual).terms;
            let life = |not_after| Lifetime::of(&terms, Verdict::Positive, review, not_after);
            assert_eq!(life(None).stale_until, asked + LONGEST_YES);
            let exp = asked + Duration::from_secs(400);
            assert_eq!(life(Some(exp)).stale_until, exp);
            let no = Lifetime::of(&terms, Verdict::Negative, review, None);
            assert!(no.stale_until <= asked + Duration::from_secs(30));
        }
    }
}
