//! Whether a container was started from what its pod says now, where its runtime names another image.
//!
//! Pure. A runtime that holds one image under two names tells either of them, so that a container may
//! run what it shall and be said to run something else. What the kubelet has taken up tells it, too:
//! a pod nobody edited never said anything else, and of one whose images were changed in place it was
//! noted, with the very edit, which containers ran until then. Where anybody else edited the pod,
//! only the names count.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use keelson_api::names::Annotation;
use serde::{Deserialize, Serialize};

use super::seen::Container;

/// How long a container runs before it is believed to be the one after an edit. One that ended by
/// itself just then is started once more as it was, and ended by the kubelet soon after.
const SETTLED: SignedDuration = SignedDuration::from_secs(15);

/// What is known of the edits of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edited {
    /// Which edit is the last.
    generation: Option<i64>,
    /// Which one the kubelet has taken up.
    taken_up: Option<i64>,
    note: Option<Note>,
}

/// What is written on a pod with an edit of its images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Note {
    /// Which edit it is.
    generation: i64,
    /// The containers of the images that were changed, as they ran before.
    before: BTreeMap<String, String>,
}

impl Edited {
    /// Reads a pod.
    pub fn read(pod: &Pod) -> Self {
        let annotations = pod.metadata.annotations.as_ref();
        let note = annotations.and_then(|it| it.get(Annotation::EditedImages.as_str()));
        Self {
            generation: pod.metadata.generation,
            taken_up: pod.status.as_ref().and_then(|it| it.observed_generation),
            note: note.and_then(|note| serde_json::from_str(note).ok()),
        }
    }

    /// Whether a container that runs was started from what the pod says now.
    pub fn started(&self, name: &str, container: &Container, now: Timestamp) -> bool {
        let Some(known) = self.known().filter(|_| self.taken_up >= self.generation) else {
            return false;
        };
        let settled = container
            .since
            .is_some_and(|since| now.duration_since(since) >= SETTLED);
        match known.before.get(name) {
            Some(before) => container.id.as_ref().is_some_and(|id| id != before) && settled,
            None => container.runs,
        }
    }

    /// What to note with an edit of the images of these containers, which is the next edit of this
    /// very version of the pod; nothing where not all edits before it are known.
    pub fn next<'a>(
        &self,
        containers: impl Iterator<Item = (&'a str, &'a Container)>,
    ) -> Option<String> {
        let mut note = self.known()?;
        note.generation += 1;
        for (name, container) in containers {
            let id = container.id.clone().unwrap_or_default();
            note.before.insert(name.to_owned(), id);
        }
        serde_json::to_string(&note).ok()
    }

    /// The edits up to now, where all of them are known.
    fn known(&self) -> Option<Note> {
        let generation = self.generation?;
        let first = Note {
            generation: 1,
            before: BTreeMap::new(),
        };
        let note = self.note.clone().unwrap_or(first);
        (note.generation == generation).then_some(note)
    }
}

#[cfg(test)]
mod tests;
