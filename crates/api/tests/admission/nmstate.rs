//! Rows for the kinds of `nmstate.io`.

use keelson_api::{NMState, NodeNetworkConfigurationPolicy};
use serde_json::{Value, json};

use crate::table::{Row, Table, fixed, free, with};

const NEEDS_PROFILE: &str = "The source Explicit needs a profile";
const UNUSED_PROFILE: &str = "A profile is used only by the sources Auto and Explicit";
const CUSTOM: &str = "custom is for the profile type Custom and belongs to no other";
const CAPTURE_FIXED: &str =
    "capture cannot be changed, because hosts keep what they captured first";
const SELECTOR_KEY: &str = "A key of nodeSelector is not a label's name";

const CHECKPOINT_TOO_SHORT: &str =
    "NetworkManager would undo a change before its probes have come to an end";
const CHECKPOINT_TOO_LONG: &str = "A handler that is told to end has 600 seconds";
const NO_SERVER: &str = "An entry of dns.servers is not an IP address";
const NO_GATEWAY: &str = "An entry of gateway.addresses is not an IP address";

pub(crate) fn rows() -> Vec<Row> {
    [installs(), probes(), profiles(), policies(), captures()].concat()
}

fn installs() -> Vec<Row> {
    let t = Table::of::<NMState>(false);
    vec![
        t.accepts("nothing at all", json!({})),
        t.accepts("everything", json!({
            "affinity": {},
            "nodeSelector": { "kubernetes.io/os": "linux" },
            "tolerations": [{ "operator": "Exists" }],
            "infraAffinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [] } },
            "infraNodeSelector": { "role": "infra" },
            "infraTolerations": [{ "key": "infra", "effect": "NoSchedule" }],
            "selfSignConfiguration": { "caRotateInterval": "8760h", "certOverlapInterval": "24h" },
            "probeConfiguration": {
                "timeoutSeconds": 60,
                "checkpointSeconds": 70,
                "dns": { "host": "example.org", "servers": ["192.0.2.53", "2001:db8::53"] },
                "gateway": { "addresses": ["192.0.2.1", "fe80::1"] },
            },
            "metricsConfiguration": { "bindAddress": ":9000" },
            "metrics": { "auth": "None" },
            "dispatchScripts": "Allowed",
            "logLevel": "debug",
        })),
        t.refuses("an unknown log level", json!({ "logLevel": "trace" }), "Unsupported value: \"trace\""),
        t.refuses("an unknown way to guard metrics", json!({ "metrics": { "auth": "Password" } }), "Unsupported value: \"Password\""),
        t.refuses("an unknown answer to dispatch scripts", json!({ "dispatchScripts": "Maybe" }), "Unsupported value: \"Maybe\""),
        t.refuses("an unknown field", json!({ "logLevels": "info" }), "field not declared in schema"),
        t.allows("another log level", json!({ "logLevel": "info" }), json!({ "logLevel": "debug" })),
    ]
}

fn probes() -> Vec<Row> {
    let t = Table::of::<NMState>(false);
    let probes = |value: Value| json!({ "probeConfiguration": value });
    let servers = |list: Value| probes(json!({ "dns": { "servers": list } }));
    let gateways = |list: Value| probes(json!({ "gateway": { "addresses": list } }));
    vec![
        t.accepts(
            "the longest checkpoint",
            probes(json!({ "checkpointSeconds": 480 })),
        ),
        t.accepts(
            "the shortest checkpoint",
            probes(json!({ "timeoutSeconds": 1, "checkpointSeconds": 11 })),
        ),
        t.accepts(
            "probes shorter than the default",
            probes(json!({ "timeoutSeconds": 20 })),
        ),
        t.refuses(
            "a checkpoint of more than 480 s",
            probes(json!({ "checkpointSeconds": 481 })),
            CHECKPOINT_TOO_LONG,
        ),
        t.refuses(
            "a checkpoint that ends with the probes",
            probes(json!({ "timeoutSeconds": 60, "checkpointSeconds": 69 })),
            CHECKPOINT_TOO_SHORT,
        ),
        t.refuses(
            "probes longer than the default checkpoint allows",
            probes(json!({ "timeoutSeconds": 231 })),
            CHECKPOINT_TOO_SHORT,
        ),
        t.refuses(
            "no time for probes",
            probes(json!({ "timeoutSeconds": 0 })),
            "timeoutSeconds",
        ),
        t.forbids(
            "a checkpoint that becomes too long",
            probes(json!({ "checkpointSeconds": 480 })),
            probes(json!({ "checkpointSeconds": 600 })),
            CHECKPOINT_TOO_LONG,
        ),
        t.refuses(
            "a name as a name server",
            servers(json!(["resolver.example"])),
            NO_SERVER,
        ),
        t.refuses(
            "a name server with a port",
            servers(json!(["192.0.2.53:53"])),
            NO_SERVER,
        ),
        t.refuses(
            "two name servers in one",
            servers(json!(["192.0.2.53,192.0.2.54"])),
            NO_SERVER,
        ),
        t.refuses(
            "more than 16 name servers",
            servers(json!(vec!["192.0.2.53"; 17])),
            "Too many: 17",
        ),
        t.refuses(
            "a gateway that is none",
            gateways(json!(["192.0.2.1", ""])),
            NO_GATEWAY,
        ),
        t.refuses(
            "a gateway that is a network",
            gateways(json!(["192.0.2.0/24"])),
            NO_GATEWAY,
        ),
        t.accepts("the host's own gateways", probes(json!({ "gateway": {} }))),
    ]
}

fn profiles() -> Vec<Row> {
    let t = Table::of::<NMState>(false);
    let tls = |source: &str, profile: Option<Value>| match profile {
        Some(profile) => json!({ "tls": { "source": source, "profile": profile } }),
        None => json!({ "tls": { "source": source } }),
    };
    let modern = || Some(json!({ "type": "Modern" }));
    let custom = |block: Value| {
        tls(
            "Explicit",
            Some(json!({ "type": "Custom", "custom": block })),
        )
    };
    let sources = [
        ("absent", json!({})),
        ("Auto", tls("Auto", modern())),
        ("Cluster", tls("Cluster", None)),
        ("Explicit", tls("Explicit", modern())),
        ("None", tls("None", None)),
    ];
    let mut rows = t.transitions("tls.source", &sources, free);
    rows.extend([
        t.accepts("an empty TLS block", json!({ "tls": {} })),
        t.accepts("Auto without a profile", tls("Auto", None)),
        t.accepts(
            "a profile with the default source",
            json!({ "tls": { "profile": { "type": "Old" } } }),
        ),
        t.refuses(
            "Explicit without a profile",
            tls("Explicit", None),
            NEEDS_PROFILE,
        ),
        t.forbids(
            "Explicit that loses its profile",
            tls("Explicit", modern()),
            tls("Explicit", None),
            NEEDS_PROFILE,
        ),
        t.refuses("None with a profile", tls("None", modern()), UNUSED_PROFILE),
        t.refuses(
            "Cluster with a profile",
            tls("Cluster", modern()),
            UNUSED_PROFILE,
        ),
        t.refuses(
            "an unknown source",
            tls("Magic", None),
            "Unsupported value: \"Magic\"",
        ),
        t.refuses(
            "an unknown profile",
            tls("Explicit", Some(json!({ "type": "Ancient" }))),
            "Unsupported value: \"Ancient\"",
        ),
        t.refuses(
            "a profile without a type",
            tls("Explicit", Some(json!({}))),
            "profile.type: Required value",
        ),
        t.refuses(
            "Custom without custom",
            tls("Explicit", Some(json!({ "type": "Custom" }))),
            CUSTOM,
        ),
        t.refuses(
            "custom without Custom",
            tls("Explicit", Some(json!({ "type": "Modern", "custom": {} }))),
            CUSTOM,
        ),
        t.accepts(
            "a custom profile",
            custom(json!({
                "minTLSVersion": "VersionTLS12",
                "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256"],
                "groups": ["X25519MLKEM768", "X25519"],
            })),
        ),
        t.accepts("an empty custom profile", custom(json!({}))),
        t.refuses(
            "an unknown version",
            custom(json!({ "minTLSVersion": "TLS1.2" })),
            "Unsupported value: \"TLS1.2\"",
        ),
        t.refuses(
            "a cipher without a name",
            custom(json!({ "ciphers": [""] })),
            "ciphers[0]",
        ),
        t.refuses(
            "a group without a name",
            custom(json!({ "groups": [""] })),
            "groups[0]",
        ),
    ]);
    rows
}

fn policies() -> Vec<Row> {
    let t = Table::of::<NodeNetworkConfigurationPolicy>(false);
    let selector = |key: &str, value: &str| json!({ "nodeSelector": { key: value } });
    let many = |count: usize| {
        let labels = (0..count)
            .map(|i| (format!("key-{i}"), json!("v")))
            .collect();
        json!({ "nodeSelector": Value::Object(labels) })
    };
    let state = |name: &str| json!({ "desiredState": { "interfaces": [{ "name": name, "odd": { "deep": [1, null] } }] } });
    let long = "p".repeat(63);
    let longer = "p".repeat(64);
    vec![
        t.accepts("nothing at all", json!({})),
        t.accepts("a state of any content", state("eth0")),
        t.allows("another state", state("eth0"), state("eth1")),
        t.refuses(
            "a state that is no object",
            json!({ "desiredState": "interfaces" }),
            "desiredState",
        ),
        t.accepts("a selector", selector("kubernetes.io/hostname", "node-1")),
        t.accepts("a selector without a prefix", selector("role", "")),
        t.allows("another selector", selector("a", "b"), selector("c", "d")),
        t.refuses(
            "a selector's key with a space",
            selector("a key", "v"),
            SELECTOR_KEY,
        ),
        t.refuses(
            "a selector's key that is empty",
            selector("", "v"),
            SELECTOR_KEY,
        ),
        t.refuses(
            "a selector's key that is too long",
            selector(&"k".repeat(64), "v"),
            SELECTOR_KEY,
        ),
        t.refuses(
            "a selector's key with two prefixes",
            selector("a/b/c", "v"),
            SELECTOR_KEY,
        ),
        t.refuses(
            "a selector's value with a space",
            selector("key", "a value"),
            "nodeSelector.key",
        ),
        t.refuses(
            "a selector's value that is too long",
            selector("key", &"v".repeat(64)),
            "nodeSelector.key",
        ),
        t.accepts("a selector of 256 labels", many(256)),
        t.refuses("a selector of 257 labels", many(257), "Too many: 257"),
        t.accepts("maxUnavailable as a number", json!({ "maxUnavailable": 3 })),
        t.accepts(
            "maxUnavailable as a percentage",
            json!({ "maxUnavailable": "10%" }),
        ),
        t.refuses(
            "maxUnavailable as a list",
            json!({ "maxUnavailable": [] }),
            "maxUnavailable",
        ),
        t.accepts("a name of 63 characters", json!({})).named(&long),
        t.refuses(
            "a name of 64 characters",
            json!({}),
            "The name of a policy is the value of a label",
        )
        .named(&longer),
    ]
}

fn captures() -> Vec<Row> {
    let t = Table::of::<NodeNetworkConfigurationPolicy>(false);
    let base = json!({ "desiredState": { "interfaces": [] } });
    let capture = |expression: &str| with(base.clone(), "capture", json!({ "gw": expression }));
    let states = [
        ("absent", base.clone()),
        ("A", capture("routes.running.destination==\"0.0.0.0/0\"")),
        ("B", capture("interfaces.type==\"ethernet\"")),
    ];
    let two = with(capture("a"), "capture.second", json!("b"));
    let mut rows = t.transitions("capture", &states, fixed(CAPTURE_FIXED));
    rows.extend([
        t.forbids(
            "a second expression",
            capture("a"),
            two.clone(),
            CAPTURE_FIXED,
        ),
        t.forbids("an expression removed", two, capture("a"), CAPTURE_FIXED),
        t.allows(
            "another state beside the same capture",
            capture("a"),
            with(capture("a"), "desiredState", json!({ "dns-resolver": {} })),
        ),
    ]);
    rows
}
