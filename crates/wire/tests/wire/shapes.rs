//! Each task's parameters, to the letter as the original's client sends them, and what is understood
//! beside that.

use keelson_api::task::TaskType;
use keelson_wire::params::{
    Action, AwaitCondition, Condition, ConfigApply, ConfigPatch, ConfigureGenesis,
    ConfigureStateSync, DiscoverPeers, PeerSource, SnapshotRestore,
};
use keelson_wire::{Object, Task, TaskRequest};
use serde_json::{Value, json};

pub(crate) fn object(value: Value) -> Object {
    value.as_object().expect("an object").clone()
}

pub(crate) fn decode(type_: TaskType, params: Value) -> Task {
    let task = Task::decode(type_, &object(params)).expect("a sidecar's task");
    task.expect("parameters of the right shape")
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Every shape a task is sent in, with what it means.
pub(crate) fn examples() -> Vec<(Value, Task)> {
    let sources = vec![
        PeerSource::Ec2Tags {
            region: "eu-central-1".into(),
            tags: [("Chain".to_owned(), "arctic-1".to_owned())].into(),
        },
        PeerSource::Static {
            addresses: texts(["ab12@10.0.0.1:26656"]),
        },
        PeerSource::DnsEndpoints {
            endpoints: texts(["node-0.node-0.sei.svc.cluster.local"]),
        },
    ];
    let files = json!({"config.toml": {"p2p": {"persistent-peers": "a@b:1", "upnp": null}},
                       "app.toml": {"state-store": {"ss-enable": true}}});
    vec![
        (
            json!({"type": "snapshot-restore"}),
            Task::SnapshotRestore(SnapshotRestore::default()),
        ),
        (
            json!({"type": "snapshot-restore", "params": {"targetHeight": 198740000}}),
            Task::SnapshotRestore(SnapshotRestore {
                target_height: 198_740_000,
            }),
        ),
        (
            json!({"type": "configure-genesis"}),
            Task::ConfigureGenesis(ConfigureGenesis::default()),
        ),
        (
            json!({"type": "configure-genesis", "params": {"expectedGenesisHash": "ab12"}}),
            Task::ConfigureGenesis(ConfigureGenesis {
                expected_genesis_hash: "ab12".into(),
            }),
        ),
        (
            json!({"type": "config-apply", "params": {"mode": "full"}}),
            Task::ConfigApply(ConfigApply {
                mode: "full".into(),
                ..ConfigApply::default()
            }),
        ),
        (
            json!({"type": "config-apply", "params": {
                "mode": "", "overrides": {"logging.level": "info"}, "targetVersion": 2, "incremental": true,
            }}),
            Task::ConfigApply(ConfigApply {
                mode: String::new(),
                overrides: [("logging.level".to_owned(), "info".to_owned())].into(),
                target_version: 2,
                incremental: true,
            }),
        ),
        (
            json!({"type": "config-patch", "params": {"files": files}}),
            Task::ConfigPatch(ConfigPatch {
                files: object(files),
            }),
        ),
        (json!({"type": "config-validate"}), Task::ConfigValidate),
        (
            json!({"type": "discover-peers", "params": {"sources": [
                {"type": "ec2Tags", "region": "eu-central-1", "tags": {"Chain": "arctic-1"}},
                {"type": "static", "addresses": ["ab12@10.0.0.1:26656"]},
                {"type": "dnsEndpoints", "endpoints": ["node-0.node-0.sei.svc.cluster.local"]},
            ]}}),
            Task::DiscoverPeers(DiscoverPeers { sources }),
        ),
        (
            json!({"type": "configure-state-sync"}),
            Task::ConfigureStateSync(ConfigureStateSync::default()),
        ),
        (
            json!({"type": "configure-state-sync", "params": {
                "useLocalSnapshot": true, "trustPeriod": "168h0m0s", "backfillBlocks": 100,
                "rpcServers": ["a:26657", "b:443"],
            }}),
            Task::ConfigureStateSync(ConfigureStateSync {
                use_local_snapshot: true,
                trust_period: "168h0m0s".into(),
                backfill_blocks: 100,
                rpc_servers: texts(["a:26657", "b:443"]),
            }),
        ),
        (json!({"type": "mark-ready"}), Task::MarkReady),
        (json!({"type": "mark-not-ready"}), Task::MarkNotReady),
        (json!({"type": "stop-seid"}), Task::StopSeid),
        (json!({"type": "restart-seid"}), Task::RestartSeid),
        (json!({"type": "reset-data"}), Task::ResetData),
        (json!({"type": "snapshot-upload"}), Task::SnapshotUpload),
        (
            json!({"type": "snapshot-upload-once"}),
            Task::SnapshotUploadOnce,
        ),
        (
            json!({"type": "await-condition", "params": {
                "condition": "height", "targetHeight": 5, "action": "SIGTERM_SEID",
            }}),
            Task::AwaitCondition(AwaitCondition {
                condition: Condition::Height,
                target_height: 5,
                action: Some(Action::SigtermSeid),
            }),
        ),
        (
            json!({"type": "await-condition", "params": {"condition": "catchingUp"}}),
            Task::AwaitCondition(AwaitCondition {
                condition: Condition::CatchingUp,
                target_height: 0,
                action: None,
            }),
        ),
    ]
}

#[test]
fn each_task_is_sent_and_read_in_the_shape_of_the_original() {
    for (wire, task) in examples() {
        let sent = serde_json::to_value(TaskRequest::new(None, &task)).expect("JSON");
        assert_eq!(sent, wire);
        let params = wire.get("params").cloned().unwrap_or_else(|| json!({}));
        assert_eq!(decode(task.type_(), params), task, "{wire}");
        assert_eq!(task.check(), Ok(()), "{wire}");
    }
}

#[test]
fn the_examples_have_every_type() {
    for type_ in Task::TYPES {
        assert!(
            examples().iter().any(|(_, task)| task.type_() == type_),
            "{type_}"
        );
        assert_eq!(Task::type_of(type_.as_str()), Some(type_));
    }
    for other in [
        "gov-vote",
        "config-reload",
        "apply-statefulset",
        "",
        "mark_ready",
    ] {
        assert_eq!(Task::type_of(other), None, "{other}");
    }
    assert_eq!(Task::decode(TaskType::GovVote, &Object::new()), None);
}

#[test]
fn null_is_absent_and_what_nobody_knows_is_ignored() {
    let nothing = SnapshotRestore::default();
    for params in [
        json!({}),
        json!({"targetHeight": null}),
        json!({"future": [1]}),
    ] {
        assert_eq!(
            decode(TaskType::SnapshotRestore, params),
            Task::SnapshotRestore(nothing.clone())
        );
    }
    let nulls =
        json!({"mode": null, "overrides": null, "targetVersion": null, "incremental": null});
    assert_eq!(
        decode(TaskType::ConfigApply, nulls),
        Task::ConfigApply(ConfigApply::default())
    );
    let nulls = json!({"useLocalSnapshot": null, "trustPeriod": null, "backfillBlocks": null, "rpcServers": null});
    let expected = Task::ConfigureStateSync(ConfigureStateSync::default());
    assert_eq!(decode(TaskType::ConfigureStateSync, nulls), expected);
    let source =
        json!({"sources": [{"type": "static", "addresses": null, "region": "x", "new": 1}]});
    let expected = vec![PeerSource::Static {
        addresses: Vec::new(),
    }];
    assert_eq!(
        decode(TaskType::DiscoverPeers, source),
        Task::DiscoverPeers(DiscoverPeers { sources: expected })
    );
    assert_eq!(
        decode(TaskType::MarkReady, json!({"anything": 1})),
        Task::MarkReady
    );
    let wait = json!({"condition": "catchingUp", "action": "", "targetHeight": null});
    assert!(
        matches!(decode(TaskType::AwaitCondition, wait), Task::AwaitCondition(it) if it.action.is_none())
    );
    // Genesis parameters of older callers.
    let older = json!({"uri": "s3://bucket/key", "region": "x"});
    assert_eq!(
        decode(TaskType::ConfigureGenesis, older),
        Task::ConfigureGenesis(ConfigureGenesis::default())
    );
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    for (written, height) in [
        (json!(5), 5),
        (json!(5.0), 5),
        (json!(1.5e3), 1500),
        (json!(-0.0), 0),
    ] {
        let task = decode(TaskType::SnapshotRestore, json!({"targetHeight": written}));
        assert_eq!(
            task,
            Task::SnapshotRestore(SnapshotRestore {
                target_height: height
            })
        );
    }
}

#[test]
fn parameters_of_another_shape_are_refused_with_what_is_wrong() {
    for (type_, params, sentence) in [
        (
            TaskType::SnapshotRestore,
            json!({"targetHeight": "5"}),
            "expected a JSON number",
        ),
        (
            TaskType::SnapshotRestore,
            json!({"targetHeight": 5.5}),
            "5.5 is not a whole number",
        ),
        (
            TaskType::SnapshotRestore,
            json!({"targetHeight": u64::MAX}),
            "is not a whole number",
        ),
        (
            TaskType::SnapshotRestore,
            json!({"targetHeight": 1e300}),
            "is not a whole number",
        ),
        (
            TaskType::ConfigureGenesis,
            json!({"expectedGenesisHash": 5}),
            "expected a string",
        ),
        (
            TaskType::ConfigApply,
            json!({"overrides": {"a": 1}}),
            "expected a string",
        ),
        (
            TaskType::ConfigApply,
            json!({"incremental": "yes"}),
            "expected a boolean",
        ),
        (
            TaskType::ConfigPatch,
            json!({"files": []}),
            "expected a map",
        ),
        (
            TaskType::DiscoverPeers,
            json!({"sources": [{"type": "dns"}]}),
            "unknown variant `dns`",
        ),
        (
            TaskType::DiscoverPeers,
            json!({"sources": [{}]}),
            "missing field `type`",
        ),
        (
            TaskType::ConfigureStateSync,
            json!({"rpcServers": "a:1"}),
            "expected a sequence",
        ),
        (
            TaskType::AwaitCondition,
            json!({}),
            "missing field `condition`",
        ),
        (
            TaskType::AwaitCondition,
            json!({"condition": "moon"}),
            "expected `height` or `catchingUp`",
        ),
        (
            TaskType::AwaitCondition,
            json!({"condition": "height", "action": "SIGKILL"}),
            "unknown action \"SIGKILL\": use SIGTERM_SEID or none",
        ),
    ] {
        let refused = Task::decode(type_, &object(params)).expect("a sidecar's task");
        let error = refused.expect_err(sentence).to_string();
        assert!(error.starts_with("parsing params: "), "{error}");
        assert!(error.contains(sentence), "{error}");
    }
}

#[test]
fn parameters_that_make_no_sense_are_named() {
    for (type_, params, sentence) in [
        (
            TaskType::SnapshotRestore,
            json!({"targetHeight": -1}),
            "snapshot-restore: targetHeight is negative",
        ),
        (
            TaskType::ConfigPatch,
            json!({}),
            "config-patch: at least one file is required",
        ),
        (
            TaskType::DiscoverPeers,
            json!({}),
            "discover-peers: at least one source is required",
        ),
        (
            TaskType::DiscoverPeers,
            json!({"sources": [{"type": "static", "addresses": ["a"]}, {"type": "ec2Tags", "tags": {"a": "b"}}]}),
            "discover-peers: source[1]: ec2Tags needs a region",
        ),
        (
            TaskType::DiscoverPeers,
            json!({"sources": [{"type": "ec2Tags", "region": "x"}]}),
            "source[0]: ec2Tags needs at least one tag",
        ),
        (
            TaskType::DiscoverPeers,
            json!({"sources": [{"type": "static"}]}),
            "static needs at least one address",
        ),
        (
            TaskType::DiscoverPeers,
            json!({"sources": [{"type": "dnsEndpoints"}]}),
            "dnsEndpoints needs at least one endpoint",
        ),
        (
            TaskType::AwaitCondition,
            json!({"condition": "height"}),
            "targetHeight must be greater than 0",
        ),
        (
            TaskType::AwaitCondition,
            json!({"condition": "height", "targetHeight": -5}),
            "await-condition: ",
        ),
    ] {
        let error = decode(type_, params)
            .check()
            .expect_err(sentence)
            .to_string();
        assert!(error.contains(sentence), "{error}");
    }
}
