//! Secrets with keys: what fits, what may still come, and what somebody must mend.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use keelson_api::validator::PassphraseSecretRef;
use keelson_operator::key::{Flaw, keyring, node_key, signing_key};

const MATERIAL: &str = "bm90LWZvci1hbnlib2R5";

fn secret(files: &[(&str, &str)]) -> Secret {
    let file = |(name, content): &(&str, &str)| {
        let content = ByteString(content.as_bytes().to_vec());
        ((*name).to_owned(), content)
    };
    Secret {
        data: Some(files.iter().map(file).collect()),
        ..Secret::default()
    }
}

fn terminating(mut secret: Secret) -> Secret {
    secret.metadata = ObjectMeta {
        deletion_timestamp: Some(Time(k8s_openapi::jiff::Timestamp::UNIX_EPOCH)),
        ..ObjectMeta::default()
    };
    secret
}

fn signing() -> String {
    format!(
        r#"{{"address":"AB12","pub_key":{{"type":"tendermint/PubKeyEd25519","value":"cHVi"}},"priv_key":{{"type":"tendermint/PrivKeyEd25519","value":"{MATERIAL}"}}}}"#
    )
}

fn node() -> String {
    format!(r#"{{"priv_key":{{"type":"tendermint/PrivKeyEd25519","value":"{MATERIAL}"}}}}"#)
}

/// What is told; whether waiting may help is the first word.
fn told(checked: Result<(), Flaw>) -> String {
    let text = match checked {
        Ok(()) => "fits".to_owned(),
        Err(Flaw::NotThere(sentence)) => format!("wait: {sentence}"),
        Err(Flaw::Unfit(sentence)) => format!("mend: {sentence}"),
    };
    assert!(!text.contains(MATERIAL), "a key is told: {text}");
    text
}

#[test]
fn a_signing_key_is_a_file_with_address_and_both_keys() {
    let with = |content: &str| Some(secret(&[("priv_validator_key.json", content)]));
    let again = "store the signing key in it as the node wrote it";
    for (secret, expected) in [
        (with(&signing()), "fits".to_owned()),
        (
            None,
            "wait: waiting for Secret val with the signing key: it does not exist yet".to_owned(),
        ),
        (
            with(&signing()).map(terminating),
            "wait: Secret val with the signing key is being deleted: waiting for another of its name".to_owned(),
        ),
        (
            Some(Secret::default()),
            "mend: Secret val has no priv_validator_key.json: store the signing key in it under that key".to_owned(),
        ),
        (
            Some(secret(&[("node_key.json", &signing())])),
            "mend: Secret val has no priv_validator_key.json: store the signing key in it under that key".to_owned(),
        ),
        (
            with(""),
            "mend: priv_validator_key.json of Secret val is empty: store the signing key in it".to_owned(),
        ),
        (
            with(&signing()[1..]),
            format!("mend: priv_validator_key.json of Secret val is not JSON: {again}"),
        ),
        (
            with(&node()),
            format!("mend: priv_validator_key.json of Secret val has no text at address, pub_key.type, pub_key.value: {again}"),
        ),
        (
            with(&signing().replace(MATERIAL, "")),
            format!("mend: priv_validator_key.json of Secret val has no text at priv_key.value: {again}"),
        ),
        (
            with(&signing().replace(r#""tendermint/PrivKeyEd25519""#, "7")),
            format!("mend: priv_validator_key.json of Secret val has no text at priv_key.type: {again}"),
        ),
        (
            with(&format!("\"{MATERIAL}\"")),
            format!("mend: priv_validator_key.json of Secret val has no text at address, pub_key.type, pub_key.value, priv_key.type, priv_key.value: {again}"),
        ),
    ] {
        assert_eq!(told(signing_key(secret.as_ref(), "val")), expected);
    }
}

#[test]
fn a_node_key_is_a_file_with_a_private_key() {
    let with = |content: &str| Some(secret(&[("node_key.json", content)]));
    for (secret, expected) in [
        (with(&node()), "fits"),
        (
            None,
            "wait: waiting for Secret peer with the node key: it does not exist yet",
        ),
        (
            with(&node()).map(terminating),
            "wait: Secret peer with the node key is being deleted: waiting for another of its name",
        ),
        (
            Some(secret(&[("key", &node())])),
            "mend: Secret peer has no node_key.json: store the node key in it under that key",
        ),
        (
            with("{}"),
            "mend: node_key.json of Secret peer has no text at priv_key.type, priv_key.value: store the node key in it as the node wrote it",
        ),
        (
            with(MATERIAL),
            "mend: node_key.json of Secret peer is not JSON: store the node key in it as the node wrote it",
        ),
    ] {
        assert_eq!(told(node_key(secret.as_ref(), "peer")), expected);
    }
}

#[test]
fn a_key_that_names_no_secret_does_not_wait_for_one() {
    assert_eq!(
        told(signing_key(None, "")),
        "mend: the signing key names no Secret: set its secretName"
    );
    assert_eq!(
        told(node_key(None, "")),
        "mend: the node key names no Secret: set its secretName"
    );
    let keyring = keyring(None, "", None, "node_admin");
    assert_eq!(
        told(keyring),
        "mend: the operator keyring names no Secret: set its secretName"
    );
}

#[test]
fn a_keyring_has_keys_and_addresses_and_the_key_to_sign_with() {
    let ring = |files: &[(&str, &str)]| Some(secret(files));
    let good = [
        ("node_admin.info", MATERIAL),
        ("ab12.address", MATERIAL),
        ("keyhash", ""),
    ];
    for (secret, expected) in [
        (ring(&good), "fits"),
        (
            None,
            "wait: waiting for Secret ring with the operator keyring: it does not exist yet",
        ),
        (
            ring(&good).map(terminating),
            "wait: Secret ring with the operator keyring is being deleted: waiting for another of its name",
        ),
        (
            ring(&[("ab12.address", "x")]),
            "mend: Secret ring of the operator keyring has no key file (*.info): store every file of the keyring-file folder in it",
        ),
        (
            ring(&[("node_admin.info", "x")]),
            "mend: Secret ring of the operator keyring has no address file (*.address): store every file of the keyring-file folder in it",
        ),
        (
            ring(&[("node_admin.info", ""), ("ab12.address", "x")]),
            "mend: node_admin.info of Secret ring is empty: store the operator keyring in it again",
        ),
        (
            ring(&[("node_admin.info", "x"), ("ab12.address", "")]),
            "mend: ab12.address of Secret ring is empty: store the operator keyring in it again",
        ),
        (
            ring(&[("other.info", "x"), ("ab12.address", "x")]),
            "mend: Secret ring of the operator keyring has no node_admin.info: store the key node_admin in it, or name another in spec.validator.operatorKeyring.secret.keyName",
        ),
    ] {
        assert_eq!(
            told(keyring(secret.as_ref(), "ring", None, "node_admin")),
            expected
        );
    }
}

#[test]
fn a_keyring_waits_for_its_passphrase_and_refuses_an_empty_one() {
    let ring = secret(&[("node_admin.info", "x"), ("ab12.address", "x")]);
    let reference = PassphraseSecretRef {
        secret_name: "words".to_owned(),
        key: "passphrase".to_owned(),
    };
    for (words, expected) in [
        (Some(secret(&[("passphrase", MATERIAL)])), "fits"),
        (
            None,
            "wait: waiting for Secret words with the keyring's passphrase: it does not exist yet",
        ),
        (
            Some(terminating(secret(&[("passphrase", MATERIAL)]))),
            "wait: Secret words with the keyring's passphrase is being deleted: waiting for another of its name",
        ),
        (
            Some(secret(&[("password", MATERIAL)])),
            "mend: Secret words has no passphrase: store the keyring's passphrase in it under that key",
        ),
        (
            Some(secret(&[("passphrase", "")])),
            "mend: passphrase of Secret words is empty: store the keyring's passphrase in it",
        ),
    ] {
        let passphrase = Some((&reference, words.as_ref()));
        assert_eq!(
            told(keyring(Some(&ring), "ring", passphrase, "node_admin")),
            expected
        );
    }
}
