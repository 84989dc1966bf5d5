//! What policies say of themselves, through the controller and a real API server; and what is left of
//! those that are gone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use keelson_cluster::Key;
use keelson_operator::controllers::Who;
use keelson_operator::host::policies::known::Subject;
use keelson_operator::host::run::{self, Watched};
use keelson_testbed::faults::{Call, FaultProxy};
use keelson_testbed::until;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(60);

fn key(name: &str) -> Key {
    Key {
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn writes(faults: &FaultProxy) -> Vec<String> {
    let all = faults.writes().into_iter();
    let ours = all.filter(|it| it.resource != "leases" && it.resource != "nmstates");
    ours.map(|it| it.to_string()).collect()
}

impl Operator {
    /// Waits until what is known of policies is what is there: every version of an object was heard of.
    async fn has_heard(&self, stage: &Stage) {
        let known = &self.controller.world.policies;
        until(
            "policies and enactments to be heard of",
            PATIENCE,
            async || {
                let all = stage.policies().list(&Default::default()).await;
                let all = all.map_err(|error| error.to_string())?.items;
                let policies = all.iter().all(|it| {
                    let heard = known.policies.get(&Key::of(it));
                    heard.is_some_and(|heard| {
                        Some(&heard.version) == it.metadata.resource_version.as_ref()
                    })
                });
                let enactments = stage.enacted().await.len() == known.enactments.len();
                let queued = known.queue.len() + known.queue.waiting() + known.queue.working();
                match policies && enactments && queued == 0 {
                    true => Ok(()),
                    false => Err(format!("{policies} {enactments} {queued}")),
                }
            },
        )
        .await
        .expect("news");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_says_how_it_stands_on_the_nodes_that_have_a_handler() {
    let stage = Stage::enter("standing").await;
    stage.hosts(&["st-a", "st-b"]).await;
    stage.node("st-bare", true).await;
    stage.policy("st-elsewhere", json!({"no": "such"})).await;
    let uid = stage.policy("st", json!({})).await;
    // As the original left it.
    let left = Patch::Merge(json!({"status": {"unavailableNodeCountMap": {"7": 3}}}));
    let (policies, how) = (stage.policies(), PatchParams::default());
    policies
        .patch_status("st", &how, &left)
        .await
        .expect("a status");
    stage.claims(&[("st-a", &uid, 1), ("st-b", &uid, 1)]).await;
    let _operator = stage.running_operator().await;
    let said = |done: &str| format!("Policy is progressing {done} nodes finished");

    stage
        .stands("st-elsewhere", "Ignored", "Policy does not match any node")
        .await;
    let policy = stage.stands("st", "Progressing", &said("0/2")).await;
    let counted = policy.status.expect("a status").unavailable_node_count_map;
    assert_eq!(counted, BTreeMap::from([("1".to_owned(), 2)]));
    stage.enacts("st-a", "st", 1, &["Available"]).await;
    stage.enacts("st-bare", "st", 1, &["Failing"]).await;
    stage.stands("st", "Progressing", &said("1/2")).await;
    stage
        .enacts("st-b", "st", 1, &["Failing", "Progressing"])
        .await;
    stage
        .stands("st", "Degraded", "1/2 nodes failed to configure")
        .await;
    stage.enacts("st-b", "st", 1, &["Aborted"]).await;
    let aborted = "0/2 nodes failed to configure, 1 nodes aborted configuration";
    stage.stands("st", "Degraded", aborted).await;
    stage.enacts("st-b", "st", 1, &["Available"]).await;
    let policy = stage
        .stands("st", "Available", "2/2 nodes successfully configured")
        .await;
    let status = policy.status.expect("a status");
    assert!(status.unavailable_node_count_map.is_empty(), "{status:?}");

    // A node that is not Ready is not waited for, and mentioned.
    stage.node("st-c", false).await;
    stage.handler("st-c", "handler-st-c").await;
    let ignored = "1 nodes ignored due to NotReady state";
    let well = format!("2/3 nodes successfully configured, {ignored}");
    stage.stands("st", "Available", &well).await;
    stage.enacts("st-c", "st", 1, &["Pending"]).await;
    let pending = format!("{}, 1 pending, {ignored}", said("2/2"));
    stage.stands("st", "Progressing", &pending).await;
    stage.is_ready("st-c", true).await;
    stage.stands("st", "Progressing", &said("2/3")).await;

    // What was said about another generation counts no longer.
    let edit = Patch::Merge(json!({"spec": {"maxUnavailable": 1}}));
    policies.patch("st", &how, &edit).await.expect("an edit");
    stage.stands("st", "Progressing", &said("0/3")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_node_that_fails_degrades_its_policy_within_two_seconds() {
    let stage = Stage::enter("degraded").await;
    let names: Vec<String> = (0..10).map(|it| format!("deg-{it}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.hosts(&names).await;
    stage.policy("deg", json!({})).await;
    let operator = stage.running_operator().await;
    let progresses = "Policy is progressing 0/10 nodes finished";
    stage.stands("deg", "Progressing", progresses).await;
    for name in &names[1..] {
        stage.enacts(name, "deg", 1, &["Progressing"]).await;
    }
    operator.faults.forget();
    stage.enacts("deg-0", "deg", 1, &["Failing"]).await;
    let failed = Instant::now();
    stage
        .stands("deg", "Degraded", "1/10 nodes failed to configure")
        .await;
    let took = failed.elapsed();
    println!("Degraded {took:?} after the first failure");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(writes(&operator.faults).len(), 1, "one write says it");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_about_policies_that_nobody_handles_nor_where_nothing_differs() {
    let stage = Stage::enter("rest").await;
    for node in ["rest-a", "rest-b"] {
        stage.node(node, true).await;
    }
    stage.policy("rest", json!({})).await;
    let operator = stage.operator().await;
    let look = async || {
        for subject in [Subject::Policy("rest".to_owned()), Subject::Claims] {
            operator.policies.look(&subject).await;
        }
    };
    look().await;
    assert_eq!(writes(&operator.faults), [""; 0], "nobody handles it");
    let operator = operator.running();
    for (node, pod) in [("rest-a", "first"), ("rest-b", "other")] {
        stage.handler(node, pod).await;
        stage.enacts(node, "rest", 1, &["Available"]).await;
    }
    let well = "2/2 nodes successfully configured";
    stage.stands("rest", "Available", well).await;
    operator.has_heard(&stage).await;
    operator.faults.forget();

    // Whatever says nothing new: times, notes, a handler that is replaced.
    stage.enacts("rest-a", "rest", 1, &["Available"]).await;
    let note = Patch::Merge(json!({"metadata": {"annotations": {"a": "note"}}}));
    let how = PatchParams::default();
    stage
        .policies()
        .patch("rest", &how, &note)
        .await
        .expect("a note");
    stage
        .nodes()
        .patch("rest-a", &how, &note)
        .await
        .expect("a note");
    stage.is_ready("rest-a", true).await;
    stage.no_handler("first").await;
    let gone = async || match operator.controller.world.policies.left_lately() {
        (left, _) if left.contains("rest-a") => Ok(()),
        (left, _) => Err(format!("{left:?} lost theirs")),
    };
    until("the handler to go", PATIENCE, gone)
        .await
        .expect("gone");
    for subject in [Subject::Policy("rest".to_owned()), Subject::Claims] {
        operator.policies.look(&subject).await;
    }
    stage.handler("rest-a", "second").await;
    stage.claims(&[("rest-gone", "unknown", 1)]).await;
    // Which is swept, and by then everything before it was looked at.
    let swept = |it: &Call| it.resource == "configmaps" && it.verb.writes();
    operator
        .faults
        .called("the sweep", swept)
        .await
        .expect("a sweep");
    let wrote = writes(&operator.faults);
    assert!(
        wrote.iter().all(|it| it.contains("configmaps")),
        "{wrote:?}"
    );
    assert_eq!(wrote.len(), 1, "{wrote:?}");
    stage.stands("rest", "Available", well).await;
}

/// As the operator's own account, which has the rights of the table and no others.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_a_policy_goes_with_it_where_no_handler_takes_it_away() {
    let stage = Stage::enter("swept").await;
    stage.hosts(&["sw-a", "sw-down"]).await;
    stage.is_ready("sw-down", false).await;
    let uid = stage.policy("sw", json!({})).await;
    let other = stage.policy("sw-other", json!({})).await;
    for node in ["sw-a", "sw-down", "sw-gone"] {
        for policy in ["sw", "sw-other", "sw-long-gone"] {
            stage.enacts(node, policy, 1, &["Available"]).await;
        }
    }
    stage
        .claims(&[
            ("sw-a", &uid, 1),
            ("sw-down", &uid, 1),
            ("sw-a", &other, 1),
            ("sw-gone", &other, 1),
            ("sw-down", &other, 1),
        ])
        .await;
    let operator = stage.operator_as(stage.installer().await).await.running();
    let has = async |names: &[&str], claimants: &[&str]| {
        until("what is left to go", PATIENCE, async || {
            let (found, claims) = (stage.enacted().await, stage.claimants().await);
            match found == names && claims == claimants {
                true => Ok(()),
                false => Err(format!("{found:?} {claims:?}")),
            }
        })
        .await
        .expect("what is left");
    };
    let all = [
        "sw-a.sw",
        "sw-a.sw-long-gone",
        "sw-a.sw-other",
        "sw-down.sw",
        "sw-down.sw-other",
        "sw-gone.sw",
        "sw-gone.sw-other",
    ];
    has(&all, &["sw-a", "sw-down", "sw-a", "sw-down"]).await;
    let policies = stage.policies();
    policies
        .delete("sw", &DeleteParams::default())
        .await
        .expect("deleted");
    // The handler of one may have to lead its host back first, in its turn.
    let rest = [
        "sw-a.sw",
        "sw-a.sw-long-gone",
        "sw-a.sw-other",
        "sw-down.sw-other",
        "sw-gone.sw-other",
    ];
    has(&rest, &["sw-a", "sw-a", "sw-down"]).await;
    // And then its host goes down.
    stage.is_ready("sw-a", false).await;
    let rest = ["sw-a.sw-other", "sw-down.sw-other", "sw-gone.sw-other"];
    has(&rest, &["sw-a", "sw-down"]).await;
    drop(operator);
    let well = "2/2 nodes successfully configured, 2 nodes ignored due to NotReady state";
    stage.stands("sw-other", "Available", well).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_taken_away_for_a_policy_or_a_node_that_was_only_not_heard_of() {
    let stage = Stage::enter("unheard").await;
    stage.hosts(&["uh-a"]).await;
    let uid = stage.policy("uh", json!({})).await;
    stage.enacts("uh-a", "uh", 1, &["Progressing"]).await;
    stage.claims(&[("uh-a", &uid, 1)]).await;
    let operator = stage.operator().await;
    operator.policies.begin().await;
    let known = &operator.controller.world;
    known.policies.policies.gone(&key("uh"), "of before");
    known.nodes.gone(&key("uh-a"), "of before");
    let again = operator
        .policies
        .look(&Subject::Policy("uh".to_owned()))
        .await;
    assert!(again.is_some(), "it is looked for again");
    operator.policies.look(&Subject::Claims).await;
    assert_eq!(writes(&operator.faults), [""; 0]);
    assert_eq!(stage.enacted().await, ["uh-a.uh"]);
    assert_eq!(stage.claimants().await, ["uh-a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_operators_one_writes() {
    let stage = Stage::enter("two").await;
    stage.hosts(&["two-a"]).await;
    stage.policy("two", json!({})).await;
    let begin = |identity: &str| {
        let faults = stage.cluster.faults().expect("a proxy");
        let who = Who {
            namespace: stage.namespace.clone(),
            identity: identity.to_owned(),
            elects: true,
        };
        let stop = CancellationToken::new();
        let (settings, watched) = (stage.settings(), Watched::default());
        let run = run::run(faults.client(), settings, who, watched, stop.clone());
        (faults, tokio::spawn(run), stop)
    };
    let first = begin("first");
    let progresses = "Policy is progressing 0/1 nodes finished";
    stage.stands("two", "Progressing", progresses).await;
    let second = begin("second");
    let asked = |it: &Call| it.resource == "leases";
    second
        .0
        .called("the lease", asked)
        .await
        .expect("a look at it");
    stage.enacts("two-a", "two", 1, &["Failing"]).await;
    let failed = "1/1 nodes failed to configure";
    stage.stands("two", "Degraded", failed).await;
    assert_eq!(writes(&second.0), [""; 0], "the other leads");
    first.2.cancel();
    first.1.await.expect("an end");
    let before = writes(&first.0).len();
    stage.enacts("two-a", "two", 1, &["Available"]).await;
    let well = "1/1 nodes successfully configured";
    stage.stands("two", "Available", well).await;
    assert_eq!(writes(&first.0).len(), before, "it stopped");
    assert_eq!(writes(&second.0).len(), 1);
    second.2.cancel();
    second.1.await.expect("an end");
}
