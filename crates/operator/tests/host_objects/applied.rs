//! Every object is taken, and is then as it was applied.

use keelson_api::names::FieldManager;
use keelson_cluster::{comparable, owned};
use keelson_render::host::HostInstall;
use kube::api::{Patch, PatchParams};

use crate::stage::{api, installed};
use crate::world::{openshift, plain, rendered};

#[tokio::test]
async fn every_object_is_taken_and_a_second_apply_changes_nothing() {
    let stage = installed().await;
    assert!(stage.verdicts.len() > 35, "{}", stage.verdicts.len());
    let differing: Vec<_> = stage
        .verdicts
        .iter()
        .filter(|it| it.owned != it.wanted)
        .map(|it| {
            format!(
                "{}:\n  is {}\n  wanted {}",
                it.identity, it.owned, it.wanted
            )
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// This cluster is no OpenShift: its objects are tried without effect, in a namespace that is there,
/// and its own kinds are left out.
#[tokio::test]
async fn what_openshift_gets_is_taken_too_where_the_kind_is_served() {
    let stage = installed().await;
    let client = stage.cluster.client();
    let namespace = stage.cluster.namespace("openshift").await;
    let asked = plain();
    let install = HostInstall {
        namespace: namespace.name(),
        ..openshift(&asked)
    };
    let manager = FieldManager::Nmstate.as_str();
    let how = PatchParams::apply(manager).force().dry_run();
    let mut tried = 0;
    for object in rendered(&install) {
        let group = object.identity.kind.group;
        if group.ends_with("openshift.io") || group.ends_with("coreos.com") {
            continue;
        }
        let name = &object.identity.name;
        let api = api(&client, &object.identity);
        let taken = api.patch(name, &how, &Patch::Apply(&object.value)).await;
        let taken = taken.unwrap_or_else(|error| panic!("{}: {error}", object.identity));
        let taken = serde_json::to_value(taken).expect("JSON");
        let (is, wanted) = (owned(&taken, manager), comparable(&object.value));
        assert_eq!(is, wanted, "{}", object.identity);
        tried += 1;
    }
    assert!(tried > 40, "{tried}");
}
