//! Where the operator is measured: a control plane, a proxy that counts, played pods and sidecars,
//! and the operator itself as a process.

use crate::board::Board;
use crate::pods;
use crate::sidecars::Sidecars;
use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use keelson_api::SeiNode;
use keelson_bench::program::{Program, command};
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, Size};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::ffi::OsString;
use std::path::PathBuf;
use tokio::task::JoinSet;

/// The operator's own namespace.
const HOME: &str = "keelson-system";
/// The ServiceAccount of nodes' pods.
const ACCOUNT: &str = "seid-node";
/// Requests of the bench's own that are under way at once.
const AT_ONCE: usize = 32;
/// How many things the operator watches where there is no cert-manager.
const WATCHES: usize = 9;
/// The image nodes are made with.
pub(crate) const FIRST_IMAGE: &str = "registry.example/seid:v6.0.0";

/// What the platform is.
const PLATFORM: &[(&str, &str)] = &[
    ("SEI_NODEPOOL_NAME", "sei-node"),
    ("SEI_NODEPOOL_ARCHIVE", "sei-archive"),
    ("SEI_TOLERATION_KEY", "sei.io/workload"),
    ("SEI_SERVICE_ACCOUNT", ACCOUNT),
    ("SEI_STORAGE_CLASS_PERF", "played"),
    ("SEI_STORAGE_CLASS_DEFAULT", "played"),
    ("SEI_STORAGE_CLASS_ARCHIVE", "played"),
    ("SEI_STORAGE_SIZE_DEFAULT", "2000Gi"),
    ("SEI_STORAGE_SIZE_ARCHIVE", "40Ti"),
    ("SEI_RESOURCE_CPU_DEFAULT", "4"),
    ("SEI_RESOURCE_MEM_DEFAULT", "32Gi"),
    ("SEI_RESOURCE_CPU_ARCHIVE", "48"),
    ("SEI_RESOURCE_MEM_ARCHIVE", "448Gi"),
    ("SEI_SNAPSHOT_BUCKET", "snapshots"),
    ("SEI_SNAPSHOT_REGION", "us-east-2"),
    ("SEI_RESULT_EXPORT_BUCKET", "results"),
    ("SEI_RESULT_EXPORT_REGION", "us-east-2"),
    ("SEI_RESULT_EXPORT_PREFIX", "results/"),
    ("SEI_GENESIS_BUCKET", "genesis"),
    ("SEI_GENESIS_REGION", "us-east-2"),
    ("SEI_GATEWAY_NAME", "gateway"),
    ("SEI_GATEWAY_NAMESPACE", "gateway"),
    ("SEI_GATEWAY_DOMAIN", "example.com"),
    ("SEI_SIDECAR_IMAGE", "registry.example/keelson-sidecar:1"),
    (
        "SEI_KUBE_RBAC_PROXY_IMAGE",
        "registry.example/keelson-proxy:1",
    ),
    ("SEI_COSMOS_EXPORTER_IMAGE", "registry.example/exporter:1"),
    ("SEI_PROXY_RELOADS", "true"),
    ("POD_NAME", "operator"),
    ("POD_NAMESPACE", HOME),
];

/// Where the operator is measured.
pub(crate) struct Stage {
    // Declared in the order of dropping: those who ask before those who answer.
    pub(crate) board: Board,
    _played: JoinSet<()>,
    pub(crate) faults: FaultProxy,
    pub(crate) sidecars: Sidecars,
    client: Client,
    program: PathBuf,
    cluster: Cluster,
}

impl Stage {
    /// A control plane with nothing in it but the types and the operator's home.
    pub(crate) async fn raise(program: &std::path::Path) -> anyhow::Result<Self> {
        let cluster = Cluster::start(Size::ControlPlane).await?;
        cluster.install_crds().await?;
        let client = cluster.client();
        let sidecars = Sidecars::serve().await?;
        let stage = Self {
            board: Board::watch(&client),
            _played: pods::play(&client, &sidecars),
            faults: cluster.faults()?,
            sidecars,
            client,
            program: program.to_owned(),
            cluster,
        };
        stage.make_namespace(HOME, "keelson-sidecar-client").await?;
        Ok(stage)
    }

    async fn make_namespace(&self, name: &str, account: &str) -> anyhow::Result<()> {
        let how = PostParams::default();
        let namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let made = namespaces.create(&how, &namespace).await;
        made.with_context(|| format!("namespace {name} could not be made"))?;
        let account = serde_json::from_value(json!({ "metadata": { "name": account } }))?;
        let accounts = Api::<ServiceAccount>::namespaced(self.client.clone(), name);
        let made = accounts.create(&how, &account).await;
        made.with_context(|| format!("no ServiceAccount could be made in {name}"))?;
        Ok(())
    }

    /// A namespace for nodes.
    pub(crate) async fn namespace(&self, name: &str) -> anyhow::Result<()> {
        self.make_namespace(name, ACCOUNT).await
    }

    /// Starts the operator, and waits until it watches everything.
    pub(crate) async fn operator(&self) -> anyhow::Result<Program> {
        let operator = self.start()?;
        let watching = self.faults.watching(WATCHES).await;
        watching.context("the operator does not watch what it needs")?;
        Ok(operator)
    }

    /// Starts the operator, and waits for nothing.
    pub(crate) fn start(&self) -> anyhow::Result<Program> {
        let folder = self.cluster.folder();
        let kubeconfig = folder.join("operator.kubeconfig");
        std::fs::write(&kubeconfig, self.faults.kubeconfig())?;
        let log = folder.join("operator.log");
        let words: Vec<OsString> = vec![
            self.program.clone().into(),
            "--leader-elect=false".into(),
            "--metrics-bind-address=0".into(),
            "--health-probe-bind-address=0".into(),
            format!("--sidecar-address={}", self.sidecars.address).into(),
        ];
        let mut command = command(&words, &log)?;
        command
            .env("KUBECONFIG", &kubeconfig)
            .envs(PLATFORM.iter().copied());
        Program::start("keelson-operator", &mut command, &log)
    }

    /// The last lines the operator said.
    pub(crate) fn operator_said(&self) -> String {
        let log = self.cluster.folder().join("operator.log");
        let said = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = said.lines().rev().take(10).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Makes so many nodes.
    pub(crate) async fn make(&self, namespace: &str, names: &[String]) -> anyhow::Result<()> {
        let nodes = Api::<SeiNode>::namespaced(self.client.clone(), namespace);
        let made = stream::iter(names).map(|name| {
            let nodes = &nodes;
            async move {
                let node = serde_json::from_value(json!({
                    "apiVersion": "sei.io/v1alpha1", "kind": "SeiNode",
                    "metadata": { "name": name },
                    "spec": {
                        "chainId": "pacific-1",
                        "image": FIRST_IMAGE,
                        "fullNode": { "snapshot": { "stateSync": {} } },
                    },
                }))?;
                let made = nodes.create(&PostParams::default(), &node).await;
                made.with_context(|| format!("the node {name} could not be made"))?;
                anyhow::Ok(())
            }
        });
        made.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Gives one node another image.
    pub(crate) async fn edit(
        &self,
        namespace: &str,
        name: &str,
        image: &str,
    ) -> anyhow::Result<()> {
        let nodes = Api::<SeiNode>::namespaced(self.client.clone(), namespace);
        let patch = Patch::Merge(json!({ "spec": { "image": image } }));
        let edited = nodes.patch(name, &PatchParams::default(), &patch).await;
        let edited = edited.with_context(|| format!("the node {name} could not be edited"))?;
        ensure!(
            edited.spec.image == image,
            "the node {name} has another image"
        );
        Ok(())
    }

    /// Gives all of these another image.
    pub(crate) async fn edit_all(
        &self,
        namespace: &str,
        names: &[String],
        image: &str,
    ) -> anyhow::Result<()> {
        let edited = stream::iter(names).map(|name| self.edit(namespace, name, image));
        edited.buffer_unordered(AT_ONCE).try_collect().await
    }
}
