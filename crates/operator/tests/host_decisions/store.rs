//! The certificates themselves: made, kept in Secrets, trusted by a client of rustls.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use keelson_operator::host::certificates::store::{Authorities, Data, leaf, leaf_data};
use keelson_operator::host::certificates::{Intervals, Server};
use keelson_tls::{Pair, Pins};

const HOUR: Duration = Duration::from_secs(3600);

fn names() -> Vec<String> {
    [
        "nmstate-webhook",
        "nmstate-webhook.nmstate",
        "nmstate-webhook.nmstate.svc",
    ]
    .map(str::to_owned)
    .into()
}

fn trusts(bundle: &[u8], kept: &Data, now: Timestamp) -> bool {
    let pair = Pair::from_pem(&kept["tls.crt"], &kept["tls.key"]).expect("a pair");
    let pins = Pins::authorities(bundle, &names()).expect("pins");
    pins.judge(pair.leaf().der(), &[], now).is_ok()
}

fn issued(authorities: &Authorities, now: Timestamp) -> Data {
    let issued = authorities
        .issue(&names(), &Intervals::default(), now)
        .expect("a certificate");
    leaf_data(&issued, &authorities.bundle())
}

#[test]
fn a_new_authority_is_trusted_beside_the_old_one_until_that_is_forgotten() {
    let intervals = Intervals::default();
    let now = Timestamp::now();
    let mut authorities = Authorities::read(None, b"");
    assert!(authorities.roots().is_empty());
    authorities.found(&intervals, now).expect("an authority");
    let first = issued(&authorities, now);
    assert!(trusts(&authorities.bundle(), &first, now));
    let later = now.saturating_add(HOUR).expect("later");
    authorities.found(&intervals, later).expect("an authority");
    let second = issued(&authorities, later);
    for kept in [&first, &second] {
        assert!(trusts(&authorities.bundle(), kept, later));
    }
    // Kept in a Secret and read again, it is the same.
    let mut again = Authorities::read(Some(&authorities.data()), b"");
    assert_eq!(again.roots(), authorities.roots());
    assert_eq!(
        Authorities::names(&again.bundle()),
        Authorities::names(&authorities.bundle())
    );
    let old = again.roots()[1].name.clone();
    again.forget(&[old]);
    assert!(trusts(&again.bundle(), &second, later));
    assert!(!trusts(&again.bundle(), &first, later));
    assert!(trusts(&again.bundle(), &issued(&again, later), later));
}

#[test]
fn what_clients_trust_is_not_forgotten_with_the_secret() {
    let now = Timestamp::now();
    let mut authorities = Authorities::default();
    authorities
        .found(&Intervals::default(), now)
        .expect("an authority");
    let presented = issued(&authorities, now);
    let mut again = Authorities::read(None, &authorities.bundle());
    assert!(!again.roots()[0].signs);
    let later = now.saturating_add(HOUR).expect("later");
    again
        .found(&Intervals::default(), later)
        .expect("an authority");
    assert!(trusts(&again.bundle(), &presented, later));
    assert!(again.roots()[0].signs);
    assert_eq!(again.roots().len(), 2);
}

#[test]
fn a_secret_with_nonsense_in_it_is_as_good_as_none() {
    let now = Timestamp::now();
    let mut authorities = Authorities::default();
    authorities
        .found(&Intervals::default(), now)
        .expect("an authority");
    let mut data = authorities.data();
    data.insert("ca.key".to_owned(), b"no key".to_vec());
    data.insert("old.crt".to_owned(), b"no certificate".to_vec());
    let read = Authorities::read(Some(&data), b"neither");
    // Its certificate is still somebody's.
    assert_eq!(read.roots().len(), 1);
    assert!(!read.roots()[0].signs);
    assert!(leaf(Server::Webhook, &Data::new(), &names()).is_none());
}

#[test]
fn a_certificate_says_who_signed_it_when_and_for_whom() {
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("now");
    let mut authorities = Authorities::default();
    authorities
        .found(&Intervals::default(), now)
        .expect("an authority");
    let kept = issued(&authorities, now);
    let read = leaf(Server::Webhook, &kept, &names()).expect("a certificate");
    let root = authorities.roots().remove(0);
    assert_eq!(read.by, root.name);
    assert_eq!((read.made, root.made), (now, now));
    assert_eq!(read.ends, now.saturating_add(HOUR * 4380).expect("an end"));
    assert_eq!(
        root.ends,
        now.saturating_add(HOUR * (8760 + 4380)).expect("an end")
    );
    assert!(read.fits);
    let other = [String::from("another.nmstate.svc")];
    assert!(
        !leaf(Server::Webhook, &kept, &other)
            .expect("a certificate")
            .fits
    );
    let by: BTreeSet<String> = [root.name].into();
    assert_eq!(Authorities::names(&kept["ca.crt"]), by);
}

#[test]
fn a_certificate_never_outlives_its_authority() {
    let now = Timestamp::now();
    let mut authorities = Authorities::default();
    authorities
        .found(&Intervals::default(), now)
        .expect("an authority");
    let late = now.saturating_add(HOUR * 13_000).expect("late");
    let read = leaf(Server::Webhook, &issued(&authorities, late), &names()).expect("a certificate");
    assert_eq!(read.ends, authorities.roots()[0].ends);
}
