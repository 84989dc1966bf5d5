//! The right of a namespace's proxies to ask who calls, given where the operator may give it.
//!
//! Looked at once for each namespace with nodes, before the first pod there. Where the operator may
//! not, a person binds by hand, as the platform's page says; nothing waits for it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use keelson_cluster::{DEADLINE, Error, within};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};

use crate::rights::proxy_binding;

/// Namespaces that were looked at.
#[derive(Debug, Default)]
pub struct Bindings(Mutex<BTreeSet<String>>);

impl Bindings {
    /// Sees to it that the proxies of a namespace may ask the API server who calls.
    pub async fn ensure(&self, client: &Client, namespace: &str, account: &str) {
        if !self.first(namespace) {
            return;
        }
        if let Err(error) = bind(client, namespace, account).await {
            tracing::warn!(
                namespace,
                "the proxies of this namespace were not bound to their role, bind them by hand: {error}"
            );
        }
    }

    fn first(&self, namespace: &str) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(namespace.to_owned())
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
