//! Which snapshot is to be uploaded: a pure decision.

use keelson_wire::NoopReason;
use serde::{Deserialize, Serialize};

/// What was uploaded last, as it is noted on the volume. The original notes the first two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Last {
    /// The snapshot.
    pub last_uploaded_height: i64,
    /// When, in seconds since 1970.
    pub last_uploaded_at: i64,
    /// Of which chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// To which bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
}

impl Last {
    /// What a note says of a chain and a bucket; one that says nothing of them is of them.
    pub fn of(text: &str, chain: &str, bucket: &str) -> Option<Self> {
        let last = match serde_json::from_str::<Self>(text) {
            Ok(last) => last,
            Err(error) => {
                // The worst that comes of it is that a snapshot is uploaded once more.
                tracing::warn!(%error, "what was uploaded last cannot be read");
                return None;
            }
        };
        let same = |noted: &Option<String>, now| noted.as_deref().is_none_or(|it| it == now);
        let counts = same(&last.chain, chain) && same(&last.bucket, bucket);
        counts.then_some(last)
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The snapshot of this height is uploaded.
    Upload(i64),
    /// Nothing is.
    Nothing(NoopReason),
}

/// Chooses among snapshots: the newest may be incomplete, so it is the one before it.
pub fn choose(heights: &[i64], last: Option<&Last>) -> Choice {
    let mut heights = heights.to_vec();
    heights.sort_unstable_by(|one, other| other.cmp(one));
    heights.dedup();
    match heights.get(1) {
        None => Choice::Nothing(NoopReason::FewerThanTwoSnapshots),
        Some(height) if last.is_some_and(|last| *height <= last.last_uploaded_height) => {
            Choice::Nothing(NoopReason::AlreadyUploaded)
        }
        Some(height) => Choice::Upload(*height),
    }
}

/// The height a folder is named by.
pub(super) fn height(name: &str) -> Option<i64> {
    let height: i64 = name.parse().ok()?;
    (height > 0 && height.to_string() == name).then_some(height)
}
