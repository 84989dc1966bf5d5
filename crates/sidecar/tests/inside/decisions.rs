//! What becomes of a submission and of tasks left running, as pure decisions.

use super::stage::{incoming, row};
use jiff::Timestamp;
use keelson_sidecar::engine::decide::{Conflict, Verdict, submit};
use keelson_sidecar::engine::policy::{self, Deadline};
use keelson_sidecar::engine::recover::{Hold, NO_HANDLER, SUPERSEDED, Step, holds, recover};
use keelson_wire::{Task, TaskResult, TaskStatus, TaskType};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn a_new_id_begins_its_first_run() {
    let verdict = submit(None, &incoming("a", TaskType::MarkReady, json!({})), false);
    assert_eq!(verdict, Verdict::Start { run: 1 });
}

#[test]
fn what_runs_or_is_completed_is_the_same_and_what_failed_runs_again() {
    let asked = incoming("a", TaskType::MarkReady, json!({}));
    let mut known = row("a", "mark-ready", TaskStatus::Running);
    assert_eq!(submit(Some(&known), &asked, true), Verdict::Same);
    known.status = TaskStatus::Completed;
    assert_eq!(submit(Some(&known), &asked, false), Verdict::Same);
    known.status = TaskStatus::Failed;
    known.run = 2;
    assert_eq!(
        submit(Some(&known), &asked, false),
        Verdict::Start { run: 3 }
    );
}

#[test]
fn a_running_task_nobody_is_at_work_on_is_taken_up_as_the_same_run() {
    let asked = incoming("a", TaskType::MarkReady, json!({}));
    let mut known = row("a", "mark-ready", TaskStatus::Running);
    known.run = 4;
    assert_eq!(
        submit(Some(&known), &asked, false),
        Verdict::Start { run: 4 }
    );
}

#[test]
fn another_type_is_a_conflict_whatever_became_of_the_task() {
    for status in [
        TaskStatus::Running,
        TaskStatus::Completed,
        TaskStatus::Failed,
    ] {
        let known = row("a", "mark-ready", status);
        let asked = incoming("a", TaskType::ResetData, json!({}));
        let verdict = submit(Some(&known), &asked, false);
        let Verdict::Conflict(conflict @ Conflict::Type { .. }) = verdict else {
            panic!("{verdict:?}");
        };
        let sentence = "task a is of type mark-ready, not reset-data: use another id";
        assert_eq!(conflict.to_string(), sentence);
    }
}

#[test]
fn other_params_are_a_conflict_unless_the_task_failed() {
    let mut known = row("a", "snapshot-restore", TaskStatus::Completed);
    known.params = json!({"targetHeight": 5})
        .as_object()
        .cloned()
        .expect("an object");
    let other = incoming("a", TaskType::SnapshotRestore, json!({"targetHeight": 6}));
    assert!(matches!(
        submit(Some(&known), &other, false),
        Verdict::Conflict(Conflict::Params { .. })
    ));
    known.status = TaskStatus::Failed;
    assert_eq!(
        submit(Some(&known), &other, false),
        Verdict::Start { run: 2 }
    );
}

#[test]
fn params_that_mean_the_same_are_the_same() {
    let mut known = row("a", "snapshot-restore", TaskStatus::Completed);
    known.params = json!({"targetHeight": 5})
        .as_object()
        .cloned()
        .expect("an object");
    for params in [
        json!({"targetHeight": 5.0}),
        json!({"targetHeight": 5, "new": 1}),
    ] {
        let asked = incoming("a", TaskType::SnapshotRestore, params);
        assert_eq!(submit(Some(&known), &asked, false), Verdict::Same);
    }
    // What cannot be read is compared as it stands.
    known.params = json!({"targetHeight": "x", "b": 1})
        .as_object()
        .cloned()
        .expect("an object");
    let asked = |params| incoming("a", TaskType::SnapshotRestore, params);
    let same = submit(
        Some(&known),
        &asked(json!({"b": 1, "targetHeight": "x"})),
        false,
    );
    assert_eq!(same, Verdict::Same);
    let other = submit(
        Some(&known),
        &asked(json!({"b": 1, "targetHeight": "y"})),
        false,
    );
    assert!(matches!(other, Verdict::Conflict(_)));
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn left(type_: &str, second: i64) -> TaskResult {
    let mut task = row("a", type_, TaskStatus::Running);
    task.submitted_at = at(second);
    task
}

#[test]
fn a_release_is_taken_up_only_if_it_is_newer_than_the_newest_hold() {
    for (hold, taken) in [
        (Hold::Never, true),
        (Hold::At(at(9)), true),
        (Hold::At(at(10)), false),
        (Hold::At(at(11)), false),
        (Hold::Unknown, false),
    ] {
        let steps = recover(vec![left("mark-ready", 10)], hold);
        let resumed = matches!(steps.as_slice(), [Step::Resume(_)]);
        assert_eq!(resumed, taken, "{hold:?}");
        if let [Step::Fail { why, .. }] = steps.as_slice() {
            assert_eq!(*why, SUPERSEDED);
        }
    }
}

#[test]
fn a_task_nobody_knows_fails_and_others_go_on_as_they_were() {
    let steps = recover(
        vec![left("gov-vote", 1), left("config-patch", 2)],
        Hold::Unknown,
    );
    let [Step::Fail { why, .. }, Step::Resume(task)] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    assert_eq!(*why, NO_HANDLER);
    assert_eq!(
        task,
        &TaskResult {
            id: "a".into(),
            ..left("config-patch", 2)
        }
    );
}

#[test]
fn every_type_a_sidecar_has_is_in_the_table_and_its_locks_are_in_order() {
    for type_ in Task::TYPES {
        let policy = policy::of(type_);
        assert!(policy.locks.is_sorted(), "{type_}");
        // A row that was forgotten falls to the one for tasks that are not the sidecar's.
        let forgotten = Deadline::After(std::time::Duration::from_secs(60));
        assert_ne!(policy.deadline, forgotten, "{type_}");
    }
}

fn tasks() -> impl Strategy<Value = Vec<TaskResult>> {
    let types = prop::sample::select(vec!["mark-ready", "mark-not-ready", "config-patch", "odd"]);
    prop::collection::vec((types, 0..20i64), 0..12).prop_map(|tasks| {
        tasks
            .iter()
            .map(|(type_, second)| left(type_, *second))
            .collect()
    })
}

proptest! {
    #[test]
    fn no_task_left_running_is_forgotten_and_no_release_outlives_a_hold(
        rows in tasks(),
        hold in prop::option::of(0..20i64),
    ) {
        let hold = hold.map_or(Hold::Never, |second| Hold::At(at(second)));
        let steps = recover(rows.clone(), hold);
        prop_assert_eq!(steps.len(), rows.len());
        for (step, row) in steps.iter().zip(&rows) {
            match step {
                Step::Resume(task) => {
                    prop_assert_eq!(task, row);
                    prop_assert!(row.type_ != "odd");
                    prop_assert!(row.type_ != "mark-ready" || !hold.outweighs(row.submitted_at));
                }
                Step::Fail { task, why } => {
                    prop_assert_eq!(task, row);
                    prop_assert_eq!(*why == SUPERSEDED, row.type_ == "mark-ready");
                }
            }
        }
        let held = rows.iter().filter(|row| row.type_ == "mark-not-ready").count();
        prop_assert_eq!(holds(&rows).len(), held);
    }

    #[test]
    fn a_task_that_completed_is_never_begun_again(
        run in 1..9u32,
        height in 0..3i64,
        asked in 0..3i64,
        at_work: bool,
    ) {
        let mut known = row("a", "snapshot-restore", TaskStatus::Completed);
        known.run = run;
        known.params = json!({"targetHeight": height}).as_object().cloned().expect("an object");
        let asked = incoming("a", TaskType::SnapshotRestore, json!({"targetHeight": asked}));
        let begun = matches!(submit(Some(&known), &asked, at_work), Verdict::Start { .. });
        prop_assert!(!begun);
    }
}
