//! The answers the proxy gives itself: Kubernetes `Status` objects as the API server words them.
//!
//! Pure: which fault on which call becomes which code, headers and body. Sending them is the
//! edge's.

use super::{
    call::{Call, Verb},
    script::Fault,
};
use serde_json::{Value, json};
use std::time::Duration;

/// An answer made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) retry_after: Option<u64>,
    pub(super) body: String,
}

/// The answer to a call that is refused without asking the API server; none for faults that let the
/// call through or answer nothing.
pub(super) fn refusal(fault: &Fault, call: &Call) -> Option<Answer> {
    let subject = format!(
        "{}{} \"{}\"",
        call.resource,
        if call.group.is_empty() {
            String::new()
        } else {
            format!(".{}", call.group)
        },
        call.name.as_deref().unwrap_or_default(),
    );
    Some(match fault {
        Fault::Unauthorized => plain(status(call, 401, "Unauthorized", "Unauthorized")),
        Fault::Forbidden => plain(status(
            call,
            403,
            "Forbidden",
            &format!("{subject} is forbidden: a rule of the fault proxy"),
        )),
        Fault::Conflict => plain(status(
            call,
            409,
            "Conflict",
            &format!(
                "Operation cannot be fulfilled on {subject}: the object has been modified; please apply your changes to the latest version and try again"
            ),
        )),
        Fault::Expired if call.verb == Verb::Watch => Answer {
            code: 200,
            retry_after: None,
            body: expired_event(call),
        },
        Fault::Gone | Fault::Expired => plain(expired(call)),
        Fault::TooManyRequests { retry_after } => busy(call, *retry_after),
        Fault::Internal => plain(status(
            call,
            500,
            "InternalError",
            "Internal error occurred: a rule of the fault proxy",
        )),
        Fault::Garbage => Answer {
            code: 200,
            retry_after: None,
            body: "<html>Welcome</html>".to_owned(),
        },
        Fault::Unavailable => plain(status(
            call,
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        )),
        Fault::BlackHole
        | Fault::SlowRequest(_)
        | Fault::SlowAnswer(_)
        | Fault::LostAnswer
        | Fault::Reset
        | Fault::CutAnswer => return None,
    })
}

/// The API server behind the proxy did not answer: a defect of the test's cluster, not a fault
/// somebody scripted, so the answer says so.
pub(super) fn unreachable(call: &Call, why: &str) -> Answer {
    plain(status(
        call,
        502,
        "InternalError",
        &format!("the API server behind the fault proxy did not answer: {why}"),
    ))
}

/// The line that tells a watcher to list again.
pub(super) fn expired_event(call: &Call) -> String {
    let mut line = json!({ "type": "ERROR", "object": expired(call) }).to_string();
    line.push('\n');
    line
}

fn expired(call: &Call) -> Value {
    status(call, 410, "Expired", "too old resource version: 1 (2)")
}

fn busy(call: &Call, retry_after: Duration) -> Answer {
    let seconds = retry_after.as_secs();
    let mut status = status(
        call,
        429,
        "TooManyRequests",
        "The server is currently overloaded, please try again later",
    );
    status["details"]["retryAfterSeconds"] = seconds.into();
    Answer {
        retry_after: Some(seconds),
        ..plain(status)
    }
}

fn plain(status: Value) -> Answer {
    Answer {
        code: status["code"]
            .as_u64()
            .and_then(|code| code.try_into().ok())
            .unwrap_or(500),
        retry_after: None,
        body: status.to_string(),
    }
}

fn status(call: &Call, code: u16, reason: &str, message: &str) -> Value {
    let mut details = json!({});
    for (key, value) in [
        ("name", call.name.as_deref().unwrap_or_default()),
        ("group", &call.group),
        ("kind", &call.resource),
    ] {
        if !value.is_empty() {
            details[key] = value.into();
        }
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;
    use kube::core::Status;

    fn call(method: Method, uri: &str) -> Call {
        Call::parse(&method, &uri.parse().unwrap())
    }

    #[test]
    fn a_refusal_is_a_status_a_client_can_read() {
        let update = call(Method::PUT, "/apis/apps/v1/namespaces/n/deployments/d");
        for (fault, code, reason) in [
            (Fault::Unauthorized, 401, "Unauthorized"),
            (Fault::Forbidden, 403, "Forbidden"),
            (Fault::Conflict, 409, "Conflict"),
            (Fault::Gone, 410, "Expired"),
            (Fault::Expired, 410, "Expired"),
            (Fault::Unavailable, 503, "ServiceUnavailable"),
        ] {
            let answer = refusal(&fault, &update).unwrap();
            let status: Status = serde_json::from_str(&answer.body).unwrap();
            assert_eq!((answer.code, status.code), (code, code), "{fault:?}");
            assert_eq!(status.reason, reason);
            assert!(status.is_failure());
            let details = status.details.unwrap();
            assert_eq!(
                (
                    details.name.as_str(),
                    details.group.as_str(),
                    details.kind.as_str()
                ),
                ("d", "apps", "deployments")
            );
        }
    }

    #[test]
    fn too_many_requests_says_when_to_come_back_in_header_and_body() {
        let fault = Fault::TooManyRequests {
            retry_after: Duration::from_secs(7),
        };
        let answer = refusal(&fault, &call(Method::GET, "/api/v1/nodes")).unwrap();
        assert_eq!((answer.code, answer.retry_after), (429, Some(7)));
        let status: Status = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(status.details.unwrap().retry_after_seconds, 7);
    }

    #[test]
    fn an_expired_watch_opens_well_and_says_gone_in_its_first_line() {
        let watch = call(Method::GET, "/api/v1/pods?watch=1");
        let answer = refusal(&Fault::Expired, &watch).unwrap();
        assert_eq!(answer.code, 200);
        assert_eq!(answer.body.matches('\n').count(), 1);
        let event: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(event["type"], "ERROR");
        assert_eq!(event["object"]["code"], 410);
        assert_eq!(event["object"]["reason"], "Expired");
        assert_eq!(refusal(&Fault::Gone, &watch).unwrap().code, 410);
    }

    #[test]
    fn faults_that_let_a_call_through_or_swallow_it_have_no_answer() {
        let get = call(Method::GET, "/version");
        for fault in [Fault::BlackHole, Fault::LostAnswer, Fault::Reset] {
            assert_eq!(refusal(&fault, &get), None);
        }
    }
}
