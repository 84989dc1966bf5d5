//! The binding that lets the proxies of one namespace ask the API server who calls.

use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use kube::api::ObjectMeta;

use super::PROXY;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The binding for the account that the pods of nodes in `namespace` run as. Reviews belong to the
/// whole cluster, and so does this: one object for each namespace, named after it.
pub fn proxy_binding(namespace: &str, account: &str) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(format!("{PROXY}:{namespace}")),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: GROUP.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: PROXY.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: account.to_owned(),
            api_group: None,
        }]),
    }
}
