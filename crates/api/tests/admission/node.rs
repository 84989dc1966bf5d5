//! Rows for SeiNodes: mode, image, peers, snapshots, sidecar, volume.

use keelson_api::SeiNode;
use serde_json::{Value, json};

use crate::table::{Row, Table, fixed, free, with};

const ONE_MODE: &str = "A node has exactly one mode";
const MODE_FIXED: &str = "The mode of a node cannot be changed";
const ONE_SNAPSHOT: &str = "A snapshot has exactly one source: set one of s3 and stateSync.";
const ONE_PEER_KIND: &str =
    "A peer source has exactly one kind: set one of ec2Tags, static and label.";
const ONE_CERTIFICATE: &str =
    "The certificate has exactly one source: set one of issuerName and secretName.";
const KIND_NEEDS_NAME: &str = "issuerKind says what issuerName names";
const IMPORT_FIXED: &str = "dataVolume.import is fixed when the node is created";
const CLAIM_FIXED: &str = "dataVolume.import.pvcName is fixed when the node is created";

fn table() -> Table {
    Table::of::<SeiNode>(true)
}

/// A full node with nothing else.
fn full() -> Value {
    json!({ "chainId": "atlantic-2", "image": "seid:1", "fullNode": {} })
}

fn replayer() -> Value {
    json!({
        "chainId": "atlantic-2",
        "image": "seid:1",
        "peers": [{ "static": { "addresses": ["id@host:26656"] } }],
        "replayer": { "snapshot": { "s3": { "targetHeight": 1 } } },
    })
}

fn mode(name: &str) -> Value {
    let block = match name {
        "replayer" => replayer()["replayer"].clone(),
        _ => json!({}),
    };
    json!({
        "chainId": "atlantic-2",
        "image": "seid:1",
        "peers": [{ "static": { "addresses": ["id@host:26656"] } }],
        name: block,
    })
}

fn peers(sources: Value) -> Value {
    with(full(), "peers", sources)
}

fn snapshot(source: Value) -> Value {
    with(full(), "fullNode.snapshot", source)
}

fn sidecar(config: Value) -> Value {
    with(full(), "sidecar", config)
}

fn tls(config: Value) -> Value {
    with(full(), "sidecar.tls", config)
}

fn volume(config: Value) -> Value {
    with(full(), "dataVolume", config)
}

pub(crate) fn rows() -> Vec<Row> {
    [basics(), modes(), sources(), tls_rows(), volumes()].concat()
}

fn basics() -> Vec<Row> {
    let t = table();
    let command = |count: usize| vec!["a"; count];
    vec![
        t.accepts("nothing but what is needed", full()),
        t.refuses(
            "no chain",
            json!({ "image": "i", "fullNode": {} }),
            "spec.chainId: Required value",
        ),
        t.refuses(
            "an empty chain",
            with(full(), "chainId", json!("")),
            "spec.chainId",
        ),
        t.refuses(
            "no image",
            json!({ "chainId": "c", "fullNode": {} }),
            "spec.image: Required value",
        ),
        t.refuses(
            "an empty image",
            with(full(), "image", json!("")),
            "spec.image",
        ),
        t.accepts(
            "an image of 512 characters",
            with(full(), "image", json!("i".repeat(512))),
        ),
        t.refuses(
            "an image of 513 characters",
            with(full(), "image", json!("i".repeat(513))),
            "Too long: may not be more than 512",
        ),
        t.refuses(
            "an unknown field",
            with(full(), "imagee", json!("x")),
            "field not declared in schema",
        ),
        t.accepts("a paused node", with(full(), "paused", json!(true))),
        t.accepts(
            "an external address",
            with(full(), "externalAddress", json!("p2p.example:26656")),
        ),
        t.refuses(
            "an empty external address",
            with(full(), "externalAddress", json!("")),
            "spec.externalAddress",
        ),
        t.accepts(
            "overrides",
            with(
                full(),
                "overrides",
                json!({ "network.p2p.max_connections": "200" }),
            ),
        ),
        t.refuses(
            "an override that is no text",
            with(full(), "overrides", json!({ "a": 1 })),
            "spec.overrides",
        ),
        t.accepts(
            "the original's entrypoint",
            with(
                full(),
                "entrypoint",
                json!({ "command": ["seid"], "args": ["start"] }),
            ),
        ),
        t.accepts(
            "an entrypoint of 16 words",
            with(full(), "entrypoint.command", json!(command(16))),
        ),
        t.refuses(
            "an entrypoint of 17 words",
            with(full(), "entrypoint.command", json!(command(17))),
            "must have at most 16 items",
        ),
        t.accepts(
            "labels for the pod",
            with(full(), "podLabels", json!({ "team": "rpc" })),
        ),
        t.allows(
            "another image",
            full(),
            with(full(), "image", json!("seid:2")),
        ),
        t.forbids(
            "another chain",
            full(),
            with(full(), "chainId", json!("pacific-1")),
            "The chain of a node cannot be changed, because the data volume holds that chain's blocks: create a new SeiNode for the other chain.",
        ),
    ]
}

fn modes() -> Vec<Row> {
    let t = table();
    let names = ["fullNode", "archive", "replayer", "validator"];
    let states: Vec<_> = names.map(|name| (name, mode(name))).into();
    let mut rows = t.transitions("mode", &states, fixed(MODE_FIXED));
    rows.extend([
        t.refuses("no mode", json!({ "chainId": "c", "image": "i" }), ONE_MODE),
        t.refuses("two modes", with(full(), "archive", json!({})), ONE_MODE),
        t.refuses(
            "four modes",
            names.iter().fold(replayer(), |spec, name| {
                with(spec, name, mode(name)[name].clone())
            }),
            ONE_MODE,
        ),
        t.forbids(
            "a second mode beside the first",
            full(),
            with(full(), "archive", json!({})),
            ONE_MODE,
        ),
        t.accepts("a replayer", replayer()),
        t.refuses(
            "a replayer without peers",
            json!({ "chainId": "c", "image": "i", "replayer": replayer()["replayer"] }),
            "A replayer needs peers",
        ),
        t.refuses(
            "a replayer with an empty list of peers",
            with(replayer(), "peers", json!([])),
            "A replayer needs peers",
        ),
        t.forbids(
            "a replayer that loses its peers",
            replayer(),
            with(replayer(), "peers", json!([])),
            "A replayer needs peers",
        ),
        t.refuses(
            "a replayer without a snapshot",
            with(replayer(), "replayer", json!({})),
            "spec.replayer.snapshot: Required value",
        ),
        t.accepts(
            "a replayer that compares results",
            with(
                replayer(),
                "replayer.resultExport",
                json!({ "shadowResult": { "canonicalRpc": "http://rpc" } }),
            ),
        ),
        t.refuses(
            "a replayer that compares with nobody",
            with(
                replayer(),
                "replayer.resultExport",
                json!({ "shadowResult": { "canonicalRpc": "" } }),
            ),
            "canonicalRpc",
        ),
        t.accepts(
            "an archive that makes snapshots",
            with(
                mode("archive"),
                "archive.snapshotGeneration",
                json!({ "tendermint": { "keepRecent": 1 } }),
            ),
        ),
        t.refuses(
            "snapshots of which none is kept",
            with(
                mode("archive"),
                "archive.snapshotGeneration",
                json!({ "tendermint": { "keepRecent": 0 } }),
            ),
            "keepRecent",
        ),
        t.accepts(
            "snapshots that are published",
            with(
                full(),
                "fullNode.snapshotGeneration",
                json!({ "tendermint": { "keepRecent": 2, "publish": {} } }),
            ),
        ),
    ]);
    rows
}

fn sources() -> Vec<Row> {
    let t = table();
    let ec2 = json!({ "ec2Tags": { "region": "eu-1", "tags": { "chain": "a" } } });
    let fixed_peers = json!({ "static": { "addresses": ["id@host:26656"] } });
    let label = json!({ "label": { "selector": { "sei.io/chain": "a" }, "namespace": "other" } });
    let kinds = [
        ("absent", full()),
        ("ec2Tags", peers(json!([ec2]))),
        ("static", peers(json!([fixed_peers]))),
        ("label", peers(json!([label]))),
    ];
    let s3 = json!({ "s3": { "targetHeight": 1 } });
    let state_sync = json!({ "stateSync": {} });
    let snapshots = [
        ("absent", full()),
        ("s3", snapshot(s3.clone())),
        ("stateSync", snapshot(state_sync.clone())),
    ];
    let both = json!({ "s3": { "targetHeight": 1 }, "stateSync": {} });
    let witnesses = |list: Value| snapshot(with(state_sync.clone(), "rpcServers", list));
    let mut rows = t.transitions("a peer source", &kinds, free);
    rows.extend(t.transitions("the snapshot", &snapshots, free));
    rows.extend([
        t.refuses("a peer source of no kind", peers(json!([{}])), ONE_PEER_KIND),
        t.refuses("a peer source of two kinds", peers(json!([{ "static": fixed_peers["static"], "label": label["label"] }])), ONE_PEER_KIND),
        t.refuses("a bad source after a good one", peers(json!([fixed_peers, {}])), "spec.peers[1]"),
        t.refuses("machines without a region", peers(json!([{ "ec2Tags": { "region": "", "tags": { "a": "b" } } }])), "region"),
        t.refuses("machines without tags", peers(json!([{ "ec2Tags": { "region": "r", "tags": {} } }])), "should have at least 1 properties"),
        t.refuses("no addresses", peers(json!([{ "static": { "addresses": [] } }])), "should have at least 1 items"),
        t.refuses("no labels", peers(json!([{ "label": { "selector": {} } }])), "should have at least 1 properties"),
        t.accepts("256 peer sources", peers(json!(vec![fixed_peers.clone(); 256]))),
        t.refuses("a snapshot of no source", snapshot(json!({})), ONE_SNAPSHOT),
        t.refuses("a snapshot of both sources", snapshot(both), ONE_SNAPSHOT),
        t.refuses("a snapshot of height 0", snapshot(json!({ "s3": { "targetHeight": 0 } })), "targetHeight"),
        t.refuses("a snapshot of no height", snapshot(json!({ "s3": {} })), "targetHeight: Required value"),
        t.accepts("a snapshot with all its settings", snapshot(json!({
            "s3": { "targetHeight": 9 }, "trustPeriod": "168h0m0s", "backfillBlocks": 10, "bootstrapImage": "seid:0",
        }))),
        t.accepts("two witnesses", witnesses(json!(["a.example:26657", "b.example:26657"]))),
        t.refuses("one witness", witnesses(json!(["a.example:26657"])), "should have at least 2 items"),
        t.refuses("the same witness twice", witnesses(json!(["a:1", "a:1"])), "duplicate entries"),
        t.refuses("a witness with a scheme", witnesses(json!(["http://a:1", "b:1"])), "rpcServers[0]"),
    ]);
    rows
}

fn tls_rows() -> Vec<Row> {
    let t = table();
    let states = [
        ("absent", sidecar(json!({}))),
        ("issuer A", tls(json!({ "issuerName": "a" }))),
        (
            "issuer B",
            tls(json!({ "issuerName": "b", "issuerKind": "Issuer" })),
        ),
        ("secret A", tls(json!({ "secretName": "a" }))),
        ("secret B", tls(json!({ "secretName": "b" }))),
    ];
    let mut rows = t.transitions("TLS", &states, free);
    rows.extend([
        t.allows("the whole sidecar block removed with its TLS", tls(json!({ "secretName": "a" })), full()),
        t.refuses("TLS from nowhere", tls(json!({})), ONE_CERTIFICATE),
        t.refuses("TLS from both", tls(json!({ "issuerName": "a", "secretName": "b" })), ONE_CERTIFICATE),
        t.forbids("a second source beside the first", tls(json!({ "issuerName": "a" })), tls(json!({ "issuerName": "a", "secretName": "b" })), ONE_CERTIFICATE),
        t.refuses("an issuer's kind with a Secret", tls(json!({ "secretName": "b", "issuerKind": "Issuer" })), KIND_NEEDS_NAME),
        t.refuses("an issuer's kind alone", tls(json!({ "issuerKind": "Issuer" })), KIND_NEEDS_NAME),
        t.refuses("an issuer of an unknown kind", tls(json!({ "issuerName": "a", "issuerKind": "Notary" })), "Unsupported value: \"Notary\""),
        t.refuses("an issuer without a name", tls(json!({ "issuerName": "" })), "issuerName"),
        t.refuses("a Secret without a name", tls(json!({ "secretName": "" })), "secretName"),
        t.accepts("the earlier shape with an issuer", tls(json!({ "issuerName": "a", "issuerKind": "ClusterIssuer" }))),
        t.accepts("a sidecar with everything", sidecar(json!({
            "image": "sidecar:1", "port": 7778, "resources": { "requests": { "cpu": "100m", "memory": 1000 } },
        }))),
        t.refuses("a claim no pod has", sidecar(json!({ "resources": { "claims": [{ "name": "gpu" }] } })), "a node's pod has none: remove it"),
        t.refuses("a port that is none", sidecar(json!({ "port": 70000 })), "spec.sidecar.port"),
    ]);
    rows
}

fn volumes() -> Vec<Row> {
    let t = table();
    let import =
        |name: &str| volume(json!({ "retainOnDelete": true, "import": { "pvcName": name } }));
    let states = [
        ("absent", volume(json!({ "retainOnDelete": true }))),
        ("A", import("a")),
        ("B", import("b")),
    ];
    let mut rows = t.transitions("dataVolume.import", &states, |old, new| match (old, new) {
        (old, new) if old == new => None,
        ("absent", _) | (_, "absent") => Some(IMPORT_FIXED),
        _ => Some(CLAIM_FIXED),
    });
    let bare = [
        ("absent", full()),
        ("A", volume(json!({ "import": { "pvcName": "a" } }))),
        ("B", volume(json!({ "import": { "pvcName": "b" } }))),
    ];
    rows.extend(t.transitions("dataVolume as a whole", &bare, |old, new| {
        match (old, new) {
            (old, new) if old == new => None,
            ("absent", _) | (_, "absent") => Some(IMPORT_FIXED),
            _ => Some(CLAIM_FIXED),
        }
    }));
    rows.extend([
        t.allows(
            "retainOnDelete turned off",
            import("a"),
            with(import("a"), "dataVolume.retainOnDelete", json!(false)),
        ),
        t.allows(
            "a volume block without an import added",
            full(),
            volume(json!({ "retainOnDelete": false })),
        ),
        t.refuses(
            "an imported claim without a name",
            volume(json!({ "import": { "pvcName": "" } })),
            "pvcName",
        ),
        t.refuses(
            "an imported claim with a bad name",
            volume(json!({ "import": { "pvcName": "Data_0" } })),
            "pvcName",
        ),
        t.accepts(
            "an imported claim with the longest name",
            volume(json!({ "import": { "pvcName": "a".repeat(253) } })),
        ),
        t.refuses(
            "an imported claim with too long a name",
            volume(json!({ "import": { "pvcName": "a".repeat(254) } })),
            "pvcName",
        ),
    ]);
    rows
}
