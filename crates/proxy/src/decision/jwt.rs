//! The `exp` of a token, read without checking anything.
//!
//! The API server alone says whether a token is good. What is read here can only shorten the life of
//! its answer or spare the API server a token that is over, so a forged claim harms its bearer only,
//! and a token that is no JWT, or a broken one, simply has no `exp`.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// The moment a token says it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiry(
    /// Since the Unix epoch.
    Duration,
);

#[derive(Deserialize)]
struct Claims {
    exp: f64,
}

impl Expiry {
    /// Reads it from a token; none if the token is no JWT or has no usable `exp`.
    pub fn of(token: &str) -> Option<Expiry> {
        let mut parts = token.split('.');
        let (_header, claims) = (parts.next()?, parts.next()?);
        let (Some(_signature), None) = (parts.next(), parts.next()) else {
            return None;
        };
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        // Serde would read a list as the fields in order.
        if !claims.trim_ascii_start().starts_with(b"{") {
            return None;
        }
        let Claims { exp } = serde_json::from_slice(&claims).ok()?;
        Duration::try_from_secs_f64(exp).ok().map(Expiry)
    }

    /// The time left; zero once it is over.
    pub fn left(self, now: SystemTime) -> Duration {
        self.0.saturating_sub(since_epoch(now))
    }

    /// Whether it was over more than `leeway` ago.
    pub fn over(self, now: SystemTime, leeway: Duration) -> bool {
        since_epoch(now).saturating_sub(self.0) > leeway
    }
}

/// A clock before 1970 is as good as one at it: nothing is over.
fn since_epoch(now: SystemTime) -> Duration {
    now.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(claims: &str) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn exp_is_read_from_a_jwt_and_from_nothing_else() {
        let millis = |count| Some(Expiry(Duration::from_millis(count)));
        for (token, expected) in [
            (jwt(r#"{"exp":1700000000}"#), millis(1_700_000_000_000)),
            (
                jwt(r#"{"iss":"x","exp":1700000000.5,"aud":["a"]}"#),
                millis(1_700_000_000_500),
            ),
            (jwt(r#"{"exp":0}"#), millis(0)),
            (jwt(" {\"exp\":1}"), millis(1_000)),
            // None of these has one.
            (jwt(r#"{"exp":-1}"#), None),
            (jwt(r#"{"exp":1e300}"#), None),
            (jwt(r#"{"exp":"1700000000"}"#), None),
            (jwt(r#"{"exp":null}"#), None),
            (jwt(r#"{"exp":1,"exp":2}"#), None),
            (jwt("{}"), None),
            (jwt("[1]"), None),
            (jwt("not json"), None),
            ("e30.%%%.c2ln".into(), None),
            (format!("{}.more", jwt(r#"{"exp":1}"#)), None),
            ("eyJleHAiOjF9".into(), None),
            ("a.eyJleHAiOjF9".into(), None),
            ("..".into(), None),
            (String::new(), None),
        ] {
            assert_eq!(Expiry::of(&token), expected, "{token}");
        }
    }

    #[test]
    fn a_token_is_over_only_after_the_leeway() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let expiry = Expiry(Duration::from_secs(1_000));
        let leeway = Duration::from_secs(60);
        for (now, left, over) in [
            (900, 100, false),
            (1_000, 0, false),
            (1_060, 0, false),
            (1_061, 0, true),
        ] {
            assert_eq!(expiry.left(at(now)), Duration::from_secs(left), "{now}");
            assert_eq!(expiry.over(at(now), leeway), over, "{now}");
        }
    }

    #[test]
    fn a_clock_before_the_epoch_expires_nothing() {
        let long_ago = SystemTime::UNIX_EPOCH - Duration::from_secs(5);
        let expiry = Expiry(Duration::from_secs(10));
        assert!(!expiry.over(long_ago, Duration::ZERO));
        assert_eq!(expiry.left(long_ago), Duration::from_secs(10));
    }
}
