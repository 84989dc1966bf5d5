//! What each account of the install may do, in one table.
//!
//! `deploy/operator/roles.yaml` is written from it, and while the operator runs its readiness says what
//! of the table it was not given ([`asks`], [`watch`]). A right is here because a task needs it; what
//! roles cannot say (which pods, which Secrets) is in `deploy/operator/policies.yaml`. How the
//! API server is asked is for `cluster`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keelson_cluster::{Readiness, Rule};
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::platform::Account;

mod binding;
pub mod host;
mod table;

pub use binding::proxy_binding;

/// How long between two questions whether our rights are still ours.
const AGAIN: Duration = Duration::from_secs(300);

/// The namespace of the install.
pub const NAMESPACE: &str = "keelson-system";
/// The operator's ServiceAccount.
pub const OPERATOR: &str = "keelson-operator";
/// The ServiceAccount whose tokens go to sidecars.
pub const SIDECAR_CLIENT: &str = "keelson-sidecar-client";
/// The ClusterRole of the accounts that proxies run as.
pub const PROXY: &str = "sei-rbac-proxy";
/// Group of rights that stand for nothing but themselves: the policies ask for them.
pub const RESERVED_GROUP: &str = "reserved.sei.io";

/// One right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// API group; empty for the core.
    pub group: &'static str,
    /// Resource, with its subresource after a slash.
    pub resource: &'static str,
    /// What may be done with it.
    pub verbs: &'static [&'static str],
    /// Names it is limited to; with none, any.
    pub names: &'static [&'static str],
    /// What it is needed for.
    pub why: &'static str,
}

/// Rights that are given together.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Its name.
    pub name: &'static str,
    /// Where it counts.
    pub reach: Reach,
    /// What it is for.
    pub why: &'static str,
    /// The rights.
    pub rights: &'static [Right],
}

/// Where rights count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In the whole cluster.
    Cluster,
    /// In the operator's own namespace.
    Own,
}

/// What the operator cannot work without: in the whole cluster, and in its own namespace.
pub const NEEDED: [Role; 2] = [table::OPERATOR, table::OWN];

/// Every role of the install.
pub const ROLES: [Role; 6] = [
    table::OPERATOR,
    table::OWN,
    table::BINDER,
    table::CLIENT,
    table::PROXY,
    table::WRITER,
];

/// One question to the API server: may I?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The role that should say yes.
    pub role: &'static str,
    /// API group; empty for the core.
    pub group: &'static str,
    /// Resource, with its subresource after a slash.
    pub path: &'static str,
    /// Resource, without its subresource.
    pub resource: &'static str,
    /// Subresource.
    pub subresource: Option<&'static str>,
    /// What is to be done.
    pub verb: &'static str,
    /// To which object; nothing for any.
    pub name: Option<String>,
    /// In which namespace; nothing for the whole cluster.
    pub namespace: Option<String>,
    /// What it is needed for.
    pub why: &'static str,
}

/// Everything the operator needs, one verb at a time, where it runs in `namespace` and calls sidecars
/// with tokens of `client`.
pub fn asks(namespace: &str, client: &Account) -> Vec<Ask> {
    let mut asks: Vec<_> = NEEDED.iter().flat_map(|role| of(role, namespace)).collect();
    for ask in &mut asks {
        if ask.subresource == Some("token") {
            ask.name = Some(client.name.clone());
            ask.namespace = Some(client.namespace.clone());
        }
    }
    asks
}

/// The questions of one role.
pub fn of(role: &Role, namespace: &str) -> Vec<Ask> {
    let namespace = (role.reach == Reach::Own).then_some(namespace);
    let ask = |right: &Right, verb: &'static str, name: Option<&str>| {
        let parts = right.resource.split_once('/');
        Ask {
            role: role.name,
            group: right.group,
            path: right.resource,
            resource: parts.map_or(right.resource, |(resource, _)| resource),
            subresource: parts.map(|(_, subresource)| subresource),
            verb,
            name: name.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            why: right.why,
        }
    };
    let mut asks = Vec::new();
    for right in role.rights {
        for verb in right.verbs {
            match right.names {
                [] => asks.push(ask(right, verb, None)),
                names => asks.extend(names.iter().map(|name| ask(right, verb, Some(name)))),
            }
        }
    }
    asks
}

impl Ask {
    fn rule(self) -> Rule {
        Rule {
            group: self.group,
            resource: self.path,
            verb: self.verb,
            name: self.name,
            namespace: self.namespace,
        }
    }

    /// What to say where the answer is no.
    pub fn refused(&self) -> String {
        let subresource = self
            .subresource
            .map_or(String::new(), |it| format!("/{it}"));
        let group = match self.group {
            "" => String::new(),
            group => format!(" of {group}"),
        };
        let name = self.name.as_ref();
        let name = name.map_or(String::new(), |name| format!(" named {name}"));
        let place = self.namespace.as_ref().map_or_else(
            || "in the whole cluster".to_owned(),
            |namespace| format!("in namespace {namespace}"),
        );
        format!(
            "the operator may not {} {}{subresource}{group}{name} {place}, which it needs {}: apply deploy/operator/roles.yaml and bindings.yaml (role {})",
            self.verb, self.resource, self.why, self.role
        )
    }
}

/// The same as the questions readiness asks.
pub fn rules(namespace: &str, client: &Account) -> Vec<Rule> {
    asks(namespace, client).into_iter().map(Ask::rule).collect()
}

/// Asks now and again whether everything is allowed that we will do; readiness says what is not.
pub fn watch(
    name: &'static str,
    client: Client,
    rules: Vec<Rule>,
    readiness: &Readiness,
    stop: &CancellationToken,
) {
    let missing = Arc::new(Mutex::new(vec!["not asked for yet".to_owned()]));
    let shown = missing.clone();
    readiness.add(name, move || match shown.lock() {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => Err(missing.join("; ")),
        Err(_) => Ok(()),
    });
    let stop = stop.clone();
    tokio::spawn(async move {
        while !stop.is_cancelled() {
            let (found, again) = match keelson_cluster::missing(client.clone(), &rules).await {
                Ok(found) if found.is_empty() => (found, AGAIN),
                Ok(found) => (found, Duration::from_secs(10)),
                Err(error) => (vec![error.to_string()], Duration::from_secs(2)),
            };
            if let Ok(mut missing) = missing.lock() {
                *missing = found;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(again) => {}
            }
        }
    });
}
