//! The decision as a table: what is done in each phase, by what is seen.

use keelson_host::handler::decide::{Likeness, Seen, Step, Verdict, next};
use keelson_host::handler::journal::{Checkpoint, End, Entry, Phase};

use crate::world::World;

fn checkpoint(number: u32, created_ms: u64) -> Checkpoint {
    Checkpoint {
        path: format!("/Checkpoint/{number}"),
        created_ms,
        deadline_ms: Some(created_ms + 20_000),
    }
}

fn ours() -> Checkpoint {
    checkpoint(1, 500)
}

fn entry(phase: Phase) -> Entry {
    let begun = World::new(true, false, vec![]).entry();
    match phase {
        Phase::Prepared | Phase::Applying => begun.at(phase),
        _ => begun.applied(ours()).at(phase),
    }
}

fn seen(state: Likeness, checkpoints: &[Checkpoint]) -> Seen {
    Seen {
        boot: entry(Phase::Prepared).boot,
        checkpoints: checkpoints.to_vec(),
        state,
        profiles_as_before: true,
        probes: None,
    }
}

#[test]
fn what_was_only_prepared_is_closed_and_what_is_closed_rests() {
    use Likeness::{After, Before, Neither};
    for state in [Before, After, Neither] {
        for pending in [vec![], vec![checkpoint(7, 1)]] {
            let seen = seen(state, &pending);
            let said = |phase| next(&entry(phase), &seen);
            assert_eq!(said(Phase::Prepared), Step::Close(End::NotBegun));
            assert_eq!(said(Phase::Committed), Step::Close(End::Kept));
            assert_eq!(said(Phase::Closed), Step::Rest);
        }
    }
}

#[test]
fn what_is_applied_is_probed_while_its_checkpoint_is_pending_and_undone_otherwise() {
    let applied = entry(Phase::Applied);
    let mut look = seen(Likeness::After, &[ours()]);
    assert_eq!(next(&applied, &look), Step::Probe);
    look.probes = Some(Verdict::Passed);
    assert_eq!(next(&applied, &look), Step::Commit(ours()));
    look.probes = Some(Verdict::Failed);
    assert_eq!(next(&applied, &look), Step::RollBack(ours()));
    let half = seen(Likeness::Neither, &[ours()]);
    assert_eq!(next(&applied, &half), Step::RollBack(ours()));
    let gone = seen(Likeness::After, &[]);
    assert_eq!(next(&applied, &gone), Step::Revert);
}

#[test]
fn a_verified_change_is_kept_if_it_is_there_and_undone_if_not() {
    let verified = entry(Phase::Verified);
    let said = |state, pending: &[Checkpoint]| next(&verified, &seen(state, pending));
    assert_eq!(said(Likeness::After, &[ours()]), Step::Commit(ours()));
    assert_eq!(said(Likeness::After, &[]), Step::Keep);
    assert_eq!(said(Likeness::Neither, &[]), Step::Revert);
    assert_eq!(said(Likeness::Before, &[]), Step::Close(End::Undone));
    let rebooted = Seen {
        boot: "another".to_owned(),
        ..seen(Likeness::After, &[])
    };
    assert_eq!(next(&verified, &rebooted), Step::Keep);
}

#[test]
fn undoing_ends_with_the_state_and_the_profiles_of_before() {
    for phase in [Phase::Applying, Phase::Applied, Phase::RollingBack] {
        let said = |look: &Seen| next(&entry(phase), look);
        let mut look = seen(Likeness::Neither, &[]);
        look.profiles_as_before = false;
        assert_eq!(said(&look), Step::RestoreProfiles);
        look.profiles_as_before = true;
        assert_eq!(said(&look), Step::Revert);
        look.state = Likeness::Before;
        assert_eq!(said(&look), Step::Close(End::Undone));
    }
    // Once it is being undone nobody asks again.
    let look = seen(Likeness::After, &[ours()]);
    assert_eq!(
        next(&entry(Phase::RollingBack), &look),
        Step::RollBack(ours())
    );
}

#[test]
fn a_foreign_checkpoint_is_waited_for_by_its_name_and_deadline() {
    let another = checkpoint(2, 900);
    let same_path = checkpoint(1, 900);
    for phase in [
        Phase::Applying,
        Phase::Applied,
        Phase::Verified,
        Phase::RollingBack,
    ] {
        for foreign in [&another, &same_path] {
            let look = seen(Likeness::Neither, std::slice::from_ref(foreign));
            assert_eq!(next(&entry(phase), &look), Step::Wait(foreign.clone()));
            assert_eq!(foreign.deadline_ms, Some(20_900));
        }
    }
    // Rolling back to ours would take one with it that was made since.
    let mut look = seen(Likeness::After, &[ours(), another.clone()]);
    look.probes = Some(Verdict::Failed);
    assert_eq!(
        next(&entry(Phase::Applied), &look),
        Step::Wait(another.clone())
    );
    look.probes = Some(Verdict::Passed);
    assert_eq!(next(&entry(Phase::Applied), &look), Step::Commit(ours()));
    // What is committed is not done while somebody may go back to the middle of it.
    let look = seen(Likeness::After, std::slice::from_ref(&another));
    assert_eq!(next(&entry(Phase::Verified), &look), Step::Wait(another));
}

#[test]
fn a_checkpoint_of_an_apply_that_never_returned_is_waited_for() {
    let look = seen(Likeness::Neither, &[ours()]);
    assert_eq!(next(&entry(Phase::Applying), &look), Step::Wait(ours()));
}

#[test]
fn a_checkpoint_of_another_boot_is_not_ours() {
    let look = Seen {
        boot: "another".to_owned(),
        ..seen(Likeness::After, &[ours()])
    };
    assert_eq!(next(&entry(Phase::Applied), &look), Step::Wait(ours()));
}

#[test]
fn what_is_irrevocable_is_in_the_journal_first() {
    for (step, phase) in [
        (Step::Commit(ours()), Some(Phase::Verified)),
        (Step::RollBack(ours()), Some(Phase::RollingBack)),
        (Step::Revert, Some(Phase::RollingBack)),
        (Step::RestoreProfiles, Some(Phase::RollingBack)),
        (Step::Keep, Some(Phase::Committed)),
        (Step::Close(End::Kept), Some(Phase::Closed)),
        (Step::Probe, None),
        (Step::Wait(ours()), None),
        (Step::Rest, None),
    ] {
        assert_eq!(step.phase(), phase, "{step:?}");
        assert_eq!(
            step.is_undoing(),
            phase == Some(Phase::RollingBack),
            "{step:?}"
        );
    }
}
