//! Imported claims: what fits, what may still come, and what somebody must mend.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use keelson_operator::claim::imported;
use keelson_operator::flaw::Flaw;
use serde_json::{Value, json};

fn claim() -> Value {
    json!({
        "metadata": {"name": "old-data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv-7", "storageClassName": "anything"},
        "status": {"phase": "Bound", "capacity": {"storage": "2000Gi"}},
    })
}

fn volume() -> Value {
    json!({
        "metadata": {"name": "pv-7"},
        "spec": {"capacity": {"storage": "2000Gi"}},
        "status": {"phase": "Bound"},
    })
}

/// An object with another value at a pointer.
fn but(mut object: Value, pointer: &str, value: Value) -> Value {
    *object.pointer_mut(pointer).expect("a place in the object") = value;
    object
}

fn told(claim: Option<Value>, volume: Option<Value>) -> String {
    let claim: Option<PersistentVolumeClaim> =
        claim.map(|claim| serde_json::from_value(claim).expect("a claim"));
    let volume: Option<PersistentVolume> =
        volume.map(|volume| serde_json::from_value(volume).expect("a volume"));
    let at_least = Quantity("2000Gi".to_owned());
    match imported(claim.as_ref(), volume.as_ref(), "old-data", &at_least) {
        Ok(()) => "fits".to_owned(),
        Err(Flaw::NotThere(sentence)) => format!("wait: {sentence}"),
        Err(Flaw::Unfit(sentence)) => format!("mend: {sentence}"),
    }
}

#[test]
fn a_claim_that_is_bound_large_enough_and_stands_on_a_volume_fits() {
    let fits = |claim, volume| assert_eq!(told(Some(claim), Some(volume)), "fits");
    fits(claim(), volume());
    let once = json!(["ReadOnlyMany", "ReadWriteOncePod"]);
    fits(but(claim(), "/spec/accessModes", once), volume());
    let larger = |object, pointer| but(object, pointer, json!("3Ti"));
    fits(
        larger(claim(), "/status/capacity/storage"),
        larger(volume(), "/spec/capacity/storage"),
    );
    // The same size in other words.
    let bytes = json!("2147483648000");
    fits(claim(), but(volume(), "/spec/capacity/storage", bytes));
    // A class of storage is nobody's business but the owner's.
    fits(
        but(claim(), "/spec/storageClassName", json!(null)),
        volume(),
    );
}

#[test]
fn a_claim_that_may_still_come_is_waited_for() {
    let phase = |phase| but(claim(), "/status/phase", phase);
    let gone = json!({"name": "old-data", "deletionTimestamp": "2026-01-01T00:00:00Z"});
    for (claim, volume, expected) in [
        (
            None,
            None,
            "waiting for the imported claim old-data: it does not exist yet",
        ),
        (
            Some(but(claim(), "/metadata", gone)),
            Some(volume()),
            "the imported claim old-data is being deleted: waiting for another of its name",
        ),
        (
            Some(phase(json!("Pending"))),
            None,
            "waiting for the imported claim old-data: its phase is Pending, not Bound",
        ),
        (
            Some(phase(json!(null))),
            None,
            "waiting for the imported claim old-data: its phase is not reported, not Bound",
        ),
        (
            Some(but(claim(), "/status/capacity", json!({}))),
            Some(volume()),
            "waiting for the imported claim old-data: its capacity is not reported yet",
        ),
        (
            Some(but(claim(), "/spec/volumeName", json!(""))),
            Some(volume()),
            "waiting for the imported claim old-data: it names no volume yet",
        ),
        (
            Some(claim()),
            None,
            "waiting for the volume pv-7 of the imported claim old-data: it does not exist",
        ),
        (
            Some(claim()),
            Some(but(volume(), "/metadata/name", json!("pv-8"))),
            "waiting for the volume pv-7 of the imported claim old-data: it does not exist",
        ),
        (
            Some(claim()),
            Some(but(volume(), "/status/phase", json!("Released"))),
            "waiting for the volume pv-7 of the imported claim old-data: it is Released, not Bound",
        ),
    ] {
        assert_eq!(told(claim, volume), format!("wait: {expected}"));
    }
}

#[test]
fn a_claim_that_does_not_fit_is_not_waited_for() {
    for (claim, volume, expected) in [
        (
            but(claim(), "/status/phase", json!("Lost")),
            None,
            "the imported claim old-data has lost its volume: import another claim",
        ),
        (
            but(
                claim(),
                "/spec/accessModes",
                json!(["ReadOnlyMany", "ReadWriteMany"]),
            ),
            Some(volume()),
            "the imported claim old-data has the access modes [ReadOnlyMany, ReadWriteMany]: one of ReadWriteOnce and ReadWriteOncePod is needed, import another claim",
        ),
        (
            but(claim(), "/status/capacity/storage", json!("2000G")),
            Some(but(volume(), "/spec/capacity/storage", json!("2000G"))),
            "the imported claim old-data has 2000G, and a node of this mode needs 2000Gi: import a larger one, or enlarge it",
        ),
        (
            claim(),
            Some(but(volume(), "/status/phase", json!("Failed"))),
            "the volume pv-7 of the imported claim old-data has failed: mend it, or import another claim",
        ),
        (
            claim(),
            Some(but(volume(), "/spec/capacity/storage", json!("3Ti"))),
            "the volume pv-7 has 3Ti and the imported claim old-data says 2000Gi: finish or undo the resize",
        ),
        (
            claim(),
            Some(but(volume(), "/spec/capacity", json!({}))),
            "the volume pv-7 has no capacity and the imported claim old-data says 2000Gi: finish or undo the resize",
        ),
    ] {
        assert_eq!(told(Some(claim), volume), format!("mend: {expected}"));
    }
}

#[test]
fn an_import_that_names_no_claim_does_not_wait_for_one() {
    let checked = imported(None, None, "", &Quantity("1Gi".to_owned()));
    let sentence = "the imported claim has no name: set spec.dataVolume.import.pvcName";
    assert_eq!(checked, Err(Flaw::Unfit(sentence.to_owned())));
}
