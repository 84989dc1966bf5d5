//! The installation on the shared control plane, applied twice, with the types of the original.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use keelson_api::names::FieldManager;
use keelson_api::{NMState, NodeNetworkConfigurationPolicy};
use keelson_cluster::{comparable, owned};
use keelson_render::host::{HostInstall, Identity, Object};
use keelson_testbed::{Cluster, Error, until};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::install::{SOON, object};
use crate::world::{plain, rendered, vanilla};

pub(crate) const NAMESPACE: &str = "nmstate";

/// What came of one object.
pub(crate) struct Verdict {
    pub(crate) identity: Identity,
    /// What is ours of the object that is there, and what we would apply: alike, or not.
    pub(crate) owned: Value,
    pub(crate) wanted: Value,
}

pub(crate) struct Stage {
    pub(crate) cluster: &'static Cluster,
    pub(crate) verdicts: Vec<Verdict>,
}

/// The installation, in force. The outcome is kept, good or bad: one that does not come into force is
/// waited for once, not once a test.
pub(crate) async fn installed() -> &'static Stage {
    static STAGE: OnceCell<Result<Stage, String>> = OnceCell::const_new();
    let set = async || set().await.map_err(|error| error.to_string());
    match STAGE.get_or_init(set).await {
        Ok(stage) => stage,
        Err(reason) => panic!("the installation is not in force: {reason}"),
    }
}

async fn set() -> Result<Stage, Error> {
    let cluster = Cluster::shared().await;
    let client = cluster.client();
    cluster.install_crds().await.expect("the types");
    forget_rules(&client).await;
    let asked = plain();
    let uid = nmstate(&client).await;
    let objects = rendered(&HostInstall {
        uid: &uid,
        ..vanilla(&asked)
    });
    for object in &objects {
        apply(&client, object).await;
    }
    let mut verdicts = Vec::new();
    for object in &objects {
        verdicts.push(again(&client, object).await?);
    }
    in_force(&client).await?;
    Ok(Stage { cluster, verdicts })
}

/// The rules under test are those of the installation: a schema with rules of its own, as ours has,
/// would refuse first. What is left is what the original's says.
async fn forget_rules(client: &Client) {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let name = "nodenetworkconfigurationpolicies.nmstate.io";
    let mut definition =
        serde_json::to_value(api.get(name).await.expect("the type")).expect("JSON");
    let count = forget(&mut definition["spec"]["versions"]);
    assert!(count >= 4, "there were {count} rules");
    definition["metadata"]["managedFields"] = json!(null);
    let definition = object(definition);
    let replaced = api.replace(name, &PostParams::default(), &definition).await;
    replaced.expect("the type without rules");
}

fn forget(value: &mut Value) -> usize {
    let mut count = 0;
    if let Some(fields) = value.as_object_mut() {
        for rule in ["x-kubernetes-validations", "pattern"] {
            count += usize::from(fields.shift_remove(rule).is_some());
        }
        count += fields.values_mut().map(forget).sum::<usize>();
    } else if let Some(items) = value.as_array_mut() {
        count += items.iter_mut().map(forget).sum::<usize>();
    }
    count
}

/// The owner of the installation: without it the garbage collector would take everything away.
async fn nmstate(client: &Client) -> String {
    let api = Api::<NMState>::all(client.clone());
    let wanted = object(json!({"metadata": {"name": "nmstate"}, "spec": {}}));
    let made = until("an NMState", SOON, async || {
        let made = api.create(&PostParams::default(), &wanted).await;
        made.map_err(|error| error.to_string())
    });
    made.await.expect("an NMState").uid().expect("a uid")
}

pub(crate) fn api(client: &Client, identity: &Identity) -> Api<DynamicObject> {
    let kind = identity.kind;
    let resource = ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
    };
    match &identity.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

async fn apply(client: &Client, object: &Object) -> DynamicObject {
    let how = PatchParams::apply(FieldManager::Nmstate.as_str()).force();
    let name = &object.identity.name;
    let applied = api(client, &object.identity)
        .patch(name, &how, &Patch::Apply(&object.value))
        .await;
    applied.unwrap_or_else(|error| panic!("{}: {error}", object.identity))
}

/// Applies once more. Controllers write to some objects too, so it is tried until nobody else wrote
/// in between; an apply that changes something never comes to that.
async fn again(client: &Client, object: &Object) -> Result<Verdict, Error> {
    let api = api(client, &object.identity);
    let live = until("a second apply that changes nothing", SOON, async || {
        let before = api.get(&object.identity.name).await;
        let before = before.map_err(|error| error.to_string())?;
        let after = apply(client, object).await;
        match before.resource_version() == after.resource_version() {
            true => Ok(after),
            false => Err(format!("{} was changed", object.identity)),
        }
    });
    let live = serde_json::to_value(live.await?).expect("JSON");
    Ok(Verdict {
        identity: object.identity.clone(),
        owned: owned(&live, FieldManager::Nmstate.as_str()),
        wanted: comparable(&object.value),
    })
}

/// Rules count some moments after they are written.
async fn in_force(client: &Client) -> Result<(), Error> {
    let api = Api::<NodeNetworkConfigurationPolicy>::all(client.clone());
    let try_only = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let long = object(json!({"metadata": {"name": "n".repeat(64)}, "spec": {}}));
    until("the rules of policies", SOON, async || {
        refused(
            "is to be the value of a label",
            api.create(&try_only, &long).await,
        )
    })
    .await
}

/// Whether an attempt was refused with a sentence of ours.
pub(crate) fn refused<T>(sentence: &str, attempt: kube::Result<T>) -> Result<(), String> {
    match attempt {
        Ok(_) => Err(format!("nobody said {sentence:?}: it was done")),
        Err(kube::Error::Api(status))
            if matches!(status.code, 403 | 422) && status.message.contains(sentence) =>
        {
            Ok(())
        }
        Err(error) => Err(format!("nobody said {sentence:?}: {error}")),
    }
}
