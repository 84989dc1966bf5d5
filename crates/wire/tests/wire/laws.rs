//! Laws over random tasks and bodies.

use keelson_wire::params::{
    Action, AwaitCondition, Condition, ConfigApply, ConfigPatch, ConfigureGenesis,
    ConfigureStateSync, DiscoverPeers, PeerSource, SnapshotRestore,
};
use keelson_wire::{Object, Submission, Task, TaskRequest, id};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

fn sources() -> impl Strategy<Value = PeerSource> {
    prop_oneof![
        (".{0,6}", btree_map(".{0,4}", ".{0,4}", 0..3))
            .prop_map(|(region, tags)| PeerSource::Ec2Tags { region, tags }),
        vec(".{0,8}", 0..3).prop_map(|addresses| PeerSource::Static { addresses }),
        vec(".{0,8}", 0..3).prop_map(|endpoints| PeerSource::DnsEndpoints { endpoints }),
    ]
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((".{0,4}", inner), 0..3).prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

fn objects() -> impl Strategy<Value = Object> {
    vec((".{0,6}", json_values()), 0..3).prop_map(|fields| fields.into_iter().collect())
}

fn tasks() -> impl Strategy<Value = Task> {
    let apply = (
        ".{0,6}",
        btree_map(".{0,6}", ".{0,6}", 0..3),
        any::<i64>(),
        any::<bool>(),
    );
    let sync = (any::<bool>(), ".{0,6}", any::<i64>(), vec(".{0,6}", 0..3));
    let wait = (
        select(vec![Condition::Height, Condition::CatchingUp]),
        any::<i64>(),
        select(vec![None, Some(Action::SigtermSeid)]),
    );
    let bare = select(vec![
        Task::ConfigValidate,
        Task::MarkReady,
        Task::MarkNotReady,
        Task::StopSeid,
        Task::RestartSeid,
        Task::ResetData,
        Task::SnapshotUpload,
        Task::SnapshotUploadOnce,
    ]);
    prop_oneof![
        any::<i64>()
            .prop_map(|target_height| Task::SnapshotRestore(SnapshotRestore { target_height })),
        ".{0,8}".prop_map(|hash| Task::ConfigureGenesis(ConfigureGenesis {
            expected_genesis_hash: hash
        })),
        apply.prop_map(|(mode, overrides, target_version, incremental)| {
            Task::ConfigApply(ConfigApply {
                mode,
                overrides,
                target_version,
                incremental,
            })
        }),
        objects().prop_map(|files| Task::ConfigPatch(ConfigPatch { files })),
        vec(sources(), 0..3).prop_map(|sources| Task::DiscoverPeers(DiscoverPeers { sources })),
        sync.prop_map(
            |(use_local_snapshot, trust_period, backfill_blocks, rpc_servers)| {
                Task::ConfigureStateSync(ConfigureStateSync {
                    use_local_snapshot,
                    trust_period,
                    backfill_blocks,
                    rpc_servers,
                })
            }
        ),
        wait.prop_map(|(condition, target_height, action)| {
            Task::AwaitCondition(AwaitCondition {
                condition,
                target_height,
                action,
            })
        }),
        bare,
    ]
}

/// The first null outside of `files`, where one means something.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields
            .iter()
            .any(|(name, field)| name != "files" && has_null(field)),
        Value::Array(entries) => entries.iter().any(has_null),
        _ => false,
    }
}

fn shuffled(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let backwards = fields.iter().rev();
            Value::Object(backwards.map(|(k, v)| (k.clone(), shuffled(v))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn every_task_survives_being_sent_and_read(task in tasks()) {
        let sent = serde_json::to_vec(&TaskRequest::new(None, &task)).expect("JSON");
        let submission = Submission::read(&sent).expect("a submission");
        prop_assert_eq!(submission.type_, task.type_());
        let read = Task::decode(submission.type_, &submission.params);
        prop_assert_eq!(read, Some(Ok(task)));
    }

    #[test]
    fn no_null_is_ever_sent(task in tasks()) {
        let sent = serde_json::to_value(TaskRequest::new(None, &task)).expect("JSON");
        prop_assert!(!has_null(&sent), "{}", sent);
    }

    #[test]
    fn the_order_of_fields_does_not_name_an_effect(task in tasks()) {
        let params = shuffled(&Value::Object(task.params()));
        let again = Task::decode(task.type_(), params.as_object().expect("an object"));
        let again = again.expect("a task").expect("parameters");
        prop_assert_eq!(id::params_hash(&again), id::params_hash(&task));
    }

    #[test]
    fn any_body_is_accepted_or_refused_with_a_sentence(body in vec(any::<u8>(), 0..64)) {
        if let Err(refusal) = Submission::read(&body) {
            prop_assert!(!refusal.to_string().is_empty());
        }
    }

    #[test]
    fn any_json_is_accepted_or_refused_and_what_is_accepted_has_a_type(
        id in json_values(), type_ in json_values(), params in json_values(), known: bool,
    ) {
        let type_ = if known { json!("config-patch") } else { type_ };
        let body = json!({"id": id, "type": type_, "params": params}).to_string();
        if let Ok(submission) = Submission::read(body.as_bytes()) {
            prop_assert!(Task::TYPES.contains(&submission.type_));
            prop_assert!(Task::decode(submission.type_, &submission.params).is_some());
        }
    }

    #[test]
    fn any_parameters_are_read_or_refused(params in objects()) {
        for type_ in Task::TYPES {
            match Task::decode(type_, &params).expect("a sidecar's task") {
                Ok(task) => prop_assert_eq!(task.type_(), type_),
                Err(error) => prop_assert!(error.to_string().starts_with("parsing params: ")),
            }
        }
    }
}
