//! A control plane with our types and others, and an operator of NMStates on it.
//!
//! A test has its cluster to itself while it is its turn. Which types there are beside ours is for the
//! binary to say.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use keelson_api::names::FieldManager;
use keelson_api::{NMState, NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use keelson_cluster::{Calls, Key};
use keelson_operator::host::controller::Controller;
use keelson_operator::host::policies::controller::Controller as Policies;
use keelson_operator::host::settings::Settings;
use keelson_operator::host::world::{World, resource};
use keelson_render::host::{Identity, KINDS, Kind};
use keelson_render::platform::Source;
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, until};
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

use crate::grounds::Turn;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Label of nodes that a test plays. They are no machines that a webhook could run on.
pub(crate) const PLAYED: &str = "keelson.test/played";

/// A turn of one test.
pub(crate) struct Stage {
    pub(crate) cluster: &'static Cluster,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    _turn: Turn,
}

/// An operator; it ends when it is dropped.
pub(crate) struct Operator {
    pub(crate) controller: Arc<Controller>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) faults: FaultProxy,
    _watches: JoinSet<()>,
    running: Option<JoinHandle<()>>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

impl Stage {
    /// Waits for its turn, and for the end of what the one before left.
    pub(crate) async fn enter(test: &str) -> Self {
        let turn = Turn::take().await;
        let cluster = turn.cluster;
        let namespace = cluster.namespace(test).await.name().to_owned();
        let stage = Self {
            cluster,
            client: cluster.client(),
            namespace,
            _turn: turn,
        };
        stage.clear().await;
        stage
    }

    async fn clear(&self) {
        let all = (DeleteParams::background(), ListParams::default());
        let _ = self.nmstates().delete_collection(&all.0, &all.1).await;
        let _ = self.api_servers().delete_collection(&all.0, &all.1).await;
        let _ = self.policies().delete_collection(&all.0, &all.1).await;
        let _ = self.enactments().delete_collection(&all.0, &all.1).await;
        let played = ListParams::default().labels(PLAYED);
        let _ = self.nodes().delete_collection(&all.0, &played).await;
        // One kind after the other: they go together, and lists are not free.
        let outside = |it: &&Kind| !it.namespaced && it.kind != "Namespace";
        for kind in KINDS.iter().filter(outside) {
            let what = format!("every {} of the installation before to be gone", kind.kind);
            until(&what, PATIENCE, async || {
                let left = self.installed_of(kind).await;
                left.is_empty()
                    .then_some(())
                    .ok_or_else(|| format!("{left:?}"))
            })
            .await
            .expect("an empty cluster");
        }
    }

    /// Everything of an installation that is there.
    pub(crate) async fn installed(&self) -> BTreeSet<Identity> {
        let all = KINDS.iter().map(|kind| self.installed_of(kind));
        join_all(all).await.into_iter().flatten().collect()
    }

    /// What of an installation is there of one kind; nothing where the kind is not served.
    async fn installed_of(&self, kind: &Kind) -> Vec<Identity> {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(kind));
        let ours = ListParams::default().labels("app=kubernetes-nmstate");
        let list = api.list(&ours).await.map(|it| it.items).unwrap_or_default();
        let identities = list.into_iter().map(|it| Identity {
            kind: *kind,
            namespace: it.metadata.namespace,
            name: it.metadata.name.unwrap_or_default(),
        });
        let here = |it: &Identity| it.namespace.as_ref().is_none_or(|it| *it == self.namespace);
        identities.filter(here).collect()
    }

    pub(crate) fn nmstates(&self) -> Api<NMState> {
        Api::all(self.client.clone())
    }

    pub(crate) fn policies(&self) -> Api<NodeNetworkConfigurationPolicy> {
        Api::all(self.client.clone())
    }

    pub(crate) fn enactments(&self) -> Api<NodeNetworkConfigurationEnactment> {
        Api::all(self.client.clone())
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(crate) fn api_servers(&self) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("config.openshift.io", "v1", "APIServer");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }

    pub(crate) fn namespaced<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Writes the cluster's TLS profile.
    pub(crate) async fn cluster_profile(&self, spec: Value) {
        let object = json!({
            "apiVersion": "config.openshift.io/v1",
            "kind": "APIServer",
            "metadata": {"name": "cluster"},
            "spec": spec,
        });
        let api = self.api_servers();
        let how = PatchParams::apply("admin").force();
        let written = api.patch("cluster", &how, &Patch::Apply(&object)).await;
        written.expect("the real type takes it");
    }

    /// Makes an NMState.
    pub(crate) async fn nmstate(&self, name: &str, spec: Value) -> NMState {
        let made = json!({
            "apiVersion": "nmstate.io/v1",
            "kind": "NMState",
            "metadata": {"name": name},
            "spec": spec,
        });
        let made: NMState = serde_json::from_value(made).expect("an NMState");
        let how = PostParams::default();
        self.nmstates().create(&how, &made).await.expect("made")
    }

    /// An operator that looks only when it is told to.
    pub(crate) async fn operator(&self) -> Operator {
        let faults = self.cluster.faults().expect("a proxy");
        let client = faults.client();
        self.operator_with(faults, client).await
    }

    /// The same as somebody else; what it calls is not counted.
    pub(crate) async fn operator_as(&self, client: Client) -> Operator {
        let faults = self.cluster.faults().expect("a proxy");
        self.operator_with(faults, client).await
    }

    async fn operator_with(&self, faults: FaultProxy, client: Client) -> Operator {
        let settings = self.settings();
        let world = World::new();
        let watches = world.watch(&client, &self.namespace);
        let calls = Calls::new(client, FieldManager::Nmstate);
        let policies = Arc::new(Policies::new(calls.clone(), world.clone()));
        let controller = Arc::new(Controller::new(settings, calls, world));
        controller.begin().await;
        assert!(
            controller.look_at_platform().await,
            "{:?}",
            controller.platform()
        );
        Operator {
            controller,
            policies,
            faults,
            _watches: watches,
            running: None,
        }
    }

    /// What an operator is told.
    pub(crate) fn settings(&self) -> Settings {
        let operator = Source {
            namespace: "keelson-system".to_owned(),
            labels: Default::default(),
        };
        let image = "registry.example/keelson-host:test".to_owned();
        let mut settings = Settings::new(image, operator);
        settings.namespace.clone_from(&self.namespace);
        settings.plugin = crate::plugin();
        settings
    }

    /// An operator that looks after NMStates and policies by itself.
    pub(crate) async fn running_operator(&self) -> Operator {
        self.operator().await.running()
    }

    /// Waits until the operator has heard of an NMState, and looks.
    pub(crate) async fn says_after_look(&self, operator: &Operator, name: &str) {
        let key = Key {
            namespace: String::new(),
            name: name.to_owned(),
        };
        until("the NMState to be heard of", PATIENCE, async || {
            operator
                .controller
                .world
                .nmstates
                .get(&key)
                .map(drop)
                .ok_or_else(|| "not yet".to_owned())
        })
        .await
        .expect("the NMState");
        operator.controller.look().await;
    }

    /// Waits until an NMState's condition has this status and reason, and gives its message.
    pub(crate) async fn says(
        &self,
        name: &str,
        condition: &str,
        status: &str,
        reason: &str,
    ) -> String {
        let what = format!("{condition} {status}/{reason} of {name}");
        until(&what, PATIENCE, async || {
            let nmstate = self
                .nmstates()
                .get(name)
                .await
                .map_err(|it| it.to_string())?;
            let all = nmstate.status.unwrap_or_default().conditions;
            let found = all.iter().find(|it| it.type_ == condition);
            match found {
                Some(it) if it.status == status && it.reason.as_deref() == Some(reason) => {
                    Ok(it.message.clone().unwrap_or_default())
                }
                _ => Err(format!("{all:?}")),
            }
        })
        .await
        .expect("the condition")
    }
}

impl Operator {
    /// The same, looking after NMStates and policies by itself from now on.
    pub(crate) fn running(mut self) -> Self {
        let (controller, policies) = (self.controller.clone(), self.policies.clone());
        self.running = Some(tokio::spawn(async move {
            futures::future::join(controller.run(), policies.run()).await;
        }));
        self
    }

    /// Looks until there is nothing more to do: every Secret made, and a look that writes nothing.
    pub(crate) async fn settle(&self) {
        until("nothing more to write", PATIENCE, async || {
            let before = self.faults.writes().len();
            let again = self.controller.look().await;
            let wrote = self.faults.writes().split_off(before);
            match again {
                Some(again) if wrote.is_empty() && again >= Duration::from_secs(30) => Ok(()),
                again => Err(format!("{wrote:?}, again after {again:?}")),
            }
        })
        .await
        .expect("a settled installation");
    }
}

/// Our types, and those of the binary.
pub(crate) async fn install(cluster: &Cluster) {
    cluster.install_crds().await.expect("our types");
    for text in crate::types() {
        serve(cluster.client(), &text).await;
    }
}

/// Has a type served.
pub(crate) async fn serve(client: Client, text: &str) {
    let crd: CustomResourceDefinition = serde_saphyr::from_str(text).expect("a CRD");
    let api: Api<CustomResourceDefinition> = Api::all(client);
    let name = crd.metadata.name.clone().expect("a name");
    let how = PatchParams::apply("test").force();
    api.patch(&name, &how, &Patch::Apply(&crd))
        .await
        .expect("the type");
    let established = kube::runtime::conditions::is_crd_established();
    let served = kube::runtime::wait::await_condition(api, &name, established);
    let waited = tokio::time::timeout(PATIENCE, served).await;
    waited.expect("in time").expect("a served type");
}
