//! The laws: what holds whatever is edited, lost, broken or slow.

use keelson_plan::{Data, Drift, Served, Start, Task, drifts};
use proptest::prelude::*;

use crate::history::{Edit, Fate, Operator, fates, good_edit, history, start};

/// Nothing was done that must never be.
fn nothing_wrong(operator: &Operator) -> Result<(), TestCaseError> {
    prop_assert_eq!(&operator.wrong, &Vec::<String>::new());
    prop_assert_eq!(&operator.world.violations, &Vec::<String>::new());
    prop_assert_eq!(&operator.world.sidecar.doubled, &Vec::<String>::new());
    Ok(())
}

/// The world is what the spec asks for, looked at without the help of drift.
fn as_wanted(operator: &Operator) -> Result<(), TestCaseError> {
    let (world, want) = (&operator.world, &operator.want);
    let pod = world.pod.as_ref().map(|running| running.pod.clone());
    let template = world.template.clone();
    for mut made in [pod, template].into_iter().flatten() {
        made.made_by = want.pod.made_by.clone();
        prop_assert_eq!(&made, &want.pod);
    }
    prop_assert!(world.pod.is_some() && world.volume && world.service && world.network_policy);
    prop_assert_eq!(world.data, Some(Data::Complete));
    prop_assert_eq!(
        &world.certificate,
        &want.tls.clone().filter(|tls| tls.is_issued())
    );
    let serves = want.tls.clone().map_or(Served::Plaintext, Served::Tls);
    prop_assert_eq!(world.served.as_ref(), Some(&serves));
    prop_assert_eq!(world.settings.as_ref(), Some(&want.settings));
    prop_assert_eq!(world.process.as_ref(), Some(&want.settings));
    let config = world.config.as_ref().map(|config| &config.tls);
    prop_assert_eq!(config, Some(&want.tls));
    if want.start != Start::Genesis {
        prop_assert_eq!(&world.peers, &want.peers);
    }
    prop_assert!(world.approved && world.job.is_none());
    Ok(())
}

fn settled(start: Start, reloads: bool, edit: &Edit) -> Result<Operator, TestCaseError> {
    let mut operator = Operator::new(start, reloads);
    operator.edit(edit);
    prop_assert!(operator.settle(), "a new node does not settle");
    Ok(operator)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever was asked before, broken, half done, refused or lost, the node gets there and stays.
    #[test]
    fn converges(
        start in start(),
        reloads: bool,
        history in history(),
        last in good_edit(),
    ) {
        let mut operator = Operator::new(start, reloads);
        operator.live(&history);
        operator.world.sidecar.failing = operator.world.sidecar.failing.min(3);
        operator.edit(&last);
        prop_assert!(operator.settle(), "not settled: {:?}", operator.plan);
        as_wanted(&operator)?;
        nothing_wrong(&operator)?;
        // And stays: no plan, no drift, nothing done.
        let begun = operator.begun.len();
        for _ in 0..3 {
            prop_assert!(operator.reconcile(Fate::Fine));
        }
        prop_assert_eq!(operator.begun.len(), begun);
        prop_assert!(operator.memory.failure.is_none());
    }

    /// Whatever is edited together costs one pod cycle if any of it rolls, and none if not; crashes
    /// and conflicts do not add to it. A process restarts only if neither a roll nor nothing does it.
    #[test]
    fn one_cycle_per_edit(
        start in start(),
        reloads: bool,
        first in good_edit(),
        second in good_edit(),
        fates in fates(),
    ) {
        let mut operator = settled(start, reloads, &first)?;
        let before = operator.want.clone();
        let (cycles, restarts) = (operator.world.cycles, operator.world.restarts);
        operator.edit(&second);
        let want = &operator.want;
        let rolls = before.pod.image != want.pod.image
            || before.pod.rest != want.pod.rest
            || before.pod.tls != want.pod.tls;
        let restart = !rolls && before.settings != want.settings;
        let patches = u32::from(!rolls && before.pod.sidecar_image != want.pod.sidecar_image);
        let patched = operator.world.patches;
        for fate in fates {
            operator.reconcile(fate);
        }
        prop_assert!(operator.settle());
        as_wanted(&operator)?;
        nothing_wrong(&operator)?;
        prop_assert_eq!(operator.world.cycles - cycles, u32::from(rolls));
        prop_assert_eq!(operator.world.restarts - restarts, u32::from(restart));
        prop_assert_eq!(operator.world.patches - patched, patches);
    }

    /// Any task may be done twice, whatever the history and whatever the cluster did meanwhile: the
    /// second time changes nothing. Every law holds its operator to it; this one wants nothing else.
    #[test]
    fn tasks_are_idempotent(start in start(), reloads: bool, history in history(), last in good_edit()) {
        let mut operator = Operator::new(start, reloads);
        operator.live(&history);
        operator.world.sidecar.failing = 0;
        operator.edit(&last);
        prop_assert!(operator.settle());
        prop_assert_eq!(&operator.wrong, &Vec::<String>::new());
        prop_assert!(operator.repeated > 0, "nothing was done");
    }

    /// No history cycles the pod more often than a person edited something that rolls.
    #[test]
    fn no_cycle_without_an_edit(start in start(), reloads: bool, history in history()) {
        let mut operator = Operator::new(start, reloads);
        let mut edits = 0;
        for event in history {
            let before = operator.want.pod.clone();
            operator.live(&[event]);
            let after = &operator.want.pod;
            edits += u32::from(
                before.image != after.image || before.rest != after.rest || before.tls != after.tls,
            );
        }
        prop_assert!(operator.world.cycles <= edits);
    }

    /// A snapshot is restored once, however often the spec changes meanwhile.
    #[test]
    fn data_is_fetched_once(reloads: bool, edits in prop::collection::vec((good_edit(), fates()), 0..6)) {
        let mut operator = Operator::new(crate::targets::s3(), reloads);
        operator.world.sidecar.slowness = 3;
        for (edit, fates) in edits {
            operator.edit(&edit);
            for fate in fates.into_iter().take(14) {
                operator.reconcile(fate);
            }
        }
        prop_assert!(operator.settle());
        nothing_wrong(&operator)?;
        prop_assert_eq!(operator.world.restores, 1);
    }

    /// An edit taken back before the pod went costs no cycle, even if an operator upgrade came
    /// between, and what was edited in place meanwhile is still changed in place.
    #[test]
    fn an_edit_taken_back_costs_nothing(first in good_edit(), second in good_edit(), steps in 0usize..5) {
        let mut operator = settled(crate::targets::s3(), true, &first)?;
        let cycles = operator.world.cycles;
        operator.edit(&Edit { image: "c", tls: first.tls.clone(), ..second.clone() });
        for _ in 0..steps {
            let at = operator.plan.as_ref().and_then(|plan| plan.current());
            if at.is_none_or(|entry| entry.step.task < Task::ReplacePod) {
                operator.reconcile(Fate::Fine);
            }
        }
        operator.edit(&Edit { image: first.image, rest: first.rest, tls: first.tls.clone(), ..second });
        let begun = operator.begun.len();
        prop_assert!(operator.settle());
        as_wanted(&operator)?;
        nothing_wrong(&operator)?;
        prop_assert_eq!(operator.world.cycles, cycles);
        prop_assert!(operator.begun.len() <= begun + 1, "one plan, no deadline passed");
    }

    /// An edit in the middle of any task of another: nothing the first one left half done stays so,
    /// and no deadline has to pass.
    #[test]
    fn an_edit_in_the_middle_of_another_loses_nothing(
        start in start(),
        reloads: bool,
        edits in [good_edit(), good_edit(), good_edit()],
        same_settings: bool,
        steps in 0usize..16,
    ) {
        let [first, second, mut third] = edits;
        let mut operator = settled(start, reloads, &first)?;
        operator.edit(&second);
        for _ in 0..steps {
            operator.reconcile(Fate::Fine);
        }
        if same_settings {
            third.settings = second.settings;
            (third.image, third.rest, third.tls) = (second.image, second.rest, second.tls.clone());
        }
        operator.edit(&third);
        let begun = operator.begun.len();
        prop_assert!(operator.settle());
        as_wanted(&operator)?;
        nothing_wrong(&operator)?;
        prop_assert!(operator.begun.len() <= begun + 1);
    }

    /// What an operator upgrade alone changes starts nothing, and is reported.
    #[test]
    fn an_outdated_template_starts_nothing(start in start(), first in good_edit()) {
        let mut operator = settled(start, true, &first)?;
        operator.want.pod.made_by = "upgraded".to_owned();
        let have = operator.world.observe();
        prop_assert!(keelson_plan::outdated(&operator.want, &have));
        prop_assert_eq!(drifts(&operator.want, &have).into_iter().collect::<Vec<Drift>>(), vec![]);
        prop_assert!(operator.reconcile(Fate::Fine));
    }
}
