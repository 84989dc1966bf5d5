//! TLS of nodes on a real control plane with a real cert-manager: every change of it with what it
//! costs the pod, what is refused, and what never happens.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "fields/covered.rs"]
mod covered;

#[path = "tls/change.rs"]
mod change;
#[path = "tls/manager.rs"]
mod manager;
#[path = "tls/story.rs"]
mod story;

#[path = "tls/issuers.rs"]
mod issuers;
#[path = "tls/matrix.rs"]
mod matrix;
#[path = "tls/ownership.rs"]
mod ownership;
#[path = "tls/plans.rs"]
mod plans;
#[path = "tls/renewal.rs"]
mod renewal;
#[path = "tls/safety.rs"]
mod safety;
#[path = "tls/secrets.rs"]
mod secrets;
