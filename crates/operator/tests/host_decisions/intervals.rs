//! How long authorities and certificates are used, as people write it.

use std::time::Duration;

use keelson_api::nmstate::SelfSignConfiguration;
use keelson_operator::host::certificates::Intervals;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn intervals_are_read_as_the_original_writes_them_and_nonsense_is_named() {
    let with = |edit: &dyn Fn(&mut SelfSignConfiguration)| {
        let mut written = SelfSignConfiguration::default();
        edit(&mut written);
        Intervals::read(Some(&written))
    };
    assert_eq!(Intervals::read(None), Ok(Intervals::default()));
    assert_eq!(with(&|_| {}), Ok(Intervals::default()));
    let read = with(&|it| {
        it.ca_rotate_interval = Some("168h0m0s".to_owned());
        it.cert_rotate_interval = Some("90m".to_owned());
        it.cert_overlap_interval = Some("1h".to_owned());
    });
    let expected = Intervals {
        ca_rotate: HOUR * 168,
        cert_rotate: HOUR * 3 / 2,
        cert_overlap: HOUR,
        ..Intervals::default()
    };
    assert_eq!(read, Ok(expected));
    let said = |edit: &dyn Fn(&mut SelfSignConfiguration)| with(edit).expect_err("nonsense");
    assert!(
        said(&|it| it.ca_rotate_interval = Some("soon".to_owned()))
            .contains("caRotateInterval \"soon\"")
    );
    assert!(said(&|it| it.ca_rotate_interval = Some("-1h".to_owned())).contains("no duration"));
    assert!(
        said(&|it| it.cert_overlap_interval = Some("4380h".to_owned()))
            .contains("certRotateInterval has to be")
    );
    assert!(
        said(&|it| it.cert_rotate_interval = Some("9000h".to_owned()))
            .contains("longer than caRotateInterval")
    );
}
