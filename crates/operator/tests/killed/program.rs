//! The program, whose API server is the scene's fault proxy.

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use serde_json::json;

use crate::process::{Program, VARIABLES, Way, command};
use crate::stage::Scene;

/// The program's own ServiceAccount for sidecars.
const ACCOUNT: &str = "keelson-sidecar-client";

impl Way {
    /// Through the scene's fault proxy, as the cluster's administrator.
    pub(crate) async fn of(scene: &Scene) -> Self {
        let account = json!({ "metadata": { "name": ACCOUNT } });
        let account: ServiceAccount = serde_json::from_value(account).expect("an account");
        let accounts = scene.api::<ServiceAccount>();
        let made = accounts.create(&PostParams::default(), &account).await;
        made.expect("an account for sidecars");
        Self::by(&scene.faults().kubeconfig())
    }
}

impl Program {
    /// Starts it in a scene.
    pub(crate) fn start(scene: &Scene, way: &Way, more: &[&str]) -> Self {
        let mut command = command();
        command
            .envs(VARIABLES.iter().copied())
            .env("POD_NAMESPACE", scene.namespace())
            .args(["--namespace", scene.namespace()])
            .args(["--sidecar-address", &scene.stage().address().to_string()]);
        Self::run(command, way, more)
    }
}
