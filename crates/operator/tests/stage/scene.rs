//! One test's part of the stage: a namespace, clients, nodes, and how they are played. What can be
//! waited for is in [`super::waiting`].

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, ServiceAccount};
use keelson_api::SeiNode;
use keelson_api::names::Annotation;
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Authority, Namespace};
use keelson_wire::TaskType;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ledger::Seen;
use super::objects::{self, SERVICE_ACCOUNT};
use super::script::{Fault, NodeScript};
use super::world::{Wake, World};
use super::{Place, Stage};

/// Where cert-manager looks for the Secrets of issuers of the whole cluster.
const CLUSTER_ISSUERS: &str = "cert-manager";

/// A test's part of the stage.
pub(crate) struct Scene {
    stage: &'static Stage,
    namespace: Namespace<'static>,
    client: Client,
    faults: FaultProxy,
}

impl Stage {
    /// A scene with a namespace of its own, ready for nodes.
    pub(crate) async fn scene(&'static self, name: &str) -> Scene {
        let namespace = self.cluster.namespace(name).await;
        let scene = Scene {
            stage: self,
            namespace,
            client: self.cluster.client(),
            faults: self.cluster.faults().expect("a fault proxy"),
        };
        let account = json!({ "metadata": { "name": SERVICE_ACCOUNT } });
        scene.create::<ServiceAccount>(account).await;
        scene
    }
}

/// The place.
impl Scene {
    pub(crate) fn stage(&self) -> &'static Stage {
        self.stage
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.name()
    }

    /// The test's own client. What it does is not among the calls of [`Scene::faults`].
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The proxy between the operator under test and the API server: what it does is counted there
    /// and may be made to fail there.
    pub(crate) fn faults(&self) -> &FaultProxy {
        &self.faults
    }

    /// A client for the operator under test.
    pub(crate) fn operator_client(&self) -> Client {
        self.faults.client()
    }

    /// Objects of a kind in this namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), self.namespace())
    }

    /// A node of this scene.
    pub(crate) fn place(&self, node: &str) -> Place {
        Place::new(self.namespace(), node)
    }
}

/// What is made.
impl Scene {
    /// Makes an object from JSON.
    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Serialize
            + Debug,
    {
        let object = serde_json::from_value(object).expect("an object of that kind");
        let created = self.api().create(&PostParams::default(), &object).await;
        created.expect("its creation")
    }

    /// Makes a node of this mode, with more in its spec.
    pub(crate) async fn node(&self, name: &str, mode: &str, block: Value, more: Value) -> SeiNode {
        let mut spec = json!({
            "chainId": "pacific-1",
            "image": "registry.example/seid:v6.0.0",
            mode: block,
        });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        self.create(json!({
            "apiVersion": "sei.io/v1alpha1", "kind": "SeiNode",
            "metadata": { "name": name }, "spec": spec,
        }))
        .await
    }

    /// Makes a full node.
    pub(crate) async fn full_node(&self, name: &str, more: Value) -> SeiNode {
        self.node(name, "fullNode", json!({}), more).await
    }

    /// Makes a full node that begins with a snapshot and replays it in a Job.
    pub(crate) async fn bootstrapped(&self, name: &str, height: i64, more: Value) -> SeiNode {
        let snapshot = json!({
            "s3": { "targetHeight": height }, "bootstrapImage": "registry.example/seid:v5.9.0",
        });
        self.node(name, "fullNode", json!({ "snapshot": snapshot }), more)
            .await
    }

    /// Makes an archive node.
    pub(crate) async fn archive(&self, name: &str, more: Value) -> SeiNode {
        self.node(name, "archive", json!({}), more).await
    }

    /// Makes a replayer, which follows some peer.
    pub(crate) async fn replayer(&self, name: &str, height: i64) -> SeiNode {
        let block = json!({ "snapshot": { "s3": { "targetHeight": height } } });
        let address = format!("{}@203.0.113.1:26656", "0".repeat(40));
        let peers = json!([{ "static": { "addresses": [address] } }]);
        self.node(name, "replayer", block, json!({ "peers": peers }))
            .await
    }

    /// Makes a validator, and the Secrets of its keys: `<name>-signing` and `<name>-node`.
    pub(crate) async fn validator(&self, name: &str, more: Value) -> SeiNode {
        let (signing, node) = (format!("{name}-signing"), format!("{name}-node"));
        let key = r#"{"address":"00","pub_key":{"type":"tendermint/PubKeyEd25519","value":"AA=="},"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;
        self.secret(&objects::secret(
            &signing,
            &[("priv_validator_key.json", key)],
        ))
        .await;
        let key = r#"{"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;
        self.secret(&objects::secret(&node, &[("node_key.json", key)]))
            .await;
        let block = json!({
            "signingKey": { "secret": { "secretName": signing } },
            "nodeKey": { "secret": { "secretName": node } },
        });
        self.node(name, "validator", block, more).await
    }

    /// Makes or replaces a Secret.
    pub(crate) async fn secret(&self, secret: &Secret) {
        let name = secret.metadata.name.clone().unwrap_or_default();
        let mut whole = secret.clone();
        whole.metadata.managed_fields = None;
        let params = PatchParams::apply("test").force();
        let applied = self
            .api::<Secret>()
            .patch(&name, &params, &Patch::Apply(whole))
            .await;
        applied.expect("a Secret");
    }

    /// Makes a Secret with a certificate for a node, by an authority of the test's.
    pub(crate) async fn tls_secret(&self, name: &str, node: &str, authority: &Authority) {
        let identity = objects::identity(authority, node, self.namespace());
        self.secret(&objects::tls_secret(name, &identity, authority))
            .await;
    }

    /// Makes a claim, for example one to import.
    pub(crate) async fn claim(&self, name: &str, storage: &str) -> PersistentVolumeClaim {
        self.create(json!({
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "played",
                "resources": { "requests": { "storage": storage } },
            },
        }))
        .await
    }

    /// Makes an issuer of this namespace, and says which authority it issues from.
    pub(crate) async fn issuer(&self, name: &str) -> Authority {
        let authority = Authority::new(name).expect("an authority");
        let secret = objects::authority_secret(name, &authority);
        self.secret(&secret).await;
        let issuers = cert_manager("Issuer");
        let api = Api::namespaced_with(self.client(), self.namespace(), &issuers);
        create_issuer(&api, &issuers, name).await;
        authority
    }

    /// Makes an issuer of the whole cluster. Its name is to be the test's own.
    pub(crate) async fn cluster_issuer(&self, name: &str) -> Authority {
        let authority = Authority::new(name).expect("an authority");
        let secret = objects::authority_secret(name, &authority);
        let secrets = Api::<Secret>::namespaced(self.client(), CLUSTER_ISSUERS);
        let made = secrets.create(&PostParams::default(), &secret).await;
        made.expect("a Secret");
        let issuers = cert_manager("ClusterIssuer");
        let api = Api::all_with(self.client(), &issuers);
        create_issuer(&api, &issuers, name).await;
        authority
    }

    /// A node as it is stored, whether or not it can be read.
    pub(crate) async fn raw_node(&self, name: &str) -> Value {
        let kind = GroupVersionKind::gvk("sei.io", "v1alpha1", "SeiNode");
        let kind = ApiResource::from_gvk(&kind);
        let nodes: Api<DynamicObject> =
            Api::namespaced_with(self.client(), self.namespace(), &kind);
        let node = nodes.get(name).await.expect("a node");
        serde_json::to_value(node).expect("a value")
    }

    /// Has an object deleted, as a person would.
    pub(crate) async fn delete<K>(&self, name: &str)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let deleted = self.api::<K>().delete(name, &DeleteParams::default()).await;
        deleted.expect("a deletion");
    }

    /// Touches a pod, so that its mounted files are refreshed at once.
    pub(crate) async fn touch(&self, pod: &str) {
        let now = jiff::Timestamp::now().to_string();
        let annotations = json!({ Annotation::Refresh.as_str(): now });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let pods = self.api::<Pod>();
        let touched = pods.patch(pod, &PatchParams::default(), &patch).await;
        touched.expect("a touch");
    }

    /// Asks for another attempt, as a person would.
    pub(crate) async fn retry(&self, node: &str, value: &str) {
        let annotations = json!({ Annotation::Retry.as_str(): value });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        let nodes = self.api::<SeiNode>();
        let asked = nodes.patch(node, &PatchParams::default(), &patch).await;
        asked.expect("a retry");
    }

    /// Merges something into the spec of a node.
    pub(crate) async fn edit(&self, node: &str, spec: Value) -> SeiNode {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let nodes = self.api::<SeiNode>();
        let edited = nodes.patch(node, &PatchParams::default(), &patch).await;
        edited.expect("an edit")
    }
}

fn cert_manager(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("cert-manager.io", "v1", kind))
}

async fn create_issuer(api: &Api<DynamicObject>, kind: &ApiResource, name: &str) {
    let spec = json!({ "spec": { "ca": { "secretName": name } } });
    let issuer = DynamicObject::new(name, kind).data(spec);
    api.create(&PostParams::default(), &issuer)
        .await
        .expect("an issuer");
}

/// How it is played, and what was seen.
impl Scene {
    /// Changes how a node is played.
    pub(crate) fn script(&self, node: &str, write: impl FnOnce(&mut NodeScript)) {
        let place = self.place(node);
        self.stage.script(|script| write(script.node(&place)));
    }

    /// Makes a node's proxy and sidecar misbehave, or behave again.
    pub(crate) fn fault(&self, node: &str, fault: Option<Fault>) {
        self.script(node, |script| script.fault = fault);
    }

    /// Leaves the pods of a node as they are.
    pub(crate) fn pause(&self, node: &str) {
        self.script(node, |script| script.paused = true);
    }

    /// Plays on.
    pub(crate) fn resume(&self, node: &str) {
        self.script(node, |script| script.paused = false);
        self.stage.shared.happen(World::consider_all);
    }

    /// Ends well the tasks of this type that are scripted to hang, and says how many there were.
    pub(crate) fn release(&self, node: &str, type_: TaskType) -> usize {
        let place = self.place(node);
        self.script(node, |script| script.hangs(type_, false));
        self.stage.shared.act(|world| world.release(&place, type_))
    }

    /// Ends the replay of a node's bootstrap pod now.
    pub(crate) fn end_replay(&self, node: &str) {
        let place = self.place(node);
        self.stage.shared.happen(|world| {
            let pod = world.answering(&place).map(|pod| pod.uid.clone());
            pod.map(|uid| world.wake(Wake::ReplayEnds { uid }))
                .unwrap_or_default()
        });
    }

    /// Has a container of a node's pod end and start again, as after a crash.
    pub(crate) fn crash(&self, node: &str, container: &str) {
        let place = self.place(node);
        let container = container.to_owned();
        self.stage.shared.happen(|world| {
            let pod = world.answering(&place).map(|pod| pod.uid.clone());
            pod.map(|uid| world.wake(Wake::Restart { uid, container }))
                .unwrap_or_default()
        });
    }

    /// Takes back the approval of a node's start, as `mark-not-ready` does.
    pub(crate) fn disapprove(&self, node: &str) {
        let place = self.place(node);
        self.stage.shared.happen(|world| world.disapprove(&place));
    }

    /// Whether the start of a node's process is approved; nothing where no sidecar runs.
    pub(crate) fn approved(&self, node: &str) -> Option<bool> {
        let place = self.place(node);
        self.stage.shared.look(|world| {
            let (pod, _) = world.serving(&place);
            pod.and_then(|pod| world.gate(&pod))
        })
    }

    /// What was seen of a node so far.
    pub(crate) fn seen(&self, node: &str) -> Seen {
        self.stage
            .shared
            .look(|world| world.ledger.of(&self.place(node)))
    }

    /// Tasks the sidecar of a node knows.
    pub(crate) fn tasks(&self, node: &str) -> Vec<keelson_wire::TaskResult> {
        let place = self.place(node);
        self.stage.shared.look(|world| {
            let pod = world.answering(&place).map(|pod| pod.uid.clone());
            pod.map(|uid| world.tasks(&uid)).unwrap_or_default()
        })
    }

    /// Whether the process of a node was started with the configuration that is there now.
    pub(crate) fn runs_as_configured(&self, node: &str) -> bool {
        let place = self.place(node);
        self.stage.shared.look(|world| {
            let pod = world.answering(&place).map(|pod| pod.uid.clone());
            let files = pod.map(|uid| world.configuration(&uid));
            files == Some(world.ledger.of(&place).started_with)
        })
    }

    /// What must never happen and did, in this scene.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.stage
            .shared
            .look(|world| world.ledger.violations(self.namespace()))
    }

    /// The TLS mode of a node's proxy (`off`, `required`, `shut`) and its certificate; nothing where no
    /// proxy runs.
    pub(crate) fn serving(&self, node: &str) -> Option<(&'static str, Option<String>)> {
        let place = self.place(node);
        let (pod, serving) = self.stage.shared.look(|world| world.serving(&place));
        pod.map(|_| (serving.word(), serving.fingerprint().map(str::to_owned)))
    }
}
