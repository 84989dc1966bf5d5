//! What cert-manager says of a Certificate and of an issuer, read from their conditions.
//!
//! A condition that speaks of an older generation of the object says nothing about this one.

use serde_json::Value;

/// How far an order is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Not issued yet, and what it waits for.
    Pending(String),
    /// cert-manager could not have it issued, and why. It tries again an hour later, or when it is
    /// told to.
    Failed(String),
    /// Issued, and in its Secret.
    Ready,
}

/// The one reason for which `Issuing` is false and all is well. Every other is a failure: `Failed`,
/// or, for a request that is denied or invalid, whatever word the approver chose.
const ISSUED: &str = "Issued";
const UNSEEN: &str = "cert-manager has not looked at it yet: is it running?";

/// How far the order of this Certificate is. A certificate that is good is good, whatever became of
/// the attempt to renew it.
pub fn order(certificate: &Value) -> Order {
    let ready = Condition::of(certificate, "Ready");
    let issuing = Condition::of(certificate, "Issuing");
    match (&ready, &issuing) {
        (Some(ready), _) if ready.holds() => Order::Ready,
        (_, Some(issuing)) if issuing.failed() => Order::Failed(issuing.sentence()),
        (_, Some(issuing)) if issuing.holds() => Order::Pending(issuing.sentence()),
        (Some(ready), _) => Order::Pending(ready.sentence()),
        _ => Order::Pending(UNSEEN.to_owned()),
    }
}

/// Whether an issuer can issue, and what it waits for if not.
pub fn issuer_ready(issuer: Option<&Value>) -> Result<(), String> {
    let issuer = issuer.ok_or("the issuer does not exist")?;
    match Condition::of(issuer, "Ready") {
        Some(ready) if ready.holds() => Ok(()),
        Some(ready) => Err(format!("the issuer is not ready: {}", ready.sentence())),
        None => Err(format!("the issuer is not ready: {UNSEEN}")),
    }
}

/// A condition of today's generation.
struct Condition<'a>(&'a Value);

impl<'a> Condition<'a> {
    fn of(object: &'a Value, type_: &str) -> Option<Self> {
        let conditions = object["status"]["conditions"].as_array()?;
        let condition = conditions.iter().find(|it| it["type"] == type_)?;
        let generation = object["metadata"]["generation"].as_i64();
        let observed = condition["observedGeneration"].as_i64();
        let outdated = matches!((observed, generation), (Some(seen), Some(now)) if seen < now);
        (!outdated).then_some(Self(condition))
    }

    fn holds(&self) -> bool {
        self.0["status"] == "True"
    }

    fn failed(&self) -> bool {
        self.0["status"] == "False" && self.0["reason"] != ISSUED
    }

    fn sentence(&self) -> String {
        let text = |field: &str| self.0[field].as_str().filter(|it| !it.is_empty());
        let reason = text("reason").unwrap_or("no reason is given");
        match text("message") {
            Some(message) => format!("{reason}: {message}"),
            None => reason.to_owned(),
        }
    }
}
