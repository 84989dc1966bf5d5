//! Images of sidecar containers that do not start in a running pod, and are put back.
//!
//! Pure. The node's process goes on meanwhile, so what ran before it runs again: the image that did
//! not start is kept in the status, and for as long as it is the one that is asked for, the node is
//! looked after as if the one before it were. A retry, or another image, ends that.

use std::borrow::Cow;

use jiff::SignedDuration;
use keelson_api::SeiNode;
use keelson_api::node_status::{PutBack, SeiNodeStatus};
use keelson_plan::{Drift, Entry, Plan};

use super::made::container;
use super::seen::SeenPod;
use crate::platform::Settings;

/// How long an image may fail to start: a kubelet tries again after ten seconds.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

/// What a plan in place, which is at this step since a while, has to put back.
pub fn due(
    plan: &Plan,
    entry: &Entry,
    pod: &SeenPod,
    status: Option<&SeiNodeStatus>,
    now: jiff::Timestamp,
) -> Option<PutBack> {
    let begun = entry.deadline? - entry.step.task.deadline();
    (now.duration_since(begun) >= PATIENCE)
        .then(|| stuck(plan, pod, status?))
        .flatten()
}

/// The image of a plan in place that keeps its container from starting, and the one that ran before.
pub fn stuck(plan: &Plan, pod: &SeenPod, status: &SeiNodeStatus) -> Option<PutBack> {
    let in_place = |cause: &Drift| matches!(cause, Drift::SidecarImage | Drift::ProxyImage);
    let sets_up = plan.causes.contains(&Drift::Setup) || plan.causes.contains(&Drift::Workload);
    if !plan.causes.iter().any(in_place) || plan.rolls() || sets_up {
        return None;
    }
    let (name, why) = pod.stuck.as_ref()?;
    let (image, instead) = match name.as_str() {
        container::SIDECAR => (&pod.made.sidecar_image, &status.current_sidecar_image),
        container::PROXY => (&pod.made.proxy_image, &status.current_proxy_image),
        _ => return None,
    };
    let instead = instead.as_ref().filter(|it| *it != image)?;
    Some(PutBack {
        container: name.clone(),
        image: image.clone(),
        instead: instead.clone(),
        why: why.clone(),
    })
}

/// Those that still hold: the image that did not start is the one that is asked for.
pub fn standing(put_back: &[PutBack], node: &SeiNode, settings: &Settings) -> Vec<PutBack> {
    let sidecar = node.spec.sidecar.as_ref().and_then(|it| it.image.as_ref());
    let asked = |name: &str| match name {
        container::SIDECAR => sidecar.unwrap_or(&settings.render.sidecar.image),
        _ => &settings.render.proxy.program.image,
    };
    let standing = put_back
        .iter()
        .filter(|it| *asked(&it.container) == it.image);
    standing.cloned().collect()
}

/// The node and the settings, with what runs in the place of images that do not start.
pub fn instead<'a>(
    put_back: &[PutBack],
    node: &'a SeiNode,
    settings: &'a Settings,
) -> (Cow<'a, SeiNode>, Cow<'a, Settings>) {
    let (mut node, mut settings) = (Cow::Borrowed(node), Cow::Borrowed(settings));
    for it in put_back {
        match it.container.as_str() {
            container::SIDECAR => {
                let sidecar = node.to_mut().spec.sidecar.get_or_insert_default();
                sidecar.image = Some(it.instead.clone());
            }
            _ => {
                let proxy = &mut settings.to_mut().render.proxy;
                proxy.program.image.clone_from(&it.instead);
            }
        }
    }
    (node, settings)
}

/// What is said of them, in a sentence.
pub fn told(put_back: &[PutBack]) -> String {
    let each = put_back.iter().map(|it| {
        format!(
            "{} does not start with {} ({}), so {} was put back",
            it.container, it.image, it.why, it.instead
        )
    });
    let all: Vec<_> = each.collect();
    format!(
        "{}: correct the image, or ask for another attempt with the annotation sei.io/retry",
        all.join("; ")
    )
}
