//! What is noted of a policy on this host's disk: how a change for it ended, and what it asked for.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::enactment::{CapturedState, MetaInfo};

use super::changes::Ended;
use super::enactment::{self, After, Retries};
use super::journal::End;
use super::records::{Enacted, Record, Records};
use super::worker::Asked;

/// Version of nmpolicy, as the original writes it.
const NMPOLICY_VERSION: &str = "0";

/// Notes how a change ended with the policy it was for, once.
pub(super) fn account(records: &mut Records, ended: &Ended, retries: &Retries) {
    let Some(record) = records.get(&ended.policy.uid) else {
        return;
    };
    if record.accounted == Some(ended.began) {
        return;
    }
    let mut record = record.clone();
    record.accounted = Some(ended.began);
    let generation = ended.policy.generation;
    match ended.end {
        End::Kept => {
            record.keep_undo(&ended.revert);
            record.enacted = Some(Enacted {
                generation,
                desired: ended.desired.clone(),
                at: Timestamp::now(),
            });
            record.why = None;
            record.again = None;
        }
        End::Undone => {
            record.why.clone_from(&ended.why);
            enactment::begin(&mut record.status, generation, Timestamp::now());
            record.again = match enactment::failed(&mut record.status, generation, retries) {
                After::Attempt { pause, .. } => Some(Timestamp::now() + pause),
                After::Nothing => None,
            };
        }
        End::NotBegun => {}
    }
    records.put(record);
}

/// Writes down what the policy asks of this host.
pub(super) fn fill(record: &mut Record, asked: &Asked, now: Timestamp) {
    record.status.desired_state = Some(asked.desired.clone());
    record.status.features.clone_from(&asked.features);
    for (name, state) in &asked.captured {
        let captured = record.status.captured_states.entry(name.clone());
        captured.or_insert_with(|| CapturedState {
            state: Some(state.clone()),
            meta_info: Some(MetaInfo {
                version: Some(NMPOLICY_VERSION.to_owned()),
                time: Some(Time(now)),
            }),
        });
    }
}
