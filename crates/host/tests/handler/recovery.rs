//! Laws of a change: whatever dies, whenever, and again while it is set right, the host ends in the
//! old state or in the new one, connection profiles included; nothing unverified survives; a foreign
//! checkpoint is never touched; and without a journal nothing is changed.

use keelson_host::handler::decide::{Likeness, Seen, Step, Verdict, next};
use keelson_host::handler::disk::Outlives;
use keelson_host::handler::journal::{End, Entry, Phase};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::world::{Died, Fate, Files, KILLS, Net, World};

/// How the next step is decided: [`next`], or what a law must catch.
type Decide = fn(&Entry, &Seen) -> Step;

/// What a word of a phase outlives: [`Phase::outlives`], or what a law must catch.
type Lasting = fn(Phase) -> Outlives;

/// The smallest handler there can be.
#[derive(Clone, Copy)]
struct Handler {
    decide: Decide,
    /// Whether it begins although the journal could not be written.
    careless: bool,
    outlives: Lasting,
}

const REAL: Handler = Handler {
    decide: next,
    careless: false,
    outlives: Phase::outlives,
};

impl Handler {
    /// One life: sets right what it finds, or begins the change if there was none yet.
    fn live(self, world: &mut World) -> Result<(), Died> {
        match world.disk.clone() {
            Some(entry) => self.set_right(world, entry),
            None => self.begin(world),
        }
    }

    fn write(self, world: &mut World, entry: &Entry) -> bool {
        world.write(entry, (self.outlives)(entry.phase))
    }

    fn begin(self, world: &mut World) -> Result<(), Died> {
        world.step()?;
        if world.is_anything_pending() {
            return Ok(());
        }
        let mut entry = world.entry();
        for phase in [Phase::Prepared, Phase::Applying] {
            world.step()?;
            let moved = entry.at(phase);
            if !self.write(world, &moved) && !self.careless {
                // What got to disk says that nothing was touched.
                return match world.disk.clone() {
                    Some(entry) => self.set_right(world, entry),
                    None => Ok(()),
                };
            }
            entry = moved;
        }
        if let Some(checkpoint) = world.apply_new()? {
            world.step()?;
            let applied = entry.applied(checkpoint.clone());
            match self.write(world, &applied) || self.careless {
                true => entry = applied,
                // It is not applied for whoever comes after us, but we know which checkpoint is ours.
                false => entry.checkpoint = Some(checkpoint),
            }
        }
        self.set_right(world, entry)
    }

    fn set_right(self, world: &mut World, mut entry: Entry) -> Result<(), Died> {
        let mut probes = None;
        for _ in 0..200 {
            world.step()?;
            let (manager, only_ours) = world.manager();
            let step = (self.decide)(&entry, &world.seen(probes.take()));
            if step.is_undoing() && !only_ours {
                world.never("something is undone under a foreign checkpoint");
            }
            if let Some(phase) = step.phase().filter(|phase| *phase != entry.phase) {
                let moved = match step {
                    Step::Close(end) => entry.closed(end),
                    _ => entry.at(phase),
                };
                match self.write(world, &moved) {
                    true => entry = moved,
                    false if step.is_undoing() => {}
                    false => {
                        probes = Some(Verdict::Failed);
                        continue;
                    }
                }
            }
            world.step()?;
            match &step {
                Step::Probe => probes = Some(world.probe()),
                Step::Commit(ours) => world.commit(ours, manager),
                Step::RollBack(ours) => world.roll_back(ours, manager)?,
                Step::Revert => world.revert()?,
                Step::RestoreProfiles => world.restore_profiles()?,
                Step::Wait(_) => world.wait(),
                Step::Keep => {}
                Step::Close(_) | Step::Rest => return Ok(()),
            }
        }
        world.never("it comes to no end");
        Ok(())
    }
}

/// A change of a host on which this befalls it, until nothing more does and it is set right.
fn live(handler: Handler, (good, unfit): (bool, bool), fates: Vec<Fate>) -> World {
    let mut world = World::new(good, unfit, fates);
    loop {
        let died = handler.live(&mut world).is_err();
        if !died && (world.disk.is_some() || !world.has_fates()) {
            return world;
        }
    }
}

/// What is wrong with how it ended.
fn flaws(world: &World) -> Vec<String> {
    let mut flaws = world.wrong.clone();
    let end = match &world.disk {
        None => Some(End::NotBegun),
        Some(entry) => entry.end.filter(|_| entry.phase == Phase::Closed),
    };
    match (world.net, world.files, end) {
        (Net::Before, Files::Before, Some(End::NotBegun | End::Undone)) => {}
        (Net::After, Files::After, Some(End::Kept)) if world.verified => {}
        (Net::After, ..) if !world.verified => flaws.push("unverified, and still there".to_owned()),
        (net, files, end) => flaws.push(format!("ends in {net:?} with {files:?}, as {end:?}")),
    }
    flaws
}

/// A fate at a step, and none before.
fn at(step: usize, fate: Fate) -> Vec<Fate> {
    let mut fates = vec![Fate::Fine; step];
    fates.push(fate);
    fates
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Fine),
        4 => prop::sample::select(KILLS.to_vec()),
        1 => Just(Fate::Late),
        3 => prop::sample::select(vec![Fate::Foreign, Fate::Overlapping, Fate::Overlapping, Fate::ForeignCommits]),
        1 => prop::sample::select(vec![Fate::DiskFull, Fate::DiskFree]),
        1 => prop::sample::select(vec![Fate::ApiAway, Fate::ApiBack]),
    ]
}

fn histories() -> impl Strategy<Value = (bool, bool, Vec<Fate>)> {
    let unfit = prop_oneof![4 => Just(false), 1 => Just(true)];
    (any::<bool>(), unfit, prop::collection::vec(fate(), 0..40))
}

#[test]
fn a_change_that_nothing_befalls_is_kept_if_the_host_stays_reachable_and_undone_if_not() {
    for (good, unfit, end) in [
        (true, false, End::Kept),
        (false, false, End::Undone),
        (true, true, End::Undone),
    ] {
        let world = live(REAL, (good, unfit), vec![]);
        assert_eq!(flaws(&world), [""; 0]);
        assert_eq!(world.disk.expect("a journal").end, Some(end));
    }
}

#[test]
fn whatever_dies_at_every_step_and_again_at_every_later_one_the_host_ends_in_one_of_two_states() {
    let mut ends = Vec::new();
    for good in [true, false] {
        let calm = live(REAL, (good, false), vec![]).steps;
        for (first, kill) in (0..calm).flat_map(|step| KILLS.map(|kill| (step, kill))) {
            let once = live(REAL, (good, false), at(first, kill));
            assert_eq!(flaws(&once), [""; 0], "{kill:?} at {first}");
            ends.push(once.net);
            for (second, again) in
                (1..once.steps - first).flat_map(|step| KILLS.map(|again| (step, again)))
            {
                let mut fates = at(first, kill);
                fates.extend(at(second - 1, again));
                let twice = live(REAL, (good, false), fates);
                let what = format!("{kill:?} at {first}, {again:?} {second} later");
                assert_eq!(flaws(&twice), [""; 0], "{what}");
            }
        }
    }
    // Neither is the only end.
    assert!(ends.contains(&Net::After) && ends.contains(&Net::Before));
}

#[test]
fn a_verified_change_survives_a_reboot_and_an_unverified_one_does_not() {
    let calm = live(REAL, (true, false), vec![]).steps;
    let ends: Vec<Net> = (0..calm)
        .map(|step| live(REAL, (true, false), at(step, Fate::Reboot)).net)
        .collect();
    // Before the journal is written the change is simply begun again.
    let undone = ends.iter().position(|net| *net == Net::Before);
    let ends = &ends[undone.expect("a reboot that undoes it")..];
    let kept = ends.iter().position(|net| *net == Net::After);
    let kept = kept.expect("a reboot late enough");
    assert!(
        ends[kept..].iter().all(|net| *net == Net::After),
        "{ends:?}"
    );
}

#[test]
fn without_room_for_the_journal_nothing_is_changed() {
    // Full from each step on, for as long as a change takes.
    for step in 0..8 {
        let mut fates = vec![Fate::Fine; step];
        fates.extend([Fate::DiskFull; 60]);
        let world = live(REAL, (true, false), fates.clone());
        assert_eq!(flaws(&world), [""; 0]);
        let careless = Handler {
            careless: true,
            ..REAL
        };
        let flaws = flaws(&live(careless, (true, false), fates));
        let unwritten = |flaw: &String| flaw.starts_with("a change while the journal says");
        // The third step is the one after which nothing needs to be written before the change.
        assert_eq!(flaws.iter().any(unwritten), step <= 2, "{step}: {flaws:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_048, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever befalls the host, in whatever order.
    #[test]
    fn a_change_ends_in_one_of_two_states((good, unfit, fates) in histories()) {
        prop_assert_eq!(flaws(&live(REAL, (good, unfit), fates)), Vec::<String>::new());
    }
}

/// The flaws some history finds in a handler, if any does.
fn found(handler: Handler) -> Option<String> {
    let config = ProptestConfig {
        cases: 4_096,
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRunner::deterministic().new_rng());
    let outcome = runner.run(&histories(), |(good, unfit, fates)| {
        prop_assert_eq!(
            flaws(&live(handler, (good, unfit), fates)),
            Vec::<String>::new()
        );
        Ok(())
    });
    outcome.err().map(|error| error.to_string())
}

#[test]
fn wrong_decisions_break_a_law() {
    let wrong: [(&str, Decide); 13] = [
        ("commits without a probe", |entry, seen| {
            match next(entry, seen) {
                Step::Probe => next(
                    entry,
                    &Seen {
                        probes: Some(Verdict::Passed),
                        ..seen.clone()
                    },
                ),
                step => step,
            }
        }),
        (
            "commits whatever the probes say",
            |entry, seen| match seen.probes {
                Some(_) => next(
                    entry,
                    &Seen {
                        probes: Some(Verdict::Passed),
                        ..seen.clone()
                    },
                ),
                None => next(entry, seen),
            },
        ),
        (
            "keeps what nobody would undo any more",
            |entry, seen| match next(entry, seen) {
                Step::Revert if seen.state == Likeness::After => Step::Close(End::Kept),
                step => step,
            },
        ),
        (
            "takes half a change for a whole one",
            |entry, seen| match entry.phase {
                Phase::Verified => next(
                    entry,
                    &Seen {
                        state: Likeness::After,
                        ..seen.clone()
                    },
                ),
                _ => next(entry, seen),
            },
        ),
        ("forgets the profiles", |entry, seen| {
            next(
                entry,
                &Seen {
                    profiles_as_before: true,
                    ..seen.clone()
                },
            )
        }),
        ("forgets the state", |entry, seen| match next(entry, seen) {
            Step::Revert => Step::RestoreProfiles,
            step => step,
        }),
        (
            "believes that an apply that failed undid itself",
            |entry, seen| match entry.phase {
                Phase::Applying => Step::Close(End::Undone),
                _ => next(entry, seen),
            },
        ),
        ("takes any checkpoint for its own", |entry, seen| {
            let mut entry = entry.clone();
            entry.checkpoint = seen.checkpoints.first().cloned();
            entry.boot = seen.boot.clone();
            next(&entry, seen)
        }),
        ("knows a checkpoint by its path", |entry, seen| {
            let mut entry = entry.clone();
            if let Some(own) = &mut entry.checkpoint
                && let Some(same) = seen.checkpoints.iter().find(|it| it.path == own.path)
            {
                own.created_ms = same.created_ms;
            }
            next(&entry, seen)
        }),
        ("forgets that a reboot ends checkpoints", |entry, seen| {
            next(
                &Entry {
                    boot: seen.boot.clone(),
                    ..entry.clone()
                },
                seen,
            )
        }),
        ("does not wait for others", |entry, seen| {
            match next(entry, seen) {
                Step::Wait(_) => Step::Revert,
                step => step,
            }
        }),
        (
            "is done while somebody else may go back",
            |entry, seen| match (entry.phase, next(entry, seen)) {
                (Phase::Verified, Step::Wait(_)) if seen.state == Likeness::After => Step::Keep,
                (_, step) => step,
            },
        ),
        ("undoes what was not begun", |entry, seen| {
            match entry.phase {
                Phase::Prepared => Step::Revert,
                _ => next(entry, seen),
            }
        }),
    ];
    for (name, decide) in wrong {
        let handler = Handler { decide, ..REAL };
        assert!(
            found(handler).is_some(),
            "nothing is wrong with one that {name}"
        );
    }
    assert_eq!(found(REAL), None);
}

#[test]
fn what_has_to_outlive_the_host_and_does_not_breaks_a_law() {
    let wrong: [(&str, Lasting); 2] = [
        ("applies what is not on disk", |phase| match phase {
            Phase::Applying => Outlives::Process,
            phase => phase.outlives(),
        }),
        ("commits what is not on disk", |phase| match phase {
            Phase::Verified => Outlives::Process,
            phase => phase.outlives(),
        }),
    ];
    for (name, outlives) in wrong {
        let handler = Handler { outlives, ..REAL };
        assert!(
            found(handler).is_some(),
            "nothing is wrong with one that {name}"
        );
    }
}
