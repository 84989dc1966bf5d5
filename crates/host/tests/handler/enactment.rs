//! What is told of a policy on a host.

use jiff::{SignedDuration, Timestamp};
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus as Status;
use keelson_api::host_condition::{EnactmentCondition, EnactmentReason};
use keelson_host::handler::enactment::{
    After, Failure, Retries, Standing, begin, failed, failures, is_available, is_finished,
    is_progressing, is_retrying, may_try, unknown,
};

const RETRIES: Retries = Retries {
    attempts: 5,
    first: SignedDuration::from_secs(1),
    longest: SignedDuration::from_secs(5),
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn standings() -> Vec<Standing> {
    vec![
        Standing::Progressing,
        Standing::Retrying {
            node: "node01".to_owned(),
            attempt: 2,
            of: 5,
            error: "no carrier".to_owned(),
        },
        Standing::Failed(Failure::Applying {
            node: "node01".to_owned(),
            error: "no carrier".to_owned(),
        }),
        Standing::Configured,
        Standing::Pending,
        Standing::Aborted {
            name: "node01.policy".to_owned(),
            why: "node02 is lost".to_owned(),
        },
    ]
}

/// One line for each condition: what stands in the table.
fn table(standing: &Standing) -> Vec<String> {
    let conditions = standing.conditions(at(0));
    let line = |it: &HostCondition| {
        let reason = it.reason.as_deref().unwrap_or("-");
        let message = it.message.as_deref().unwrap_or("-");
        format!("{} {} {reason} {message}", it.type_, it.status)
    };
    conditions.iter().map(line).collect()
}

#[test]
fn every_standing_says_what_the_original_says() {
    let expected = [
        [
            "Available Unknown ConfigurationProgressing -",
            "Failing Unknown ConfigurationProgressing -",
            "Progressing True ConfigurationProgressing Applying desired state",
            "Pending False ConfigurationProgressing -",
            "Aborted False ConfigurationProgressing -",
        ],
        [
            "Available False Retrying -",
            "Failing True Retrying failed to reconcile NodeNetworkConfigurationPolicy on node node01. Retrying 2/5: no carrier",
            "Progressing True Retrying failed to reconcile NodeNetworkConfigurationPolicy on node node01. Retrying 2/5: no carrier",
            "Pending False Retrying -",
            "Aborted False SuccessfullyConfigured -",
        ],
        [
            "Available False FailedToConfigure -",
            "Failing True FailedToConfigure error reconciling NodeNetworkConfigurationPolicy on node node01 at desired state apply: no carrier",
            "Progressing False FailedToConfigure -",
            "Pending False FailedToConfigure -",
            "Aborted False SuccessfullyConfigured -",
        ],
        [
            "Available True SuccessfullyConfigured successfully reconciled",
            "Failing False SuccessfullyConfigured -",
            "Progressing False SuccessfullyConfigured -",
            "Pending False SuccessfullyConfigured -",
            "Aborted False SuccessfullyConfigured -",
        ],
        [
            "Available False MaxUnavailableLimitReached -",
            "Failing False MaxUnavailableLimitReached -",
            "Progressing False MaxUnavailableLimitReached Waiting for progressing nodes to finish",
            "Pending True MaxUnavailableLimitReached Waiting for progressing nodes to finish",
            "Aborted False MaxUnavailableLimitReached -",
        ],
        [
            "Available False ConfigurationAborted -",
            "Failing False ConfigurationAborted -",
            "Progressing False ConfigurationAborted -",
            "Pending False ConfigurationAborted -",
            "Aborted True ConfigurationAborted reconciliation of enactment \"node01.policy\" has aborted: node02 is lost",
        ],
    ];
    for (standing, expected) in standings().iter().zip(expected) {
        assert_eq!(table(standing), expected);
    }
}

#[test]
fn every_way_to_fail_has_its_words() {
    let said = |failure| {
        let all = Standing::Failed(failure).conditions(at(0));
        (all[1].reason.clone(), all[1].message.clone())
    };
    let words = |reason: EnactmentReason, message: &str| {
        (Some(reason.as_str().to_owned()), Some(message.to_owned()))
    };
    assert_eq!(
        said(Failure::Rendering("no such capture".to_owned())),
        words(
            EnactmentReason::FailedToConfigure,
            "failure generating desiredState and capturedStates: no such capture"
        )
    );
    assert_eq!(
        said(Failure::Refused("not valid".to_owned())),
        words(EnactmentReason::FailedToConfigure, "not valid")
    );
    assert_eq!(
        said(Failure::Conflict {
            policy: "other".to_owned(),
            about: "both configure interface eth0".to_owned()
        }),
        words(
            EnactmentReason::PolicyConflict,
            "conflicts with policy other: both configure interface eth0"
        )
    );
}

#[test]
fn heartbeats_move_always_and_transitions_with_the_status() {
    let mut conditions = unknown(at(1));
    Standing::Progressing.set(&mut conditions, at(2));
    Standing::Progressing.set(&mut conditions, at(3));
    let times = |conditions: &[HostCondition], kind: EnactmentCondition| {
        let it = conditions.iter().find(|it| it.type_ == kind.as_str());
        let it = it.expect("a condition");
        let second = |time: &Option<_>| {
            let time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time =
                time.as_ref().expect("a time");
            time.0.as_second()
        };
        (
            second(&it.last_heartbeat_time),
            second(&it.last_transition_time),
        )
    };
    // Was unknown and still is; became true once.
    assert_eq!(times(&conditions, EnactmentCondition::Failing), (3, 1));
    assert_eq!(times(&conditions, EnactmentCondition::Progressing), (3, 2));
    assert_eq!(conditions.len(), 5);
    Standing::Configured.set(&mut conditions, at(4));
    assert_eq!(times(&conditions, EnactmentCondition::Progressing), (4, 4));
    assert_eq!(times(&conditions, EnactmentCondition::Pending), (4, 2));
}

#[test]
fn what_is_told_already_need_not_be_written() {
    for (this, standing) in standings().iter().enumerate() {
        let mut conditions = unknown(at(1));
        assert!(!standing.is_told(&conditions));
        standing.set(&mut conditions, at(2));
        for (other, told) in standings().iter().enumerate() {
            assert_eq!(told.is_told(&conditions), this == other);
        }
    }
}

#[test]
fn what_conditions_say_of_a_policy_follows_from_two_of_them() {
    let told = |standing: &Standing| {
        let said = standing.conditions(at(0));
        [
            is_available(&said),
            is_progressing(&said),
            is_retrying(&said),
            is_finished(&said),
        ]
    };
    let truths: Vec<_> = standings().iter().map(told).collect();
    assert_eq!(
        truths,
        [
            [false, true, false, false],
            [false, true, true, false],
            [false, false, false, true],
            [true, false, false, true],
            [false, false, false, false],
            [false, false, false, true],
        ]
    );
    for nothing in [vec![], unknown(at(0))] {
        assert!(!is_available(&nothing) && !is_progressing(&nothing));
        assert!(!is_retrying(&nothing) && !is_finished(&nothing));
    }
    let mut odd = unknown(at(0));
    odd[0].status = "Perhaps".to_owned();
    let available = HostCondition::truth(&odd, EnactmentCondition::Available);
    assert_eq!(available, Truth::Unknown);
}

#[test]
fn a_new_generation_begins_anew_and_the_same_one_goes_on() {
    let mut status = Status::default();
    begin(&mut status, 3, at(1));
    assert_eq!(status.conditions, unknown(at(1)));
    Standing::Configured.set(&mut status.conditions, at(2));
    failed(&mut status, 3, &RETRIES);
    let before = status.clone();
    begin(&mut status, 3, at(3));
    assert_eq!(status, before, "nothing changes while the policy does not");
    begin(&mut status, 4, at(4));
    assert_eq!(status.policy_generation, Some(4));
    assert_eq!(status.conditions, unknown(at(4)));
    assert_eq!(failures(&status, 4), 0);
    assert!(status.retry_count.is_empty(), "what is over is not kept");
}

#[test]
fn attempts_are_counted_by_generation_and_come_after_growing_pauses() {
    let mut status = Status::default();
    let mut pauses = Vec::new();
    for number in 2..=5 {
        assert!(may_try(&status, 7, &RETRIES));
        match failed(&mut status, 7, &RETRIES) {
            After::Attempt {
                number: next,
                pause,
            } => {
                assert_eq!(next, number);
                pauses.push(pause.as_secs());
            }
            After::Nothing => panic!("attempt {number} is left"),
        }
    }
    assert_eq!(pauses, [1, 2, 4, 5]);
    assert_eq!(failed(&mut status, 7, &RETRIES), After::Nothing);
    assert!(!may_try(&status, 7, &RETRIES));
    assert_eq!(status.retry_count, [("7".to_owned(), 5)].into());
    assert!(may_try(&status, 8, &RETRIES), "an edit is tried at once");
}

#[test]
fn there_is_always_one_attempt_and_an_odd_count_is_none() {
    let once = Retries {
        attempts: 0,
        ..RETRIES
    };
    let mut status = Status::default();
    status.retry_count.insert("1".to_owned(), -3);
    assert!(may_try(&status, 1, &once));
    assert_eq!(failed(&mut status, 1, &once), After::Nothing);
}
