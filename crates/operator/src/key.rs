//! Whether the Secrets with a validator's keys have the shape the node needs.
//!
//! Only the shape: nothing is decrypted and no key is used. No sentence here repeats a byte of what
//! a Secret holds, because sentences end in conditions and logs.

use k8s_openapi::api::core::v1::Secret;
use keelson_api::validator::PassphraseSecretRef;
use serde_json::Value;

pub use crate::flaw::Flaw;

/// Checks the Secret `name` of a signing key.
pub fn signing_key(secret: Option<&Secret>, name: &str) -> Result<(), Flaw> {
    key_file(
        secret,
        name,
        "the signing key",
        "priv_validator_key.json",
        &[
            "address",
            "pub_key.type",
            "pub_key.value",
            "priv_key.type",
            "priv_key.value",
        ],
    )
}

/// Checks the Secret `name` of a node key.
pub fn node_key(secret: Option<&Secret>, name: &str) -> Result<(), Flaw> {
    key_file(
        secret,
        name,
        "the node key",
        "node_key.json",
        &["priv_key.type", "priv_key.value"],
    )
}

/// Checks the Secret `name` of a file keyring, that it has the key `key_name`, and the Secret of its
/// passphrase where one is named.
pub fn keyring(
    secret: Option<&Secret>,
    name: &str,
    passphrase: Option<(&PassphraseSecretRef, Option<&Secret>)>,
    key_name: &str,
) -> Result<(), Flaw> {
    let what = "the operator keyring";
    let secret = present(secret, name, what)?;
    let files = |end| files(secret, end);
    for (end, meaning) in [(".info", "key"), (".address", "address")] {
        if files(end).next().is_none() {
            return unfit(format!(
                "Secret {name} of {what} has no {meaning} file (*{end}): store every file of the keyring-file folder in it"
            ));
        }
    }
    if let Some((file, _)) = [".info", ".address"]
        .into_iter()
        .flat_map(files)
        .find(|(_, content)| content.is_empty())
    {
        return unfit(format!(
            "{file} of Secret {name} is empty: store {what} in it again"
        ));
    }
    let wanted = format!("{key_name}.info");
    if !files(".info").any(|(file, _)| file == wanted) {
        return unfit(format!(
            "Secret {name} of {what} has no {wanted}: store the key {key_name} in it, or name another in spec.validator.operatorKeyring.secret.keyName"
        ));
    }
    match passphrase {
        Some((reference, secret)) => passphrase_of(reference, secret),
        None => Ok(()),
    }
}

fn passphrase_of(reference: &PassphraseSecretRef, secret: Option<&Secret>) -> Result<(), Flaw> {
    let (name, key) = (&reference.secret_name, &reference.key);
    content(secret, name, "the keyring's passphrase", key).map(drop)
}

/// A key that is one JSON file in a Secret.
fn key_file(
    secret: Option<&Secret>,
    name: &str,
    what: &str,
    file: &str,
    fields: &[&str],
) -> Result<(), Flaw> {
    let content = content(secret, name, what, file)?;
    let Ok(document) = serde_json::from_slice::<Value>(content) else {
        return unfit(format!(
            "{file} of Secret {name} is not JSON: store {what} in it as the node wrote it"
        ));
    };
    let lacking: Vec<_> = fields
        .iter()
        .copied()
        .filter(|field| !is_text(&document, field))
        .collect();
    if lacking.is_empty() {
        return Ok(());
    }
    unfit(format!(
        "{file} of Secret {name} has no text at {}: store {what} in it as the node wrote it",
        lacking.join(", ")
    ))
}

/// Whether a document has a text that is not empty at a dotted path.
fn is_text(document: &Value, path: &str) -> bool {
    let found = path
        .split('.')
        .try_fold(document, |value, key| value.get(key));
    found
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty())
}

/// What a Secret holds under a key, and not nothing.
fn content<'a>(
    secret: Option<&'a Secret>,
    name: &str,
    what: &str,
    key: &str,
) -> Result<&'a [u8], Flaw> {
    let secret = present(secret, name, what)?;
    let held = secret.data.as_ref().and_then(|data| data.get(key));
    match held {
        Some(content) if !content.0.is_empty() => Ok(&content.0),
        Some(_) => unfit(format!(
            "{key} of Secret {name} is empty: store {what} in it"
        )),
        None => unfit(format!(
            "Secret {name} has no {key}: store {what} in it under that key"
        )),
    }
}

/// The Secret, if it is there to stay.
fn present<'a>(secret: Option<&'a Secret>, name: &str, what: &str) -> Result<&'a Secret, Flaw> {
    if name.is_empty() {
        return unfit(format!("{what} names no Secret: set its secretName"));
    }
    match secret {
        None => Err(Flaw::NotThere(format!(
            "waiting for Secret {name} with {what}: it does not exist yet"
        ))),
        Some(secret) if secret.metadata.deletion_timestamp.is_some() => Err(Flaw::NotThere(
            format!("Secret {name} with {what} is being deleted: waiting for another of its name"),
        )),
        Some(secret) => Ok(secret),
    }
}

/// Files of a keyring with this ending, and what they hold.
fn files<'a>(secret: &'a Secret, end: &str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    let all = secret.data.iter().flatten();
    all.filter(move |(name, _)| name.ends_with(end))
        .map(|(name, content)| (name.as_str(), content.0.as_slice()))
}

fn unfit<T>(sentence: String) -> Result<T, Flaw> {
    Err(Flaw::Unfit(sentence))
}
