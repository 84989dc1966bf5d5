//! How a plan moves: outcomes, deadlines, failures that are remembered, plans that are replaced.

use jiff::{SignedDuration, Timestamp};
use keelson_plan::next;
use keelson_plan::{
    Entry, Memory, Next, Observed, Outcome, Plan, Progress, Stage, Step, Target, Task, Verdict,
    Waiting, lint,
};

use crate::drafts::linted;
use crate::targets::{issuer, s3, target};
use crate::world::World;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn fresh() -> (Target, Observed, Plan) {
    let (want, have) = (target(s3()), World::default().observe());
    let plan = linted(&want, &have, 1, &Memory::default());
    (want, have, plan)
}

/// Brings a plan to this task.
fn advance(plan: &mut Plan, memory: &mut Memory, task: Task) {
    while plan.current().is_some_and(|entry| entry.step.task != task) {
        plan.record(memory, Outcome::Done, NOW);
    }
    assert!(plan.current().is_some(), "the plan has {task:?}");
}

fn waiting() -> Outcome {
    let pod = "node-0".to_owned();
    Outcome::Waiting {
        on: Waiting::Pod {
            pod,
            image: "a".to_owned(),
            why: None,
        },
    }
}

fn failed() -> Outcome {
    Outcome::Retry {
        error: "no space".to_owned(),
        spent: true,
    }
}

#[test]
fn a_wait_past_its_deadline_fails_the_plan_in_one_sentence() {
    let (_, _, mut plan) = fresh();
    let mut memory = Memory::default();
    advance(&mut plan, &mut memory, Task::ObserveImage);
    assert_eq!(plan.record(&mut memory, waiting(), NOW), Verdict::Active);
    let almost = NOW + SignedDuration::from_mins(30) - SignedDuration::from_secs(1);
    assert_eq!(plan.record(&mut memory, waiting(), almost), Verdict::Active);
    let over = NOW + SignedDuration::from_mins(30);
    assert_eq!(plan.record(&mut memory, waiting(), over), Verdict::Failed);
    let failure = memory.failure.expect("a failure");
    assert!(failure.overdue);
    assert_eq!(
        failure.error,
        "observe-image was not done within 30m: the pod node-0 does not run a yet"
    );
}

#[test]
fn a_failed_attempt_is_tried_again_later_and_under_another_number() {
    let (want, have, mut plan) = fresh();
    let mut memory = Memory::default();
    advance(&mut plan, &mut memory, Task::SnapshotRestore);
    assert_eq!(plan.record(&mut memory, failed(), NOW), Verdict::Active);
    let step = plan.current().expect("a step").step;
    let until = NOW + SignedDuration::from_secs(1);
    let ask = |now| next(Some(&plan), &memory, (&want, 1), &have, now);
    assert_eq!(ask(NOW), Next::Wait { step, until });
    assert_eq!(ask(until), Next::Run { step, attempt: 2 });
}

#[test]
fn an_unanswered_request_leaves_the_attempt_its_number() {
    let (_, _, mut plan) = fresh();
    let mut memory = Memory::default();
    advance(&mut plan, &mut memory, Task::SnapshotRestore);
    let outcome = Outcome::Retry {
        error: "connection refused".to_owned(),
        spent: false,
    };
    for _ in 0..20 {
        assert_eq!(
            plan.record(&mut memory, outcome.clone(), NOW),
            Verdict::Active
        );
    }
    assert_eq!(plan.current().expect("a step").attempt, 1);
}

#[test]
fn a_plan_that_failed_is_remembered_and_the_pause_grows_until_an_edit() {
    let (want, have, plan) = fresh();
    let mut memory = Memory::default();
    let mut now = NOW;
    for seconds in [10, 20, 40, 80, 160, 320, 600, 600] {
        let mut plan = plan.clone();
        let fatal = Outcome::Fatal {
            error: "refused".to_owned(),
        };
        assert_eq!(plan.record(&mut memory, fatal, now), Verdict::Failed);
        let until = now + SignedDuration::from_secs(seconds);
        let asked = next(
            None,
            &memory,
            (&want, 1),
            &have,
            until - SignedDuration::from_secs(1),
        );
        assert!(
            matches!(asked, Next::Pause { until: u, .. } if u == until),
            "{asked:?}"
        );
        assert!(matches!(
            next(None, &memory, (&want, 1), &have, until),
            Next::Begin(_)
        ));
        now = until;
    }
    let mut edited = want.clone();
    edited.pod.image = "b".to_owned();
    now -= SignedDuration::from_secs(1);
    let asked = next(None, &memory, (&want, 1), &have, now);
    assert!(matches!(asked, Next::Pause { .. }));
    assert!(matches!(
        next(None, &memory, (&edited, 2), &have, now),
        Next::Begin(_)
    ));
    memory.lift();
    assert!(matches!(
        next(None, &memory, (&want, 1), &have, now),
        Next::Begin(_)
    ));
    assert!(memory.failure.is_some(), "why it failed is not forgotten");
}

#[test]
fn five_failures_of_one_step_end_the_plan_and_the_next_plan_counts_on() {
    let (want, have, mut plan) = fresh();
    let mut memory = Memory::default();
    advance(&mut plan, &mut memory, Task::SnapshotRestore);
    let verdicts: Vec<_> = (0..5)
        .map(|_| plan.record(&mut memory, failed(), NOW))
        .collect();
    assert_eq!(verdicts[3..], [Verdict::Active, Verdict::Failed]);
    let again = linted(&want, &have, 1, &memory);
    let restore = again
        .entries
        .iter()
        .find(|entry| entry.step.task == Task::SnapshotRestore);
    assert_eq!(restore.expect("a restore").attempt, 6);
}

#[test]
fn what_is_done_may_be_needed_again_under_another_number_but_data_is_kept() {
    let (want, have, mut plan) = fresh();
    let mut memory = Memory::default();
    while plan.record(&mut memory, Outcome::Done, NOW) == Verdict::Active {}
    let again = linted(&want, &have, 1, &memory);
    let attempt = |task| {
        let found = again.entries.iter().find(|entry| entry.step.task == task);
        found.expect("a step").attempt
    };
    assert_eq!(attempt(Task::MarkReady), 2);
    assert_eq!(attempt(Task::ConfigApply), 2);
    assert_eq!(attempt(Task::SnapshotRestore), 1);
}

#[test]
fn a_superseded_configuration_task_is_called_off_first() {
    let (want, have, mut plan) = fresh();
    let mut memory = Memory::default();
    advance(&mut plan, &mut memory, Task::ConfigApply);
    let step = plan.current().expect("a step").step;
    let mut edited = want.clone();
    edited.settings = "2".to_owned();
    let asked = next(Some(&plan), &memory, (&edited, 2), &have, NOW);
    assert_eq!(asked, Next::Cancel { step, attempt: 1 });
    plan.cancelled(&mut memory);
    assert_eq!(
        plan.current().expect("a step").progress,
        Progress::Cancelled
    );
    let asked = next(Some(&plan), &memory, (&edited, 2), &have, NOW);
    let Next::Begin(successor) = asked else {
        panic!("a new plan, not {asked:?}");
    };
    assert_eq!(successor.target, edited);
    assert_eq!(lint(&successor, &have), Vec::<String>::new());
    let apply = successor.entries.iter().find(|entry| entry.step == step);
    assert_eq!(
        apply.expect("the step").attempt,
        2,
        "what was called off is spent"
    );
}

#[test]
fn a_restore_in_progress_is_not_called_off_by_an_edit_that_has_nothing_to_do_with_it() {
    let (want, have, mut plan) = fresh();
    let mut memory = Memory::default();
    advance(&mut plan, &mut memory, Task::SnapshotRestore);
    let mut edited = want.clone();
    edited.tls = Some(issuer("x"));
    let asked = next(Some(&plan), &memory, (&edited, 2), &have, NOW);
    let Next::Begin(successor) = asked else {
        panic!("a new plan at once, not {asked:?}");
    };
    let restore = successor
        .entries
        .iter()
        .find(|e| e.step.task == Task::SnapshotRestore);
    assert_eq!(
        restore.expect("a restore").attempt,
        1,
        "the same name: polled, not submitted"
    );
    // Another snapshot is another restore.
    edited.start = keelson_plan::Start::Base(keelson_plan::Source::S3("other".to_owned()));
    let asked = next(Some(&plan), &memory, (&edited, 2), &have, NOW);
    assert!(matches!(asked, Next::Cancel { .. }));
}

#[test]
fn every_task_has_a_deadline_and_a_name_on_the_wire_of_its_own() {
    let mut found = Task::ALL.iter().enumerate();
    assert!(found.all(|(at, task)| *task as usize == at), "all of them");
    assert_eq!(Task::ALL.last(), Some(&Task::TeardownBootstrap));
    for &task in Task::ALL {
        assert_eq!(Task::named(task.type_()), Some(task), "a name of its own");
        let longest = SignedDuration::from_hours(48);
        let deadline = task.deadline();
        assert!(deadline.is_positive() && deadline <= longest, "{task:?}");
    }
}

#[test]
fn whatever_task_waits_past_its_deadline_fails_its_plan() {
    let (_, _, plan) = fresh();
    for &task in Task::ALL {
        let step = Step {
            stage: Stage::Node,
            task,
        };
        let mut plan = plan.clone();
        plan.entries.truncate(1);
        plan.entries[0] = Entry {
            step,
            ..plan.entries[0].clone()
        };
        let mut memory = Memory::default();
        let mut ask = |now| plan.record(&mut memory, waiting(), now);
        let over = NOW + task.deadline();
        assert_eq!(ask(NOW), Verdict::Active);
        let almost = over - SignedDuration::from_secs(1);
        assert_eq!(ask(almost), Verdict::Active, "{step}");
        assert_eq!(ask(over), Verdict::Failed, "{step}");
        let failure = memory.failure.expect("a failure");
        assert!(failure.overdue, "{step}");
        let told = format!("{step} was not done within ");
        assert!(failure.error.starts_with(&told), "{}", failure.error);
    }
}
