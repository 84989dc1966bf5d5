//! A validator's keys: who can read them, and that no two nodes sign with one.

use crate::access::{account, token};
use crate::world::{Chain, PATIENCE, world};
use k8s_openapi::api::core::v1::Pod;
use keelson_api::SeiNode;
use keelson_api::names::Port;
use keelson_testbed::{Peer, peer, until};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

const NODE: &str = "validator";
const PASSPHRASE: &str = "a passphrase nobody else has";
/// Every container of a node's pod that goes on running.
const CONTAINERS: [&str; 4] = ["seid", "sei-sidecar", "kube-rbac-proxy", "cosmos-exporter"];

/// The files of a keyring with one key, as the chain's own program makes it.
fn keyring(chain: &Chain) -> BTreeMap<String, String> {
    let name = format!("keelson-keyring-{}-{}", std::process::id(), chain.name);
    let home = std::env::temp_dir().join(name);
    let mut command = Command::new(peer(Peer::Seid).expect("the chain's program"));
    command.args(["keys", "add", "node_admin", "--keyring-backend", "file"]);
    command.arg("--home").arg(&home);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("a process");
    let twice = format!("{PASSPHRASE}\n{PASSPHRASE}\n");
    let written = child
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(twice.as_bytes()));
    written.expect("a pipe").expect("a passphrase");
    let ended = child.wait().expect("an end");
    assert!(ended.success(), "the keyring was not made: {ended}");
    let files = std::fs::read_dir(home.join("keyring-file")).expect("a keyring");
    let files = files.map(|file| {
        let file = file.expect("a file");
        let text = std::fs::read_to_string(file.path()).expect("its text");
        (file.file_name().to_string_lossy().into_owned(), text)
    });
    let files = files.collect();
    std::fs::remove_dir_all(&home).expect("removal");
    files
}

fn secret(chain: &Chain, name: &str, data: &BTreeMap<String, String>) {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": chain.name },
        "stringData": data,
    });
    chain.world.kubectl.apply(&[secret]).expect("a Secret");
}

/// The chain's validator with a keyring as well.
fn with_keyring(chain: &Chain) -> Value {
    let mut node = chain.validator();
    node["spec"]["validator"]["operatorKeyring"] = json!({ "secret": {
        "secretName": "validator-keyring",
        "passphraseSecretRef": { "secretName": "validator-passphrase", "key": "passphrase" },
    }});
    node
}

/// The private half of a key file.
fn private(file: &str) -> String {
    let file: Value = serde_json::from_str(file).expect("a key file");
    file["priv_key"]["value"]
        .as_str()
        .expect("a private key")
        .to_owned()
}

/// The keys by name, and where each container has them.
fn holdings<'a>(
    chain: &Chain,
    keys: &BTreeMap<&'a str, &str>,
) -> BTreeMap<&'static str, BTreeSet<(&'a str, String)>> {
    let texts: Vec<&str> = keys.values().copied().collect();
    let held = CONTAINERS.map(|name| {
        let container = chain.container(NODE, name);
        let held = chain.world.cluster.holdings(&container, &texts);
        let named = held
            .expect("a look inside")
            .into_iter()
            .map(|(text, place)| {
                let key = keys.iter().find(|(_, it)| **it == text);
                // The kubelet keeps the files of a Secret in a folder with a date.
                let plain = place.split('/').filter(|it| !it.starts_with(".."));
                let place = plain.collect::<Vec<_>>().join("/");
                (*key.expect("a key").0, place)
            });
        (name, named.collect())
    });
    held.into()
}

#[tokio::test]
async fn keys_are_in_the_containers_they_belong_to_and_the_second_node_of_one_never_starts() {
    let chain = world().await.chain("keys").await;
    let keyring = keyring(&chain);
    secret(&chain, "validator-keyring", &keyring);
    let passphrase = [("passphrase".to_owned(), PASSPHRASE.to_owned())];
    secret(&chain, "validator-passphrase", &passphrase.into());
    chain.apply(&with_keyring(&chain));
    chain.running(NODE).await;
    chain.makes_blocks(NODE, 2).await;

    let signing = private(&chain.founding.signing_key);
    let identity = private(&chain.founding.node_key);
    let keys = BTreeMap::from([
        ("signing key", signing.as_str()),
        ("node key", &identity),
        ("keyring", &keyring["node_admin.info"]),
        ("passphrase", PASSPHRASE),
    ]);
    let at = |held: &[(&'static str, &str)]| -> BTreeSet<(&str, String)> {
        let owned = held.iter().map(|(key, place)| (*key, (*place).to_owned()));
        owned.collect()
    };
    let expected = BTreeMap::from([
        (
            "seid",
            at(&[
                ("signing key", "/.sei/config/priv_validator_key.json"),
                ("node key", "/.sei/config/node_key.json"),
            ]),
        ),
        (
            "sei-sidecar",
            at(&[
                ("keyring", "/.sei/keyring-file/node_admin.info"),
                ("passphrase", "/proc/self/environ"),
            ]),
        ),
        ("kube-rbac-proxy", at(&[])),
        ("cosmos-exporter", at(&[])),
    ]);
    assert_eq!(holdings(&chain, &keys), expected);
    assert_eq!(readers(&chain), ["seid", "sei-sidecar"]);
    told_nowhere(&chain, &keys);
    let (told, is) = identities(&chain).await;
    assert_eq!(told, is, "the sidecar cannot read the node's key");

    let second = second(&chain);
    chain.apply(&second);
    chain.until("second", "why it is refused", is_refused).await;
    let height = chain.makes_blocks(NODE, 3).await;
    assert_eq!(signers(&chain).await, ["validator-0"]);
    assert!(is_refused(&chain.seen("second").await.expect("the second")));

    // A validator moves: its key goes on signing where its volume goes on, and never twice.
    let place = ["--namespace", &chain.name, "delete", "--wait=false"];
    let words = [&place[..], &["seinode", NODE]].concat();
    chain.world.kubectl.run(&words).expect("a deletion");
    let moved = until("the second's pod alone", PATIENCE, async || {
        let signers = signers(&chain).await;
        assert!(signers.len() < 2, "two at once: {signers:?}");
        match signers == ["second-0"] {
            true => Ok(()),
            false => Err(format!("{signers:?}")),
        }
    });
    moved.await.expect("a second node that starts");
    chain.running("second").await;
    let after = chain.makes_blocks("second", 2).await;
    assert!(after > height, "{after} after {height}");
}

/// Whose user may read the signing key through the process that has it. The sidecar works on the node's
/// files and ends its process, so it is the same user; whoever only listens must not be.
fn readers(chain: &Chain) -> Vec<&'static str> {
    let seid = chain.container(NODE, "seid");
    let reads = |name: &&str| {
        let cluster = &chain.world.cluster;
        let key = "/.sei/config/priv_validator_key.json";
        let reads = cluster.reaches(&chain.container(NODE, name), &seid, key);
        reads.expect("a try")
    };
    CONTAINERS.into_iter().filter(reads).collect()
}

/// Nothing that is kept of what containers and the operator say has a key in it.
fn told_nowhere(chain: &Chain, keys: &BTreeMap<&str, &str>) {
    let seen = chain.world.installer.look(&chain.name);
    for (name, key) in keys {
        assert!(!seen.contains(key), "the {name} is told");
    }
}

/// Who the sidecar says the node is among peers, and who it is.
async fn identities(chain: &Chain) -> (Value, Value) {
    account(chain, "reader", true);
    let audience = format!("keelson-sidecar/{}/{NODE}", chain.name);
    let bearer = format!("Bearer {}", token(chain, "reader", &audience));
    let sidecar = chain.address(NODE, Port::Api).await.expect("an address");
    let headers = [("Authorization", bearer.as_str())];
    let told = chain
        .world
        .cluster
        .ask(sidecar, "GET /v0/node-id", &headers, "");
    let read = |text: String| -> Value { serde_json::from_str(&text).expect("JSON") };
    let told = read(told.expect("an answer").1)["nodeId"].clone();
    let status = chain.get(NODE, Port::Rpc, "/status").await;
    let is = read(status.expect("a status").1)["node_info"]["id"].clone();
    (told, is)
}

/// Another validator with the same signing key and the first one's volume.
fn second(chain: &Chain) -> Value {
    let mut node = chain.validator();
    node["metadata"]["name"] = json!("second");
    node["spec"]["dataVolume"] = json!({ "import": { "pvcName": "data-validator" } });
    node
}

fn is_refused(node: &SeiNode) -> bool {
    let conditions = node.status.iter().flat_map(|it| &it.conditions);
    let mut refused = conditions
        .into_iter()
        .filter(|it| it.type_ == "SpecValid" && it.status == "False");
    refused.any(|it| it.reason == "SigningKeyInUse" && it.message.contains("SeiNode validator"))
}

/// The pods of the chain's namespace that have the signing key, by one look.
async fn signers(chain: &Chain) -> Vec<String> {
    let pods = Api::<Pod>::namespaced(chain.world.cluster.client(), &chain.name);
    let listed = pods.list(&ListParams::default()).await.expect("pods");
    let signs = |pod: &Pod| {
        let volumes = pod.spec.iter().flat_map(|it| it.volumes.iter().flatten());
        let mut secrets = volumes.filter_map(|it| it.secret.as_ref()?.secret_name.as_deref());
        secrets.any(|it| it == "validator-signing-key")
    };
    let signing = listed.items.into_iter().filter(signs);
    signing.filter_map(|it| it.metadata.name).collect()
}
