//! What a test may do with a control plane: components that die and come back, and webhooks that
//! run inside the test.

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use keelson_testbed::{Cluster, Size};
use kube::api::{ObjectMeta, PostParams};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kube::{Api, Client};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

const SOON: Duration = Duration::from_secs(2);
const EVENTUALLY: Duration = Duration::from_secs(20);

fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        ..ObjectMeta::default()
    };
    ConfigMap {
        metadata,
        ..ConfigMap::default()
    }
}

async fn answers(client: &Client) -> Result<(), String> {
    let version = timeout(SOON, client.apiserver_version()).await;
    version
        .map_err(|_| "no answer".to_owned())?
        .map(drop)
        .map_err(|error| error.to_string())
}

async fn answers_again(client: &Client) {
    keelson_testbed::until("an answer", EVENTUALLY, async || answers(client).await)
        .await
        .expect("the API server answers again");
}

#[tokio::test]
async fn a_component_can_be_frozen_killed_stopped_and_started_again_and_nothing_is_lost() {
    // A cluster of its own: others would feel the outage.
    let cluster = Cluster::start(Size::ControlPlane)
        .await
        .expect("a control plane");
    let client = cluster.client();
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &config_map("kept"))
        .await
        .expect("a ConfigMap");
    let api_server = cluster.component("kube-apiserver");

    api_server.freeze();
    assert_eq!(
        answers(&client).await,
        Err("no answer".into()),
        "a frozen server hangs"
    );
    api_server.thaw();
    answers_again(&client).await;

    api_server.kill().await;
    assert!(!api_server.running());
    let refused = answers(&client)
        .await
        .expect_err("a dead server cannot answer");
    assert_ne!(refused, "no answer", "a dead server is refused, not hung");
    api_server.start().expect("a second start");
    answers_again(&client).await;

    let etcd = cluster.component("etcd");
    etcd.stop().await;
    etcd.start().expect("a second start");
    let kept = keelson_testbed::until("the object", EVENTUALLY, async || {
        let got = timeout(SOON, maps.get("kept"))
            .await
            .map_err(|_| "no answer".to_owned())?;
        got.map_err(|error| error.to_string())
    });
    kept.await.expect("what was written is still there");
}

#[tokio::test]
async fn a_webhook_inside_the_test_is_asked_by_the_api_server() {
    let cluster = Cluster::shared().await;
    let namespace = cluster.namespace("webhook").await;
    let listener = cluster.listen().expect("a port inside");
    let port = listener.local_addr().expect("an address").port();
    cluster
        .expose(namespace.name(), "judge", port)
        .await
        .expect("a Service");
    tokio::spawn(serve(listener, acceptor(cluster, namespace.name())));

    let webhooks = Api::<ValidatingWebhookConfiguration>::all(cluster.client());
    let webhook = webhook(namespace.name(), cluster.authority().certificate());
    webhooks
        .create(&PostParams::default(), &webhook)
        .await
        .expect("a webhook configuration");

    let maps = Api::<ConfigMap>::namespaced(cluster.client(), namespace.name());
    keelson_testbed::until("the webhook's refusal", EVENTUALLY, async || {
        match maps
            .create(&PostParams::default(), &config_map("bad"))
            .await
        {
            Err(kube::Error::Api(status)) if status.message.contains("the test says no") => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => {
                let _ = maps
                    .delete("bad", &kube::api::DeleteParams::default())
                    .await;
                Err("it was allowed".into())
            }
        }
    })
    .await
    .expect("the webhook is asked");
    maps.create(&PostParams::default(), &config_map("good"))
        .await
        .expect("what it allows");
}

fn webhook(namespace: &str, authority: &str) -> ValidatingWebhookConfiguration {
    let bundle = k8s_openapi::ByteString(authority.as_bytes().to_vec());
    serde_json::from_value(json!({
        "metadata": { "name": namespace },
        "webhooks": [{
            "name": "judge.keelson.test",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": { "caBundle": bundle, "service": { "namespace": namespace, "name": "judge" } },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }],
        }],
    }))
    .expect("a webhook configuration")
}

fn acceptor(cluster: &Cluster, namespace: &str) -> TlsAcceptor {
    let name = format!("judge.{namespace}.svc");
    let identity = cluster.authority().server(&[&name]).expect("a certificate");
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("PEM");
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair that matches");
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(listener: std::net::TcpListener, acceptor: TlsAcceptor) {
    listener.set_nonblocking(true).expect("a listener");
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(judge))
                .await;
        });
    }
}

async fn judge(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(&body).expect("a review");
    let asked: AdmissionRequest<DynamicObject> = review.try_into().expect("a question");
    let answer = AdmissionResponse::from(&asked);
    let answer = if asked.name == "bad" {
        answer.deny("the test says no")
    } else {
        answer
    };
    let body = serde_json::to_vec(&answer.into_review()).expect("an answer");
    let response = Response::builder().header("content-type", "application/json");
    Ok(response.body(Full::from(body)).expect("a response"))
}
