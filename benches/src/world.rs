//! What stands around the proxies: a real API server, an account with a right, tokens of it, and a
//! certificate.

use crate::cases::Body;
use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, Size, until};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

const NAMESPACE: &str = "bench";

/// The world; dropping it removes it.
pub(crate) struct World {
    cluster: Cluster,
    pub(crate) folder: PathBuf,
}

impl World {
    /// Starts the API server and writes what proxies read beside its files: what a killed bench
    /// leaves is swept with what a killed cluster leaves.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let cluster = Cluster::start(Size::ControlPlane).await?;
        let folder = cluster.folder().join("bench");
        std::fs::create_dir_all(folder.join("bodies"))?;
        for body in Body::ALL {
            let file = folder.join("bodies").join(&body.path()[1..]);
            std::fs::write(file, "x".repeat(body.bytes()))?;
        }
        let pair = cluster.authority().server(&["127.0.0.1", "localhost"])?;
        std::fs::write(folder.join("tls.crt"), pair.certificate)?;
        std::fs::write(folder.join("tls.key"), pair.key)?;
        let config = format!(
            "authorization:\n  resourceAttributes:\n    namespace: {NAMESPACE}\n    apiGroup: sei.io\n    resource: seinodetasks\n"
        );
        std::fs::write(folder.join("config.yaml"), config)?;
        let world = Self { cluster, folder };
        world.permit().await?;
        Ok(world)
    }

    /// A way to the API server of its own that counts calls, and the kubeconfig of it.
    pub(crate) fn way(&self, name: &str) -> anyhow::Result<(FaultProxy, PathBuf)> {
        let way = self.cluster.faults()?;
        let file = self.folder.join(format!("{name}.kubeconfig"));
        std::fs::write(&file, way.kubeconfig())?;
        Ok((way, file))
    }

    async fn permit(&self) -> anyhow::Result<()> {
        let client = self.cluster.client();
        let params = PostParams::default();
        let namespace: Namespace =
            serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } }))?;
        Api::all(client.clone()).create(&params, &namespace).await?;
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), NAMESPACE);
        until("the account", Duration::from_secs(20), async || {
            let found = accounts.get("default").await;
            found.map_err(|error| error.to_string())
        })
        .await?;
        let verbs = ["get", "update"];
        let role: Role = serde_json::from_value(json!({
            "metadata": { "name": "tasks" },
            "rules": [{ "apiGroups": ["sei.io"], "resources": ["seinodetasks"], "verbs": verbs }],
        }))?;
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": { "name": "tasks" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tasks" },
            "subjects": [{ "kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE }],
        }))?;
        Api::namespaced(client.clone(), NAMESPACE)
            .create(&params, &role)
            .await?;
        Api::namespaced(client, NAMESPACE)
            .create(&params, &binding)
            .await?;
        Ok(())
    }

    /// This many tokens of the account, no two alike.
    pub(crate) async fn tokens(&self, count: usize) -> anyhow::Result<Vec<String>> {
        let accounts = Api::<ServiceAccount>::namespaced(self.cluster.client(), NAMESPACE);
        let request: TokenRequest = serde_json::from_value(json!({
            "metadata": {}, "spec": { "audiences": [], "expirationSeconds": 7200 },
        }))?;
        let params = PostParams::default();
        let one = async |_| {
            let made = accounts
                .create_token_request("default", &params, &request)
                .await;
            let made = made.context("the API server made no token")?;
            let status = made.status.context("a token without a status")?;
            anyhow::Ok(status.token)
        };
        stream::iter(0..count)
            .map(one)
            .buffered(8)
            .try_collect()
            .await
    }
}
