//! What the claims of a token come to: for whom it is, when it holds, and who its bearer is.

use super::Rejected;
use crate::review::Identity;
use crate::settings::Oidc;
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime};

type Claims = Map<String, Value>;

/// How far an issuer's clock may be ahead of ours, as the reference has it. For the end of a token
/// there is no such leeway.
const EARLY: Duration = Duration::from_secs(5 * 60);

/// Whether the token is of this issuer and for this client.
pub fn meant_for(claims: &Claims, oidc: &Oidc) -> Result<(), Rejected> {
    if claims.get("iss").and_then(Value::as_str) != Some(&oidc.issuer) {
        return Err(Rejected::OtherIssuer);
    }
    let wanted = |audience: &Value| audience.as_str() == Some(&oidc.client_id);
    let named = match claims.get("aud") {
        Some(Value::Array(audiences)) => audiences.iter().any(wanted),
        Some(audience) => wanted(audience),
        None => false,
    };
    named.then_some(()).ok_or(Rejected::Audience)
}

/// When the token ends, if it holds at this time.
pub fn timely(claims: &Claims, now: SystemTime) -> Result<SystemTime, Rejected> {
    let end = claims.get("exp").and_then(moment);
    let end = end.filter(|end| now <= *end).ok_or(Rejected::Expired)?;
    match claims.get("nbf") {
        None | Some(Value::Null) => Ok(end),
        Some(begin) => match moment(begin) {
            Some(begin) if begin <= now + EARLY => Ok(end),
            _ => Err(Rejected::TooEarly),
        },
    }
}

fn moment(claim: &Value) -> Option<SystemTime> {
    let since = Duration::try_from_secs_f64(claim.as_f64()?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// Who the bearer is. No group is added: what the issuer says is all there is.
pub fn identity(claims: &Claims, oidc: &Oidc) -> Result<Identity, Rejected> {
    let user = claims.get(&oidc.username_claim).and_then(Value::as_str);
    let user = user.filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| Rejected::Claim(oidc.username_claim.clone()))?;
    if oidc.username_claim == "email"
        && let Some(verified) = claims.get("email_verified")
        && *verified != Value::Bool(true)
    {
        return Err(Rejected::EmailNotVerified);
    }
    if distributed(claims, &oidc.groups_claim) {
        return Err(Rejected::Distributed(oidc.groups_claim.clone()));
    }
    let groups = groups(claims.get(&oidc.groups_claim));
    let groups = groups.ok_or_else(|| Rejected::Claim(oidc.groups_claim.clone()))?;
    let prefixed = |prefix: &str, name: &str| format!("{prefix}{name}");
    Ok(Identity {
        user: prefixed(&oidc.username_prefix, user),
        groups: groups
            .into_iter()
            .map(|group| prefixed(&oidc.groups_prefix, group))
            .collect(),
        ..Identity::default()
    })
}

/// Whether a claim is said to be somewhere else than in the token.
pub fn distributed(claims: &Claims, name: &str) -> bool {
    let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
    !claims.contains_key(name) && elsewhere.is_some_and(|names| names.contains_key(name))
}

/// One group or a list of them; nothing is none.
fn groups(claim: Option<&Value>) -> Option<Vec<&str>> {
    match claim {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(groups)) => groups.iter().map(Value::as_str).collect(),
        Some(group) => group.as_str().map(|group| vec![group]),
    }
}
