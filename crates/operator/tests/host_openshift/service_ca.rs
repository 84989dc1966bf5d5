//! What OpenShift's service-ca does, played: it makes key pairs for Services that ask for them, with an
//! RSA key, and tells the API server whom to trust.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use keelson_api::host::{OPENSHIFT_METRICS_SECRET, OPENSHIFT_WEBHOOK_SECRET};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::stage::Stage;

/// A certificate that signs itself, and its RSA key, as PEM.
fn pair() -> (Vec<u8>, Vec<u8>) {
    keelson_testbed::provide_openssl().expect("openssl");
    // Tests run side by side in one process.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("keelson-service-ca-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=nmstate-webhook"])
        .args(["-addext", "subjectAltName=DNS:nmstate-webhook"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .expect("openssl");
    assert!(made.status.success(), "{made:?}");
    let read = |file| std::fs::read(file).expect("a file");
    let pair = (read(certificate), read(key));
    std::fs::remove_dir_all(folder).expect("a folder");
    pair
}

impl Stage {
    /// Makes the key pairs that the Services of webhook and metrics ask for.
    pub(crate) async fn make_key_pairs(&self) {
        let (certificate, key) = pair();
        for name in [OPENSHIFT_WEBHOOK_SECRET, OPENSHIFT_METRICS_SECRET] {
            let data = [
                ("tls.crt".to_owned(), ByteString(certificate.clone())),
                ("tls.key".to_owned(), ByteString(key.clone())),
            ];
            let secret = Secret {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    ..ObjectMeta::default()
                },
                type_: Some("kubernetes.io/tls".to_owned()),
                data: Some(data.into()),
                ..Secret::default()
            };
            let secrets = self.namespaced::<Secret>();
            let made = secrets.create(&PostParams::default(), &secret).await;
            made.expect("a Secret");
        }
    }

    /// Tells the API server whom to trust to be the webhook, as service-ca does where it is asked to.
    pub(crate) async fn inject_authority(&self) -> Vec<ByteString> {
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let asked = api.get("nmstate").await.expect("a configuration");
        let annotations = asked.metadata.annotations.unwrap_or_default();
        let inject = annotations.get("service.beta.openshift.io/inject-cabundle");
        assert_eq!(inject.map(String::as_str), Some("true"));
        let (bundle, mut webhooks) = (pair().0, asked.webhooks.unwrap_or_default());
        for webhook in &mut webhooks {
            webhook.client_config.ca_bundle = Some(ByteString(bundle.clone()));
        }
        let patch = Patch::Merge(json!({"webhooks": webhooks}));
        let how = PatchParams {
            field_manager: Some("service-ca".to_owned()),
            ..PatchParams::default()
        };
        let injected = api.patch("nmstate", &how, &patch).await;
        bundles(&injected.expect("a bundle"))
    }

    /// Whom the API server trusts to be the webhook.
    pub(crate) async fn injected(&self) -> Vec<ByteString> {
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        bundles(&api.get("nmstate").await.expect("a configuration"))
    }
}

fn bundles(configuration: &MutatingWebhookConfiguration) -> Vec<ByteString> {
    let webhooks = configuration.webhooks.iter().flatten();
    webhooks
        .filter_map(|it| it.client_config.ca_bundle.clone())
        .collect()
}
