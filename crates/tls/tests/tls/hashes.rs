//! Canonical bytes and their hash: stable, and different where the meaning is.

use super::mapping::listed;
use keelson_tls::Profile;
use keelson_tls::profile::{Kind, Version};

/// The hashes kubernetes-nmstate puts on its pods; ours must be the same, or adopting them would
/// roll every pod.
#[test]
fn the_named_types_have_the_hashes_of_kubernetes_nmstate() {
    let hash = |kind| Profile::named(kind, None).expect("a type").hash();
    let old = hash(Kind::Old);
    assert!(
        old.starts_with("26a2aaa4") && old.ends_with("4563c1"),
        "{old}"
    );
    assert_eq!(
        hash(Kind::Intermediate),
        "8e18e9c1df590707f8d9330d550a10a52607437739a3ed2be8a1714030ebb409"
    );
    let modern = hash(Kind::Modern);
    assert!(
        modern.starts_with("dd4cb6be") && modern.ends_with("b29945a"),
        "{modern}"
    );
}

#[test]
fn canonical_bytes_read_back_as_the_same_profile() {
    let profiles = [
        Profile::LibraryDefaults,
        Profile::intermediate(),
        listed(Version::Tls10, &[], &[]),
        listed(Version::Tls13, &["\"'\u{fc}"], &["X25519", "P-256"]),
        Profile::parse(b"{}").expect("a profile"),
    ];
    for profile in profiles {
        let again = Profile::parse(&profile.canonical()).expect("canonical");
        assert_eq!(again, profile);
        assert_eq!(again.hash(), profile.hash());
    }
    assert_eq!(
        Profile::LibraryDefaults.canonical(),
        br#"{"source":"None"}"#
    );
}

#[test]
fn spelling_of_the_file_does_not_change_the_hash() {
    let plain = r#"{"ciphers":["A","B"],"minTLSVersion":"VersionTLS12","groups":["X25519"]}"#;
    let same = [
        r#"{"ciphers":["A","B"],"minTLSVersion":"VersionTLS12","curves":["X25519"]}"#,
        r#"{ "groups": ["X25519"], "ciphers": ["A", "B"] }"#,
        r#"{"ciphers":["A","B"],"minTLSVersion":"","groups":["X25519"],"curves":["X25519"]}"#,
    ];
    let hash = |json: &str| Profile::parse(json.as_bytes()).expect(json).hash();
    for json in same {
        assert_eq!(hash(json), hash(plain), "{json}");
    }
}

#[test]
fn what_means_something_else_has_another_hash() {
    let mut hashes: Vec<_> = [
        r#"{"ciphers":["A","B"]}"#,
        r#"{"ciphers":["B","A"]}"#,
        r#"{"ciphers":["A"]}"#,
        r#"{"ciphers":[]}"#,
        r#"{"ciphers":null}"#,
        r#"{"ciphers":["A","B"],"minTLSVersion":"VersionTLS13"}"#,
        r#"{"ciphers":["A","B"],"groups":["X25519","P-256"]}"#,
        r#"{"ciphers":["A","B"],"groups":["P-256","X25519"]}"#,
        r#"{"source":"None"}"#,
    ]
    .iter()
    .map(|json| Profile::parse(json.as_bytes()).expect(json).hash())
    .collect();
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}
