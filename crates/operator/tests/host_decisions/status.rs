//! What an NMState's status says, for everything that may be found.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus, Deployment, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::NMState;
use keelson_api::condition::HostCondition;
use keelson_operator::host::profile::{Decision, Origin, Outcome};
use keelson_operator::host::status::{
    Report, conditions, daemon_set, deployment, oldest, same, superseded,
};
use keelson_tls::Profile;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a moment of this century")
}

fn decided(outcome: Outcome, strict: bool) -> Decision {
    Decision {
        profile: Profile::intermediate(),
        origin: Origin::Cluster,
        outcome,
        strict,
        notes: Vec::new(),
    }
}

/// Status and reason of a condition.
fn of<'a>(said: &'a [HostCondition], kind: &str) -> (&'a str, &'a str) {
    let condition = said.iter().find(|it| it.type_ == kind).expect(kind);
    (
        &condition.status,
        condition.reason.as_deref().unwrap_or_default(),
    )
}

fn message<'a>(said: &'a [HostCondition], kind: &str) -> &'a str {
    let condition = said.iter().find(|it| it.type_ == kind).expect(kind);
    condition.message.as_deref().unwrap_or_default()
}

fn said(report: &Report<'_>) -> Vec<HostCondition> {
    conditions(report, &[], at(0))
}

#[test]
fn the_three_conditions_of_the_original_say_what_its_table_says() {
    let unsettled = ["Deployment nmstate-webhook: none of its pods is available".to_owned()];
    let failures = ["applying Service nmstate/nmstate-webhook failed".to_owned()];
    let rows = [
        (
            &unsettled[..],
            &[][..],
            ("True", "Deploying"),
            ("False", "Deploying"),
            ("False", "Deploying"),
        ),
        (
            &[],
            &[],
            ("False", "SuccessfullyDeployed"),
            ("True", "SuccessfullyDeployed"),
            ("False", "SuccessfullyDeployed"),
        ),
        (
            &[],
            &failures,
            ("False", "InternalError"),
            ("False", "InternalError"),
            ("True", "InternalError"),
        ),
        (
            &unsettled,
            &failures,
            ("False", "InternalError"),
            ("False", "InternalError"),
            ("True", "InternalError"),
        ),
    ];
    for (unsettled, failures, progressing, available, degraded) in rows {
        let said = said(&Report {
            unsettled: unsettled.to_vec(),
            failures: failures.to_vec(),
            ..Report::default()
        });
        assert_eq!(of(&said, "Progressing"), progressing);
        assert_eq!(of(&said, "Available"), available);
        assert_eq!(of(&said, "Degraded"), degraded);
        let expected = failures.first().map_or("", String::as_str);
        assert_eq!(message(&said, "Degraded"), expected);
    }
}

#[test]
fn a_profile_makes_nothing_unavailable_and_is_degraded_only_where_it_has_to_be() {
    let partly = || Outcome::Partly("ignored ciphers DES-CBC3-SHA".to_owned());
    let unusable = || Outcome::Unusable("no cipher at all".to_owned());
    let unread = || Outcome::Unread("no answer".to_owned());
    let honoured = ("False", "TLSProfileHonored");
    let rows = [
        (
            Outcome::Honoured,
            false,
            ("False", "SuccessfullyDeployed"),
            honoured,
            honoured,
        ),
        (
            Outcome::Honoured,
            true,
            ("False", "SuccessfullyDeployed"),
            honoured,
            honoured,
        ),
        (
            partly(),
            false,
            ("False", "SuccessfullyDeployed"),
            ("True", "TLSProfileNotFullyHonored"),
            honoured,
        ),
        (
            partly(),
            true,
            ("True", "TLSProfileNotFullyHonored"),
            ("True", "TLSProfileNotFullyHonored"),
            honoured,
        ),
        (
            unusable(),
            false,
            ("True", "TLSProfileUnusable"),
            honoured,
            ("True", "TLSProfileUnusable"),
        ),
        (
            unread(),
            true,
            ("False", "SuccessfullyDeployed"),
            honoured,
            ("Unknown", "InternalError"),
        ),
    ];
    for (outcome, strict, degraded, not_fully, not_at_all) in rows {
        let decision = decided(outcome, strict);
        let said = said(&Report {
            profile: Some(&decision),
            ..Report::default()
        });
        assert_eq!(
            of(&said, "Available"),
            ("True", "SuccessfullyDeployed"),
            "{decision:?}"
        );
        assert_eq!(of(&said, "Degraded"), degraded, "{decision:?}");
        assert_eq!(
            of(&said, "TLSProfileNotFullyHonored"),
            not_fully,
            "{decision:?}"
        );
        assert_eq!(of(&said, "TLSProfileUnusable"), not_at_all, "{decision:?}");
    }
}

#[test]
fn the_message_names_what_is_left_out_what_stays_and_what_is_unknown() {
    let mut decision = decided(Outcome::Partly("ignored ciphers X".to_owned()), true);
    decision
        .notes
        .push("tlsAdherence \"Later\" is unknown".to_owned());
    let partly = said(&Report {
        profile: Some(&decision),
        ..Report::default()
    });
    assert_eq!(
        message(&partly, "TLSProfileNotFullyHonored"),
        "ignored ciphers X; tlsAdherence \"Later\" is unknown"
    );
    assert_eq!(message(&partly, "Degraded"), "ignored ciphers X");
    let decision = decided(Outcome::Unusable("no cipher at all".to_owned()), false);
    let unusable = said(&Report {
        profile: Some(&decision),
        ..Report::default()
    });
    assert_eq!(
        message(&unusable, "TLSProfileUnusable"),
        "no cipher at all; the profile that was in force stays"
    );
}

#[test]
fn pods_that_have_not_loaded_the_profile_are_named_until_they_have() {
    let decision = decided(Outcome::Honoured, false);
    let mut report = Report {
        profile: Some(&decision),
        loading: vec!["pod nmstate-webhook-1 serves another profile".to_owned()],
        ..Report::default()
    };
    let loading = said(&report);
    assert_eq!(
        of(&loading, "TLSProfileNotFullyHonored"),
        ("Unknown", "TLSProfileLoading")
    );
    assert_eq!(of(&loading, "Available"), ("True", "SuccessfullyDeployed"));
    let partly = decided(
        Outcome::Partly("RSA key exchange is left out".to_owned()),
        false,
    );
    let both = Report {
        profile: Some(&partly),
        loading: report.loading.clone(),
        ..Report::default()
    };
    assert_eq!(
        message(&said(&both), "TLSProfileNotFullyHonored"),
        "RSA key exchange is left out\npod nmstate-webhook-1 serves another profile"
    );
    report.loading.clear();
    assert_eq!(
        of(&said(&report), "TLSProfileNotFullyHonored"),
        ("False", "TLSProfileHonored")
    );
}

#[test]
fn what_is_said_again_is_the_same_and_keeps_its_time() {
    let decision = decided(Outcome::Honoured, false);
    let report = Report {
        profile: Some(&decision),
        ..Report::default()
    };
    let first = conditions(&report, &[], at(0));
    let second = conditions(&report, &first, at(60));
    assert!(same(&first, &second));
    assert_eq!(second[0].last_transition_time, Some(Time(at(0))));
    assert_eq!(second[0].last_heartbeat_time, Some(Time(at(60))));
    let failed = Report {
        failures: vec!["no".to_owned()],
        ..Report::default()
    };
    let third = conditions(&failed, &second, at(90));
    assert!(!same(&second, &third));
    let available = third
        .iter()
        .find(|it| it.type_ == "Available")
        .expect("one");
    assert_eq!(available.last_transition_time, Some(Time(at(90))));
}

#[test]
fn a_younger_nmstate_is_told_which_one_counts() {
    let before = conditions(
        &Report {
            profile: Some(&decided(Outcome::Honoured, false)),
            ..Report::default()
        },
        &[],
        at(0),
    );
    let said = superseded("first", &before, at(1));
    assert_eq!(of(&said, "Available"), ("False", "NotTheOldest"));
    assert_eq!(of(&said, "Progressing"), ("False", "NotTheOldest"));
    assert_eq!(of(&said, "Degraded"), ("True", "NotTheOldest"));
    assert!(message(&said, "Degraded").contains("NMState first is older"));
    assert_eq!(said.len(), 3);
}

#[test]
fn the_oldest_nmstate_counts_and_one_that_is_being_deleted_does_not() {
    let made = |name: &str, seconds: i64| {
        let mut one = NMState::new(name, Default::default());
        one.metadata.creation_timestamp = Some(Time(at(seconds)));
        one
    };
    let name = |all: &[NMState]| oldest(all).and_then(|it| it.metadata.name.clone());
    let mut all = vec![made("c", 5), made("b", 3), made("a", 3), made("z", 9)];
    assert_eq!(name(&all).as_deref(), Some("a"));
    all[2].metadata.deletion_timestamp = Some(Time(at(10)));
    assert_eq!(name(&all).as_deref(), Some("b"));
    assert_eq!(name(&[]), None);
}

fn deploys(generation: i64, replicas: i32, status: DeploymentStatus) -> Option<String> {
    let mut object = Deployment::default();
    object.metadata.name = Some("it".to_owned());
    object.metadata.generation = Some(generation);
    object.spec = Some(k8s_openapi::api::apps::v1::DeploymentSpec {
        replicas: Some(replicas),
        ..Default::default()
    });
    object.status = Some(status);
    deployment(&object)
}

#[test]
fn a_deployment_is_settled_when_its_last_change_runs_everywhere() {
    let settled = DeploymentStatus {
        observed_generation: Some(2),
        available_replicas: Some(2),
        updated_replicas: Some(2),
        ..DeploymentStatus::default()
    };
    assert_eq!(deploys(2, 2, settled.clone()), None);
    assert_eq!(
        deploys(
            2,
            0,
            DeploymentStatus {
                observed_generation: Some(2),
                ..Default::default()
            }
        ),
        None
    );
    let said = |replicas, status| deploys(2, replicas, status).expect("not settled");
    let behind = DeploymentStatus {
        observed_generation: Some(1),
        ..settled.clone()
    };
    assert_eq!(
        said(2, behind),
        "Deployment it: its change was not taken up yet"
    );
    let missing = DeploymentStatus {
        unavailable_replicas: Some(1),
        ..settled.clone()
    };
    assert_eq!(
        said(2, missing),
        "Deployment it: 1 of its pods are not available"
    );
    let none = DeploymentStatus {
        available_replicas: None,
        ..settled.clone()
    };
    assert_eq!(
        said(2, none),
        "Deployment it: none of its pods is available"
    );
    let older = DeploymentStatus {
        updated_replicas: Some(1),
        ..settled
    };
    assert_eq!(
        said(2, older),
        "Deployment it: 1 of 2 pods are of its last change"
    );
}

#[test]
fn a_daemon_set_is_settled_when_its_last_change_runs_everywhere() {
    let settled = DaemonSetStatus {
        observed_generation: Some(2),
        desired_number_scheduled: 3,
        number_available: Some(3),
        updated_number_scheduled: Some(3),
        ..DaemonSetStatus::default()
    };
    let said = |status| {
        let mut object = DaemonSet::default();
        object.metadata.name = Some("it".to_owned());
        object.metadata.generation = Some(2);
        object.status = Some(status);
        daemon_set(&object)
    };
    assert_eq!(said(settled.clone()), None);
    assert_eq!(
        said(DaemonSetStatus {
            observed_generation: Some(2),
            ..Default::default()
        }),
        None
    );
    let rows = [
        (
            DaemonSetStatus {
                observed_generation: None,
                ..settled.clone()
            },
            "its change was not taken up yet",
        ),
        (
            DaemonSetStatus {
                number_unavailable: Some(1),
                ..settled.clone()
            },
            "1 of its pods are not available",
        ),
        (
            DaemonSetStatus {
                number_available: None,
                ..settled.clone()
            },
            "none of its pods is available",
        ),
        (
            DaemonSetStatus {
                updated_number_scheduled: Some(2),
                ..settled
            },
            "2 of 3 pods are of its last change",
        ),
    ];
    for (status, why) in rows {
        assert_eq!(said(status), Some(format!("DaemonSet it: {why}")));
    }
}
