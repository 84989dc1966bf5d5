//! Rows for SeiNodeDeployments: what a fleet adds to the rules of a node, and that those hold too.

use keelson_api::SeiNodeDeployment;
use serde_json::{Value, json};

use crate::table::{Row, Table, fixed, free, set_once, with};

const SHARED_KEY: &str = "Replicas of one template would sign with one key and be slashed";
const SHARED_VOLUME: &str = "Replicas of one template would write to one imported volume";
const HALT_HEIGHT: &str = "A HardFork needs a height to halt at: set hardFork.haltHeight.";
const MAX_UNAVAILABLE: &str =
    "maxUnavailable is a number of at least 1 or a percentage from 1% to 100%";

fn table() -> Table {
    Table::of::<SeiNodeDeployment>(true)
}

fn of(mode: &str, block: Value) -> Value {
    json!({
        "template": { "spec": { "chainId": "atlantic-2", "image": "seid:1", mode: block } },
        "updateStrategy": { "type": "InPlace" },
    })
}

fn full() -> Value {
    of("fullNode", json!({}))
}

fn keys(signing: &str) -> Value {
    json!({
        "signingKey": { "secret": { "secretName": signing } },
        "nodeKey": { "secret": { "secretName": "node" } },
    })
}

fn replicas(spec: Value, count: i64) -> Value {
    with(spec, "replicas", json!(count))
}

fn strategy(block: Value) -> Value {
    with(full(), "updateStrategy", block)
}

fn at_once(limit: Value) -> Value {
    with(full(), "updateStrategy.maxUnavailable", limit)
}

pub(crate) fn rows() -> Vec<Row> {
    [
        basics(),
        strategies(),
        keys_and_volumes(),
        genesis(),
        template(),
    ]
    .concat()
}

fn basics() -> Vec<Row> {
    let t = table();
    let policies =
        ["Delete", "Retain"].map(|policy| (policy, with(full(), "deletionPolicy", json!(policy))));
    let states = [vec![("absent", full())], policies.into()].concat();
    let mut rows = t.transitions("deletionPolicy", &states, free);
    rows.extend([
        t.accepts("nothing but what is needed", full()),
        t.accepts("100 replicas", replicas(full(), 100)),
        t.refuses("no replicas", replicas(full(), 0), "spec.replicas"),
        t.refuses("101 replicas", replicas(full(), 101), "spec.replicas"),
        t.allows("more replicas", replicas(full(), 2), replicas(full(), 5)),
        t.refuses(
            "an unknown deletion policy",
            with(full(), "deletionPolicy", json!("Forget")),
            "Unsupported value: \"Forget\"",
        ),
        t.refuses(
            "no template",
            json!({ "updateStrategy": { "type": "InPlace" } }),
            "spec.template: Required value",
        ),
        t.refuses(
            "no strategy",
            json!({ "template": full()["template"] }),
            "spec.updateStrategy: Required value",
        ),
        t.accepts("a paused fleet", with(full(), "paused", json!(true))),
        t.accepts("a published fleet", with(full(), "networking", json!({}))),
        t.accepts(
            "labels and annotations",
            with(
                full(),
                "template.metadata",
                json!({ "labels": { "a": "b" }, "annotations": { "c": "d" } }),
            ),
        ),
    ]);
    rows
}

fn strategies() -> Vec<Row> {
    let t = table();
    vec![
        t.refuses(
            "a strategy without a type",
            strategy(json!({})),
            "updateStrategy.type: Required value",
        ),
        t.refuses(
            "an unknown strategy",
            strategy(json!({ "type": "Yolo" })),
            "Unsupported value: \"Yolo\"",
        ),
        t.accepts(
            "BlueGreen, which existing objects may name",
            strategy(json!({ "type": "BlueGreen" })),
        ),
        t.refuses(
            "HardFork without a height",
            strategy(json!({ "type": "HardFork" })),
            HALT_HEIGHT,
        ),
        t.forbids(
            "HardFork that loses its height",
            strategy(json!({ "type": "HardFork", "hardFork": { "haltHeight": 5 } })),
            strategy(json!({ "type": "HardFork" })),
            HALT_HEIGHT,
        ),
        t.refuses(
            "HardFork at height 0",
            strategy(json!({ "type": "HardFork", "hardFork": { "haltHeight": 0 } })),
            "haltHeight",
        ),
        t.accepts(
            "HardFork with a height",
            strategy(json!({ "type": "HardFork", "hardFork": { "haltHeight": 5 } })),
        ),
        t.accepts("maxUnavailable 1", at_once(json!(1))),
        t.accepts("maxUnavailable 1%", at_once(json!("1%"))),
        t.accepts("maxUnavailable 100%", at_once(json!("100%"))),
        t.refuses("maxUnavailable 0", at_once(json!(0)), MAX_UNAVAILABLE),
        t.refuses("maxUnavailable -1", at_once(json!(-1)), MAX_UNAVAILABLE),
        t.refuses("maxUnavailable 0%", at_once(json!("0%")), MAX_UNAVAILABLE),
        t.refuses(
            "maxUnavailable 101%",
            at_once(json!("101%")),
            MAX_UNAVAILABLE,
        ),
        t.refuses(
            "maxUnavailable in words",
            at_once(json!("half")),
            MAX_UNAVAILABLE,
        ),
        t.refuses(
            "maxUnavailable as a number in quotes",
            at_once(json!("2")),
            MAX_UNAVAILABLE,
        ),
        t.allows(
            "maxUnavailable from a number to a percentage",
            at_once(json!(2)),
            at_once(json!("50%")),
        ),
        t.accepts(
            "a progress deadline",
            with(full(), "updateStrategy.progressDeadlineSeconds", json!(600)),
        ),
        t.refuses(
            "a progress deadline of 0",
            with(full(), "updateStrategy.progressDeadlineSeconds", json!(0)),
            "progressDeadlineSeconds",
        ),
    ]
}

fn keys_and_volumes() -> Vec<Row> {
    let t = table();
    let signing = || of("validator", keys("a"));
    let ring = json!({ "operatorKeyring": { "secret": { "secretName": "ring" } } });
    let imported = || {
        with(
            full(),
            "template.spec.dataVolume",
            json!({ "import": { "pvcName": "a" } }),
        )
    };
    vec![
        t.accepts("one replica with a signing key", replicas(signing(), 1)),
        t.accepts(
            "a signing key and the default number of replicas",
            signing(),
        ),
        t.refuses(
            "two replicas with a signing key",
            replicas(signing(), 2),
            SHARED_KEY,
        ),
        t.forbids(
            "a second replica beside a signing key",
            signing(),
            replicas(signing(), 2),
            SHARED_KEY,
        ),
        t.forbids(
            "a signing key given to two replicas",
            replicas(of("validator", json!({})), 2),
            replicas(signing(), 2),
            SHARED_KEY,
        ),
        t.accepts(
            "two validators without keys",
            replicas(of("validator", json!({})), 2),
        ),
        t.accepts(
            "two validators that share an operator's keyring",
            replicas(of("validator", ring), 2),
        ),
        t.accepts("one replica with an imported volume", imported()),
        t.refuses(
            "two replicas with one imported volume",
            replicas(imported(), 2),
            SHARED_VOLUME,
        ),
        t.forbids(
            "a second replica beside an imported volume",
            imported(),
            replicas(imported(), 2),
            SHARED_VOLUME,
        ),
        t.accepts(
            "two replicas whose volumes go with them",
            replicas(
                with(
                    full(),
                    "template.spec.dataVolume.retainOnDelete",
                    json!(false),
                ),
                2,
            ),
        ),
    ]
}

fn genesis() -> Vec<Row> {
    let t = table();
    let founding = |chain: &str| {
        with(
            of("validator", json!({})),
            "genesis",
            json!({ "chainId": chain }),
        )
    };
    let states = [
        ("absent", of("validator", json!({}))),
        ("A", founding("chain-a")),
        ("B", founding("chain-b")),
    ];
    let mut rows = t.transitions("genesis", &states, free);
    rows.extend([
        t.refuses(
            "a ceremony of full nodes",
            with(full(), "genesis", json!({ "chainId": "chain-a" })),
            "A genesis ceremony is held by validators",
        ),
        t.refuses(
            "a ceremony for no chain",
            with(of("validator", json!({})), "genesis", json!({})),
            "genesis.chainId: Required value",
        ),
        t.refuses(
            "a chain with a bad name",
            founding("Chain_A"),
            "genesis.chainId",
        ),
        t.refuses("a chain of one letter", founding("a"), "genesis.chainId"),
        t.accepts("a chain with the longest name", founding(&"a".repeat(64))),
        t.refuses(
            "a chain with too long a name",
            founding(&"a".repeat(65)),
            "genesis.chainId",
        ),
        t.accepts(
            "a ceremony with everything",
            with(
                of("validator", json!({})),
                "genesis",
                json!({
                    "chainId": "chain-a", "stakingAmount": "1usei", "accountBalance": "2usei",
                    "accounts": [{ "address": "sei1abc", "balance": "3usei" }],
                    "overrides": { "gov.voting_period": "60s" }, "maxCeremonyDuration": "15m",
                }),
            ),
        ),
        t.refuses(
            "an account without a balance",
            with(
                founding("chain-a"),
                "genesis.accounts",
                json!([{ "address": "sei1abc" }]),
            ),
            "balance: Required value",
        ),
    ]);
    rows
}

/// The rules of a node hold in the template.
fn template() -> Vec<Row> {
    let t = table();
    let import = |name: &str| {
        with(
            full(),
            "template.spec.dataVolume",
            json!({ "import": { "pvcName": name } }),
        )
    };
    let modes = ["fullNode", "archive", "validator"].map(|mode| (mode, of(mode, json!({}))));
    let signing = [
        ("absent", of("validator", json!({}))),
        ("A", of("validator", keys("a"))),
        ("B", of("validator", keys("b"))),
    ];
    let tls = |block: Value| with(full(), "template.spec.sidecar.tls", block);
    let certificates = [
        ("absent", with(full(), "template.spec.sidecar", json!({}))),
        ("A", tls(json!({ "issuerName": "a" }))),
        ("B", tls(json!({ "secretName": "b" }))),
    ];
    let mut rows = t.transitions(
        "mode",
        &modes,
        fixed("The mode of a node cannot be changed"),
    );
    rows.extend(t.transitions(
        "signingKey",
        &signing,
        set_once("The Secret of signingKey cannot be changed"),
    ));
    rows.extend(t.transitions("TLS", &certificates, free));
    rows.extend([
        t.refuses(
            "two modes",
            with(full(), "template.spec.archive", json!({})),
            "A node has exactly one mode",
        ),
        t.refuses(
            "TLS from both",
            tls(json!({ "issuerName": "a", "secretName": "b" })),
            "The certificate has exactly one source",
        ),
        t.forbids(
            "another imported volume",
            import("a"),
            import("b"),
            "dataVolume.import.pvcName is fixed",
        ),
        t.forbids(
            "no imported volume any more",
            import("a"),
            full(),
            "dataVolume.import is fixed",
        ),
        t.allows(
            "another image",
            full(),
            with(full(), "template.spec.image", json!("seid:2")),
        ),
    ]);
    rows
}
