//! The metrics exporter: its Deployment and its Service.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy};
use k8s_openapi::api::core::v1::{Container, PodSpec, Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::host::{
    METRICS, METRICS_AUTH_VARIABLE, METRICS_BIND_ADDRESS_VARIABLE, METRICS_CERT_DIR, METRICS_PORT,
    METRICS_SECRET, METRICS_SERVICE, OPENSHIFT_METRICS_SECRET, TLS_PROFILE_DIR,
};
use keelson_api::names::HostWorkload;

use super::object::Object;
use super::{Certificates, HostInstall, Listen, metadata, pod};
use crate::container::{env, read_only};
use crate::metadata::label_selector;

/// Name of the port, in the pod and in the Service.
pub(super) const PORT: &str = "metrics";

const KEY_PAIR: &str = "metrics-tls";

/// The Service.
pub(super) fn reached_by(install: &HostInstall<'_>) -> Vec<Object> {
    let mut metadata = metadata::owned(install, METRICS_SERVICE);
    metadata.annotations = metadata::serving_certificate(install, OPENSHIFT_METRICS_SECRET);
    let labels = metadata.labels.get_or_insert_default();
    labels.extend(metadata::scraped());
    vec![Object::of(Service {
        metadata,
        spec: Some(ServiceSpec {
            ports: Some(vec![ServicePort {
                name: Some(PORT.to_owned()),
                port: METRICS_PORT.into(),
                target_port: Some(IntOrString::String(PORT.to_owned())),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            selector: Some(metadata::selector(METRICS)),
            ..ServiceSpec::default()
        }),
        status: None,
    })]
}

pub(super) fn deployment(install: &HostInstall<'_>, listen: &Listen) -> Object {
    let mut metadata = metadata::owned(install, METRICS);
    metadata.labels = Some(metadata::workload(HostWorkload::Metrics));
    let spec = DeploymentSpec {
        replicas: Some(1),
        selector: label_selector(metadata::selector(METRICS)),
        // Two at once would be two sources of series that do not say whose they are.
        strategy: Some(DeploymentStrategy {
            type_: Some("Recreate".to_owned()),
            rolling_update: None,
        }),
        template: pod::template(
            install,
            METRICS,
            HostWorkload::Metrics,
            spec(install, listen),
        ),
        ..DeploymentSpec::default()
    };
    Object::of(Deployment {
        metadata,
        spec: Some(spec),
        status: None,
    })
}

fn spec(install: &HostInstall<'_>, listen: &Listen) -> PodSpec {
    let secret = match install.certificates {
        Certificates::ServiceCa => OPENSHIFT_METRICS_SECRET,
        Certificates::Operator { .. } => METRICS_SECRET,
    };
    PodSpec {
        automount_service_account_token: Some(true),
        containers: vec![container(install, listen)],
        service_account_name: Some(METRICS.to_owned()),
        topology_spread_constraints: Some(pod::spread(HostWorkload::Metrics)),
        volumes: Some(vec![pod::key_pair(KEY_PAIR, secret), pod::profile()]),
        ..pod::infrastructure(install)
    }
}

fn container(install: &HostInstall<'_>, listen: &Listen) -> Container {
    let mut told = pod::told(install);
    told.extend([
        pod::stamped(),
        env(METRICS_BIND_ADDRESS_VARIABLE, &listen.text),
        env(
            METRICS_AUTH_VARIABLE,
            install.spec.metrics_auth().to_string(),
        ),
    ]);
    pod::probed(Container {
        env: Some(told),
        ports: Some(vec![pod::port(PORT, listen.port()), pod::health_port()]),
        resources: Some(pod::requests("30m", "20Mi")),
        security_context: Some(pod::confined(install)),
        volume_mounts: Some(vec![
            read_only(KEY_PAIR, METRICS_CERT_DIR),
            read_only(pod::PROFILE, TLS_PROFILE_DIR),
        ]),
        ..pod::container(install, METRICS, &["metrics"])
    })
}
