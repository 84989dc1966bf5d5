//! Names to suites and groups, and what the report says of the rest.

use rustls::SignatureAlgorithm;

use keelson_tls::honour::Preference;
use keelson_tls::profile::{Kind, Listed, Version};
use keelson_tls::report::{Only, Raised, Reason};
use keelson_tls::{Honoured, Profile, group, suite};

pub(crate) fn listed(minimum: Version, ciphers: &[&str], groups: &[&str]) -> Profile {
    Profile::Listed(Listed {
        ciphers: Some(ciphers.iter().map(|&name| name.to_owned()).collect()),
        minimum,
        groups: groups.iter().map(|&name| name.to_owned()).collect(),
    })
}

fn honoured(profile: &Profile) -> Honoured {
    profile.honour().expect("a usable profile")
}

const TLS13: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// Every cipher of Mozilla 5.7, Old, in order: OpenSSL's name, IANA's, and why it is not served.
const OLD: &[(&str, &str, Option<Reason>)] = &[
    (TLS13[0], TLS13[0], None),
    (TLS13[1], TLS13[1], None),
    (TLS13[2], TLS13[2], None),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        None,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        None,
    ),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        None,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        None,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        None,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        None,
    ),
    (
        "ECDHE-ECDSA-AES128-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
        Some(Reason::Cbc),
    ),
    (
        "ECDHE-RSA-AES128-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
        Some(Reason::Cbc),
    ),
    (
        "ECDHE-ECDSA-AES128-SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
        Some(Reason::Cbc),
    ),
    (
        "ECDHE-RSA-AES128-SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
        Some(Reason::Cbc),
    ),
    (
        "ECDHE-ECDSA-AES256-SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
        Some(Reason::Cbc),
    ),
    (
        "ECDHE-RSA-AES256-SHA",
        "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
        Some(Reason::Cbc),
    ),
    (
        "AES128-GCM-SHA256",
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
        Some(Reason::RsaKeyExchange),
    ),
    (
        "AES256-GCM-SHA384",
        "TLS_RSA_WITH_AES_256_GCM_SHA384",
        Some(Reason::RsaKeyExchange),
    ),
    (
        "AES128-SHA256",
        "TLS_RSA_WITH_AES_128_CBC_SHA256",
        Some(Reason::RsaKeyExchange),
    ),
    (
        "AES128-SHA",
        "TLS_RSA_WITH_AES_128_CBC_SHA",
        Some(Reason::RsaKeyExchange),
    ),
    (
        "AES256-SHA",
        "TLS_RSA_WITH_AES_256_CBC_SHA",
        Some(Reason::RsaKeyExchange),
    ),
    (
        "DES-CBC3-SHA",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        Some(Reason::RsaKeyExchange),
    ),
];

#[test]
fn every_cipher_of_mozilla_is_served_or_named_under_both_its_names() {
    for (openssl, iana, reason) in OLD {
        for name in [
            openssl.to_string(),
            iana.to_string(),
            openssl.to_lowercase(),
            iana.to_lowercase(),
        ] {
            let profile = listed(
                Version::Tls12,
                &[&name, TLS13[0], "ECDHE-RSA-AES256-GCM-SHA384"],
                &[],
            );
            let honoured = honoured(&profile);
            let report = honoured.report();
            let dropped: Vec<_> = report
                .dropped_suites
                .iter()
                .map(|it| (it.name.clone(), it.reason))
                .collect();
            match reason {
                None => {
                    assert_eq!(report.suites[0], *iana, "{name}");
                    assert_eq!(dropped, [], "{name}");
                }
                Some(reason) => assert_eq!(dropped, [(name.clone(), *reason)]),
            }
        }
    }
}

#[test]
fn the_named_types_are_mozillas_lists_in_their_order() {
    let cases = [
        (Kind::Old, Version::Tls10, OLD.len()),
        (Kind::Intermediate, Version::Tls12, 9),
        (Kind::Modern, Version::Tls13, 3),
    ];
    for (kind, minimum, count) in cases {
        let Profile::Listed(profile) = Profile::named(kind, None).expect("a type") else {
            panic!("{kind:?} lists nothing");
        };
        let names: Vec<_> = OLD[..count]
            .iter()
            .map(|(openssl, ..)| openssl.to_string())
            .collect();
        assert_eq!(profile.ciphers, Some(names));
        assert_eq!(profile.minimum, minimum);
        assert_eq!(profile.groups, [""; 0]);
    }
}

#[test]
fn every_suite_of_the_table_is_found_by_both_names_and_no_name_twice() {
    for row in suite::SUITES {
        for name in [row.iana, row.openssl] {
            assert_eq!(
                suite::by_name(name).map(|it| it.iana),
                Some(row.iana),
                "{name}"
            );
        }
        if let Ok(served) = row.served {
            assert_eq!(suite::iana_name(served), Some(row.iana));
            // rustls knows the registry's number; its name must be the one we print.
            let theirs = format!("{:?}", served.suite()).replace("TLS13_", "TLS_");
            assert_eq!(theirs, row.iana);
        }
    }
    let short = suite::by_name("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305").map(|it| it.openssl);
    assert_eq!(short, Some("ECDHE-RSA-CHACHA20-POLY1305"));
}

#[test]
fn intermediate_and_modern_are_served_as_written() {
    for kind in [Kind::Intermediate, Kind::Modern] {
        let profile = Profile::named(kind, None).expect("a type");
        let honoured = honoured(&profile);
        assert!(honoured.report().complete());
        assert_eq!(
            honoured.report().to_string(),
            "the profile is served as written"
        );
        assert_eq!(honoured.preference(), Preference::Server);
    }
}

#[test]
fn old_is_served_from_tls_1_2_on_and_says_what_is_missing() {
    let honoured = honoured(&Profile::named(Kind::Old, None).expect("a type"));
    let report = honoured.report();
    assert!(!report.complete());
    assert_eq!(
        report.raised,
        Some(Raised {
            from: Version::Tls10,
            to: Version::Tls12
        })
    );
    assert_eq!(report.dropped_suites.len(), 12);
    assert_eq!(
        report.to_string(),
        "the minimum TLS 1.0 is raised to TLS 1.2; \
         ignored ciphers ECDHE-ECDSA-AES128-SHA256, ECDHE-RSA-AES128-SHA256, \
         ECDHE-ECDSA-AES128-SHA, ECDHE-RSA-AES128-SHA, ECDHE-ECDSA-AES256-SHA, \
         ECDHE-RSA-AES256-SHA: CBC is not supported; \
         ignored ciphers AES128-GCM-SHA256, AES256-GCM-SHA384, AES128-SHA256, AES128-SHA, \
         AES256-SHA, DES-CBC3-SHA: RSA key exchange is not supported"
    );
}

#[test]
fn a_raised_minimum_alone_makes_a_report_incomplete() {
    for minimum in [Version::Tls10, Version::Tls11] {
        let honoured = honoured(&listed(minimum, &TLS13, &[]));
        assert!(!honoured.report().complete(), "{minimum}");
    }
}

#[test]
fn groups_go_by_all_their_names_and_keep_their_order() {
    let cases = [
        ("X25519MLKEM768", "X25519MLKEM768"),
        ("x25519", "x25519"),
        ("X25519", "x25519"),
        ("secp256r1", "secp256r1"),
        ("prime256v1", "secp256r1"),
        ("P-256", "secp256r1"),
        ("secp384r1", "secp384r1"),
        ("P-384", "secp384r1"),
        ("SecP256r1MLKEM768", "SecP256r1MLKEM768"),
    ];
    for (name, iana) in cases {
        let honoured = honoured(&listed(Version::Tls12, &TLS13, &[name]));
        assert_eq!(honoured.report().groups, [iana], "{name}");
    }
    for name in ["secp521r1", "P-521", "SecP384r1MLKEM1024", "sect571r1"] {
        let honoured = honoured(&listed(
            Version::Tls12,
            &TLS13,
            &["secp384r1", name, "X25519", "P-384"],
        ));
        assert_eq!(honoured.report().groups, ["secp384r1", "x25519"]);
        assert_eq!(honoured.report().dropped_groups[0].name, name);
        assert!(!honoured.report().complete());
    }
    assert_eq!(
        group::by_id(4588).map(|it| it.names[0]),
        Some("X25519MLKEM768")
    );
    assert_eq!(group::by_id(23).map(|it| it.names[0]), Some("secp256r1"));
}

#[test]
fn where_no_group_is_named_the_post_quantum_one_is_first() {
    for profile in [Profile::LibraryDefaults, Profile::intermediate()] {
        let honoured = honoured(&profile);
        let groups = &honoured.report().groups;
        assert_eq!(
            groups[..],
            ["X25519MLKEM768", "x25519", "secp256r1", "secp384r1"]
        );
    }
}

#[test]
fn the_library_s_defaults_follow_the_client_s_order() {
    let honoured = honoured(&Profile::LibraryDefaults);
    assert_eq!(honoured.preference(), Preference::Client);
    assert_eq!(honoured.report().suites.len(), 9);
    assert!(honoured.report().complete());
}

#[test]
fn one_version_alone_is_said_to_be_alone() {
    let ecdsa = "ECDHE-ECDSA-AES128-GCM-SHA256";
    let cases = [
        (
            listed(Version::Tls12, &TLS13, &[]),
            Some(Only::NoTls12Suite),
        ),
        (
            listed(Version::Tls12, &[TLS13[0], "AES128-SHA"], &[]),
            Some(Only::NoTls12Suite),
        ),
        (
            listed(Version::Tls12, &[TLS13[0], ecdsa], &["X25519MLKEM768"]),
            Some(Only::NoTls12Group),
        ),
        (
            listed(Version::Tls12, &[ecdsa], &[]),
            Some(Only::NoTls13Suite),
        ),
        (listed(Version::Tls12, &[TLS13[0], ecdsa], &[]), None),
        (listed(Version::Tls13, &TLS13, &[]), None),
    ];
    for (profile, only) in cases {
        assert_eq!(honoured(&profile).report().only, only, "{profile:?}");
    }
    let alone = honoured(&listed(Version::Tls12, &TLS13, &[]));
    assert_eq!(alone.report().minimum, Version::Tls13);
    let rsa_key = honoured(&listed(Version::Tls12, &[TLS13[0], ecdsa], &[]))
        .for_key(SignatureAlgorithm::RSA)
        .expect("TLS 1.3 is left");
    assert_eq!(rsa_key.report().only, Some(Only::NoTls12SuiteForKey));
    assert_eq!(rsa_key.report().minimum, Version::Tls13);
    assert_eq!(rsa_key.versions().len(), 1);
}

#[test]
fn suites_below_the_profile_s_own_minimum_are_named_and_missed_by_nobody() {
    let names = [TLS13[1], "ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"];
    let honoured = honoured(&listed(Version::Tls13, &names, &[]));
    let report = honoured.report();
    assert_eq!(report.suites, [TLS13[1]]);
    let reasons: Vec<_> = report.dropped_suites.iter().map(|it| it.reason).collect();
    assert_eq!(reasons, [Reason::BelowMinimum; 2]);
    assert!(report.complete());
}

#[test]
fn a_minimum_of_tls_1_3_without_its_suites_means_all_of_them() {
    for names in [
        &[][..],
        &["ECDHE-RSA-AES128-GCM-SHA256"],
        &["no-such-suite"],
    ] {
        let honoured = honoured(&listed(Version::Tls13, names, &[]));
        assert_eq!(honoured.report().suites.len(), 3, "{names:?}");
        assert!(honoured.report().tls13_suites_assumed);
    }
}

#[test]
fn a_list_that_governs_tls_1_2_alone_can_be_given_the_suites_of_tls_1_3() {
    let profile = listed(
        Version::Tls12,
        &["ECDHE-RSA-AES128-GCM-SHA256", TLS13[0]],
        &[],
    )
    .with_tls13_suites();
    let names = [
        TLS13[0],
        TLS13[1],
        TLS13[2],
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    ];
    assert_eq!(honoured(&profile).report().suites, names);
}
