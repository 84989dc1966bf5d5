//! The webhook: its Deployment, Service and disruption budget, and the configuration that makes the
//! API server call it.
//!
//! The API server goes on without an answer (`failurePolicy: Ignore`), so a webhook that is away is a
//! mutation that is missing: there is always one that serves, and a pod that ends serves on until
//! nobody is sent to it any more.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    WebhookClientConfig,
};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment,
};
use k8s_openapi::api::core::v1::{
    Container, Lifecycle, LifecycleHandler, PodSpec, Service, ServicePort, ServiceSpec, SleepAction,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::host::{
    OPENSHIFT_WEBHOOK_SECRET, POLICY_MUTATE_PATH, POLICY_STATUS_MUTATE_PATH,
    POLICY_TIMESTAMP_MUTATE_PATH, TLS_PROFILE_DIR, WEBHOOK, WEBHOOK_CERT_DIR,
    WEBHOOK_CONFIGURATION, WEBHOOK_PORT, WEBHOOK_SECRET,
};
use keelson_api::names::{HostWorkload, NMSTATE_GROUP};

use super::object::Object;
use super::{Certificates, HostInstall, metadata, pod};
use crate::container::read_only;
use crate::metadata::{Labels, label_selector};

/// Port of the Service, where the API server calls unless it is told another.
const SERVICE_PORT: i32 = 443;

/// Seconds a pod that ends serves on, for callers who have not heard yet.
const LINGER_SECONDS: i64 = 5;

const KEY_PAIR: &str = "tls-key-pair";

/// The Service, and how many may be away at once.
pub(super) fn reached_by(install: &HostInstall<'_>) -> Vec<Object> {
    let mut metadata = metadata::owned(install, WEBHOOK);
    metadata.annotations = metadata::serving_certificate(install, OPENSHIFT_WEBHOOK_SECRET);
    let service = Service {
        metadata,
        spec: Some(ServiceSpec {
            ports: Some(vec![ServicePort {
                name: Some("webhook".to_owned()),
                port: SERVICE_PORT,
                target_port: Some(IntOrString::Int(WEBHOOK_PORT.into())),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            selector: Some(metadata::selector(WEBHOOK)),
            ..ServiceSpec::default()
        }),
        status: None,
    };
    vec![Object::of(service), budget(install)]
}

fn budget(install: &HostInstall<'_>) -> Object {
    let stay = i32::from(install.webhook_replicas > 1);
    Object::of(PodDisruptionBudget {
        metadata: metadata::owned(install, WEBHOOK),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(stay)),
            selector: Some(label_selector(metadata::selector(WEBHOOK))),
            // One that does not serve anyway keeps no machine from being drained.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            max_unavailable: None,
        }),
        status: None,
    })
}

pub(super) fn deployment(install: &HostInstall<'_>) -> Object {
    let mut metadata = metadata::owned(install, WEBHOOK);
    metadata.labels = Some(metadata::workload(HostWorkload::Webhook));
    let spec = DeploymentSpec {
        replicas: Some(install.webhook_replicas),
        selector: label_selector(metadata::selector(WEBHOOK)),
        strategy: Some(DeploymentStrategy {
            type_: Some("RollingUpdate".to_owned()),
            rolling_update: Some(RollingUpdateDeployment {
                max_surge: Some(IntOrString::Int(1)),
                max_unavailable: Some(IntOrString::Int(0)),
            }),
        }),
        template: pod::template(install, WEBHOOK, HostWorkload::Webhook, spec(install)),
        ..DeploymentSpec::default()
    };
    Object::of(Deployment {
        metadata,
        spec: Some(spec),
        status: None,
    })
}

fn spec(install: &HostInstall<'_>) -> PodSpec {
    let secret = match install.certificates {
        Certificates::ServiceCa => OPENSHIFT_WEBHOOK_SECRET,
        Certificates::Operator { .. } => WEBHOOK_SECRET,
    };
    PodSpec {
        // It calls nobody, and has no rights.
        automount_service_account_token: Some(false),
        containers: vec![container(install)],
        service_account_name: Some(WEBHOOK.to_owned()),
        topology_spread_constraints: Some(pod::spread(HostWorkload::Webhook)),
        volumes: Some(vec![pod::key_pair(KEY_PAIR, secret), pod::profile()]),
        ..pod::infrastructure(install)
    }
}

fn container(install: &HostInstall<'_>) -> Container {
    let mut told = pod::told(install);
    told.push(pod::stamped());
    pod::probed(Container {
        env: Some(told),
        lifecycle: Some(Lifecycle {
            pre_stop: Some(LifecycleHandler {
                sleep: Some(SleepAction {
                    seconds: LINGER_SECONDS,
                }),
                ..LifecycleHandler::default()
            }),
            ..Lifecycle::default()
        }),
        ports: Some(vec![
            pod::port("webhook-server", WEBHOOK_PORT),
            pod::health_port(),
        ]),
        resources: Some(pod::requests("30m", "20Mi")),
        security_context: Some(pod::confined(install)),
        volume_mounts: Some(vec![
            read_only(KEY_PAIR, WEBHOOK_CERT_DIR),
            read_only(pod::PROFILE, TLS_PROFILE_DIR),
        ]),
        ..pod::container(install, WEBHOOK, &["webhook"])
    })
}

/// Which writes the webhook is asked about, and whom the API server trusts to be it.
pub(super) fn configuration(install: &HostInstall<'_>) -> Object {
    const POLICIES: &str = "nodenetworkconfigurationpolicies";
    const STATUSES: &str = "nodenetworkconfigurationpolicies/status";
    let mut metadata = metadata::cluster(install, WEBHOOK_CONFIGURATION);
    if let Certificates::ServiceCa = install.certificates {
        let inject = "service.beta.openshift.io/inject-cabundle".to_owned();
        metadata.annotations = Some(Labels::from([(inject, "true".to_owned())]));
    }
    let webhooks = vec![
        mutation(install, POLICY_MUTATE_PATH, &[POLICIES]),
        mutation(install, POLICY_STATUS_MUTATE_PATH, &[STATUSES]),
        mutation(install, POLICY_TIMESTAMP_MUTATE_PATH, &[POLICIES, STATUSES]),
    ];
    Object::of(MutatingWebhookConfiguration {
        metadata,
        webhooks: Some(webhooks),
    })
}

/// One of the three, named by its path.
fn mutation(install: &HostInstall<'_>, path: &str, resources: &[&str]) -> MutatingWebhook {
    let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    MutatingWebhook {
        name: format!("{}.{NMSTATE_GROUP}", path.trim_start_matches('/')),
        admission_review_versions: texts(&["v1", "v1beta1"]),
        client_config: WebhookClientConfig {
            ca_bundle: match install.certificates {
                Certificates::ServiceCa => None,
                Certificates::Operator { ca_bundle } => {
                    Some(ByteString(ca_bundle.as_bytes().to_vec()))
                }
            },
            service: Some(ServiceReference {
                name: WEBHOOK.to_owned(),
                namespace: install.namespace.to_owned(),
                path: Some(path.to_owned()),
                port: Some(SERVICE_PORT),
            }),
            url: None,
        },
        failure_policy: Some("Ignore".to_owned()),
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(texts(&[NMSTATE_GROUP])),
            api_versions: Some(texts(&["v1", "v1beta1"])),
            operations: Some(texts(&["CREATE", "UPDATE"])),
            resources: Some(texts(resources)),
            // What the API server would fill in, in a list that is owned as a whole.
            scope: Some("*".to_owned()),
        }]),
        side_effects: "None".to_owned(),
        ..MutatingWebhook::default()
    }
}
