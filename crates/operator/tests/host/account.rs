//! The operator as itself: with the rights of `deploy/host` and no others.

use keelson_operator::rights::host::{EVERYWHERE, INSIDE};
use keelson_operator::rights::{Right, Role};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::stage::Stage;

const WHO: &str = "host-installer";

fn role(role: &Role) -> Value {
    let rule = |it: &Right| json!({"apiGroups": [it.group], "resources": [it.resource], "verbs": it.verbs, "resourceNames": it.names});
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": role.name},
        "rules": role.rights.iter().map(rule).collect::<Vec<_>>(),
    })
}

fn binding(kind: &str, role: &Role, namespace: Option<&str>) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": role.name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": WHO}],
    })
}

impl Stage {
    async fn give(&self, object: Value) {
        let kind = object["kind"].as_str().expect("a kind");
        let gvk = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
        let resource = ApiResource::from_gvk(&gvk);
        let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let name = object["metadata"]["name"].as_str().expect("a name");
        let how = PatchParams::apply("admin").force();
        api.patch(name, &how, &Patch::Apply(&object))
            .await
            .expect("given");
    }

    /// Somebody who has the rights of the table and no others.
    pub(crate) async fn installer(&self) -> Client {
        for object in [
            role(&EVERYWHERE),
            role(&INSIDE),
            binding("ClusterRoleBinding", &EVERYWHERE, None),
            binding("RoleBinding", &INSIDE, Some(&self.namespace)),
        ] {
            self.give(object).await;
        }
        let kubeconfig = Kubeconfig::from_yaml(&self.cluster.kubeconfig()).expect("a kubeconfig");
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.expect("a configuration");
        config.auth_info.impersonate = Some(WHO.to_owned());
        config.auth_info.impersonate_groups = Some(vec!["system:authenticated".to_owned()]);
        keelson_cluster::connect(config).expect("a client")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_rights_of_the_table_alone_everything_is_installed() {
    let stage = Stage::enter("account").await;
    let operator = stage.operator_as(stage.installer().await).await;
    stage
        .nmstate("nmstate", json!({"tls": {"source": "None"}}))
        .await;
    stage.says_after_look(&operator, "nmstate").await;
    stage
        .says("nmstate", "Progressing", "True", "Deploying")
        .await;
    let secrets = stage.namespaced::<k8s_openapi::api::core::v1::Secret>();
    keelson_testbed::until(
        "the certificates",
        std::time::Duration::from_secs(60),
        async || {
            operator.controller.look().await;
            let found = secrets
                .get_opt("nmstate-metrics")
                .await
                .map_err(|it| it.to_string())?;
            found.map(drop).ok_or_else(|| "none yet".to_owned())
        },
    )
    .await
    .expect("certificates");
    stage
        .says("nmstate", "Degraded", "False", "Deploying")
        .await;
}
