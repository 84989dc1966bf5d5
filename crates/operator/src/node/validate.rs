//! Whether a spec can be carried out, as far as admission cannot say.
//!
//! Pure: who else uses a key is told. What is refused is named with what to change; what is running
//! goes on as it is.

use keelson_api::SeiNode;
use keelson_api::node_condition::NodeReason;
use keelson_seid_config::{Severity, check_intent};

use super::desired::Desired;
use crate::platform::Settings;

/// Why a spec is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In one word.
    pub reason: NodeReason,
    /// In a sentence, with what to change.
    pub message: String,
}

impl Refusal {
    /// A spec that makes no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            reason: NodeReason::Invalid,
            message: message.into(),
        }
    }
}

/// Why this spec is refused; nothing where it can be carried out. `holder` is the other node that has
/// its signing key.
pub fn validate(
    node: &SeiNode,
    desired: &Desired,
    settings: &Settings,
    holder: Option<&str>,
) -> Option<Refusal> {
    overrides(desired)
        .or_else(|| snapshot(node))
        .or_else(|| ceremony(node))
        .or_else(|| issuer(node, settings))
        .or_else(|| signing_key(node, holder))
}

/// What the spec says that is no longer carried out.
pub fn deprecated(node: &SeiNode) -> Option<String> {
    let replayer = node.spec.replayer.as_ref();
    let validator = node.spec.validator.as_ref();
    let ceremony = validator.and_then(|it| it.genesis_ceremony.as_ref());
    let said: Vec<&str> = [
        (
            node.spec.entrypoint.is_some(),
            "entrypoint is not run, by the original neither: remove it",
        ),
        (
            replayer.is_some_and(|it| it.result_export.is_some()),
            "replayer.resultExport is not carried out, by the original neither: remove it",
        ),
        (
            ceremony.is_some_and(|it| it.genesis_params.is_some()),
            "validator.genesisCeremony.genesisParams is read by nobody: remove it",
        ),
    ]
    .into_iter()
    .filter_map(|(is_set, sentence)| is_set.then_some(sentence))
    .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn overrides(desired: &Desired) -> Option<Refusal> {
    let found = check_intent(&desired.intent).diagnostics;
    let wrong: Vec<String> = found
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .map(|it| it.message.clone())
        .collect();
    (!wrong.is_empty()).then(|| Refusal::invalid(format!("spec.overrides: {}", wrong.join("; "))))
}

fn snapshot(node: &SeiNode) -> Option<Refusal> {
    let source = node.spec.snapshot();
    let bootstraps = source.and_then(|it| it.bootstrap_image.as_ref());
    if bootstraps.is_some_and(|image| !image.is_empty()) && source.is_some_and(|it| it.s3.is_none())
    {
        return Some(Refusal::invalid(
            "snapshot.bootstrapImage replays a snapshot up to a height: set snapshot.s3.targetHeight, or remove it",
        ));
    }
    let made = node.spec.snapshot_generation()?.tendermint.as_ref()?;
    // The newest may be incomplete while it is uploaded.
    (made.publish.is_some() && made.keep_recent < 2).then(|| {
        Refusal::invalid(
            "snapshotGeneration.tendermint.publish needs two snapshots on the volume: set keepRecent to 2 or more",
        )
    })
}

fn ceremony(node: &SeiNode) -> Option<Refusal> {
    let validator = node.spec.validator.as_ref()?;
    let both = validator.genesis_ceremony.is_some() && validator.signing_key.is_some();
    both.then(|| {
        Refusal::invalid(
            "validator.genesisCeremony makes the node's keys: remove signingKey and nodeKey, or the ceremony",
        )
    })
}

fn issuer(node: &SeiNode, settings: &Settings) -> Option<Refusal> {
    let (name, kind) = node.spec.sidecar.as_ref()?.tls.as_ref()?.issuer()?;
    (!settings.allows(kind, name)).then(|| Refusal {
        reason: NodeReason::IssuerNotAllowed,
        message: format!(
            "{kind} {name} is not on the platform's list of issuers: choose one that is, or have it added"
        ),
    })
}

fn signing_key(node: &SeiNode, holder: Option<&str>) -> Option<Refusal> {
    let holder = holder?;
    let key = node.spec.validator.as_ref()?.signing_key.as_ref()?;
    Some(Refusal {
        reason: NodeReason::SigningKeyInUse,
        message: format!(
            "SeiNode {holder} has the signing key of Secret {}: two nodes that sign with one key are slashed, so this one waits until the other is gone",
            key.secret.secret_name
        ),
    })
}
