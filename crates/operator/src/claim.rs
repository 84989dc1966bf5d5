//! Whether a claim that a node imports is fit to hold its data.
//!
//! Looked at and never changed: who made the claim owns it. Its storage class is not looked at,
//! because what a disk is worth is for who brings it. Making the claim of a node that imports none is
//! for `render` and the task that applies it.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::flaw::Flaw;
use crate::quantity::Amount;

const MODES: [&str; 2] = ["ReadWriteOnce", "ReadWriteOncePod"];

/// Checks the claim `name` and the volume it is bound to; [`volume_of`] says which that is.
pub fn imported(
    claim: Option<&PersistentVolumeClaim>,
    volume: Option<&PersistentVolume>,
    name: &str,
    at_least: &Quantity,
) -> Result<(), Flaw> {
    if name.is_empty() {
        return unfit("the imported claim has no name: set spec.dataVolume.import.pvcName");
    }
    let Some(claim) = claim else {
        return wait(format!(
            "waiting for the imported claim {name}: it does not exist yet"
        ));
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return wait(format!(
            "the imported claim {name} is being deleted: waiting for another of its name"
        ));
    }
    bound(claim, name)?;
    let capacity = fits(claim, name, at_least)?;
    stands(claim, volume, name, &capacity)
}

/// The volume a claim is bound to.
pub fn volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.volume_name.as_deref()?;
    (!name.is_empty()).then_some(name)
}

fn bound(claim: &PersistentVolumeClaim, name: &str) -> Result<(), Flaw> {
    let status = claim.status.as_ref();
    match status.and_then(|status| status.phase.as_deref()) {
        Some("Bound") => Ok(()),
        Some("Lost") => unfit(format!(
            "the imported claim {name} has lost its volume: import another claim"
        )),
        phase => wait(format!(
            "waiting for the imported claim {name}: its phase is {}, not Bound",
            phase.unwrap_or("not reported")
        )),
    }
}

/// Mode and size; the answer is the size.
fn fits(claim: &PersistentVolumeClaim, name: &str, at_least: &Quantity) -> Result<Quantity, Flaw> {
    let spec = claim.spec.as_ref();
    let modes = spec.and_then(|spec| spec.access_modes.as_deref());
    let modes = modes.unwrap_or_default();
    if !modes.iter().any(|mode| MODES.contains(&mode.as_str())) {
        return unfit(format!(
            "the imported claim {name} has the access modes [{}]: one of {} is needed, import another claim",
            modes.join(", "),
            MODES.join(" and ")
        ));
    }
    let status = claim.status.as_ref();
    let capacity = status.and_then(|status| status.capacity.as_ref());
    let Some(capacity) = capacity.and_then(|all| all.get("storage")) else {
        return wait(format!(
            "waiting for the imported claim {name}: its capacity is not reported yet"
        ));
    };
    match (Amount::of(capacity), Amount::of(at_least)) {
        (Some(has), Some(needs)) if has >= needs => Ok(capacity.clone()),
        _ => unfit(format!(
            "the imported claim {name} has {}, and a node of this mode needs {}: import a larger one, or enlarge it",
            capacity.0, at_least.0
        )),
    }
}

/// The volume behind the claim, and that it is what the claim says.
fn stands(
    claim: &PersistentVolumeClaim,
    volume: Option<&PersistentVolume>,
    name: &str,
    capacity: &Quantity,
) -> Result<(), Flaw> {
    let Some(bound) = volume_of(claim) else {
        return wait(format!(
            "waiting for the imported claim {name}: it names no volume yet"
        ));
    };
    let Some(volume) = volume.filter(|it| it.metadata.name.as_deref() == Some(bound)) else {
        return wait(format!(
            "waiting for the volume {bound} of the imported claim {name}: it does not exist"
        ));
    };
    let phase = volume.status.as_ref().and_then(|it| it.phase.as_deref());
    match phase {
        Some("Failed") => {
            return unfit(format!(
                "the volume {bound} of the imported claim {name} has failed: mend it, or import another claim"
            ));
        }
        Some("Released") => {
            return wait(format!(
                "waiting for the volume {bound} of the imported claim {name}: it is Released, not Bound"
            ));
        }
        _ => {}
    }
    let spec = volume.spec.as_ref().and_then(|it| it.capacity.as_ref());
    let has = spec.and_then(|all| all.get("storage"));
    match has {
        Some(has) if Amount::of(has) == Amount::of(capacity) => Ok(()),
        has => unfit(format!(
            "the volume {bound} has {} and the imported claim {name} says {}: finish or undo the resize",
            has.map_or("no capacity", |has| has.0.as_str()),
            capacity.0
        )),
    }
}

fn wait<T>(sentence: String) -> Result<T, Flaw> {
    Err(Flaw::NotThere(sentence))
}

fn unfit<T>(sentence: impl Into<String>) -> Result<T, Flaw> {
    Err(Flaw::Unfit(sentence.into()))
}
