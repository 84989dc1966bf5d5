//! What it takes to make connection profiles those of before.

use std::collections::BTreeMap;

use keelson_api::policy::State;
use serde_json::Value;

use super::journal::Profile;

/// Values NetworkManager changes by itself.
const MOVING: [(&str, &str); 2] = [
    ("connection", "timestamp"),
    ("802-11-wireless", "seen-bssids"),
];

/// One thing to do, in the order they are done in.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A profile that is gone is added.
    Add(Profile),
    /// A profile that differs is made what it was.
    Change(Profile),
    /// A device is connected by the profile it was connected by.
    Activate {
        /// The profile.
        uuid: String,
        /// The device.
        device: String,
    },
    /// A profile that was not there is deleted.
    Delete {
        /// The profile.
        uuid: String,
    },
}

/// The settings of a profile without what changes by itself.
pub fn settled(mut settings: State) -> State {
    for (setting, key) in MOVING {
        let values = settings.get_mut(setting).and_then(Value::as_object_mut);
        if let Some(values) = values {
            values.shift_remove(key);
        }
    }
    settings
}

/// The profiles that are not those of before, by uuid. Which of them are active is for the state to say.
pub fn differing(before: &[Profile], now: &[Profile]) -> Vec<String> {
    let edits = edits(before, now).into_iter();
    edits
        .filter_map(|edit| match edit {
            Edit::Add(profile) | Edit::Change(profile) => Some(profile.uuid),
            Edit::Delete { uuid } => Some(uuid),
            Edit::Activate { .. } => None,
        })
        .collect()
}

/// Everything to do about profiles. A device runs what it was last activated with, so one whose profile
/// differs, or that another one is active on, is activated by its own; and before that other one goes,
/// or the device would be left with none.
pub fn edits(before: &[Profile], now: &[Profile]) -> Vec<Edit> {
    let present: BTreeMap<&str, &Profile> = now.iter().map(|it| (it.uuid.as_str(), it)).collect();
    let wanted: BTreeMap<&str, &Profile> = before.iter().map(|it| (it.uuid.as_str(), it)).collect();
    let (mut edits, mut activations) = (Vec::new(), Vec::new());
    for profile in before {
        let found = present.get(profile.uuid.as_str());
        let written = match found {
            None => Some(Edit::Add(profile.clone())),
            Some(found) if found.settings != profile.settings => {
                Some(Edit::Change(profile.clone()))
            }
            Some(_) => None,
        };
        let active = found.and_then(|it| it.active.as_ref());
        if let Some(device) = &profile.active
            && (written.is_some() || active != Some(device))
        {
            activations.push(Edit::Activate {
                uuid: profile.uuid.clone(),
                device: device.clone(),
            });
        }
        edits.extend(written);
    }
    let goes = now
        .iter()
        .filter(|it| !wanted.contains_key(it.uuid.as_str()));
    edits.extend(activations);
    edits.extend(goes.map(|it| Edit::Delete {
        uuid: it.uuid.clone(),
    }));
    edits
}
