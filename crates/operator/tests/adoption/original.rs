//! The original's objects in a scene: made as it made them, with its field managers, and its pods
//! brought up and approved as it would have done.
//!
//! StatefulSets, Services and ConfigMaps are applied with exactly the fields the original owns in
//! them; claims, Jobs and nodes are created whole. Pods come from the real controllers, out of the
//! original's templates. Uids of owners are those of the new objects, and the namespace is the
//! scene's.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::SeiNode;
use keelson_cluster::owned;
use keelson_operator::sidecar::{At, Audience, NoToken, Sidecars, Token, Tokens, Transport, Whom};
use keelson_render::Platform;
use keelson_wire::{TaskRequest, TaskType};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::stage::objects::{original_proxy, secret};
use crate::stage::{Scene, platform};

const MANAGER: &str = "seinode-controller";

/// Both kinds of platform an adopted node may find itself on: the original's own images, with the
/// proxy that takes TLS from its flags, and ours.
pub(crate) fn platforms() -> [(&'static str, Platform); 2] {
    let mut theirs = original_proxy();
    "sidecar:1".clone_into(&mut theirs.sidecar.image);
    "quay.io/brancz/kube-rbac-proxy:v0.19.1".clone_into(&mut theirs.proxy.program.image);
    [("theirs", theirs), ("ours", platform())]
}

/// One list of the original's objects; nothing where they are not beside this workspace.
fn read(file: &str) -> Option<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/original");
    if !folder.is_dir() {
        println!("skipped: the original's objects are not beside this workspace");
        return None;
    }
    let text = fs::read_to_string(folder.join(file)).expect("a file");
    Some(serde_saphyr::from_str(&text).expect("YAML"))
}

/// The original's objects.
pub(crate) struct Original {
    nodes: Vec<Value>,
    edited: Value,
    sets: Vec<Value>,
    services: Vec<Value>,
    configs: Vec<Value>,
    claims: Vec<Value>,
    jobs: Vec<Value>,
}

impl Original {
    /// Reads them; nothing where there are none.
    pub(crate) fn read() -> Option<Self> {
        let items = |file: &str| {
            let list = read(file)?;
            list["items"].as_array().cloned()
        };
        Some(Self {
            nodes: items("seinodes.yaml")?,
            edited: read("seinode-after-image-edit.yaml")?,
            sets: items("statefulsets.yaml")?,
            services: items("services.yaml")?,
            configs: items("configmaps.yaml")?,
            claims: items("persistentvolumeclaims.yaml")?,
            jobs: items("jobs.yaml")?,
        })
    }

    /// Makes a node and everything that belongs to it, and waits until its sidecar answers.
    pub(crate) async fn make(&self, scene: &Scene, name: &str) {
        let node = self.nodes.iter().find(|it| it["metadata"]["name"] == name);
        self.make_of(scene, node.expect("a node of this name").clone(), None)
            .await;
    }

    /// The node right after its image was edited, with the workload of the new image.
    pub(crate) async fn make_edited(&self, scene: &Scene) {
        let image = self.edited["spec"]["image"].as_str().map(str::to_owned);
        self.make_of(scene, self.edited.clone(), image).await;
    }

    async fn make_of(&self, scene: &Scene, node: Value, image: Option<String>) {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let name = name.to_owned();
        keys(scene, &node).await;
        let uid = make_node(scene, node).await;
        let of_node = |it: &&Value| it["metadata"]["labels"]["sei.io/node"] == *name;
        for claim in self.claims.iter().filter(of_node) {
            create(scene, claim, &uid).await;
        }
        for config in self.configs.iter().filter(of_node) {
            apply(scene, config, &uid).await;
        }
        for set in self.sets.iter().filter(of_node) {
            apply(scene, &with_image(set, image.as_deref()), &uid).await;
        }
        for service in self.services.iter().filter(of_node) {
            match applied_by_original(service) {
                true => apply(scene, service, &uid).await,
                false => create(scene, service, &uid).await,
            }
        }
        for job in self.jobs.iter().filter(of_node) {
            create(scene, &without_controller(job), &uid).await;
        }
        scene.until_serving(&name, "off").await;
    }

    /// What the original had its sidecar do by then, under the names it gave it.
    pub(crate) async fn submit_done(&self, scene: &Scene, name: &str) {
        let node = self.nodes.iter().find(|it| it["metadata"]["name"] == name);
        let tasks = node.and_then(|it| it["status"]["plan"]["tasks"].as_array());
        for task in tasks.into_iter().flatten() {
            let type_: TaskType = serde_json::from_value(task["type"].clone()).expect("a type");
            let known = keelson_wire::Task::type_of(type_.as_str()).is_some();
            if task["status"] == "Complete" && known {
                let id = task["id"].as_str().unwrap_or_default();
                submit(scene, name, id, type_, params(type_, &task["params"])).await;
            }
        }
    }

    /// Has the original approve the start of a node's process.
    pub(crate) async fn approve(&self, scene: &Scene, name: &str) {
        let id = uuid::Uuid::new_v4().to_string();
        submit(scene, name, &id, TaskType::MarkReady, json!({})).await;
        scene
            .until_pod("its readiness", &format!("{name}-0"), is_ready)
            .await;
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|it| it.conditions.as_ref());
    let mut all = conditions.into_iter().flatten();
    all.any(|it| it.type_ == "Ready" && it.status == "True")
}

/// What is written in a plan of the original, as its sidecar was sent it.
fn params(type_: TaskType, stored: &Value) -> Value {
    match type_ {
        TaskType::SnapshotRestore => json!({ "targetHeight": stored["TargetHeight"] }),
        TaskType::ConfigureStateSync => json!({ "useLocalSnapshot": stored["UseLocalSnapshot"] }),
        _ => stored.clone(),
    }
}

/// The Secrets a validator's keys are in.
async fn keys(scene: &Scene, node: &Value) {
    let validator = &node["spec"]["validator"];
    let name = |key: &str| validator[key]["secret"]["secretName"].as_str();
    let key = r#"{"address":"00","pub_key":{"type":"tendermint/PubKeyEd25519","value":"AA=="},"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;
    if let Some(name) = name("signingKey") {
        scene
            .secret(&secret(name, &[("priv_validator_key.json", key)]))
            .await;
    }
    if let Some(name) = name("nodeKey") {
        scene.secret(&secret(name, &[("node_key.json", key)])).await;
    }
}

async fn make_node(scene: &Scene, mut node: Value) -> String {
    let status = node["status"].take();
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let (name, bare) = (name.to_owned(), bare(&node, scene));
    let mut bare = bare;
    // Whoever owns a whole fleet is not part of the scene.
    bare["metadata"]["ownerReferences"] = Value::Null;
    let object: SeiNode = serde_json::from_value(bare).expect("a SeiNode");
    let nodes = scene.api::<SeiNode>();
    let as_kubectl = PostParams {
        field_manager: Some("kubectl-client-side-apply".to_owned()),
        ..PostParams::default()
    };
    let made = nodes.create(&as_kubectl, &object).await;
    let uid = made.expect("a node").uid().expect("a uid");
    let patch = Patch::Merge(json!({ "status": status }));
    let params = PatchParams {
        field_manager: Some("manager".to_owned()),
        ..PatchParams::default()
    };
    let written = nodes.patch_status(&name, &params, &patch).await;
    written.expect("a status");
    uid
}

/// An object without what the server gives it, in the scene's namespace.
fn bare(object: &Value, scene: &Scene) -> Value {
    let mut object = object.clone();
    object["status"] = Value::Null;
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        object["metadata"][field] = Value::Null;
    }
    object["metadata"]["managedFields"] = Value::Null;
    object["metadata"]["namespace"] = scene.namespace().into();
    object
}

fn applied_by_original(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    let mut managers = managers.into_iter().flatten();
    managers.any(|it| it["manager"] == MANAGER && it["operation"] == "Apply")
}

fn own(object: &mut Value, uid: &str) {
    if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
        owners.iter_mut().for_each(|it| it["uid"] = uid.into());
    }
}

fn api(scene: &Scene, object: &Value) -> Api<DynamicObject> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = match version.split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), version),
    };
    let kind = GroupVersionKind::gvk(&group, &version, &kind);
    let resource = ApiResource::from_gvk(&kind);
    Api::namespaced_with(scene.client(), scene.namespace(), &resource)
}

/// Applies what the original owns of an object, and no more.
async fn apply(scene: &Scene, object: &Value, uid: &str) {
    let mut part = owned(object, MANAGER);
    let whole = bare(object, scene);
    for field in ["apiVersion", "kind"] {
        part[field] = whole[field].clone();
    }
    for field in ["name", "namespace"] {
        part["metadata"][field] = whole["metadata"][field].clone();
    }
    own(&mut part, uid);
    let name = whole["metadata"]["name"].as_str().unwrap_or_default();
    let how = PatchParams::apply(MANAGER).force();
    let applied = api(scene, object)
        .patch(name, &how, &Patch::Apply(part))
        .await;
    applied.expect("an object as the original applied it");
}

/// Creates an object as the original did that it creates once.
async fn create(scene: &Scene, object: &Value, uid: &str) {
    let mut whole = bare(object, scene);
    own(&mut whole, uid);
    let how = PostParams {
        field_manager: Some("manager".to_owned()),
        ..PostParams::default()
    };
    let object: DynamicObject = serde_json::from_value(whole.clone()).expect("an object");
    let made = api(scene, &whole).create(&how, &object).await;
    made.expect("an object as the original created it");
}

/// A Job without what its controller put into it.
fn without_controller(job: &Value) -> Value {
    let mut job = job.clone();
    job["spec"]["selector"] = Value::Null;
    if let Some(labels) = job["spec"]["template"]["metadata"]["labels"].as_object_mut() {
        labels.retain(|name, _| name.starts_with("sei.io/"));
    }
    job
}

fn with_image(set: &Value, image: Option<&str>) -> Value {
    let mut set = set.clone();
    let Some(image) = image else { return set };
    for list in ["containers", "initContainers"] {
        let all = set["spec"]["template"]["spec"][list].as_array_mut();
        let seid = all.into_iter().flatten();
        for container in seid.filter(|it| it["name"] == "seid" || it["name"] == "seid-init") {
            container["image"] = image.into();
        }
    }
    set
}

/// A token nobody looks at: the original's own.
struct Theirs;

impl Tokens for Theirs {
    fn token<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: Audience,
    ) -> BoxFuture<'a, Result<Token, NoToken>> {
        async { Ok(Token::new("theirs")) }.boxed()
    }

    fn drop_token(&self, _: &str, _: &str, _: Audience, _: &Token) {}
}

async fn submit(scene: &Scene, name: &str, id: &str, type_: TaskType, params: Value) {
    let sidecars = Sidecars::new(Arc::new(At(scene.stage().address())), Arc::new(Theirs));
    let whom = Whom {
        namespace: scene.namespace().to_owned(),
        node: name.to_owned(),
        pod_uid: "theirs".to_owned(),
        ip: None,
    };
    let request = TaskRequest {
        id: Some(id.to_owned()),
        type_,
        params: params.as_object().cloned().unwrap_or_default(),
    };
    let over = Transport::Plaintext;
    let sent = sidecars
        .request(&whom, &over, Audience::ApiServer, &request)
        .await;
    sent.expect("a task of the original's");
}
