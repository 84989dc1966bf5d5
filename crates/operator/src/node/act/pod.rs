//! The pod: images changed in place, replaced with its identity as a condition, and believed only
//! when its containers run.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::names::Annotation;
use keelson_cluster::{Key, Only, Propagation};
use keelson_plan::{Entry, Plan, Stage, Waiting};
use kube::ResourceExt;
use serde_json::json;

use super::{Act, Done, Problem};
use crate::node::made::container;
use crate::node::put_back;
use crate::node::seen::SeenPod;

impl Act<'_> {
    /// Changes images of the running pod, where nothing else differs. The template was written
    /// before; the pod is said to be of its revision, so that nobody takes it for an old one.
    pub(super) async fn patch_images(&self, plan: &Plan) -> Done {
        let Some(pod) = self.sight.pod.as_ref().filter(|pod| !pod.identity.leaving) else {
            return Ok(());
        };
        if !plan.patches(&self.seen(pod)) {
            return Ok(());
        }
        let revision = self.current_revision()?;
        let want = &plan.target.pod;
        let changed = pod.containers().into_iter().filter(|(name, _, image)| {
            *name == container::SIDECAR && *image != want.sidecar_image
                || *name == container::PROXY && *image != want.proxy_image
        });
        let changed = changed.map(|(name, container, _)| (name, container));
        let patch = json!({
            "metadata": {
                "uid": pod.identity.uid,
                // What is noted is true of this version alone.
                "resourceVersion": pod.identity.version,
                "labels": { "controller-revision-hash": revision },
                "annotations": { Annotation::EditedImages.as_str(): pod.edited.next(changed) },
            },
            "spec": { "initContainers": [
                { "name": container::SIDECAR, "image": want.sidecar_image },
                { "name": container::PROXY, "image": want.proxy_image },
            ]},
        });
        let namespace = &self.key.namespace;
        let patched: Option<Pod> = self.calls.strategic(namespace, &pod.name, &patch).await?;
        patched.iter().for_each(|pod| self.note_pod(pod));
        Ok(())
    }

    /// Deletes the pod, if a cause of the plan needs another one, and waits until it is gone. Whether
    /// the next one is ready is nobody's business here: it cannot be before it is approved.
    pub(super) async fn replace_pod(&self, plan: &Plan) -> Done {
        let Some(pod) = &self.sight.pod else {
            // What comes is made of whatever template its controller knows.
            return self.current_revision().map(drop);
        };
        if !plan.replaces(&self.seen(pod)) {
            return Ok(());
        }
        if !pod.identity.leaving {
            self.current_revision()?;
            let only = Only {
                uid: Some(pod.identity.uid.clone()),
                version: Some(pod.identity.version.clone()),
            };
            let (namespace, how) = (&self.key.namespace, Propagation::Background);
            self.calls
                .delete::<Pod>(namespace, &pod.name, only, how)
                .await?;
            self.sidecars.forget(&pod.identity.uid);
        }
        Err(Waiting::PodGone {
            pod: pod.name.clone(),
        }
        .into())
    }

    /// Waits until the containers run what is asked for.
    pub(super) async fn observe_image(&self, plan: &Plan, entry: &Entry) -> Done {
        let want = &plan.target.pod;
        let waits_for = |image: &str, why: Option<String>| {
            Problem::from(Waiting::Pod {
                pod: self.pod_name(Stage::Node),
                image: image.to_owned(),
                why,
            })
        };
        let waiting = |why: Option<String>| waits_for(&want.image, why);
        let Some(pod) = self.sight.pod.as_ref().filter(|pod| !pod.identity.leaving) else {
            return Err(waiting(None));
        };
        let (status, now) = (self.node.status.as_ref(), Timestamp::now());
        if let Some(it) = put_back::due(plan, entry, pod, status, now) {
            return Err(Problem::fatal(put_back::told(&[it])));
        }
        let made = self.seen(pod);
        if plan.replaces(&made) {
            // It came of the template before, which its controller had not seen replaced.
            return self.replace_pod(plan).await;
        }
        if let Some((container, why)) = &pod.stuck {
            return Err(waiting(Some(format!("{container}: {why}"))));
        }
        let as_asked = made.image == want.image
            && made.sidecar_image == want.sidecar_image
            && made.proxy_image == want.proxy_image;
        let mut containers = pod.containers().into_iter();
        match containers.find(|(name, ..)| !pod.runs(name, now)) {
            Some((_, _, image)) => Err(waits_for(image, None)),
            None if as_asked => Ok(()),
            None => Err(waiting(None)),
        }
    }

    /// The revision of the template that is asked for, once its controller has seen it. The template
    /// may have been written by another operator, of which this one's watch does not know yet.
    fn current_revision(&self) -> Result<String, Problem> {
        let set = self.sight.set.as_ref();
        let set = set.filter(|set| set.made == self.desired.demand.made);
        let revision = set.and_then(|set| set.revision.clone());
        revision.ok_or_else(|| {
            Waiting::Template {
                set: self.key.name.clone(),
            }
            .into()
        })
    }

    fn seen(&self, pod: &Arc<SeenPod>) -> keelson_plan::Pod {
        pod.made.seen_from(&self.desired.demand)
    }

    pub(super) fn note_pod(&self, pod: &Pod) {
        let version = pod.resource_version().unwrap_or_default();
        self.world
            .pods
            .note(Key::of(pod), &version, SeenPod::read(pod));
    }
}
