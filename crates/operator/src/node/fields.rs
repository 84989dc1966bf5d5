//! What an edit of each field of a running SeiNode does: one table, for people and for tests.
//!
//! The controller does not read it. A test walks the schema and fails where a field has no row or a
//! row no field, and each row has a test that edits a running node.

use Policy::{Hot, InPlace, NextStart, NotDone, Refuse, RestartProcess, Roll, SetUp};

/// How an edit of a field reaches a running node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing is started again.
    Hot,
    /// One container beside the process is replaced in the running pod.
    InPlace,
    /// The process is started again, in its pod.
    RestartProcess,
    /// It is written down, and takes effect whenever the process next starts.
    NextStart,
    /// The pod is replaced, once for all fields that were edited together.
    Roll,
    /// Admission refuses it.
    Refuse,
    /// It is used when a node is set up, and does nothing after that.
    SetUp,
    /// It is accepted for the sake of objects that have it, and never carried out.
    NotDone,
}

impl Policy {
    /// The words for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::InPlace => "in place",
            Self::RestartProcess => "restart process",
            Self::NextStart => "next start",
            Self::Roll => "roll",
            Self::Refuse => "refuse",
            Self::SetUp => "only at set-up",
            Self::NotDone => "not carried out",
        }
    }
}

/// One field of a spec.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where it is in the spec; `[]` is every entry of a list.
    pub path: &'static str,
    /// How an edit reaches a running node.
    pub policy: Policy,
    /// What happens, in a sentence.
    pub effect: &'static str,
}

const fn row(path: &'static str, policy: Policy, effect: &'static str) -> Field {
    Field {
        path,
        policy,
        effect,
    }
}

/// Every field of a SeiNode's spec.
pub const FIELDS: &[Field] = &[
    row(
        "chainId",
        Refuse,
        "The volume holds that chain's blocks: create a new SeiNode for another chain.",
    ),
    row(
        "image",
        Roll,
        "The pod is replaced once, and its process starts with the other image.",
    ),
    row(
        "peers[].ec2Tags.region",
        NextStart,
        "The sidecar looks for the machines and writes them down; the process has them when it next starts.",
    ),
    row(
        "peers[].ec2Tags.tags",
        NextStart,
        "The sidecar looks for the machines and writes them down; the process has them when it next starts.",
    ),
    row(
        "peers[].static.addresses",
        NextStart,
        "Written down at once; the process has them when it next starts.",
    ),
    row(
        "peers[].label.selector",
        NextStart,
        "Written down whenever a node comes, goes or is labelled anew; the process has them when it next starts.",
    ),
    row(
        "peers[].label.namespace",
        NextStart,
        "Where nodes with the labels are looked for, the node's own namespace if absent.",
    ),
    row(
        "entrypoint.command",
        NotDone,
        "Nobody runs it; SpecValid says so.",
    ),
    row(
        "entrypoint.args",
        NotDone,
        "Nobody runs it; SpecValid says so.",
    ),
    row(
        "overrides",
        RestartProcess,
        "config-patch, config-validate, restart-seid: the process starts again once, in its pod.",
    ),
    row(
        "sidecar.image",
        InPlace,
        "That container alone is replaced, and the template follows; one that does not start is put back.",
    ),
    row("sidecar.port", Roll, "The pod is replaced once."),
    row(
        "sidecar.resources.limits",
        Roll,
        "The pod is replaced once; without it the sidecar has the platform's size.",
    ),
    row(
        "sidecar.resources.requests",
        Roll,
        "The pod is replaced once; without it the sidecar has the platform's size.",
    ),
    row(
        "sidecar.resources.claims[].name",
        Refuse,
        "A node's pod has no resource claims that could be named: remove it.",
    ),
    row(
        "sidecar.resources.claims[].request",
        Refuse,
        "A node's pod has no resource claims that could be named: remove it.",
    ),
    row(
        "sidecar.tls.issuerName",
        Hot,
        "A certificate is ordered and the proxy serves it, or another, or none; a proxy that follows no files costs one pod.",
    ),
    row("sidecar.tls.issuerKind", Hot, "As issuerName."),
    row(
        "sidecar.tls.secretName",
        Roll,
        "The pod mounts that Secret, so it is replaced once; not if it is the Secret the operator would order.",
    ),
    row("podLabels", Roll, "The pod is replaced once."),
    row(
        "dataVolume.import.pvcName",
        Refuse,
        "The node has its data there: create a new SeiNode for another volume.",
    ),
    row(
        "dataVolume.retainOnDelete",
        Hot,
        "The claim gets the node as its owner, or loses it.",
    ),
    row(
        "externalAddress",
        RestartProcess,
        "As an override: the process starts again once, in its pod.",
    ),
    row(
        "paused",
        Hot,
        "No plan is begun or continued while it is true.",
    ),
    row(
        "fullNode",
        Refuse,
        "The mode decides what is on the volume: create a new SeiNode with the other mode.",
    ),
    row(
        "archive",
        Refuse,
        "The mode decides what is on the volume: create a new SeiNode with the other mode.",
    ),
    row(
        "replayer",
        Refuse,
        "The mode decides what is on the volume: create a new SeiNode with the other mode.",
    ),
    row(
        "validator",
        Refuse,
        "The mode decides what is on the volume: create a new SeiNode with the other mode.",
    ),
    row(
        "fullNode.snapshot.s3.targetHeight",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "fullNode.snapshot.stateSync",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "fullNode.snapshot.trustPeriod",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "fullNode.snapshot.backfillBlocks",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "fullNode.snapshot.bootstrapImage",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "fullNode.snapshot.rpcServers",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "replayer.snapshot.s3.targetHeight",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "replayer.snapshot.stateSync",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "replayer.snapshot.trustPeriod",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "replayer.snapshot.backfillBlocks",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "replayer.snapshot.bootstrapImage",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "replayer.snapshot.rpcServers",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.snapshot.s3.targetHeight",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.snapshot.stateSync",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.snapshot.trustPeriod",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.snapshot.backfillBlocks",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.snapshot.bootstrapImage",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.snapshot.rpcServers",
        SetUp,
        "Where the first state comes from; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "fullNode.snapshotGeneration.tendermint.keepRecent",
        RestartProcess,
        "As an override: the process starts again once, in its pod.",
    ),
    row(
        "fullNode.snapshotGeneration.tendermint.publish",
        Hot,
        "The sidecar begins to upload snapshots, or ends it.",
    ),
    row(
        "archive.snapshotGeneration.tendermint.keepRecent",
        RestartProcess,
        "As an override: the process starts again once, in its pod.",
    ),
    row(
        "archive.snapshotGeneration.tendermint.publish",
        Hot,
        "The sidecar begins to upload snapshots, or ends it.",
    ),
    row(
        "replayer.resultExport.shadowResult.canonicalRpc",
        NotDone,
        "Nobody compares results; SpecValid says so.",
    ),
    row(
        "validator.genesisCeremony.chainId",
        SetUp,
        "The node's part in its chain's birth; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.genesisCeremony.stakingAmount",
        SetUp,
        "The node's part in its chain's birth; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.genesisCeremony.accountBalance",
        SetUp,
        "The node's part in its chain's birth; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.genesisCeremony.index",
        SetUp,
        "The node's part in its chain's birth; afterwards SpecValid says that the edit does nothing.",
    ),
    row(
        "validator.genesisCeremony.genesisParams",
        NotDone,
        "Nobody reads it; SpecValid says so.",
    ),
    row(
        "validator.signingKey.secret.secretName",
        Refuse,
        "Given to a node without one it rolls the pod once; after that it is fixed: create a new SeiNode for another key.",
    ),
    row(
        "validator.nodeKey.secret.secretName",
        Refuse,
        "Given to a node without one it rolls the pod once; after that it is fixed: create a new SeiNode for another key.",
    ),
    row(
        "validator.operatorKeyring.secret.secretName",
        Refuse,
        "Given to a node without one it rolls the pod once; after that it is fixed: create a new SeiNode for another keyring.",
    ),
    row(
        "validator.operatorKeyring.secret.keyName",
        Hot,
        "Which key the tasks of people sign with; no pod has it.",
    ),
    row(
        "validator.operatorKeyring.secret.passphraseSecretRef.secretName",
        Refuse,
        "Given to a keyring without one it rolls the pod once; after that it is fixed: create a new SeiNode for another keyring.",
    ),
    row(
        "validator.operatorKeyring.secret.passphraseSecretRef.key",
        Roll,
        "The pod is replaced once, with the other entry of the Secret.",
    ),
];

/// The table as a page of the documentation.
pub fn page() -> String {
    let mut page = "# What an edit of a running SeiNode does\n\n\
        Generated from the operator's own table (`make generate`). Fields that are edited together are\n\
        applied together: one pod at most is replaced for all of them.\n\n\
        | Field of the spec | Policy | What happens |\n|---|---|---|\n"
        .to_owned();
    for field in FIELDS {
        let policy = field.policy.as_str();
        page += &format!("| `{}` | {policy} | {} |\n", field.path, field.effect);
    }
    page
}
