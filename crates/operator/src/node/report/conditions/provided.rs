//! What a person provides: a volume to take over, and keys. Said by the tasks that checked it.

use keelson_api::node_condition::NodeReason as Reason;
use keelson_plan::{Entry, Progress, Task};

use super::{Ended, Findings, Said, no, yes};

const FITS: &str = "it was checked and fits";

/// What a task of the plan found out about something of a person's.
fn checked(found: &Findings<'_>, task: Task, [good, absent, bad]: [Reason; 3]) -> Option<Said> {
    let failure = found.memory.failure.as_ref();
    let entry = found.plan.and_then(|plan| {
        let entries = &plan.plan.entries;
        entries
            .iter()
            .find(|entry: &&Entry| entry.step.task == task)
    });
    let ended = match found.ended {
        Some(Ended::Complete(plan)) => plan.plan.entries.iter().any(|it| it.step.task == task),
        _ => false,
    };
    match entry {
        Some(entry) if entry.progress == Progress::Done => yes(good, FITS),
        Some(entry) => match (&entry.waiting, &entry.error) {
            (Some(waiting), _) => no(absent, waiting.to_string()),
            (None, Some(error)) => no(bad, error.clone()),
            (None, None) => None,
        },
        None if ended => yes(good, FITS),
        None => match failure {
            Some(failure) if failure.step.task == task => no(bad, failure.error.clone()),
            _ => None,
        },
    }
}

pub(super) fn import(found: &Findings<'_>) -> Option<Said> {
    if found.node.spec.imported_claim().is_none() {
        return no(Reason::NotApplicable, "no claim is imported");
    }
    let reasons = [
        Reason::PvcValidated,
        Reason::PvcNotReady,
        Reason::PvcInvalid,
    ];
    checked(found, Task::EnsureVolume, reasons)
}

pub(super) fn signing_key(found: &Findings<'_>) -> Option<Said> {
    let validator = found.node.spec.validator.as_ref();
    if validator.is_none_or(|it| it.signing_key.is_none()) {
        return no(Reason::NotApplicable, "no signing key is asked for");
    }
    let reasons = [
        Reason::SigningKeyValidated,
        Reason::SigningKeyNotReady,
        Reason::SigningKeyInvalid,
    ];
    checked(found, Task::ValidateSigningKey, reasons)
}

pub(super) fn node_key(found: &Findings<'_>) -> Option<Said> {
    let validator = found.node.spec.validator.as_ref();
    if validator.is_none_or(|it| it.node_key.is_none()) {
        return no(Reason::NotApplicable, "no node key is asked for");
    }
    let reasons = [
        Reason::NodeKeyValidated,
        Reason::NodeKeyNotReady,
        Reason::NodeKeyInvalid,
    ];
    checked(found, Task::ValidateNodeKey, reasons)
}

pub(super) fn keyring(found: &Findings<'_>) -> Option<Said> {
    let validator = found.node.spec.validator.as_ref();
    if validator.is_none_or(|it| it.operator_keyring.is_none()) {
        return no(Reason::NotApplicable, "no keyring is asked for");
    }
    let reasons = [
        Reason::OperatorKeyringValidated,
        Reason::OperatorKeyringNotReady,
        Reason::OperatorKeyringInvalid,
    ];
    checked(found, Task::ValidateOperatorKeyring, reasons)
}
