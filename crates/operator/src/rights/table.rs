//! The rows: who may do what, and why.

use keelson_api::names::{Lease, SEI_GROUP, SIDECAR_ACCESS_RESOURCE};

use super::{RESERVED_GROUP, Reach, Right, Role};

const GET: &[&str] = &["get"];
pub(super) const CREATE: &[&str] = &["create"];
const WRITE: &[&str] = &["write"];
/// What is applied, and goes with its owner.
const APPLY: &[&str] = &["get", "list", "watch", "create", "patch"];
/// What is applied, and taken away again while its owner stays.
pub(super) const APPLY_AND_DELETE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

const CERT_MANAGER: &str = "cert-manager.io";

pub(super) const fn right(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right {
        group,
        resource,
        verbs,
        names: &[],
        why,
    }
}

pub(super) const fn named(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    names: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right {
        group,
        resource,
        verbs,
        names,
        why,
    }
}

pub(super) const OPERATOR: Role = Role {
    name: super::OPERATOR,
    reach: Reach::Cluster,
    why: "What the operator does in the namespaces of nodes.",
    rights: &[
        right(
            SEI_GROUP,
            "seinodes",
            &["get", "list", "watch", "patch"],
            "to follow nodes and to keep their finalizer",
        ),
        right(
            SEI_GROUP,
            "seinodes/status",
            &["get", "patch"],
            "to say how nodes are",
        ),
        right(
            SEI_GROUP,
            "seinodes/finalizers",
            &["update"],
            "to own what it makes for a node",
        ),
        right("apps", "statefulsets", APPLY, "to run a node's pod"),
        right(
            "batch",
            "jobs",
            APPLY_AND_DELETE,
            "to run the bootstrap pod and to take it away",
        ),
        right(
            "",
            "services",
            APPLY_AND_DELETE,
            "to give a node its names and to take the bootstrap Service away",
        ),
        right("", "configmaps", APPLY, "to write the proxy's policy"),
        right(
            "",
            "persistentvolumeclaims",
            APPLY,
            "to make a node's data volume; deleting one is for its owner",
        ),
        right(
            "",
            "persistentvolumes",
            GET,
            "to check the volume of an imported claim",
        ),
        right(
            "networking.k8s.io",
            "networkpolicies",
            APPLY_AND_DELETE,
            "to say who reaches the proxy, and to stop saying so",
        ),
        right(
            "",
            "pods",
            &["get", "list", "watch", "patch", "delete"],
            "to see, refresh, mend and replace a node's pod; a policy limits it to pods of nodes",
        ),
        right(
            "",
            "events",
            &["list"],
            "to say why a container of a node's pod is not started again",
        ),
        right(
            "",
            "secrets",
            &["get", "list", "watch", "delete"],
            "to check keys and certificates; a policy limits delete to certificates it ordered",
        ),
        right(
            CERT_MANAGER,
            "certificates",
            APPLY_AND_DELETE,
            "to order a sidecar's certificate and to end the order",
        ),
        right(
            CERT_MANAGER,
            "issuers",
            GET,
            "to say what an order is waiting for",
        ),
        right(
            CERT_MANAGER,
            "clusterissuers",
            GET,
            "to say what an order is waiting for",
        ),
        right(
            "events.k8s.io",
            "events",
            &["create", "patch"],
            "to tell what it did and why",
        ),
        right(
            RESERVED_GROUP,
            "objects",
            WRITE,
            "to write what policies reserve for it: the proxies' policies and certificates",
        ),
        right(
            RESERVED_GROUP,
            "nodestatuses",
            WRITE,
            "to write what a policy reserves for it: the status of nodes",
        ),
    ],
};

pub(super) const OWN: Role = Role {
    name: super::OPERATOR,
    reach: Reach::Own,
    why: "What the operator does in its own namespace.",
    rights: &[
        right(
            "coordination.k8s.io",
            "leases",
            CREATE,
            "to lead for the first time",
        ),
        named(
            "coordination.k8s.io",
            "leases",
            &["get", "update"],
            &[Lease::Sei.as_str()],
            "to lead",
        ),
        named(
            "",
            "serviceaccounts/token",
            CREATE,
            &[super::SIDECAR_CLIENT],
            "to call sidecars with a token that is good for nothing else",
        ),
    ],
};

pub(super) const BINDER: Role = Role {
    name: "keelson-operator-binder",
    reach: Reach::Cluster,
    why: "Lets the operator give the proxies of each namespace of nodes what they need. Without it, \
          bind sei-rbac-proxy to their ServiceAccounts by hand.",
    rights: &[
        right(
            "rbac.authorization.k8s.io",
            "clusterrolebindings",
            &["get", "create", "patch"],
            "to bind a namespace's account of proxies",
        ),
        named(
            "rbac.authorization.k8s.io",
            "clusterroles",
            &["bind"],
            &[super::PROXY],
            "to bind this ClusterRole and no other",
        ),
    ],
};

pub(super) const CLIENT: Role = Role {
    name: super::SIDECAR_CLIENT,
    reach: Reach::Cluster,
    why: "What the operator's tokens for sidecars are good for: the verbs of GET, POST and DELETE.",
    rights: &[right(
        SEI_GROUP,
        SIDECAR_ACCESS_RESOURCE,
        &["get", "create", "delete"],
        "to ask sidecars, and to submit and remove their tasks",
    )],
};

pub(super) const PROXY: Role = Role {
    name: super::PROXY,
    reach: Reach::Cluster,
    why: "What the account of a node's pod needs for the proxy in it. Reviews are of the whole \
          cluster, so it is bound by a ClusterRoleBinding: a RoleBinding would give nothing.",
    rights: &[
        right(
            "authentication.k8s.io",
            "tokenreviews",
            CREATE,
            "to know who calls",
        ),
        right(
            "authorization.k8s.io",
            "subjectaccessreviews",
            CREATE,
            "to know what they may",
        ),
    ],
};

pub(super) const WRITER: Role = Role {
    name: "keelson-reserved-writer",
    reach: Reach::Cluster,
    why: "Who else may write what policies.yaml reserves: cert-manager, and the controllers that \
          delete what is owned. There is no such resource; the policies ask for the right itself.",
    rights: &[right(
        RESERVED_GROUP,
        "objects",
        WRITE,
        "to renew certificates, and to delete with an owner or a namespace",
    )],
};
