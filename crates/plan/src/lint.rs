//! What must be true of every plan, whatever it is for.
//!
//! Each sentence is about a plan that would harm a node. Every test that makes a plan lints it.

use crate::drift::Drift;
use crate::observed::Observed;
use crate::plan::Plan;
use crate::task::{Stage, Step, Task};

/// What is wrong with a plan made for what was seen, each as a sentence. A good plan has nothing.
pub fn lint(plan: &Plan, have: &Observed) -> Vec<String> {
    let steps: Vec<Step> = plan.entries.iter().map(|entry| entry.step).collect();
    let mut found = Vec::new();
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            let kind = plan.kind;
            found.push(format!("{sentence} ({kind} plan for {:?})", plan.causes));
        }
    };
    let position = |stage, task| steps.iter().position(|step| *step == Step { stage, task });
    let node = |task| position(Stage::Node, task);
    // Whether the first comes before the second, where there is a second.
    let precedes = |first: Option<usize>, second: Option<usize>| match (first, second) {
        (Some(first), Some(second)) => first < second,
        (_, second) => second.is_none(),
    };
    let rolls = plan.rolls();
    let replaced = have
        .running
        .as_ref()
        .is_some_and(|running| plan.replaces(&running.pod));
    let pods = [
        node(Task::ReplacePod),
        position(Stage::Bootstrap, Task::DeployBootstrapJob),
    ];
    let secret = position(Stage::Prepare, Task::AwaitSecret);
    let config = position(Stage::Prepare, Task::ApplyProxyConfig);

    rule(!plan.causes.is_empty(), "a plan without a cause");
    rule(!steps.is_empty(), "a plan without a step");
    rule(
        steps.is_sorted_by(|a, b| a < b),
        "steps out of order, or twice",
    );
    for pod in pods.into_iter().chain([node(Task::ApplyStatefulSet)]) {
        rule(
            precedes(config, pod),
            "a workload before the proxy's configuration",
        );
    }
    for pod in pods {
        let needed = plan.target.tls.is_some();
        rule(
            !needed || precedes(secret, pod),
            "a pod before the Secret it mounts",
        );
    }
    let order = position(Stage::Prepare, Task::OrderCertificate);
    rule(
        order.is_none() || secret.is_some(),
        "a certificate ordered and not awaited",
    );
    rule(
        precedes(node(Task::ApplyService), node(Task::ReplacePod)),
        "a pod replaced before its Service was written",
    );
    rule(
        precedes(node(Task::ApplyStatefulSet), node(Task::ReplacePod)),
        "a pod replaced before its template was written",
    );
    rule(
        precedes(node(Task::ObserveTls), node(Task::DeleteCertificate)),
        "a certificate removed before the new state was seen",
    );
    rule(
        !(replaced && (plan.has(Task::PatchImages) || plan.has(Task::RestartProcess))),
        "a pod that is replaced and changed in place as well",
    );
    rule(
        !rolls || plan.has(Task::ReplacePod),
        "a cause that rolls, and no pod replaced",
    );
    rule(
        !plan.causes.contains(&Drift::Image) || plan.has(Task::ObserveImage),
        "an image nobody looks at",
    );
    for stage in [Stage::Bootstrap, Stage::Node] {
        let last = steps
            .iter()
            .rposition(|step| step.stage == stage && writes(step.task));
        let approved = position(stage, Task::MarkReady);
        rule(
            last.is_none_or(|last| approved.is_some_and(|approved| last < approved)),
            "configuration written and not approved afterwards",
        );
        let checked = position(stage, Task::ConfigValidate);
        rule(
            last.is_none_or(|last| checked.is_some_and(|checked| last < checked)),
            "configuration written and not checked",
        );
    }
    let job = position(Stage::Bootstrap, Task::DeployBootstrapJob);
    let teardown = position(Stage::Bootstrap, Task::TeardownBootstrap);
    rule(
        job.is_none() || precedes(job, teardown),
        "a bootstrap Job nobody removes",
    );
    rule(
        teardown.is_none() || precedes(teardown, node(Task::ApplyStatefulSet)),
        "a node's pod beside the bootstrap Job's",
    );
    found
}

/// Whether a task writes configuration files.
fn writes(task: Task) -> bool {
    matches!(
        task,
        Task::ConfigureGenesis
            | Task::ConfigApply
            | Task::ConfigPatch
            | Task::SetGenesisPeers
            | Task::DiscoverPeers
            | Task::ConfigureStateSync
    )
}
