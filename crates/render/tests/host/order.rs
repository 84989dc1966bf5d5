//! In which order objects come, who owns them, and what is left over.

use std::collections::BTreeSet;

use keelson_render::host::{Certificates, HostInstall, KINDS, Object, leftover};

use super::world::{WORKLOADS, openshift, plain, rendered, vanilla};

fn place(objects: &[Object], kind: &str, name: &str) -> usize {
    let found = objects
        .iter()
        .position(|it| it.identity.kind.kind == kind && it.identity.name == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn identities(install: &HostInstall<'_>) -> BTreeSet<keelson_render::host::Identity> {
    let objects = rendered(install).into_iter();
    objects.map(|object| object.identity).collect()
}

#[test]
fn the_namespace_comes_first_and_the_webhook_configuration_last() {
    let spec = plain();
    for install in [vanilla(&spec), openshift(&spec)] {
        let objects = rendered(&install);
        assert_eq!(objects[0].identity.kind.kind, "Namespace");
        let last = objects.last().expect("objects");
        assert_eq!(last.identity.kind.kind, "MutatingWebhookConfiguration");
    }
}

#[test]
fn the_profile_and_all_rights_are_there_before_the_pods_that_need_them() {
    let spec = plain();
    for install in [vanilla(&spec), openshift(&spec)] {
        let objects = rendered(&install);
        let pods = WORKLOADS.map(|name| {
            let kind = match name {
                "nmstate-handler" => "DaemonSet",
                _ => "Deployment",
            };
            place(&objects, kind, name)
        });
        let first = pods.into_iter().min().expect("workloads");
        assert!(place(&objects, "ConfigMap", "nmstate-tls-config") < first);
        assert!(place(&objects, "ConfigMap", "nmstate-claims") < first);
        assert!(
            place(
                &objects,
                "ValidatingAdmissionPolicyBinding",
                "nmstate-handler-own-node"
            ) < first
        );
        for (at, object) in objects.iter().enumerate() {
            let rbac = object.identity.kind.group == "rbac.authorization.k8s.io";
            assert!(!rbac || at < first, "{}", object.identity);
        }
    }
}

#[test]
fn everything_but_the_namespace_goes_with_the_nmstate() {
    let spec = plain();
    for install in [vanilla(&spec), openshift(&spec)] {
        for object in rendered(&install) {
            let owners = &object.value["metadata"]["ownerReferences"];
            match object.identity.kind.kind {
                "Namespace" => assert!(owners.is_null()),
                _ => {
                    assert_eq!(owners[0]["kind"], "NMState", "{}", object.identity);
                    assert_eq!(owners[0]["uid"], install.uid);
                    assert_eq!(owners[0]["controller"], true);
                }
            }
        }
    }
}

#[test]
fn every_object_is_of_a_listed_kind_and_is_what_its_identity_says() {
    let spec = plain();
    for install in [vanilla(&spec), openshift(&spec)] {
        let objects = rendered(&install);
        let distinct: BTreeSet<_> = objects.iter().map(|it| &it.identity).collect();
        assert_eq!(distinct.len(), objects.len(), "an object is there twice");
        for Object { identity, value } in &objects {
            assert!(KINDS.contains(&identity.kind), "{identity}");
            assert_eq!(value["apiVersion"], identity.kind.api_version());
            assert_eq!(value["kind"], identity.kind.kind);
            assert_eq!(value["metadata"]["name"], identity.name.as_str());
            let namespace = value["metadata"]["namespace"].as_str();
            assert_eq!(namespace, identity.namespace.as_deref());
        }
    }
}

/// What is not applied is not ours, and is never put back.
#[test]
fn the_claims_of_handlers_are_made_without_content() {
    let spec = plain();
    let objects = rendered(&vanilla(&spec));
    let claims = &objects[place(&objects, "ConfigMap", "nmstate-claims")].value;
    let fields: Vec<_> = claims.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["apiVersion", "kind", "metadata"]);
}

#[test]
fn a_second_rendering_of_the_same_is_the_same() {
    let spec = plain();
    assert_eq!(rendered(&vanilla(&spec)), rendered(&vanilla(&spec)));
}

#[test]
fn what_is_no_longer_rendered_is_left_over_and_nothing_else() {
    let spec = plain();
    let mut install = openshift(&spec);
    let there = identities(&install);
    assert_eq!(leftover(&there, &rendered(&install)), []);

    install.capabilities.console = false;
    let gone = leftover(&there, &rendered(&install));
    assert_eq!(gone.len(), 6, "{gone:?}");
    assert!(
        gone.iter()
            .all(|it| it.name.contains("plugin") || it.name == "nginx-conf")
    );
    assert_eq!(
        gone[0].kind.kind, "ConsolePlugin",
        "told last, taken away first"
    );

    install.capabilities.service_monitors = false;
    install.certificates = Certificates::Operator { ca_bundle: "x" };
    let gone = leftover(&there, &rendered(&install));
    assert!(gone.iter().any(|it| it.kind.kind == "ServiceMonitor"));
}

#[test]
fn the_originals_certificate_rotation_is_left_over_and_a_namespace_never_is() {
    let spec = plain();
    let install = vanilla(&spec);
    let mut there = identities(&install);
    let deployment = there
        .iter()
        .find(|it| it.kind.kind == "Deployment")
        .expect("a Deployment");
    let mut original = deployment.clone();
    original.name = "nmstate-cert-manager".to_owned();
    let namespace = there.iter().find(|it| it.kind.kind == "Namespace");
    let mut other = namespace.expect("a Namespace").clone();
    other.name = "before".to_owned();
    there.extend([original.clone(), other]);
    assert_eq!(leftover(&there, &rendered(&install)), [original]);
}
