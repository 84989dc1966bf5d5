//! How the TLS profile gets to the pods, on every platform.

use serde_json::json;

use super::world::{
    PROFILE, WORKLOADS, container, find, openshift, plain, pod, rendered, vanilla, variable,
};

const HASH: &str = "nmstate.io/tls-profile-hash";

#[test]
fn the_profile_is_delivered_byte_by_byte_on_every_platform() {
    let asked = plain();
    for install in [vanilla(&asked), openshift(&asked)] {
        let objects = rendered(&install);
        let map = find(&objects, "ConfigMap", "nmstate-tls-config");
        assert_eq!(map["data"], json!({"profile.json": PROFILE}));
        for name in ["nmstate-webhook", "nmstate-metrics"] {
            let volumes = pod(&objects, name)["spec"]["volumes"].as_array();
            let volume = volumes.and_then(|all| all.iter().find(|it| it["name"] == "tls-config"));
            let source = volume.map(|it| it["configMap"].clone());
            let expected = json!({"name": "nmstate-tls-config", "optional": true});
            assert_eq!(source, Some(expected), "{name}");
            let mounts = container(&objects, name)["volumeMounts"].as_array();
            let mount = mounts.and_then(|all| all.iter().find(|it| it["name"] == "tls-config"));
            assert_eq!(
                mount.map(|it| &it["mountPath"]),
                Some(&json!("/etc/nmstate/tls"))
            );
        }
    }
}

#[test]
fn only_webhook_and_metrics_pods_are_stamped_with_the_hash_and_know_it() {
    let asked = plain();
    let objects = rendered(&openshift(&asked));
    for name in WORKLOADS {
        let stamp = &pod(&objects, name)["metadata"]["annotations"][HASH];
        let told = variable(&objects, name, "TLS_PROFILE_HASH");
        if name == "nmstate-handler" {
            assert!(stamp.is_null() && told.is_none());
        } else {
            assert_eq!(stamp, "1f");
            let path = told.map(|it| &it["valueFrom"]["fieldRef"]["fieldPath"]);
            assert_eq!(
                path,
                Some(&json!(format!("metadata.annotations['{HASH}']")))
            );
        }
    }
    // On pod templates alone: an annotation of the workload itself would say nothing of its pods.
    let stamped: Vec<_> = objects
        .iter()
        .filter(|it| !it.value["metadata"]["annotations"][HASH].is_null())
        .collect();
    assert!(stamped.is_empty());
}

#[test]
fn another_profile_changes_the_two_pods_their_file_and_the_console_alone() {
    let asked = plain();
    let before = rendered(&openshift(&asked));
    let mut install = openshift(&asked);
    install.profile.text =
        r#"{"ciphers":["TLS_AES_128_GCM_SHA256"],"minTLSVersion":"VersionTLS13"}"#;
    install.profile.hash = "2f";
    let after = rendered(&install);
    let changed: Vec<_> = before
        .iter()
        .zip(&after)
        .filter(|(was, is)| was != is)
        .map(|(_, is)| is.identity.to_string())
        .collect();
    let expected = [
        "ConfigMap openshift-nmstate/nmstate-tls-config",
        "Deployment openshift-nmstate/nmstate-webhook",
        "Deployment openshift-nmstate/nmstate-metrics",
        "ConfigMap openshift-nmstate/nginx-conf",
        "Deployment openshift-nmstate/nmstate-console-plugin",
    ];
    assert_eq!(changed, expected);
}
