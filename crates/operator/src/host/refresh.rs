//! Pods whose files are behind, and their kubelets asked to bring the new ones.
//!
//! It is a favour: a kubelet comes by itself too, only later. So what fails is logged and stops nothing.

use std::sync::Arc;

use futures::future::join_all;
use keelson_api::names::Annotation;
use keelson_cluster::{Calls, Key};

use super::seen::SeenPod;
use crate::nudge::{Nudges, annotate};

/// Asks the kubelets of the pods that are behind, where it is time to. The others have what they
/// need: when they are behind again it is about another change, and they are asked at once.
pub(super) async fn refresh(calls: &Calls, nudges: &Nudges, behind: &[(Key, Arc<SeenPod>)]) {
    nudges.keep(|key| behind.iter().any(|(pod, _)| pod == key));
    let due = behind.iter().filter(|(key, _)| nudges.is_due(key));
    let asks = due.map(|(key, pod)| async move {
        let asked = annotate(calls, key, &pod.uid, Annotation::HostRefresh).await;
        if let Err(error) = asked {
            tracing::warn!(pod = %key, "its kubelet was not asked for new files: {error}");
        }
    });
    join_all(asks).await;
}
