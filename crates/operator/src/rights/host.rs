//! What the operator needs to look after NMStates: given only where that is wanted.
//!
//! It installs accounts with rights of their own, so it may give rights it does not have: those of the
//! roles that are named here, and no others. Secrets and pods it sees in the namespace of the host
//! components alone.

use keelson_api::names::{Lease, NMSTATE_GROUP};

use super::table::{APPLY_AND_DELETE, CREATE, named, right};
use super::{Ask, Reach, Role, Rule, of};

const READ: &[&str] = &["get", "list", "watch"];
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const MONITORING: &str = "monitoring.coreos.com";

/// Verbs that let a role be written with rights the writer does not have, and be given to somebody.
const GIVE: &[&str] = &["bind", "escalate"];

/// In the whole cluster.
pub const EVERYWHERE: Role = Role {
    name: "keelson-host-installer",
    reach: Reach::Cluster,
    why: "What the operator does for NMStates. Bind it where host components are wanted.",
    rights: &[
        right(NMSTATE_GROUP, "nmstates", READ, "to follow NMStates"),
        right(
            NMSTATE_GROUP,
            "nmstates/status",
            &["get", "patch"],
            "to say how the installation is",
        ),
        right(
            NMSTATE_GROUP,
            "nmstates/finalizers",
            &["update"],
            "to own what it makes for an NMState",
        ),
        right(
            NMSTATE_GROUP,
            "nodenetworkconfigurationpolicies",
            READ,
            "to follow policies",
        ),
        right(
            NMSTATE_GROUP,
            "nodenetworkconfigurationpolicies/status",
            &["get", "patch"],
            "to say how a policy stands",
        ),
        right(
            NMSTATE_GROUP,
            "nodenetworkconfigurationenactments",
            &["list", "watch", "delete"],
            "to know what handlers say, and to take away what is left of a policy that is gone",
        ),
        right(
            "",
            "namespaces",
            &["get", "list", "watch", "create", "patch"],
            "to make the namespace of the host components",
        ),
        right(
            "",
            "nodes",
            READ,
            "to know how many webhooks there can be, and which nodes a policy is for",
        ),
        right(
            "",
            "serviceaccounts",
            APPLY_AND_DELETE,
            "to make the three accounts",
        ),
        right(
            "",
            "configmaps",
            APPLY_AND_DELETE,
            "to deliver the TLS profile, and to take out claims of nodes and policies that are gone",
        ),
        right(
            "",
            "services",
            APPLY_AND_DELETE,
            "to give webhook and metrics their names",
        ),
        right("apps", "daemonsets", APPLY_AND_DELETE, "to run the handler"),
        right(
            "apps",
            "deployments",
            APPLY_AND_DELETE,
            "to run webhook and metrics, and to see the original's operator",
        ),
        right(
            "policy",
            "poddisruptionbudgets",
            APPLY_AND_DELETE,
            "to keep a webhook",
        ),
        right(
            "networking.k8s.io",
            "networkpolicies",
            APPLY_AND_DELETE,
            "to say who reaches the host components",
        ),
        right(
            RBAC,
            "clusterroles",
            APPLY_AND_DELETE,
            "to say what the accounts may do",
        ),
        right(
            RBAC,
            "clusterrolebindings",
            APPLY_AND_DELETE,
            "to give it to them",
        ),
        right(
            RBAC,
            "roles",
            APPLY_AND_DELETE,
            "to say what the accounts may do",
        ),
        right(RBAC, "rolebindings", APPLY_AND_DELETE, "to give it to them"),
        named(
            RBAC,
            "clusterroles",
            GIVE,
            &[
                "nmstate-handler",
                "nmstate-metrics",
                "nmstate-metrics-reader",
                "nmstate-cluster-reader",
            ],
            "to write and give these, whose rights it does not have",
        ),
        named(
            RBAC,
            "roles",
            GIVE,
            &["nmstate-handler", "prometheus-k8s"],
            "to write and give these, whose rights it does not have",
        ),
        right(
            ADMISSION,
            "mutatingwebhookconfigurations",
            APPLY_AND_DELETE,
            "to have the webhook called",
        ),
        right(
            ADMISSION,
            "validatingadmissionpolicies",
            APPLY_AND_DELETE,
            "to refuse what no host could do",
        ),
        right(
            ADMISSION,
            "validatingadmissionpolicybindings",
            APPLY_AND_DELETE,
            "to refuse what no host could do",
        ),
        right(
            MONITORING,
            "servicemonitors",
            APPLY_AND_DELETE,
            "to have metrics scraped",
        ),
        right(
            MONITORING,
            "prometheusrules",
            APPLY_AND_DELETE,
            "to have alerts",
        ),
        right(
            "console.openshift.io",
            "consoleplugins",
            APPLY_AND_DELETE,
            "to show the console's plugin",
        ),
        right(
            "config.openshift.io",
            "apiservers",
            READ,
            "to follow the cluster's TLS profile",
        ),
    ],
};

/// In the namespace of the host components; bound there by a RoleBinding.
pub const INSIDE: Role = Role {
    name: "keelson-host-keeper",
    reach: Reach::Cluster,
    why: "What the operator does in the namespace of the host components. Bind it there alone.",
    rights: &[
        right(
            "",
            "secrets",
            &["get", "list", "watch", "create", "patch"],
            "to keep the CA and the certificates of webhook and metrics",
        ),
        right(
            "",
            "pods",
            READ,
            "to look at what they serve, and where handlers run",
        ),
        right(
            "",
            "pods",
            &["patch"],
            "to have the kubelet bring a new profile or certificate at once; a policy limits it to \
             webhook and metrics",
        ),
    ],
};

/// In the operator's own namespace.
pub const OWN: Role = Role {
    name: "keelson-host-installer",
    reach: Reach::Own,
    why: "The lease of whoever looks after NMStates.",
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
            &[Lease::Nmstate.as_str()],
            "to lead",
        ),
    ],
};

/// Every role for NMStates.
pub const ROLES: [Role; 3] = [EVERYWHERE, INSIDE, OWN];

/// What readiness asks, where the operator runs in `own` and the host components in `hosts`.
pub fn rules(own: &str, hosts: &str) -> Vec<Rule> {
    let inside = of(&INSIDE, own).into_iter().map(|ask| Ask {
        namespace: Some(hosts.to_owned()),
        ..ask
    });
    let others = [EVERYWHERE, OWN];
    let others = others.iter().flat_map(|role| of(role, own));
    others.chain(inside).map(Ask::rule).collect()
}
