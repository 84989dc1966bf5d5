//! One node, one pod: what others make of its StatefulSet is put right at every look.
//!
//! No plan is needed for that and none is waited for, since two pods of a validator would sign with
//! one key. The template is left alone: what it shall be, and after what, is for plans.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::event::NodeEvent;
use keelson_cluster::{Error, Key, Only, Propagation};
use keelson_render::names;
use kube::ResourceExt;
use serde_json::json;

use super::{Known, Pass};
use crate::node::seen::{SeenPod, Set};

impl Pass<'_> {
    /// Sees to it that the StatefulSet has one pod, which nobody replaces but us.
    pub(super) async fn keep_one_pod(&self, known: &mut Known) -> Result<(), Error> {
        let uid = self.uid();
        let Some(set) = known.sight.set.clone() else {
            return Ok(());
        };
        if set.identity.owner.as_ref() != Some(&uid) || set.identity.leaving {
            return Ok(());
        }
        if !set.keeps_one_pod {
            self.mend(&set.identity.uid).await?;
            let eyes = &self.controller.eyes;
            eyes.refresh(self.key, &known.desired, &mut known.sight);
        }
        // Its controller ends them only while the first one is ready.
        for pod in self.controller.world.pods_beside(self.key) {
            let owner = pod.identity.owner.as_ref();
            if owner == Some(&set.identity.uid) && !pod.identity.leaving {
                self.end(&pod).await?;
            }
        }
        Ok(())
    }

    async fn mend(&self, uid: &str) -> Result<(), Error> {
        let name = names::stateful_set(&self.key.name);
        let patch = json!({
            // Another one of this name is a conflict.
            "metadata": { "uid": uid },
            "spec": {
                "replicas": 1,
                "updateStrategy": { "type": "OnDelete", "rollingUpdate": null },
            },
        });
        let calls = &self.controller.calls;
        let mended: Option<StatefulSet> = calls.merge(&self.key.namespace, &name, &patch).await?;
        if let Some(set) = mended {
            let version = set.resource_version().unwrap_or_default();
            let sets = &self.controller.world.sets;
            sets.note(Key::of(&set), &version, Set::read(&set));
            let note = format!("StatefulSet {name} was changed by hand and has one pod again");
            self.say(NodeEvent::WorkloadMended, note);
        }
        Ok(())
    }

    /// Ends a second pod.
    async fn end(&self, pod: &SeenPod) -> Result<(), Error> {
        let only = Only {
            uid: Some(pod.identity.uid.clone()),
            version: None,
        };
        let (namespace, how) = (&self.key.namespace, Propagation::Background);
        let calls = &self.controller.calls;
        calls.delete::<Pod>(namespace, &pod.name, only, how).await?;
        self.controller.sidecars.forget(&pod.identity.uid);
        Ok(())
    }
}
