//! What each cause asks for: the tables of all plans.
//!
//! Each cause is a set of steps and knows nothing of the others; a plan is their union. In which
//! order steps run is for [`crate::task`].

use std::collections::BTreeSet;

use crate::drift::Drift;
use crate::observed::Observed;
use crate::target::{Source, Start, Target};
use crate::task::{Stage, Step, Task};

/// What a set of causes asks for, in order.
pub(crate) fn steps(causes: &BTreeSet<Drift>, want: &Target, have: &Observed) -> BTreeSet<Step> {
    let mut steps: BTreeSet<Step> = causes
        .iter()
        .flat_map(|cause| cause.asks(want, have))
        .collect();
    // A template alone that differs, of an edit taken back, replaces no pod.
    let rolls = have
        .running
        .as_ref()
        .is_some_and(|running| running.pod.rolls_to(&want.pod));
    let has = |task| {
        steps
            .iter()
            .any(|step: &Step| step.stage == Stage::Node && step.task == task)
    };
    // A new pod has the images of the template, and its process starts anyway.
    let dropped_by_roll = if rolls {
        &[Task::PatchImages, Task::RestartProcess][..]
    } else {
        &[]
    };
    // Who writes the files does not have to change them too.
    let dropped_by_apply = if has(Task::ConfigApply) {
        &[Task::ConfigPatch][..]
    } else {
        &[]
    };
    steps.retain(|step| {
        !dropped_by_roll.contains(&step.task) && !dropped_by_apply.contains(&step.task)
    });
    steps
}

impl Drift {
    /// What one cause asks for. Order does not matter here.
    fn asks(self, want: &Target, have: &Observed) -> Vec<Step> {
        use Task::*;
        match self {
            Self::Setup => setup(want),
            Self::Bootstrap => bootstrap(want),
            Self::Leftover => at(Stage::Bootstrap, &[TeardownBootstrap]),
            Self::Volume => at(Stage::Prepare, &[EnsureVolume]),
            Self::ProxyConfig => at(Stage::Prepare, &[ApplyProxyConfig]),
            Self::NetworkPolicy => at(Stage::Prepare, &[ApplyNetworkPolicy]),
            Self::Service => at(Stage::Node, &[ApplyService]),
            Self::Workload => [
                before_a_pod(want),
                at(
                    Stage::Node,
                    &[ApplyStatefulSet, ApplyService, ObserveImage, MarkReady],
                ),
            ]
            .concat(),
            Self::Image | Self::Pod => [
                before_a_pod(want),
                at(
                    Stage::Node,
                    &[
                        ApplyStatefulSet,
                        ApplyService,
                        ReplacePod,
                        ObserveImage,
                        MarkReady,
                    ],
                ),
            ]
            .concat(),
            Self::SidecarImage | Self::ProxyImage => [
                at(Stage::Prepare, &[ApplyProxyConfig]),
                at(
                    Stage::Node,
                    &[ApplyStatefulSet, PatchImages, ObserveImage, MarkReady],
                ),
            ]
            .concat(),
            Self::TlsOn | Self::TlsOff | Self::TlsMount => tls(want, have),
            Self::Settings => at(
                Stage::Node,
                &[ConfigPatch, ConfigValidate, RestartProcess, MarkReady],
            ),
            Self::Peers => at(Stage::Node, &[DiscoverPeers, ConfigValidate, MarkReady]),
            Self::Publishing => at(Stage::Node, &[SnapshotUpload]),
            Self::Approval => at(Stage::Node, &[MarkReady]),
        }
    }
}

fn at(stage: Stage, tasks: &[Task]) -> Vec<Step> {
    tasks.iter().map(|&task| Step { stage, task }).collect()
}

/// What has to be there before any pod is: the one prefix of all plans that make one.
fn before_a_pod(want: &Target) -> Vec<Step> {
    let tasks: Vec<Task> = [
        (Task::ValidateSigningKey, want.keys.signing),
        (Task::ValidateNodeKey, want.keys.node),
        (Task::ValidateOperatorKeyring, want.keys.operator_keyring),
        (Task::AwaitSecret, want.tls.is_some()),
        (Task::ApplyProxyConfig, true),
    ]
    .into_iter()
    .filter_map(|(task, wanted)| wanted.then_some(task))
    .collect();
    at(Stage::Prepare, &tasks)
}

/// A change of TLS. What was ordered for the old state goes when the new one was seen.
fn tls(want: &Target, have: &Observed) -> Vec<Step> {
    use Task::*;
    let mut steps = [
        before_a_pod(want),
        certificate(want),
        at(
            Stage::Node,
            &[
                ApplyStatefulSet,
                ApplyService,
                ReplacePod,
                ObserveTls,
                MarkReady,
            ],
        ),
    ]
    .concat();
    let ordered = want.tls.as_ref().is_some_and(|tls| tls.is_issued());
    if have.certificate.is_some() && !ordered {
        steps.extend(at(Stage::Node, &[DeleteCertificate]));
    }
    steps
}

fn certificate(want: &Target) -> Vec<Step> {
    match &want.tls {
        Some(tls) if tls.is_issued() => at(Stage::Prepare, &[Task::OrderCertificate]),
        _ => Vec::new(),
    }
}

fn setup(want: &Target) -> Vec<Step> {
    use Task::*;
    let mut steps = [
        before_a_pod(want),
        certificate(want),
        at(Stage::Prepare, &[EnsureVolume]),
        at(Stage::Node, &[ApplyStatefulSet, ApplyService, ObserveImage]),
        in_a_pod(Stage::Node, want),
    ]
    .concat();
    if want.network_policy {
        steps.extend(at(Stage::Prepare, &[ApplyNetworkPolicy]));
    }
    if want.publishes {
        steps.extend(at(Stage::Node, &[SnapshotUpload]));
    }
    steps.extend(match &want.start {
        Start::Base(Source::S3(_)) => at(Stage::Node, &[SnapshotRestore, ConfigureStateSync]),
        Start::Base(Source::StateSync) => at(Stage::Node, &[ConfigureStateSync]),
        Start::Base(Source::Genesis) | Start::Bootstrap { .. } => Vec::new(),
        Start::Genesis => at(
            Stage::Node,
            &[
                GenerateIdentity,
                GenerateGentx,
                UploadGenesisArtifacts,
                SetGenesisPeers,
            ],
        ),
    });
    steps
}

fn bootstrap(want: &Target) -> Vec<Step> {
    use Task::*;
    [
        at(
            Stage::Bootstrap,
            &[
                DeployBootstrapService,
                DeployBootstrapJob,
                SnapshotRestore,
                ConfigureStateSync,
            ],
        ),
        in_a_pod(Stage::Bootstrap, want),
        at(Stage::Bootstrap, &[AwaitBootstrap, TeardownBootstrap]),
    ]
    .concat()
}

/// What every pod of a new node is told, the bootstrap Job's as well as the node's own.
fn in_a_pod(stage: Stage, want: &Target) -> Vec<Step> {
    use Task::*;
    let mut steps = at(
        stage,
        &[ConfigureGenesis, ConfigApply, ConfigValidate, MarkReady],
    );
    if want.tls.is_some() {
        steps.extend(at(stage, &[ObserveTls]));
    }
    // The members of a ceremony get their peers from it.
    if want.peers.is_some() && want.start != Start::Genesis {
        steps.extend(at(stage, &[DiscoverPeers]));
    }
    steps
}
