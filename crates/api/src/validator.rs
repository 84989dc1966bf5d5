//! A validator: its keys, and its part in a genesis ceremony.
//!
//! A key's Secret is named once and for good. A node that synced without keys may be given them
//! (it rolls); a node that has a key never gets another under the same name, because two processes
//! signing with one key, or one process with two histories, is slashed. The contents of the Secrets
//! are checked by the operator, which alone can read them.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::snapshot::SnapshotSource;

/// A node that takes part in consensus.
// Rules about a key stand here, at its parent, and test presence on both sides: a rule on the key
// itself does not run when the key is removed. The validator block itself cannot be removed, because
// the mode is fixed.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.signingKey) == has(self.nodeKey)").message(
    "signingKey and nodeKey belong together: set both or neither."
))]
#[x_kube(validation = Rule::new(
    "!has(self.signingKey) || !has(self.nodeKey) || self.signingKey.secret.secretName != self.nodeKey.secret.secretName"
).message("signingKey and nodeKey must name different Secrets: keep each key in a Secret of its own."))]
#[x_kube(validation = Rule::new(
    "!has(self.signingKey) || !has(self.operatorKeyring) || self.signingKey.secret.secretName != self.operatorKeyring.secret.secretName"
).message("signingKey and operatorKeyring must name different Secrets: keep each key in a Secret of its own."))]
#[x_kube(validation = Rule::new(
    "!has(self.nodeKey) || !has(self.operatorKeyring) || self.nodeKey.secret.secretName != self.operatorKeyring.secret.secretName"
).message("nodeKey and operatorKeyring must name different Secrets: keep each key in a Secret of its own."))]
#[x_kube(validation = Rule::new(
    "!has(self.signingKey) || !has(self.operatorKeyring) || !has(self.operatorKeyring.secret.passphraseSecretRef) || self.signingKey.secret.secretName != self.operatorKeyring.secret.passphraseSecretRef.secretName"
).message("signingKey and the keyring's passphrase must name different Secrets: keep the passphrase in a Secret of its own."))]
#[x_kube(validation = Rule::new(
    "!has(self.nodeKey) || !has(self.operatorKeyring) || !has(self.operatorKeyring.secret.passphraseSecretRef) || self.nodeKey.secret.secretName != self.operatorKeyring.secret.passphraseSecretRef.secretName"
).message("nodeKey and the keyring's passphrase must name different Secrets: keep the passphrase in a Secret of its own."))]
#[x_kube(validation = Rule::new(
    "!has(self.operatorKeyring) || !has(self.operatorKeyring.secret.passphraseSecretRef) || self.operatorKeyring.secret.secretName != self.operatorKeyring.secret.passphraseSecretRef.secretName"
).message("operatorKeyring and its passphrase must name different Secrets: keep the passphrase in a Secret of its own."))]
#[x_kube(validation = Rule::new(
    "!has(oldSelf.signingKey) || (has(self.signingKey) && self.signingKey.secret.secretName == oldSelf.signingKey.secret.secretName)"
).message("The Secret of signingKey cannot be changed or removed once set: create a new SeiNode for another key."))]
#[x_kube(validation = Rule::new(
    "!has(oldSelf.nodeKey) || (has(self.nodeKey) && self.nodeKey.secret.secretName == oldSelf.nodeKey.secret.secretName)"
).message("The Secret of nodeKey cannot be changed or removed once set: create a new SeiNode for another key."))]
#[x_kube(validation = Rule::new(
    "!has(oldSelf.operatorKeyring) || (has(self.operatorKeyring) && self.operatorKeyring.secret.secretName == oldSelf.operatorKeyring.secret.secretName)"
).message("The Secret of operatorKeyring cannot be changed or removed once set: create a new SeiNode for another keyring."))]
#[x_kube(validation = Rule::new(
    "!has(oldSelf.operatorKeyring) || !has(oldSelf.operatorKeyring.secret.passphraseSecretRef) || (has(self.operatorKeyring) && has(self.operatorKeyring.secret.passphraseSecretRef) && self.operatorKeyring.secret.passphraseSecretRef.secretName == oldSelf.operatorKeyring.secret.passphraseSecretRef.secretName)"
).message("The Secret of the keyring's passphrase cannot be changed or removed once set: create a new SeiNode for another keyring."))]
#[serde(rename_all = "camelCase")]
pub struct ValidatorSpec {
    /// Where the node's first state comes from. Absent: it syncs every block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotSource>,

    /// The node's part in a genesis ceremony. Written by a SeiNodeDeployment, not by people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis_ceremony: Option<GenesisCeremony>,

    /// The key the node signs blocks with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<ConsensusKey>,

    /// The key the node is known by among its peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_key: Option<ConsensusKey>,

    /// The keyring the validator's operator signs transactions with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_keyring: Option<OperatorKeyring>,
}

/// A key file kept in a Secret: `priv_validator_key.json` or `node_key.json`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsensusKey {
    /// The Secret that holds the key file.
    pub secret: KeySecret,
}

/// A Secret of the node's namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeySecret {
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub secret_name: String,
}

/// The keyring the validator's operator signs transactions with.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorKeyring {
    /// The Secret that holds the keyring.
    pub secret: KeyringSecret,
}

/// A file keyring kept in a Secret: one data key per file (`<key>.info`, `<hex>.address`).
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyringSecret {
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub secret_name: String,

    /// Key of the keyring to sign with. May be changed.
    #[serde(default = "default_key_name")]
    #[schemars(length(max = 64), regex(pattern = r"^[a-zA-Z0-9_-]+$"))]
    pub key_name: String,

    /// The passphrase the keyring is locked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase_secret_ref: Option<PassphraseSecretRef>,
}

/// Key of the keyring used where the spec names none.
pub const DEFAULT_KEY_NAME: &str = "node_admin";

fn default_key_name() -> String {
    DEFAULT_KEY_NAME.to_owned()
}

impl Default for KeyringSecret {
    fn default() -> Self {
        Self {
            secret_name: String::new(),
            key_name: default_key_name(),
            passphrase_secret_ref: None,
        }
    }
}

/// A passphrase kept in a Secret.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassphraseSecretRef {
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub secret_name: String,

    /// Data key of the Secret that holds the passphrase.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// A node's part in a genesis ceremony. Filled by the SeiNodeDeployment that runs the ceremony.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenesisCeremony {
    /// Chain to be born.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_id: Option<String>,

    /// What the validator stakes, for example `10000000usei`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staking_amount: Option<String>,

    /// What the validator's account holds at genesis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_balance: Option<String>,

    /// Deprecated: read by nobody, kept so that existing objects apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis_params: Option<String>,

    /// Ordinal of the node among the ceremony's validators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub index: Option<i32>,
}

impl ValidatorSpec {
    /// Every Secret the validator's keys live in, by the name of the field that says so.
    pub fn key_secrets(&self) -> BTreeMap<&'static str, &str> {
        let keyring = self.operator_keyring.as_ref().map(|k| &k.secret);
        let passphrase = keyring.and_then(|k| k.passphrase_secret_ref.as_ref());
        [
            (
                "signingKey",
                self.signing_key
                    .as_ref()
                    .map(|k| k.secret.secret_name.as_str()),
            ),
            (
                "nodeKey",
                self.node_key
                    .as_ref()
                    .map(|k| k.secret.secret_name.as_str()),
            ),
            ("operatorKeyring", keyring.map(|k| k.secret_name.as_str())),
            (
                "passphraseSecretRef",
                passphrase.map(|p| p.secret_name.as_str()),
            ),
        ]
        .into_iter()
        .filter_map(|(field, name)| Some((field, name?)))
        .collect()
    }
}
