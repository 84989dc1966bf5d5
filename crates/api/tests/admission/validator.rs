//! Rows for the keys of a validator.

use keelson_api::SeiNode;
use serde_json::{Value, json};

use crate::table::{Row, Table, free, set_once, with};

const TOGETHER: &str = "signingKey and nodeKey belong together: set both or neither.";
const SIGNING_FIXED: &str = "The Secret of signingKey cannot be changed or removed once set";
const NODE_FIXED: &str = "The Secret of nodeKey cannot be changed or removed once set";
const KEYRING_FIXED: &str = "The Secret of operatorKeyring cannot be changed or removed once set";
const PASSPHRASE_FIXED: &str =
    "The Secret of the keyring's passphrase cannot be changed or removed once set";

fn validator(block: Value) -> Value {
    json!({ "chainId": "atlantic-2", "image": "seid:1", "validator": block })
}

fn key(name: &str) -> Value {
    json!({ "secret": { "secretName": name } })
}

fn keys(signing: &str, node: &str) -> Value {
    json!({ "signingKey": key(signing), "nodeKey": key(node) })
}

fn keyring(name: &str, passphrase: &str) -> Value {
    json!({ "secret": {
        "secretName": name, "passphraseSecretRef": { "secretName": passphrase, "key": "passphrase" },
    } })
}

fn locked(name: &str, passphrase: &str) -> Value {
    validator(json!({ "operatorKeyring": keyring(name, passphrase) }))
}

pub(crate) fn rows() -> Vec<Row> {
    [transitions(), loopholes(), distinct(), shapes()].concat()
}

fn transitions() -> Vec<Row> {
    let t = Table::of::<SeiNode>(true);
    let none = || ("absent", validator(json!({})));
    let signing = [
        none(),
        ("A", validator(keys("a", "node"))),
        ("B", validator(keys("b", "node"))),
    ];
    let node = [
        none(),
        ("A", validator(keys("signing", "a"))),
        ("B", validator(keys("signing", "b"))),
    ];
    let unlocked = (
        "absent",
        validator(json!({ "operatorKeyring": key("ring") })),
    );
    let ring = [
        none(),
        ("A", locked("a", "pass")),
        ("B", locked("b", "pass")),
    ];
    let pass = [
        unlocked,
        ("A", locked("ring", "a")),
        ("B", locked("ring", "b")),
    ];
    let ceremony = |index: i32| {
        validator(
            json!({ "genesisCeremony": { "chainId": "c", "stakingAmount": "1usei", "index": index } }),
        )
    };
    let ceremonies = [none(), ("A", ceremony(0)), ("B", ceremony(1))];
    [
        t.transitions("signingKey", &signing, set_once(SIGNING_FIXED)),
        t.transitions("nodeKey", &node, set_once(NODE_FIXED)),
        t.transitions("operatorKeyring", &ring, set_once(KEYRING_FIXED)),
        t.transitions("passphraseSecretRef", &pass, set_once(PASSPHRASE_FIXED)),
        t.transitions("genesisCeremony", &ceremonies, free),
    ]
    .concat()
}

/// Ways around the rules that must not work.
fn loopholes() -> Vec<Row> {
    let t = Table::of::<SeiNode>(true);
    let with_keys = || validator(keys("s", "n"));
    let archive = json!({ "chainId": "atlantic-2", "image": "seid:1", "archive": {} });
    vec![
        t.forbids(
            "the validator block removed with its keys",
            with_keys(),
            archive,
            "The mode of a node cannot be changed",
        ),
        t.forbids(
            "the keys swapped with each other",
            with_keys(),
            validator(keys("n", "s")),
            SIGNING_FIXED,
        ),
        t.forbids(
            "the keyring removed with its passphrase",
            locked("k", "p"),
            validator(json!({})),
            PASSPHRASE_FIXED,
        ),
        t.forbids(
            "keyring and passphrase swapped",
            locked("k", "p"),
            locked("p", "k"),
            KEYRING_FIXED,
        ),
        t.forbids(
            "the signing key removed alone",
            with_keys(),
            validator(json!({ "nodeKey": key("n") })),
            TOGETHER,
        ),
        t.allows(
            "a keyring given to a validator with keys",
            with_keys(),
            with(with_keys(), "validator.operatorKeyring", keyring("k", "p")),
        ),
        t.allows(
            "another key of the same keyring",
            locked("k", "p"),
            with(
                locked("k", "p"),
                "validator.operatorKeyring.secret.keyName",
                json!("other"),
            ),
        ),
        t.allows(
            "another data key of the same passphrase",
            locked("k", "p"),
            with(
                locked("k", "p"),
                "validator.operatorKeyring.secret.passphraseSecretRef.key",
                json!("other"),
            ),
        ),
        t.allows(
            "another image under the same keys",
            with_keys(),
            with(with_keys(), "image", json!("seid:2")),
        ),
    ]
}

/// No two keys in one Secret.
fn distinct() -> Vec<Row> {
    let t = Table::of::<SeiNode>(true);
    let all = |signing: &str, node: &str, ring: &str, pass: &str| {
        with(
            validator(keys(signing, node)),
            "validator.operatorKeyring",
            keyring(ring, pass),
        )
    };
    vec![
        t.accepts("four keys in four Secrets", all("a", "b", "c", "d")),
        t.refuses(
            "signing and node key in one",
            all("a", "a", "c", "d"),
            "signingKey and nodeKey must name different Secrets",
        ),
        t.refuses(
            "signing key and keyring in one",
            all("a", "b", "a", "d"),
            "signingKey and operatorKeyring must name different Secrets",
        ),
        t.refuses(
            "node key and keyring in one",
            all("a", "b", "b", "d"),
            "nodeKey and operatorKeyring must name different Secrets",
        ),
        t.refuses(
            "signing key and passphrase in one",
            all("a", "b", "c", "a"),
            "signingKey and the keyring's passphrase must name different Secrets",
        ),
        t.refuses(
            "node key and passphrase in one",
            all("a", "b", "c", "b"),
            "nodeKey and the keyring's passphrase must name different Secrets",
        ),
        t.refuses(
            "keyring and passphrase in one",
            all("a", "b", "c", "c"),
            "operatorKeyring and its passphrase must name different Secrets",
        ),
    ]
}

fn shapes() -> Vec<Row> {
    let t = Table::of::<SeiNode>(true);
    let signing = |name: &str| validator(keys(name, "node"));
    vec![
        t.accepts("a validator without keys", validator(json!({}))),
        t.refuses(
            "a signing key alone",
            validator(json!({ "signingKey": key("s") })),
            TOGETHER,
        ),
        t.refuses(
            "a node key alone",
            validator(json!({ "nodeKey": key("n") })),
            TOGETHER,
        ),
        t.refuses(
            "a key from nowhere",
            validator(json!({ "signingKey": {}, "nodeKey": key("n") })),
            "signingKey.secret: Required value",
        ),
        t.refuses(
            "a key without a Secret's name",
            validator(json!({ "signingKey": { "secret": {} }, "nodeKey": key("n") })),
            "secretName: Required value",
        ),
        t.refuses("a Secret with an empty name", signing(""), "secretName"),
        t.refuses("a Secret with a bad name", signing("Keys_1"), "secretName"),
        t.accepts("a Secret with the longest name", signing(&"a".repeat(253))),
        t.refuses(
            "a Secret with too long a name",
            signing(&"a".repeat(254)),
            "secretName",
        ),
        t.accepts(
            "a keyring without a passphrase",
            validator(json!({ "operatorKeyring": key("k") })),
        ),
        t.refuses(
            "a passphrase without a data key",
            validator(json!({ "operatorKeyring": { "secret": {
            "secretName": "k", "passphraseSecretRef": { "secretName": "p" },
        } } })),
            "passphraseSecretRef.key: Required value",
        ),
        t.refuses(
            "a keyring's key with a bad name",
            with(
                locked("k", "p"),
                "validator.operatorKeyring.secret.keyName",
                json!("a b"),
            ),
            "keyName",
        ),
        t.refuses(
            "a keyring's key with too long a name",
            with(
                locked("k", "p"),
                "validator.operatorKeyring.secret.keyName",
                json!("a".repeat(65)),
            ),
            "keyName",
        ),
        t.refuses(
            "a ceremony's ordinal below zero",
            validator(json!({ "genesisCeremony": { "index": -1 } })),
            "index",
        ),
        t.accepts(
            "a validator from a snapshot",
            validator(json!({ "snapshot": { "stateSync": {} } })),
        ),
    ]
}
