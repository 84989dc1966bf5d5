//! Why a sidecar container that has ended is not started again.
//!
//! Of a container that cannot start the kubelet says in the pod's status why, but not of one that
//! stands among the init containers and has ended well, as a sidecar does whose image is changed in
//! place: that one is said to be complete. The pod's events tell it all the same, and are asked for
//! only then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use keelson_cluster::{Calls, Key};

use super::made::container;
use super::seen::SeenPod;

/// What a kubelet says of containers it could not start.
const REASONS: [&str; 5] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// A sidecar container that has ended.
#[derive(Clone, Debug, PartialEq)]
struct Ended {
    name: &'static str,
    id: String,
    at: Timestamp,
}

/// Containers that were not started again, by their nodes, and why.
#[derive(Default)]
pub struct Unstarted(Mutex<HashMap<Key, (Ended, &'static str)>>);

impl Unstarted {
    /// Asks for the events of a pod with a sidecar that has ended.
    pub async fn ask(&self, calls: &Calls, key: &Key, pod: Option<&SeenPod>) {
        let Some((pod, ended)) = pod.and_then(|pod| Some((pod, ended(pod)?))) else {
            self.forget(key);
            return;
        };
        let fields = format!("involvedObject.uid={}", pod.identity.uid);
        match calls.select::<Event>(&key.namespace, &fields).await {
            Ok(events) => match why(&events, &ended) {
                Some(why) => drop(self.known().insert(key.clone(), (ended, why))),
                None => self.forget(key),
            },
            Err(error) => tracing::info!(node = %key, "events were not read: {error}"),
        }
    }

    /// The pod, with what is known of why its sidecar is not started again.
    pub fn tell(&self, key: &Key, pod: Arc<SeenPod>) -> Arc<SeenPod> {
        let known = self.known();
        match (known.get(key), &pod.stuck) {
            (Some((of, why)), None) if ended(&pod).as_ref() == Some(of) => Arc::new(SeenPod {
                stuck: Some((of.name.to_owned(), (*why).to_owned())),
                ..pod.as_ref().clone()
            }),
            _ => pod,
        }
    }

    /// Forgets a node.
    pub fn forget(&self, key: &Key) {
        self.known().remove(key);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Key, (Ended, &'static str)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sidecar of a pod that has ended while the pod stays.
fn ended(pod: &SeenPod) -> Option<Ended> {
    let mut containers = pod.containers().into_iter().filter(|(name, ..)| {
        let stays = *name != container::NODE;
        stays && !pod.identity.leaving
    });
    containers.find_map(|(name, container, _)| {
        Some(Ended {
            name,
            id: container.id.clone()?,
            at: container.ended?,
        })
    })
}

/// Why a container was not started again since it ended, by what was told last.
fn why(events: &[Event], ended: &Ended) -> Option<&'static str> {
    let place = format!("spec.initContainers{{{}}}", ended.name);
    let mut told: Vec<_> = events
        .iter()
        .filter(|it| it.involved_object.field_path.as_ref() == Some(&place))
        .filter(|it| it.reason.as_deref() == Some("Failed"))
        .filter_map(|it| Some((it.last_timestamp.as_ref()?.0, it.message.as_deref()?)))
        .filter(|(at, _)| *at >= ended.at)
        .collect();
    told.sort_by_key(|(at, _)| *at);
    let reason = |(_, message): &(Timestamp, &str)| {
        let mut reasons = REASONS.into_iter();
        reasons.find(|reason| message.strip_prefix("Error: ") == Some(reason))
    };
    told.iter().rev().find_map(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ENDED: &str = "2026-01-01T10:00:00Z";

    fn pod(state: Value) -> Arc<SeenPod> {
        let pod = json!({
            "metadata": { "name": "node-0", "uid": "u" },
            "status": { "initContainerStatuses": [{
                "name": "sei-sidecar", "image": "a", "imageID": "", "containerID": "old",
                "ready": false, "restartCount": 0, "state": state,
            }]},
        });
        Arc::new(SeenPod::read(&serde_json::from_value(pod).expect("a pod")))
    }

    fn over() -> Value {
        json!({ "terminated": { "exitCode": 0, "reason": "Completed", "finishedAt": ENDED } })
    }

    fn event(container: &str, at: &str, reason: &str, message: &str) -> Event {
        let event = json!({
            "metadata": {}, "reason": reason, "message": message, "lastTimestamp": at,
            "involvedObject": { "fieldPath": format!("spec.initContainers{{{container}}}") },
        });
        serde_json::from_value(event).expect("an event")
    }

    #[test]
    fn the_last_failure_since_a_container_ended_is_why_it_is_not_started_again() {
        let ended = ended(&pod(over())).expect("a container that has ended");
        let pulled = event(
            "sei-sidecar",
            ENDED,
            "Failed",
            "Failed to pull image \"a\": no",
        );
        let first = event("sei-sidecar", ENDED, "Failed", "Error: ErrImagePull");
        let later = "2026-01-01T10:00:09Z";
        let last = event("sei-sidecar", later, "Failed", "Error: ImagePullBackOff");
        let told = [last, pulled.clone(), first];
        assert_eq!(why(&told, &ended), Some("ImagePullBackOff"));
        assert_eq!(why(&told[1..], &ended), Some("ErrImagePull"));
        let before = "2026-01-01T09:59:59Z";
        for other in [
            event("sei-sidecar", before, "Failed", "Error: ErrImagePull"),
            event("kube-rbac-proxy", later, "Failed", "Error: ErrImagePull"),
            event("sei-sidecar", later, "BackOff", "Back-off restarting"),
            event("sei-sidecar", later, "Pulling", "Pulling image \"a\""),
        ] {
            assert_eq!(why(std::slice::from_ref(&other), &ended), None, "{other:?}");
        }
    }

    #[test]
    fn it_is_told_for_as_long_as_the_container_is_not_started_again() {
        let (key, unstarted) = (
            Key {
                namespace: "here".to_owned(),
                name: "node".to_owned(),
            },
            Unstarted::default(),
        );
        let over = pod(over());
        let why = ended(&over).map(|it| (it, "ErrImagePull"));
        unstarted
            .known()
            .insert(key.clone(), why.expect("a container"));
        let stuck = Some(("sei-sidecar".to_owned(), "ErrImagePull".to_owned()));
        assert_eq!(unstarted.tell(&key, over).stuck, stuck);
        let again = pod(json!({ "running": { "startedAt": ENDED } }));
        assert_eq!(unstarted.tell(&key, again).stuck, None);
    }
}
