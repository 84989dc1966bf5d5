//! The pods of the three workloads: that they start again with no API server, how they are probed and
//! replaced, and what the platform changes about them.

use serde_json::{Value, json};

use super::world::{
    WORKLOADS, container, find, of_kind, openshift, plain, pod, rendered, vanilla, variable,
};

#[test]
fn every_variable_is_a_literal_or_known_to_the_kubelet_and_images_are_not_pulled_again() {
    let asked = plain();
    for install in [vanilla(&asked), openshift(&asked)] {
        let objects = rendered(&install);
        for name in WORKLOADS {
            let container = container(&objects, name);
            assert_eq!(container["imagePullPolicy"], "IfNotPresent", "{name}");
            assert!(container["envFrom"].is_null(), "{name}");
            for variable in container["env"].as_array().expect("variables") {
                let source = variable["valueFrom"].as_object();
                let known = source.is_none_or(|it| it.keys().eq(["fieldRef"]));
                assert!(
                    known && (source.is_some() || variable["value"].is_string()),
                    "{variable}"
                );
            }
        }
    }
}

#[test]
fn every_host_pod_is_told_whether_it_is_on_openshift() {
    let asked = plain();
    for (install, said) in [(vanilla(&asked), "false"), (openshift(&asked), "true")] {
        let objects = rendered(&install);
        for name in WORKLOADS {
            let told = variable(&objects, name, "IS_OPENSHIFT").map(|it| &it["value"]);
            assert_eq!(told, Some(&json!(said)), "{name}");
        }
    }
}

#[test]
fn the_handler_is_probed_over_a_socket_in_its_own_container() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let handler = container(&objects, "nmstate-handler");
    for (probe, what) in [("livenessProbe", "live"), ("readinessProbe", "ready")] {
        let command = json!([
            "/bin/keelson-host",
            "probe",
            "--socket",
            "/run/keelson-host/health.sock",
            what
        ]);
        assert_eq!(handler[probe]["exec"]["command"], command);
        assert!(handler[probe]["httpGet"].is_null() && handler[probe]["tcpSocket"].is_null());
    }
    let mounts = handler["volumeMounts"].as_array().expect("mounts");
    assert!(
        mounts
            .iter()
            .any(|it| it["mountPath"] == "/run/keelson-host")
    );
    assert!(handler["ports"].is_null());
}

/// A main loop counts as alive for 10 seconds after a tick.
#[test]
fn a_handler_that_hangs_is_asked_three_times_within_a_minute_and_then_ended() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let probe = &container(&objects, "nmstate-handler")["livenessProbe"];
    let seconds = |field: &str| probe[field].as_i64().expect("a number");
    assert!(
        seconds("periodSeconds") > 10,
        "each asks about another tick"
    );
    assert!(seconds("timeoutSeconds") < 10);
    let patience = seconds("periodSeconds") * seconds("failureThreshold");
    assert!(patience <= 60, "{patience}");
}

#[test]
fn the_handlers_image_is_not_written_to_and_what_it_writes_to_is_mounted() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let handler = container(&objects, "nmstate-handler");
    assert_eq!(handler["securityContext"]["readOnlyRootFilesystem"], true);
    let mounts = handler["volumeMounts"].as_array().expect("mounts");
    let writable: Vec<_> = mounts
        .iter()
        .filter(|it| it["readOnly"] != true)
        .filter_map(|it| it["mountPath"].as_str())
        .collect();
    let expected = [
        "/run/dbus",
        "/var/k8s_nmstate",
        "/run/openvswitch",
        "/etc/systemd/network",
        "/run/keelson-host",
    ];
    assert_eq!(writable, expected);
    let bus = variable(&objects, "nmstate-handler", "DBUS_SYSTEM_BUS_ADDRESS");
    let bus = bus.map(|it| &it["value"]);
    assert_eq!(bus, Some(&json!("unix:path=/run/dbus/system_bus_socket")));
}

#[test]
fn a_handler_is_given_the_policies_it_starts_with_and_starts_without_any() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let volumes = &pod(&objects, "nmstate-handler")["spec"]["volumes"];
    let mut volumes = volumes.as_array().expect("volumes").iter();
    let found = volumes.find(|it| it["configMap"]["name"] == "nmstate-bootstrap-policies");
    let found = found.expect("a volume");
    assert_eq!(found["configMap"]["optional"], true);
    let mounts = &container(&objects, "nmstate-handler")["volumeMounts"];
    let mut mounts = mounts.as_array().expect("mounts").iter();
    let mounted = mounts.find(|it| it["name"] == found["name"]);
    let expected = json!({
        "mountPath": "/etc/nmstate/bootstrap", "name": found["name"], "readOnly": true,
    });
    assert_eq!(mounted, Some(&expected));
}

#[test]
fn the_handler_is_on_the_hosts_network_and_has_time_to_finish_a_change() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let spec = &pod(&objects, "nmstate-handler")["spec"];
    assert_eq!(spec["hostNetwork"], true);
    assert_eq!(spec["dnsPolicy"], "Default");
    assert_eq!(spec["priorityClassName"], "system-node-critical");
    assert_eq!(spec["containers"][0]["securityContext"]["privileged"], true);
    let grace = spec["terminationGracePeriodSeconds"].as_i64();
    assert!(
        grace > Some(480),
        "a checkpoint may live for 480 s: {grace:?}"
    );
    let set = find(&objects, "DaemonSet", "nmstate-handler");
    assert_eq!(
        set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"],
        "10%"
    );
    let paths: Vec<_> = spec["volumes"]
        .as_array()
        .expect("volumes")
        .iter()
        .filter_map(|it| it["hostPath"]["path"].as_str())
        .collect();
    let expected = [
        "/run/dbus",
        "/var/k8s_nmstate",
        "/run/openvswitch",
        "/etc/systemd/network",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn there_is_always_a_webhook_that_serves() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let deployment = find(&objects, "Deployment", "nmstate-webhook");
    let strategy = json!({
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    });
    assert_eq!(deployment["spec"]["strategy"], strategy);
    let service = find(&objects, "Service", "nmstate-webhook");
    let unready = &service["spec"]["publishNotReadyAddresses"];
    assert!(
        unready.is_null(),
        "nobody is sent to a pod that does not serve"
    );
    let linger = &container(&objects, "nmstate-webhook")["lifecycle"]["preStop"]["sleep"];
    assert_eq!(linger["seconds"], 5);
    let spread = &pod(&objects, "nmstate-webhook")["spec"]["topologySpreadConstraints"][0];
    assert_eq!(spread["whenUnsatisfiable"], "DoNotSchedule");
    assert_eq!(spread["nodeTaintsPolicy"], "Honor");
}

#[test]
fn selectors_are_the_originals_because_they_cannot_be_changed() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    for name in WORKLOADS {
        let kind = if name == "nmstate-handler" {
            "DaemonSet"
        } else {
            "Deployment"
        };
        let workload = find(&objects, kind, name);
        assert_eq!(
            workload["spec"]["selector"]["matchLabels"],
            json!({"name": name})
        );
        let labels = &pod(&objects, name)["metadata"]["labels"];
        assert_eq!(labels["name"], name);
        let component = name.replace("nmstate-", "kubernetes-nmstate-");
        assert_eq!(labels["component"], component);
        assert_eq!(labels["app"], "kubernetes-nmstate");
    }
}

#[test]
fn webhook_and_metrics_have_no_privileges_and_a_user_only_where_the_platform_gives_none() {
    let asked = plain();
    for (install, user) in [
        (vanilla(&asked), json!(65532)),
        (openshift(&asked), Value::Null),
    ] {
        let objects = rendered(&install);
        for name in ["nmstate-webhook", "nmstate-metrics"] {
            let context = &container(&objects, name)["securityContext"];
            assert_eq!(context["runAsUser"], user, "{name}");
            assert_eq!(context["runAsGroup"], user, "{name}");
            assert_eq!(context["runAsNonRoot"], true);
            assert_eq!(context["readOnlyRootFilesystem"], true);
            assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
            assert_eq!(
                pod(&objects, name)["spec"]["securityContext"]["fsGroup"],
                user
            );
        }
    }
}

#[test]
fn certificates_are_the_operators_or_service_cas() {
    let asked = plain();
    let secret = |objects: &[_], name| {
        pod(objects, name)["spec"]["volumes"][0]["secret"]["secretName"].clone()
    };
    let annotation = "service.beta.openshift.io/serving-cert-secret-name";
    let configuration =
        |objects: &[_]| find(objects, "MutatingWebhookConfiguration", "nmstate").clone();

    let objects = rendered(&vanilla(&asked));
    assert_eq!(secret(&objects, "nmstate-webhook"), "nmstate-webhook");
    assert_eq!(secret(&objects, "nmstate-metrics"), "nmstate-metrics");
    for service in ["nmstate-webhook", "nmstate-monitor"] {
        let service = find(&objects, "Service", service);
        assert!(service["metadata"]["annotations"].is_null());
    }
    let webhooks = configuration(&objects);
    assert!(webhooks["metadata"]["annotations"].is_null());
    for webhook in webhooks["webhooks"].as_array().expect("webhooks") {
        assert!(webhook["clientConfig"]["caBundle"].is_string());
    }

    let objects = rendered(&openshift(&asked));
    assert_eq!(
        secret(&objects, "nmstate-webhook"),
        "openshift-nmstate-webhook"
    );
    assert_eq!(
        secret(&objects, "nmstate-metrics"),
        "openshift-nmstate-metrics"
    );
    for (service, secret) in [
        ("nmstate-webhook", "openshift-nmstate-webhook"),
        ("nmstate-monitor", "openshift-nmstate-metrics"),
    ] {
        let service = find(&objects, "Service", service);
        assert_eq!(service["metadata"]["annotations"][annotation], secret);
    }
    let webhooks = configuration(&objects);
    let inject = "service.beta.openshift.io/inject-cabundle";
    assert_eq!(webhooks["metadata"]["annotations"][inject], "true");
    for webhook in webhooks["webhooks"].as_array().expect("webhooks") {
        assert!(
            webhook["clientConfig"]["caBundle"].is_null(),
            "service-ca writes it"
        );
    }
}

#[test]
fn nobody_rotates_certificates_in_a_pod_of_its_own() {
    let asked = plain();
    for install in [vanilla(&asked), openshift(&asked)] {
        let objects = rendered(&install);
        for object in &objects {
            assert!(
                !object.identity.name.contains("cert-manager"),
                "{}",
                object.identity
            );
        }
        assert_eq!(of_kind(&objects, "DaemonSet").len(), 1);
    }
}

#[test]
fn the_three_mutations_keep_their_names_and_let_the_api_server_go_on() {
    let asked = plain();
    let objects = rendered(&vanilla(&asked));
    let configuration = find(&objects, "MutatingWebhookConfiguration", "nmstate");
    let webhooks = configuration["webhooks"].as_array().expect("webhooks");
    let names: Vec<_> = webhooks
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    let expected = [
        "nodenetworkconfigurationpolicies-mutate.nmstate.io",
        "nodenetworkconfigurationpolicies-status-mutate.nmstate.io",
        "nodenetworkconfigurationpolicies-timestamp-mutate.nmstate.io",
    ];
    assert_eq!(names, expected);
    for webhook in webhooks {
        assert_eq!(webhook["failurePolicy"], "Ignore");
        assert_eq!(webhook["sideEffects"], "None");
        let service = &webhook["clientConfig"]["service"];
        let path = webhook["name"]
            .as_str()
            .expect("a name")
            .strip_suffix(".nmstate.io");
        assert_eq!(
            service["path"].as_str().and_then(|it| it.strip_prefix('/')),
            path
        );
    }
}
