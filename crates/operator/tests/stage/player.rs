//! Plays the kubelets of all nodes: one machine, one watch for each kind of object, one write for
//! each change. What to do is [`World`]'s to say.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret,
};
use keelson_api::names::Label;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{interval, sleep};

use super::place::Place;
use super::shared::Shared;
use super::world::{Claim, Deed, World};

/// The machine all pods are on.
pub(crate) const MACHINE: &str = "stage";
const MANAGER: &str = "played-kubelet";
/// Calls under way at once.
const CALLS: usize = 16;
/// After 50 seconds of silence a machine's pods are called unready by the controller manager.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// Before a call that failed is made again.
const PAUSE: Duration = Duration::from_millis(200);

/// Makes the machine, and then plays for ever.
pub(crate) async fn play(
    client: Client,
    shared: Arc<Shared>,
    deeds: mpsc::UnboundedReceiver<Deed>,
) {
    let labelled = watcher::Config::default().labels(Label::Node.as_str());
    let all = watcher::Config::default;
    tokio::join!(
        beat(client.clone()),
        carry_out(client.clone(), Arc::clone(&shared), deeds),
        follow(
            Api::<Pod>::all(client.clone()),
            labelled.clone(),
            &shared,
            World::seen_pod,
            World::gone_pod
        ),
        follow(
            Api::<ConfigMap>::all(client.clone()),
            labelled,
            &shared,
            World::seen_config_map,
            World::gone_config_map
        ),
        follow(
            Api::<Secret>::all(client.clone()),
            all(),
            &shared,
            World::seen_secret,
            World::gone_secret
        ),
        follow(
            Api::<PersistentVolumeClaim>::all(client.clone()),
            all(),
            &shared,
            World::seen_claim,
            World::gone_claim
        ),
    );
}

/// Keeps the machine alive in the eyes of the controller manager.
async fn beat(client: Client) {
    let nodes = Api::<Node>::all(client.clone());
    let leases = Api::<Lease>::namespaced(client, "kube-node-lease");
    let mut beats = interval(HEARTBEAT);
    loop {
        beats.tick().await;
        let now = jiff::Timestamp::now();
        let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let renewed = now.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let machine = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": MACHINE, "labels": { "kubernetes.io/hostname": MACHINE } },
        });
        let status = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": MACHINE },
            "status": { "conditions": [{
                "type": "Ready", "status": "True", "reason": "Played",
                "lastHeartbeatTime": at, "lastTransitionTime": at,
            }]},
        });
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": MACHINE },
            "spec": {
                "holderIdentity": MACHINE, "leaseDurationSeconds": 40, "renewTime": renewed,
            },
        });
        let applied = PatchParams::apply(MANAGER).force();
        // A beat that is missed is made up for by the next.
        let _ = nodes.patch(MACHINE, &applied, &Patch::Apply(machine)).await;
        let _ = nodes
            .patch_status(MACHINE, &applied, &Patch::Apply(status))
            .await;
        let _ = leases.patch(MACHINE, &applied, &Patch::Apply(lease)).await;
    }
}

/// Tells the world of every object of a kind that comes, changes or goes.
async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    shared: &Shared,
    seen: fn(&mut World, K) -> Vec<Deed>,
    gone: fn(&mut World, &Place) -> Vec<Deed>,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut known = HashSet::new();
    let mut listed = HashSet::new();
    let mut events = watcher(api, config).default_backoff().boxed();
    loop {
        match events.try_next().await {
            Ok(Some(Event::Init)) => listed = HashSet::new(),
            Ok(Some(Event::InitApply(object))) => {
                listed.insert(Place::of(&object));
                known.insert(Place::of(&object));
                shared.happen(|world| seen(world, object));
            }
            Ok(Some(Event::InitDone)) => {
                for place in known.difference(&listed) {
                    shared.happen(|world| gone(world, place));
                }
                known.clone_from(&listed);
            }
            Ok(Some(Event::Apply(object))) => {
                known.insert(Place::of(&object));
                shared.happen(|world| seen(world, object));
            }
            Ok(Some(Event::Delete(object))) => {
                known.remove(&Place::of(&object));
                shared.happen(|world| gone(world, &Place::of(&object)));
            }
            // It is tried again, for as long as the API server is away.
            Err(_) => {}
            Ok(None) => return,
        }
    }
}

/// Does what is to be done, some of it at once and each with patience.
async fn carry_out(client: Client, shared: Arc<Shared>, mut deeds: mpsc::UnboundedReceiver<Deed>) {
    let turns = Arc::new(Semaphore::new(CALLS));
    while let Some(deed) = deeds.recv().await {
        let (client, shared, turns) = (client.clone(), Arc::clone(&shared), Arc::clone(&turns));
        tokio::spawn(async move {
            if let Deed::Later { after, wake } = deed {
                sleep(after).await;
                shared.happen(|world| world.wake(wake));
                return;
            }
            let turn = turns.acquire().await;
            while let Err(error) = carry_out_one(&client, &shared, &deed).await {
                let given_up =
                    matches!(&error, kube::Error::Api(told) if told.code < 500 && told.code != 429);
                if given_up {
                    // What is gone, bound or made already needs nothing; the watch tells the rest.
                    break;
                }
                sleep(PAUSE).await;
            }
            drop(turn);
        });
    }
}

async fn carry_out_one(client: &Client, shared: &Shared, deed: &Deed) -> Result<(), kube::Error> {
    match deed {
        Deed::Bind { pod, uid } => bind(client, pod, uid).await,
        Deed::Write { uid } => write(client, shared, uid).await,
        Deed::Remove { pod, uid } => {
            let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace);
            let at_once = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: Some(uid.clone()),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            pods.delete(&pod.name, &at_once).await.map(drop)
        }
        Deed::Provide { claim } => provide(client, claim).await,
        Deed::Retire { claim_uid } => {
            let volumes = Api::<PersistentVolume>::all(client.clone());
            let name = volume_name(claim_uid);
            volumes
                .delete(&name, &DeleteParams::default())
                .await
                .map(drop)
        }
        Deed::Later { .. } => Ok(()),
    }
}

async fn bind(client: &Client, pod: &Place, uid: &str) -> Result<(), kube::Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace);
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": { "name": pod.name, "uid": uid },
        "target": { "apiVersion": "v1", "kind": "Node", "name": MACHINE },
    });
    let params = PostParams::default();
    let bound: Value = pods
        .create_subresource("binding", &pod.name, &params, &binding)
        .await?;
    drop(bound);
    Ok(())
}

/// Writes until what is written is what is so.
async fn write(client: &Client, shared: &Shared, uid: &str) -> Result<(), kube::Error> {
    while let Some((pod, status)) = shared.look(|world| world.begin_write(uid)) {
        let pods = Api::<Pod>::namespaced(client.clone(), &pod.namespace);
        let patch = json!({ "metadata": { "uid": uid }, "status": status });
        let params = PatchParams::default();
        let written = pods
            .patch_status(&pod.name, &params, &Patch::Merge(patch))
            .await;
        shared.look(|world| world.end_write(uid, written.is_ok()));
        written?;
    }
    Ok(())
}

fn volume_name(claim_uid: &str) -> String {
    format!("stage-{claim_uid}")
}

/// A volume that is meant for this claim; the controller manager binds the two.
async fn provide(client: &Client, claim: &Claim) -> Result<(), kube::Error> {
    let volumes = Api::<PersistentVolume>::all(client.clone());
    let name = volume_name(&claim.uid);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": claim.storage },
            "accessModes": claim.modes,
            "storageClassName": claim.class,
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": claim.uid,
                "namespace": claim.place.namespace, "name": claim.place.name,
            },
            "hostPath": { "path": format!("/played/{name}") },
        },
    });
    create(&volumes, volume).await
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug + Serialize,
{
    let object = serde_json::from_value(object).expect("an object of our own making");
    api.create(&PostParams::default(), &object).await.map(drop)
}
