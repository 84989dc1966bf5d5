//! The list of each kind of plan that sets a node up, task by task, as the specification has it.

use keelson_api::task::PlanKind;
use keelson_plan::{Source, Stage, Start, Task};

use crate::drafts::{assert_list, init, planned};
use crate::history::Operator;
use crate::targets::{issuer, s3};

const PREPARE: &str = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy";

#[test]
fn a_node_from_s3_restores_then_is_configured_then_approved() {
    let plan = init(s3(), None);
    assert_list(&plan, PlanKind::Init, Stage::Prepare, PREPARE);
    let node = "apply-statefulset apply-service observe-image snapshot-restore configure-genesis \
                config-apply discover-peers configure-state-sync config-validate mark-ready";
    assert_list(&plan, PlanKind::Init, Stage::Node, node);
}

#[test]
fn a_node_by_state_sync_restores_nothing() {
    let plan = init(Start::Base(Source::StateSync), None);
    let node = "apply-statefulset apply-service observe-image configure-genesis config-apply \
                discover-peers configure-state-sync config-validate mark-ready";
    assert_list(&plan, PlanKind::Init, Stage::Node, node);
}

#[test]
fn a_node_from_genesis_neither_restores_nor_syncs_state() {
    let plan = init(Start::Base(Source::Genesis), None);
    let node = "apply-statefulset apply-service observe-image configure-genesis config-apply \
                discover-peers config-validate mark-ready";
    assert_list(&plan, PlanKind::Init, Stage::Node, node);
}

#[test]
fn a_node_born_with_tls_has_its_certificate_before_any_pod() {
    let plan = init(s3(), Some(issuer("x")));
    let prepare = "ensure-data-pvc apply-sidecar-cert wait-for-sidecar-tls-secret \
                   apply-rbac-proxy-config apply-network-policy";
    assert_list(&plan, PlanKind::Init, Stage::Prepare, prepare);
    let node = "apply-statefulset apply-service observe-image observe-sidecar-tls snapshot-restore \
                configure-genesis config-apply discover-peers configure-state-sync config-validate \
                mark-ready";
    assert_list(&plan, PlanKind::Init, Stage::Node, node);
}

#[test]
fn a_bootstrap_is_over_and_gone_before_the_node_has_a_pod() {
    let plan = init(
        Start::Bootstrap {
            from: "bucket".to_owned(),
        },
        None,
    );
    let kind = PlanKind::Bootstrap;
    assert_list(&plan, kind, Stage::Prepare, PREPARE);
    let bootstrap = "deploy-bootstrap-service deploy-bootstrap-job snapshot-restore \
                     configure-genesis config-apply discover-peers configure-state-sync \
                     config-validate mark-ready await-bootstrap-complete teardown-bootstrap";
    assert_list(&plan, kind, Stage::Bootstrap, bootstrap);
    let node = "apply-statefulset apply-service observe-image configure-genesis config-apply \
                discover-peers config-validate mark-ready";
    assert_list(&plan, kind, Stage::Node, node);
}

#[test]
fn a_member_of_a_ceremony_gets_its_peers_from_it() {
    let plan = init(Start::Genesis, None);
    let node = "apply-statefulset apply-service observe-image generate-identity generate-gentx \
                upload-genesis-artifacts configure-genesis config-apply set-genesis-peers \
                config-validate mark-ready";
    assert_list(&plan, PlanKind::Genesis, Stage::Node, node);
}

#[test]
fn declared_keys_are_checked_before_a_pod_mounts_them_and_undeclared_ones_never() {
    let mut operator = Operator::new(s3(), true);
    operator.want.keys.signing = true;
    operator.want.publishes = true;
    let plan = planned(&operator, &operator.world.observe());
    let prepare = "ensure-data-pvc validate-signing-key apply-rbac-proxy-config \
                   apply-network-policy";
    assert_list(&plan, PlanKind::Init, Stage::Prepare, prepare);
    assert!(plan.has(Task::SnapshotUpload));
}
