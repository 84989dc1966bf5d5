//! The right of a namespace's proxies to ask who calls, given where the operator may give it.
//!
//! Looked at until it is there, for each namespace with nodes, before the first pod there. Where the
//! operator may not, a person binds by hand, as the platform's page says; nothing waits for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use keelson_cluster::{DEADLINE, Error, within};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::Instant;

use crate::rights::proxy_binding;

/// How long a namespace is left alone after a call that failed.
const PAUSE: Duration = Duration::from_secs(2);

/// Namespaces that were looked at, and when to look again; never where nothing more is to be done.
#[derive(Debug, Default)]
pub struct Bindings(Mutex<BTreeMap<String, Option<Instant>>>);

impl Bindings {
    /// Sees to it that the proxies of a namespace may ask the API server who calls. Says once that the
    /// operator may not.
    pub async fn ensure(&self, client: &Client, namespace: &str, account: &str) -> Option<Error> {
        if !self.is_due(namespace) {
            return None;
        }
        match bind(client, namespace, account).await {
            Ok(()) => self.note(namespace, None),
            Err(error) if error.is_refused() => {
                self.note(namespace, None);
                return Some(error);
            }
            Err(error) => {
                tracing::info!(namespace, "the proxies are not bound yet: {error}");
                self.note(namespace, Some(Instant::now() + PAUSE));
            }
        }
        None
    }

    /// Whether to look now. Nobody else does until that look must be over.
    fn is_due(&self, namespace: &str) -> bool {
        let now = Instant::now();
        let due = match self.namespaces().get(namespace) {
            Some(again) => again.is_some_and(|again| again <= now),
            None => true,
        };
        if due {
            self.note(namespace, Some(now + 2 * DEADLINE + PAUSE));
        }
        due
    }

    fn note(&self, namespace: &str, again: Option<Instant>) {
        self.namespaces().insert(namespace.to_owned(), again);
    }

    fn namespaces(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Option<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn bind(client: &Client, namespace: &str, account: &str) -> Result<(), Error> {
    let api: Api<ClusterRoleBinding> = Api::all(client.clone());
    let wanted = proxy_binding(namespace, account);
    let name = wanted.name_any();
    let doing = format!("reading ClusterRoleBinding {name}");
    if within(doing, DEADLINE, api.get_opt(&name)).await?.is_some() {
        return Ok(());
    }
    let how = PostParams::default();
    let create = async {
        match api.create(&how, &wanted).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            created => created.map(drop),
        }
    };
    within(
        format!("creating ClusterRoleBinding {name}"),
        DEADLINE,
        create,
    )
    .await
}
