//! The API server's answers: a yes is a yes only if the answer says so in so many words.

use keelson_proxy::review::{
    AccessVerdict, Audiences, Identity, TokenVerdict, access_verdict, token_verdict,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The input is the body of an answer to a SubjectAccessReview.
pub fn access(data: &[u8]) {
    let expected = status(data, "SubjectAccessReview").and_then(|status| access_said(&status));
    match (access_verdict(data), expected) {
        (AccessVerdict::Error(why), None) => assert!(!why.is_empty()),
        (verdict, expected) => assert_eq!(Some(verdict), expected),
    }
}

/// What the status says; nothing when it contradicts itself or is not of the type.
fn access_said(status: &Map<String, Value>) -> Option<AccessVerdict> {
    let (allowed, denied) = (boolean(status, "allowed")?, boolean(status, "denied")?);
    let reason = text(status, "reason")?;
    let error = text(status, "evaluationError")?;
    match (allowed, denied) {
        (true, true) => None,
        (true, false) => Some(AccessVerdict::Allowed(reason)),
        (false, true) => Some(AccessVerdict::Denied(reason)),
        (false, false) if reason.is_empty() => Some(AccessVerdict::NoOpinion(error)),
        (false, false) => Some(AccessVerdict::NoOpinion(reason)),
    }
}

/// The input is a line of wanted audiences, parted by commas, and the body of an answer to a
/// TokenReview. A line that starts with `!` accepts an answer that names no audience.
pub fn token(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    let (line, body) = (parts.next(), parts.next().unwrap_or_default());
    let Some(line) = line.and_then(super::text) else {
        return;
    };
    let names = line.strip_prefix('!').unwrap_or(line).split(',');
    let audiences = Audiences {
        wanted: names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        accept_unnamed: line.starts_with('!'),
    };
    let expected = status(body, "TokenReview").and_then(|status| token_said(&status));
    match (token_verdict(body, &audiences), expected) {
        (TokenVerdict::Error(why), None) => assert!(!why.is_empty()),
        (TokenVerdict::Rejected(why), Some(Said::No(said))) => {
            assert!(!why.is_empty() && (said.is_empty() || said == why));
        }
        (verdict, Some(Said::Yes(identity, named))) => {
            let shared = shared(&audiences, &named);
            let yes = shared.map(|audiences| TokenVerdict::Authenticated {
                identity,
                audiences,
            });
            match yes {
                Some(yes) => assert_eq!(verdict, yes),
                None => assert!(matches!(verdict, TokenVerdict::Rejected(_)), "{verdict:?}"),
            }
        }
        (verdict, expected) => panic!("{verdict:?}, and the answer says {expected:?}"),
    }
}

#[derive(Debug)]
enum Said {
    Yes(Identity, Vec<String>),
    No(String),
}

fn token_said(status: &Map<String, Value>) -> Option<Said> {
    let user = match status.get("user") {
        None | Some(Value::Null) => &Map::new(),
        Some(user) => user.as_object()?,
    };
    let mut identity = Identity {
        user: text(user, "username")?,
        uid: text(user, "uid")?,
        groups: texts(user.get("groups"))?,
        ..Identity::default()
    };
    let extra = match user.get("extra") {
        None | Some(Value::Null) => &Map::new(),
        Some(extra) => extra.as_object()?,
    };
    let mut attributes = BTreeMap::new();
    for (key, values) in extra {
        values.as_array()?;
        attributes.insert(key.clone(), texts(Some(values))?);
    }
    identity.extra = attributes.into();
    let known = |group: &str| identity.groups.iter().any(|other| other == group);
    let settled = known("system:authenticated") || known("system:unauthenticated");
    if identity.user != "system:anonymous" && !settled {
        identity.groups.push("system:authenticated".to_owned());
    }
    let named = texts(status.get("audiences"))?;
    let error = text(status, "error")?;
    Some(match boolean(status, "authenticated")? {
        true => Said::Yes(identity, named),
        false => Said::No(error),
    })
}

/// The audiences a good token is good for; nothing when it is for others.
fn shared(audiences: &Audiences, named: &[String]) -> Option<Vec<String>> {
    let wanted = &audiences.wanted;
    let shared: Vec<String> = match (wanted.is_empty(), named.is_empty()) {
        (true, _) => return Some(named.to_vec()),
        (false, true) if audiences.accept_unnamed => wanted.clone(),
        (false, _) => wanted
            .iter()
            .filter(|name| named.contains(name))
            .cloned()
            .collect(),
    };
    Some(shared).filter(|shared| !shared.is_empty())
}

/// The status of an answer of this kind; nothing when it is none.
fn status(body: &[u8], kind: &str) -> Option<Map<String, Value>> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let answer = answer.as_object()?;
    if answer
        .get("kind")
        .is_some_and(|found| found.as_str() != Some(kind))
    {
        return None;
    }
    match answer.get("status") {
        None | Some(Value::Null) => Some(Map::new()),
        Some(status) => status.as_object().cloned(),
    }
}

fn boolean(status: &Map<String, Value>, key: &str) -> Option<bool> {
    match status.get(key) {
        None | Some(Value::Null) => Some(false),
        Some(value) => value.as_bool(),
    }
}

fn text(status: &Map<String, Value>, key: &str) -> Option<String> {
    match status.get(key) {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    }
}

fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(value) => {
            let text = |item: &Value| item.as_str().map(str::to_owned);
            value.as_array()?.iter().map(text).collect()
        }
    }
}
