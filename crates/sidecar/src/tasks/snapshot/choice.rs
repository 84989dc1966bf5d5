//! Which snapshot is taken.

use crate::archive::Form;
use crate::objects::Listed;

/// A snapshot in the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its key.
    pub key: String,
    /// Its height.
    pub height: u64,
    /// How it is compressed.
    pub form: Form,
    /// The bytes of its archive.
    pub size: u64,
    /// The key of an object that holds its SHA-256, where there is one.
    pub digest: Option<String>,
}

/// Where the snapshots of a chain are.
pub fn prefix(chain: &str) -> String {
    format!("{chain}/state-sync/")
}

/// The height a key names, and how what it names is compressed. Only a number stands between the
/// prefix and the suffix: names with more in them are other things.
pub fn height(chain: &str, key: &str) -> Option<(u64, Form)> {
    let name = key.strip_prefix(&prefix(chain))?;
    let (digits, form) = match name.strip_suffix(".tar.gz") {
        Some(digits) => (digits, Form::Gzip),
        None => (name.strip_suffix(".tar.zst")?, Form::Zstandard),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Heights are signed where they come from.
    let height = digits.parse::<i64>().ok().filter(|height| *height > 0)?;
    Some((height.cast_unsigned(), form))
}

/// The highest snapshot, or the highest at or below a height. Of two of the same height the one that
/// is decoded faster is taken.
pub fn choose(chain: &str, listed: &[Listed], target: i64) -> Option<Choice> {
    let limit = u64::try_from(target).ok().filter(|target| *target > 0);
    let (height, form, object) = listed
        .iter()
        .filter_map(|object| height(chain, &object.key).map(|(it, form)| (it, form, object)))
        .filter(|(height, ..)| limit.is_none_or(|limit| *height <= limit))
        .max_by_key(|(height, form, _)| (*height, *form == Form::Zstandard))?;
    let digest = format!("{}.sha256", object.key);
    let digest = listed.iter().any(|it| it.key == digest).then_some(digest);
    Some(Choice {
        key: object.key.clone(),
        height,
        form,
        size: object.size,
        digest,
    })
}
