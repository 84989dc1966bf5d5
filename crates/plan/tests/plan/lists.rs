//! The list of each kind of plan that changes a node, task by task, as the specification has it.

use keelson_api::task::PlanKind;
use keelson_plan::{Drift, Plan, Progress, Stage, Task, Tls, lint};

use crate::drafts::{assert_list, edit, image_b, planned, update, updated};
use crate::history::{Edit, Operator};
use crate::targets::{issuer, s3, target};
use crate::world::World;

#[test]
fn uploads_are_begun_and_ended_by_themselves() {
    let plan = update(|operator| operator.want.publishes = true);
    assert!(plan.causes.iter().eq([&Drift::Publishing]));
    assert_eq!(plan.entries.len(), 1);
    assert_eq!(plan.entries[0].step.task, Task::SnapshotUpload);
    let plan = update(|operator| operator.world.publishing = true);
    assert_eq!(plan.entries.len(), 1);
    assert_eq!(plan.entries[0].step.task, Task::SnapshotUpload);
}

#[test]
fn an_image_rolls_the_pod() {
    let plan = update(|operator| operator.edit(&image_b(None)));
    let kind = PlanKind::NodeUpdate;
    assert_list(&plan, kind, Stage::Prepare, "apply-rbac-proxy-config");
    let node = "apply-statefulset apply-service replace-pod observe-image mark-ready";
    assert_list(&plan, kind, Stage::Node, node);
}

#[test]
fn tls_is_toggled_as_the_toggle_issue_asks_and_rolls_only_what_is_born_with_it() {
    for reloads in [true, false] {
        let plan = updated(reloads, None, |operator| {
            operator.edit(&edit(Some(issuer("x"))))
        });
        let prepare = "apply-sidecar-cert wait-for-sidecar-tls-secret apply-rbac-proxy-config";
        assert_list(&plan, PlanKind::TlsToggle, Stage::Prepare, prepare);
        let node = "apply-statefulset apply-service replace-pod observe-sidecar-tls mark-ready";
        assert_list(&plan, PlanKind::TlsToggle, Stage::Node, node);
        assert_eq!(plan.causes.iter().any(|cause| cause.rolls()), !reloads);
    }
}

#[test]
fn image_and_tls_together_are_one_plan_with_one_replacement() {
    let plan = update(|operator| operator.edit(&image_b(Some(issuer("x")))));
    let kind = PlanKind::NodeUpdateTls;
    let prepare = "apply-sidecar-cert wait-for-sidecar-tls-secret apply-rbac-proxy-config";
    assert_list(&plan, kind, Stage::Prepare, prepare);
    let node = "apply-statefulset apply-service replace-pod observe-image observe-sidecar-tls \
                mark-ready";
    assert_list(&plan, kind, Stage::Node, node);
}

#[test]
fn tls_is_turned_off_before_its_certificate_goes() {
    let plan = updated(true, Some(issuer("x")), |operator| {
        operator.edit(&edit(None))
    });
    let kind = PlanKind::TlsToggle;
    assert_list(&plan, kind, Stage::Prepare, "apply-rbac-proxy-config");
    let node = "apply-statefulset apply-service replace-pod observe-sidecar-tls \
                delete-sidecar-cert mark-ready";
    assert_list(&plan, kind, Stage::Node, node);
}

#[test]
fn a_secret_of_someone_else_replaces_the_certificate_we_ordered() {
    let other = Some(Tls::Secret("s".to_owned()));
    let plan = updated(true, Some(issuer("x")), |operator| {
        operator.edit(&edit(other))
    });
    let prepare = "wait-for-sidecar-tls-secret apply-rbac-proxy-config";
    assert_list(&plan, PlanKind::TlsToggle, Stage::Prepare, prepare);
    assert!(plan.has(Task::DeleteCertificate));
    assert!(
        plan.causes.contains(&Drift::TlsMount),
        "the volume has another source"
    );
}

#[test]
fn an_image_rolled_under_tls_waits_for_the_secret_first() {
    let tls = || Some(issuer("x"));
    let plan = updated(true, tls(), |operator| operator.edit(&image_b(tls())));
    let prepare = "wait-for-sidecar-tls-secret apply-rbac-proxy-config";
    assert_list(&plan, PlanKind::NodeUpdate, Stage::Prepare, prepare);
}

#[test]
fn a_sidecar_image_is_changed_in_place_unless_the_pod_rolls_anyway() {
    let sidecar_b = || Edit {
        sidecar: "b",
        ..edit(None)
    };
    let plan = update(|operator| operator.edit(&sidecar_b()));
    let node = "apply-statefulset patch-pod-images observe-image mark-ready";
    assert_list(&plan, PlanKind::NodeUpdate, Stage::Node, node);
    let plan = update(|operator| {
        operator.edit(&Edit {
            image: "b",
            ..sidecar_b()
        })
    });
    let node = "apply-statefulset apply-service replace-pod observe-image mark-ready";
    assert_list(&plan, PlanKind::NodeUpdate, Stage::Node, node);
}

#[test]
fn a_pod_that_is_replaced_is_not_changed_in_place_and_one_that_stays_is_not_replaced() {
    let both = Edit {
        image: "b",
        sidecar: "b",
        ..edit(None)
    };
    let plan = update(|operator| operator.edit(&both));
    let goes = target(s3()).pod;
    assert!(plan.replaces(&goes) && !plan.patches(&goes));
    let mut stays = goes;
    stays.image = "b".to_owned();
    assert!(!plan.replaces(&stays) && plan.patches(&stays));
}

#[test]
fn a_pod_is_as_good_as_gone_once_nothing_stands_before_its_replacement_that_may_wait() {
    let done = |plan: &mut Plan, last: Task| {
        let past = plan.entries.iter_mut();
        let mut past = past.take_while(|entry| entry.step.task <= last);
        past.by_ref().for_each(|it| it.progress = Progress::Done);
    };
    let goes = target(s3()).pod;
    let mut comes = goes.clone();
    comes.image = "b".to_owned();
    let mut plan = update(|operator| operator.edit(&image_b(None)));
    assert!(plan.is_about_to_replace(&goes));
    assert!(!plan.is_about_to_replace(&comes) && !plan.has_replaced(&comes));
    done(&mut plan, Task::ReplacePod);
    assert!(plan.has_replaced(&comes) && !plan.has_replaced(&goes));
    // A certificate is waited for first.
    let tls = Some(issuer("x"));
    let mut plan = updated(true, tls.clone(), |operator| {
        operator.edit(&image_b(tls));
    });
    assert!(!plan.is_about_to_replace(&goes));
    done(&mut plan, Task::AwaitSecret);
    assert!(plan.is_about_to_replace(&goes));
    // What rolls nothing replaces nothing.
    let mut plan = update(|operator| operator.edit(&edit(Some(issuer("x")))));
    assert!(!plan.is_about_to_replace(&goes) && !plan.has_replaced(&goes));
    done(&mut plan, Task::ReplacePod);
    assert!(!plan.has_replaced(&goes));
}

#[test]
fn repairs_touch_what_was_taken_and_nothing_else() {
    for (take, stage, expected) in [
        (
            (|world| world.volume = false) as fn(&mut World),
            Stage::Prepare,
            "ensure-data-pvc",
        ),
        (
            |world| world.take_config(),
            Stage::Prepare,
            "apply-rbac-proxy-config",
        ),
        (
            |world| world.network_policy = false,
            Stage::Prepare,
            "apply-network-policy",
        ),
        (|world| world.service = false, Stage::Node, "apply-service"),
    ] {
        let plan = update(|operator| take(&mut operator.world));
        assert_list(&plan, PlanKind::NodeUpdate, stage, expected);
        assert_eq!(plan.entries.len(), 1);
    }
    let plan = update(|operator| operator.world.template = None);
    let node = "apply-statefulset apply-service observe-image mark-ready";
    assert_list(&plan, PlanKind::NodeUpdate, Stage::Node, node);
}

#[test]
fn settings_restart_the_process_and_peers_do_not() {
    let plan = update(|operator| {
        operator.edit(&Edit {
            settings: "2",
            ..edit(None)
        })
    });
    let node = "config-patch config-validate restart-seid mark-ready";
    assert_list(&plan, PlanKind::NodeUpdate, Stage::Node, node);
    let plan = update(|operator| {
        operator.edit(&Edit {
            peers: "2",
            ..edit(None)
        })
    });
    let node = "discover-peers config-validate mark-ready";
    assert_list(&plan, PlanKind::NodeUpdate, Stage::Node, node);
}

#[test]
fn a_revoked_approval_is_given_again_and_nothing_else() {
    let plan = update(|operator| operator.world.approved = false);
    let kind = PlanKind::MarkReadyReapply;
    assert_list(&plan, kind, Stage::Node, "mark-ready");
    assert_eq!(plan.entries.len(), 1);
}

#[test]
fn what_is_not_known_is_no_drift() {
    let mut operator = Operator::new(s3(), true);
    operator.edit(&edit(Some(issuer("x"))));
    assert!(operator.settle(), "a new node settles");
    let mut have = operator.world.observe();
    have.served = keelson_plan::Served::Unknown;
    (have.approved, have.settings, have.process) = (None, None, None);
    (have.peers, have.running) = (None, None);
    assert!(keelson_plan::drifts(&operator.want, &have).is_empty());
}

#[test]
fn every_cause_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> = Drift::ALL.iter().map(|d| d.as_str()).collect();
    assert_eq!(names.len(), Drift::ALL.len());
    assert!(Drift::ALL.is_sorted());
}

#[test]
fn the_linter_finds_a_plan_that_would_harm_a_node() {
    let mut operator = Operator::new(s3(), true);
    assert!(operator.settle(), "a new node settles");
    let have = operator.world.observe();
    operator.edit(&image_b(Some(issuer("x"))));
    let good = planned(&operator, &have);
    for entry in 0..good.entries.len() {
        let mut bad = good.clone();
        let gone = bad.entries.remove(entry).step.task;
        // What is only looked at or added for the sake of others may be missed.
        let harmless = [Task::ObserveTls, Task::OrderCertificate, Task::MarkReady];
        assert_eq!(
            lint(&bad, &have).is_empty(),
            harmless.contains(&gone),
            "without {gone:?}"
        );
    }
    for (a, b) in (1..good.entries.len()).map(|b| (b - 1, b)) {
        let mut bad = good.clone();
        bad.entries.swap(a, b);
        assert!(!lint(&bad, &have).is_empty(), "{a} and {b} exchanged");
    }
    let mut aimless = good;
    aimless.causes.clear();
    aimless.target = target(s3());
    assert!(!lint(&aimless, &have).is_empty());
}
