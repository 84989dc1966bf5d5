//! Events about policies, for whoever runs `kubectl describe`. Saying something never waits, and what is
//! said while the API server is away is written once it is back, as far as there is room to remember it.

use std::collections::VecDeque;
use std::sync::Mutex;

use k8s_openapi::api::core::v1::ObjectReference;
use keelson_api::NodeNetworkConfigurationPolicy;
use keelson_api::event::PolicyEvent;
use keelson_api::names::FieldManager;
use keelson_cluster::Recorder;
use kube::{Client, Resource};
use tokio::sync::Notify;

use super::Server;
use super::line::lock;
use crate::handler::journal::Policy;

/// How much is remembered while the API server is away; the oldest goes first.
const REMEMBERED: usize = 100;

/// What the API server takes of the name of who speaks, in bytes.
const SPEAKER_BYTES: usize = 63;

/// What it takes of the name of the instance.
const INSTANCE_BYTES: usize = 128;

/// What was said and is not written.
#[derive(Default)]
pub(super) struct Sayings {
    waiting: Mutex<VecDeque<(ObjectReference, PolicyEvent, String)>>,
    said: Notify,
}

impl Server {
    /// Says that this host could not be brought to what a policy asks for.
    pub fn say_failed(&self, policy: &Policy, note: String) {
        let about = ObjectReference {
            api_version: Some(NodeNetworkConfigurationPolicy::api_version(&()).into_owned()),
            kind: Some(NodeNetworkConfigurationPolicy::kind(&()).into_owned()),
            name: Some(policy.name.clone()),
            uid: Some(policy.uid.clone()),
            ..ObjectReference::default()
        };
        let sayings = &self.inner.sayings;
        let mut waiting = lock(&sayings.waiting);
        if waiting.len() >= REMEMBERED {
            waiting.pop_front();
        }
        waiting.push_back((about, PolicyEvent::ReconcileFailed, note));
        sayings.said.notify_one();
    }

    /// Writes down what is said, for ever.
    pub(super) async fn record(&self, client: Client) {
        let node = &self.inner.settings.node;
        let instance = &node[..node.floor_char_boundary(INSTANCE_BYTES)];
        let (recorder, writing) = Recorder::new(client, speaker(node), instance);
        let handing_over = async {
            loop {
                self.inner.watched.policies.in_order().await;
                let waiting = std::mem::take(&mut *lock(&self.inner.sayings.waiting));
                for (about, event, note) in waiting {
                    recorder.say(&about, event.severity(), event.as_str(), note);
                }
                self.inner.sayings.said.notified().await;
            }
        };
        tokio::join!(writing, async {
            let () = handing_over.await;
        });
    }
}

/// Who speaks: the handler of a node, as the original has it, where that is not too long a name.
fn speaker(node: &str) -> String {
    let speaker = format!("{node}.{}", FieldManager::Handler);
    match speaker.len() > SPEAKER_BYTES {
        true => FieldManager::Handler.to_string(),
        false => speaker,
    }
}
