//! Policies written to the real API server carry what the webhook puts into them, and keep the rest.

use crate::common::program::{Folder, Program, SOON};
use crate::world::cluster;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use keelson_testbed::{Cluster, until};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};

const STAMP: &str = "nmstate.io/webhook-mutating-timestamp";

/// Takes what arrives inside the cluster's network to the program outside.
async fn relay(listener: TcpListener, to: SocketAddr) {
    while let Ok((mut inside, _)) = listener.accept().await {
        tokio::spawn(async move {
            if let Ok(mut outside) = TcpStream::connect(to).await {
                let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
            }
        });
    }
}

/// Starts a webhook and has the API server ask it about every policy that carries a label.
async fn webhook(cluster: &Cluster) -> Program {
    let listener = cluster.listen().expect("a port inside");
    let address = listener.local_addr().expect("an address");
    let folder = Folder::new();
    folder.certify_as(cluster.authority(), &address.ip().to_string());
    let program = folder.start(&["webhook"]);
    program.healthy().await;
    listener.set_nonblocking(true).expect("a socket");
    let listener = TcpListener::from_std(listener).expect("a socket");
    tokio::spawn(relay(listener, program.address()));
    let hook = |word: &str, resources: &[&str]| {
        let path = format!("/nodenetworkconfigurationpolicies{word}-mutate");
        json!({
            "name": format!("nodenetworkconfigurationpolicies{word}-mutate.nmstate.io"),
            "admissionReviewVersions": ["v1", "v1beta1"],
            "sideEffects": "None",
            // The original ignores failures; here they are to show.
            "failurePolicy": "Fail",
            "clientConfig": {
                "url": format!("https://{address}{path}"),
                "caBundle": encoded(cluster.authority().certificate()),
            },
            "rules": [{"apiGroups": ["*"], "apiVersions": ["v1alpha1", "v1beta1", "v1"],
                "operations": ["CREATE", "UPDATE"], "resources": resources}],
            "objectSelector": {"matchLabels": {"admission": "yes"}},
        })
    };
    let (policies, statuses) = (
        "nodenetworkconfigurationpolicies",
        "nodenetworkconfigurationpolicies/status",
    );
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": {"name": "nmstate"},
        "webhooks": [
            hook("", &[policies]),
            hook("-status", &[statuses]),
            hook("-timestamp", &[policies, statuses]),
        ],
    }))
    .expect("a configuration");
    let configurations = Api::<MutatingWebhookConfiguration>::all(cluster.client());
    let params = PostParams::default();
    let made = configurations.create(&params, &configuration).await;
    made.expect("a configuration");
    program
}

fn encoded(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(text)
}

#[tokio::test]
async fn written_policies_carry_the_mutations_and_keep_every_other_field() {
    let cluster = cluster().await;
    let _webhook = webhook(cluster).await;
    let client = cluster.client();
    for version in ["v1", "v1beta1"] {
        let kind = GroupVersionKind::gvk("nmstate.io", version, "NodeNetworkConfigurationPolicy");
        let kind = ApiResource::from_gvk_with_plural(&kind, "nodenetworkconfigurationpolicies");
        let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
        let name = format!("admitted-{version}");
        let desired = json!({"interfaces": [{"name": "eth1", "type": "ethernet", "x-unknown": {"a": [1, null, "ü"]}}]});
        let policy: DynamicObject = serde_json::from_value(json!({
            "apiVersion": format!("nmstate.io/{version}"), "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {"name": name, "labels": {"admission": "yes"}, "annotations": {"mine": "1"}},
            "spec": {"desiredState": desired},
        }))
        .expect("a policy");
        // The API server takes a moment to hear of a webhook.
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        until("the webhook", SOON, async || {
            let made = api
                .create(&dry, &policy)
                .await
                .map_err(|it| it.to_string())?;
            match stamp(&made) {
                Some(_) => Ok(()),
                None => Err(format!("{:?}", made.metadata.annotations)),
            }
        })
        .await
        .expect("the webhook");
        let made = api.create(&PostParams::default(), &policy).await;
        let made = made.expect("a policy");
        let first = stamp(&made).expect("a time");
        let annotations = made.metadata.annotations.clone().expect("annotations");
        assert_eq!(annotations["mine"], "1", "what was there stays");
        assert_eq!(
            made.data["spec"]["desiredState"], desired,
            "and so does the state"
        );

        let how = PatchParams::default();
        let emptied = Patch::Merge(json!({"status": {"observedGeneration": 1}}));
        let reset = api
            .patch_status(&name, &how, &emptied)
            .await
            .expect("a status");
        let kinds = ["Available", "Degraded", "Progressing", "Ignored"];
        let conditions = &reset.data["status"]["conditions"];
        for (kind, condition) in kinds.iter().zip(conditions.as_array().expect("conditions")) {
            assert_eq!(condition["type"], **kind);
            assert_eq!(condition["status"], "Unknown");
            assert_eq!(condition.get("reason"), None);
        }
        // With a status the API server takes nothing else.
        assert_eq!(stamp(&reset), Some(first));
        let relabelled = Patch::Merge(json!({"metadata": {"labels": {"more": "1"}}}));
        let later = api.patch(&name, &how, &relabelled).await.expect("a policy");
        assert!(stamp(&later) > Some(first), "each write is stamped");

        let own =
            json!([{"type": "Available", "status": "True", "reason": "SuccessfullyConfigured"}]);
        let written = Patch::Merge(json!({"status": {"conditions": own}}));
        let written = api.patch_status(&name, &how, &written).await;
        let written = written.expect("a status");
        let conditions: &Value = &written.data["status"]["conditions"];
        assert_eq!(conditions, &own, "conditions that are there stay");
    }
}

fn stamp(policy: &DynamicObject) -> Option<u128> {
    policy
        .metadata
        .annotations
        .as_ref()?
        .get(STAMP)?
        .parse()
        .ok()
}
