//! The cert-manager of a cluster is the real one, with pods and without: it makes an authority, and
//! from it a certificate.

use k8s_openapi::api::core::v1::Secret;
use keelson_testbed::{Cluster, until};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::time::Duration;

async fn create(cluster: &Cluster, namespace: &str, kind: &str, mut object: Value) {
    let kind = GroupVersionKind::gvk("cert-manager.io", "v1", kind);
    let resource = ApiResource::from_gvk(&kind);
    let api = Api::<DynamicObject>::namespaced_with(cluster.client(), namespace, &resource);
    object["apiVersion"] = json!(resource.api_version);
    object["kind"] = json!(resource.kind);
    let object = serde_json::from_value(object).expect("an object");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("its creation");
}

fn certificate(name: &str, is_ca: bool, issuer: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "secretName": name, "isCA": is_ca, "dnsNames": [format!("{name}.example")],
            "privateKey": { "algorithm": "ECDSA" }, "issuerRef": { "name": issuer },
        },
    })
}

async fn secret(cluster: &Cluster, namespace: &str, name: &str) -> Secret {
    let secrets = Api::<Secret>::namespaced(cluster.client(), namespace);
    until(
        &format!("Secret {name}"),
        Duration::from_secs(30),
        async || secrets.get(name).await.map_err(|error| error.to_string()),
    )
    .await
    .expect("a certificate that is issued")
}

#[tokio::test]
async fn a_certificate_is_issued_by_an_authority_made_in_the_cluster() {
    issues(Cluster::shared_pods().await).await;
}

#[tokio::test]
async fn a_certificate_is_issued_without_nodes_too() {
    issues(Cluster::shared_certificates().await).await;
}

async fn issues(cluster: &Cluster) {
    let namespace = cluster.namespace("certificates").await;
    let name = namespace.name();
    let issuer = json!({ "metadata": { "name": "self" }, "spec": { "selfSigned": {} } });
    create(cluster, name, "Issuer", issuer).await;
    create(
        cluster,
        name,
        "Certificate",
        certificate("root", true, "self"),
    )
    .await;
    let authority =
        json!({ "metadata": { "name": "ca" }, "spec": { "ca": { "secretName": "root" } } });
    create(cluster, name, "Issuer", authority).await;
    create(
        cluster,
        name,
        "Certificate",
        certificate("leaf", false, "ca"),
    )
    .await;

    let root = secret(cluster, name, "root").await.data.expect("data");
    let leaf = secret(cluster, name, "leaf").await.data.expect("data");
    assert_eq!(
        leaf["ca.crt"], root["tls.crt"],
        "the leaf comes from the authority"
    );
    for part in [&leaf["tls.crt"], &leaf["ca.crt"]] {
        CertificateDer::from_pem_slice(&part.0).expect("a certificate");
    }
    assert_ne!(leaf["tls.crt"], leaf["ca.crt"]);
}
