//! Which snapshot is uploaded.

use keelson_sidecar::tasks::upload::{Choice, Last, choose};
use keelson_wire::NoopReason::{AlreadyUploaded, FewerThanTwoSnapshots};

fn last(height: i64) -> Last {
    Last {
        last_uploaded_height: height,
        last_uploaded_at: 1,
        chain: None,
        bucket: None,
    }
}

#[test]
fn it_is_the_one_before_the_newest_unless_it_was_uploaded() {
    let none = Choice::Nothing(FewerThanTwoSnapshots);
    let before = Choice::Nothing(AlreadyUploaded);
    for (heights, uploaded, choice) in [
        (&[][..], None, none),
        (&[100], None, none),
        (&[100, 100], None, none),
        (&[100, 200], None, Choice::Upload(100)),
        // Numbers, not texts.
        (&[9, 1000, 100], None, Choice::Upload(100)),
        (&[100, 200], Some(99), Choice::Upload(100)),
        (&[100, 200], Some(100), before),
        (&[100, 200], Some(200), before),
        (&[100], Some(100), none),
    ] {
        let last = uploaded.map(last);
        assert_eq!(
            choose(heights, last.as_ref()),
            choice,
            "{heights:?} {uploaded:?}"
        );
    }
}

#[test]
fn a_note_counts_for_the_chain_and_the_bucket_it_is_of() {
    let of = |text: &str| Last::of(text, "a-1", "bucket").map(|it| it.last_uploaded_height);
    // As the original writes it.
    assert_eq!(
        of(r#"{"lastUploadedHeight":7,"lastUploadedAt":1}"#),
        Some(7)
    );
    let ours = |chain: &str, bucket: &str| {
        format!(
            r#"{{"lastUploadedHeight":7,"lastUploadedAt":1,"chain":"{chain}","bucket":"{bucket}"}}"#
        )
    };
    assert_eq!(of(&ours("a-1", "bucket")), Some(7));
    assert_eq!(of(&ours("b-1", "bucket")), None);
    assert_eq!(of(&ours("a-1", "other")), None);
    for torn in ["", "{", r#"{"lastUploadedHeight":"#, "null"] {
        assert_eq!(of(torn), None, "{torn}");
    }
}
