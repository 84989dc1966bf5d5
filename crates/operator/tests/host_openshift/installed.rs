//! What an NMState gets where the cluster can do more than plain Kubernetes, and that it keeps it.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{PodSpec, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use keelson_operator::host::platform::Capability;
use keelson_operator::host::world::resource;
use keelson_render::host::KINDS;
use keelson_testbed::until;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;

use crate::stage::{Operator, Stage, serve};

const PATIENCE: Duration = Duration::from_secs(60);

/// The types of prometheus-operator: kind and plural.
pub(crate) const MONITORING: [(&str, &str); 2] = [
    ("ServiceMonitor", "servicemonitors"),
    ("PrometheusRule", "prometheusrules"),
];

/// A type that stands in for one of prometheus-operator: it takes anything.
pub(crate) fn stand_in((kind, plural): (&str, &str)) -> String {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
    .to_string()
}

impl Stage {
    fn monitoring(&self, kind: &str) -> Api<DynamicObject> {
        let kind = KINDS.iter().find(|it| it.kind == kind).expect("a kind");
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource(kind))
    }

    async fn there(&self, kind: &str) -> Option<DynamicObject> {
        let listed = self.monitoring(kind).list(&Default::default()).await;
        listed.ok()?.items.into_iter().next()
    }

    fn types(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }

    /// Has a type served no longer, and waits until the operator has heard of it.
    async fn unserve(&self, name: &str) {
        let how = DeleteParams::background();
        self.types().delete(name, &how).await.expect("deleted");
        until("the type to go", PATIENCE, async || {
            match self.types().get_opt(name).await {
                Ok(None) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
        .expect("a type that is gone");
    }

    async fn pod_specs(&self) -> Vec<PodSpec> {
        let mut specs = Vec::new();
        for name in ["nmstate-webhook", "nmstate-metrics"] {
            let it = self.namespaced::<Deployment>().get(name).await;
            specs.extend(
                it.expect("a Deployment")
                    .spec
                    .expect("a spec")
                    .template
                    .spec,
            );
        }
        let it = self.namespaced::<DaemonSet>().get("nmstate-handler").await;
        specs.extend(it.expect("a DaemonSet").spec.expect("a spec").template.spec);
        specs
    }

    /// Whether webhook and metrics have their certificates from service-ca, and nobody else makes any.
    async fn leaves_certificates_to_the_platform(&self) -> bool {
        let secrets = self.namespaced::<Secret>();
        let own = secrets.get_opt("nmstate-ca").await.expect("an answer");
        let specs = self.pod_specs().await;
        let volumes = specs.iter().flat_map(|it| it.volumes.iter().flatten());
        let mut names = volumes.filter_map(|it| it.secret.as_ref()?.secret_name.as_deref());
        own.is_none() && names.all(|it| it.starts_with("openshift-"))
    }

    async fn settled(&self) -> Operator {
        let operator = self.operator().await;
        self.nmstate("nmstate", json!({})).await;
        self.says_after_look(&operator, "nmstate").await;
        operator.settle().await;
        operator
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn openshift_makes_the_certificates_and_gets_what_is_scraped() {
    let stage = Stage::enter("openshift").await;
    let operator = stage.settled().await;
    for pod in stage.pod_specs().await {
        let told = pod.containers.iter().flat_map(|it| it.env.iter().flatten());
        let told: Vec<_> = told.filter(|it| it.name == "IS_OPENSHIFT").collect();
        assert!(!told.is_empty());
        assert!(told.iter().all(|it| it.value.as_deref() == Some("true")));
    }
    assert!(stage.leaves_certificates_to_the_platform().await);
    for (kind, _) in MONITORING {
        assert!(stage.there(kind).await.is_some(), "{kind}");
    }
    // The published type of plugins takes ours.
    let all = stage.installed().await;
    let mut plugins = all.iter().filter(|it| it.kind.kind == "ConsolePlugin");
    let plugin = plugins.next().map(|it| it.name.as_str());
    assert_eq!(plugin, Some("nmstate-console-plugin"));

    // What service-ca injects is no drift.
    let injected = stage.inject_authority().await;
    assert_eq!(injected.len(), 3);
    operator.settle().await;
    let writes = operator.faults.writes().len();
    operator.controller.look().await;
    assert_eq!(operator.faults.writes().len(), writes);
    assert_eq!(stage.injected().await, injected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_does_to_monitoring_objects_is_undone() {
    let stage = Stage::enter("monitoring").await;
    let operator = stage.settled().await.running();
    for (kind, _) in MONITORING {
        let api = stage.monitoring(kind);
        let before = stage.there(kind).await.expect(kind);
        let name = before.metadata.name.clone().expect("a name");
        let as_before = async || match stage.there(kind).await {
            Some(now) if now.data == before.data => Ok(()),
            now => Err(format!("{now:?}")),
        };
        let damage = Patch::Merge(json!({"spec": null}));
        let how = PatchParams::default();
        api.patch(&name, &how, &damage).await.expect("damaged");
        until(kind, PATIENCE, as_before).await.expect("put back");
        let how = DeleteParams::background();
        api.delete(&name, &how).await.expect("deleted");
        until(kind, PATIENCE, as_before).await.expect("made anew");
    }
    drop(operator);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_learns_later_is_used_then() {
    let stage = Stage::enter("later").await;
    let (kind, plural) = MONITORING[1];
    stage
        .unserve(&format!("{plural}.monitoring.coreos.com"))
        .await;
    let operator = stage.settled().await;
    assert!(
        !operator
            .controller
            .platform()
            .has(Capability::PrometheusRules)
    );
    assert!(stage.there("ServiceMonitor").await.is_some());
    serve(stage.client.clone(), &stand_in((kind, plural))).await;
    until(kind, PATIENCE, async || {
        operator.controller.look_at_platform().await;
        operator.controller.look().await;
        stage.there(kind).await.ok_or("none".to_owned())
    })
    .await
    .expect("the rules");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_starts_while_service_ca_is_away_makes_no_certificates_of_its_own() {
    let stage = Stage::enter("restart").await;
    drop(stage.settled().await);
    let types = stage.types();
    let name = "servicecas.operator.openshift.io";
    let kept = types.get(name).await.expect("the type");
    stage.unserve(name).await;
    let operator = stage.operator().await;
    operator.controller.look().await;
    let left = stage.leaves_certificates_to_the_platform().await;
    // For the tests after this one.
    let again = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name}, "spec": kept.spec,
    });
    serve(stage.client.clone(), &again.to_string()).await;
    assert!(left, "another's Secrets are asked for");
    assert!(operator.controller.platform().has(Capability::ServiceCa));
}
