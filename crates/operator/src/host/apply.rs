//! What shall be, brought about: applied where it is not so, and taken away where it is no longer
//! wanted.
//!
//! An object that is already so is not written. A failure is said and keeps only what depends on it
//! from being written: workloads wait for the ConfigMap they are stamped for.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Namespace;
use keelson_api::host::TLS_CONFIG_MAP;
use keelson_api::names::FieldManager;
use keelson_cluster::{Key, Only, comparable, digest, owned};
use keelson_render::host::{Identity, Object, leftover};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use serde_json::json;

use super::controller::Controller;
use super::seen::Seen;
use super::world::{key, resource};

/// Applies everything that is not so, in order; gives what failed, one sentence each.
pub(super) async fn all(controller: &Controller, wanted: &[Object]) -> Vec<String> {
    let mut failures = Vec::new();
    let mut profile = true;
    for object in wanted {
        let kind = object.identity.kind.kind;
        if kind == "Deployment" && !profile {
            continue;
        }
        if let Err(error) = one(controller, object).await {
            profile &= !(kind == "ConfigMap" && object.identity.name == TLS_CONFIG_MAP);
            failures.push(error);
        }
    }
    failures
}

async fn one(controller: &Controller, object: &Object) -> Result<(), String> {
    let identity = &object.identity;
    let wanted = digest(&comparable(&object.value));
    let seen = controller.world.object(identity);
    if seen.is_some_and(|seen| controller.is_so(identity, &wanted, &seen.digest)) {
        return Ok(());
    }
    tracing::info!(object = %identity, "applied");
    let resource = resource(&identity.kind);
    let applied = controller.calls.apply_as(&resource, &object.value).await;
    let applied = applied.map_err(|error| error.to_string())?;
    note(controller, identity, wanted, applied);
    Ok(())
}

/// The answer is known at once, before the watch tells of it.
fn note(controller: &Controller, identity: &Identity, wanted: String, applied: DynamicObject) {
    let value = serde_json::to_value(&applied).unwrap_or_default();
    let became = digest(&owned(&value, FieldManager::Nmstate.as_str()));
    controller.became(identity, wanted, became);
    if let Some(mirror) = controller.world.objects.get(&identity.kind) {
        let version = applied.resource_version().unwrap_or_default();
        mirror.note(
            key(identity),
            &version,
            Seen::read(&identity.kind, &applied),
        );
    }
}

/// Makes the namespace where there is none: Secrets come before everything else.
pub(super) async fn namespace(controller: &Controller) -> Result<(), String> {
    let name = &controller.settings.namespace;
    let at = Key {
        namespace: String::new(),
        name: name.clone(),
    };
    let spaces = controller
        .world
        .objects
        .iter()
        .find(|(kind, _)| kind.kind == "Namespace");
    if spaces.is_some_and(|(_, mirror)| mirror.get(&at).is_some()) {
        return Ok(());
    }
    let bare = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let resource = ApiResource::erase::<Namespace>(&());
    let made = controller.calls.apply_as(&resource, &bare).await;
    made.map(drop).map_err(|error| error.to_string())
}

/// Takes away what this NMState owns and no longer wants; gives what failed, one sentence each.
pub(super) async fn prune(controller: &Controller, owner: &str, wanted: &[Object]) -> Vec<String> {
    let mut failures = Vec::new();
    for identity in leftover(&owned_by(controller, owner), wanted) {
        let Some(seen) = controller.world.object(&identity) else {
            continue;
        };
        let at = key(&identity);
        let only = Only {
            uid: Some(seen.uid.clone()),
            version: None,
        };
        tracing::info!(object = %identity, "no longer wanted, and taken away");
        let resource = resource(&identity.kind);
        let gone = controller
            .calls
            .delete_as(&resource, &at.namespace, &at.name, only)
            .await;
        match gone {
            Ok(_) => {
                if let Some(mirror) = controller.world.objects.get(&identity.kind) {
                    mirror.gone(&at, &seen.uid);
                }
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    failures
}

fn owned_by(controller: &Controller, owner: &str) -> BTreeSet<Identity> {
    let kinds = controller.world.objects.iter();
    kinds
        .flat_map(|(kind, mirror)| {
            mirror
                .all()
                .into_iter()
                .map(move |(key, seen)| (kind, key, seen))
        })
        .filter(|(_, _, seen)| seen.owner.as_deref() == Some(owner))
        .map(|(kind, key, _)| Identity {
            kind: *kind,
            namespace: kind.namespaced.then_some(key.namespace),
            name: key.name,
        })
        .collect()
}
