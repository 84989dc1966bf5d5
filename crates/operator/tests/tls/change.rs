//! A change of TLS, from one state to another, and what is expected of it: the plan, its words, and
//! whether the pod has to go.

use std::fmt;

use keelson_render::Platform;
use serde_json::{Value, json};

use crate::stage::objects::original_proxy;
use crate::stage::platform;

/// What `spec.sidecar.tls` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    None,
    Issuer(&'static str),
    Secret(&'static str),
}

pub(crate) const STATES: [State; 5] = [
    State::None,
    State::Issuer("x"),
    State::Issuer("y"),
    State::Secret("a"),
    State::Secret("b"),
];

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Issuer(name) => write!(f, "issuer {name}"),
            Self::Secret(name) => write!(f, "Secret {name}"),
        }
    }
}

impl State {
    /// What stands under `sidecar.tls`, with nothing left of another state.
    pub(crate) fn spec(self, node: &str) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Issuer(name) => {
                json!({ "issuerName": name, "issuerKind": "Issuer", "secretName": null })
            }
            Self::Secret(name) => {
                let secret = format!("{node}-{name}");
                json!({ "issuerName": null, "issuerKind": null, "secretName": secret })
            }
        }
    }

    pub(crate) fn is_issuer(self) -> bool {
        matches!(self, Self::Issuer(_))
    }

    /// The Secret the certificate is in.
    pub(crate) fn secret(self, node: &str) -> Option<String> {
        match self {
            Self::None => None,
            Self::Issuer(_) => Some(format!("{node}-sidecar-tls")),
            Self::Secret(name) => Some(format!("{node}-{name}")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    Ours,
    Original,
}

impl Proxy {
    pub(crate) fn platform(self) -> Platform {
        match self {
            Self::Ours => platform(),
            Self::Original => original_proxy(),
        }
    }
}

/// One change, of the images as well where there are some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) proxy: Proxy,
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) images: Option<[&'static str; 2]>,
}

impl Change {
    /// Whether the pod has to go.
    pub(crate) fn rolls(&self) -> bool {
        let swap = self.from.is_issuer() && self.to.is_issuer();
        self.images.is_some()
            || match self.proxy {
                // Only what is mounted under another name needs another pod.
                Proxy::Ours => match (self.from, self.to) {
                    (_, State::None) => false,
                    (_, State::Secret(_)) | (State::Secret(_), State::Issuer(_)) => true,
                    _ => false,
                },
                // TLS is in its flags; a certificate under the same name it reads again.
                Proxy::Original => !swap,
            }
    }

    pub(crate) fn tasks(&self) -> Vec<&'static str> {
        let tls = self.to != State::None;
        let leaves = self.from.is_issuer() && !self.to.is_issuer();
        [
            ("apply-sidecar-cert", self.to.is_issuer()),
            ("wait-for-sidecar-tls-secret", tls),
            ("apply-rbac-proxy-config", true),
            ("apply-statefulset", true),
            ("apply-service", true),
            ("replace-pod", true),
            ("observe-image", self.images.is_some()),
            ("observe-sidecar-tls", true),
            ("delete-sidecar-cert", leaves),
            ("mark-ready", true),
        ]
        .into_iter()
        .filter_map(|(task, wanted)| wanted.then_some(task))
        .collect()
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.images.is_some() {
            true => "node-update-tls",
            false => "tls-toggle",
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self.images.is_some() {
            true => "UpdateAndTLSToggleStarted",
            false => "TLSToggleStarted",
        }
    }

    pub(crate) fn edit(&self, node: &str) -> Value {
        let tls = self.to.spec(node);
        match self.images {
            Some([_, image]) => json!({ "sidecar": { "tls": tls }, "image": image }),
            None => json!({ "sidecar": { "tls": tls } }),
        }
    }
}
