//! Which profile is in force, for everything an NMState and a cluster may say.

use keelson_api::tls::{
    CustomProfile, ProfileSource, ProfileType, TlsConfig, TlsProfile, TlsVersion,
};
use keelson_operator::host::profile::{Asked, Cluster, Decision, Origin, Outcome, decide};
use keelson_tls::Profile;
use keelson_tls::profile::{Kind, Listed, Version};
use proptest::prelude::*;
use rustls::SignatureAlgorithm;
use serde_json::{Value, json};

const EC: &[SignatureAlgorithm] = &[SignatureAlgorithm::ECDSA];

fn api_server(spec: Value) -> Cluster {
    Cluster::There(Asked::read(&json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "APIServer",
        "metadata": {"name": "cluster"},
        "spec": spec,
    })))
}

fn cluster(kind: &str) -> Cluster {
    api_server(json!({"tlsSecurityProfile": {"type": kind, kind.to_lowercase(): {}}}))
}

fn custom(body: Value) -> Cluster {
    api_server(json!({"tlsSecurityProfile": {"type": "Custom", "custom": body}}))
}

fn from(source: ProfileSource, profile: Option<ProfileType>) -> TlsConfig {
    let profile = profile.map(|type_| TlsProfile {
        type_,
        custom: None,
    });
    TlsConfig { source, profile }
}

fn named(kind: Kind) -> Profile {
    Profile::named(kind, None).expect("a named profile")
}

fn auto(cluster: &Cluster) -> Decision {
    decide(&TlsConfig::default(), cluster, None, EC)
}

/// The matrix: what the platform has, which source is chosen, what is in force and whence.
#[test]
fn every_source_on_every_platform_gives_the_profile_that_was_promised() {
    use ProfileSource::{Auto, Cluster as OfCluster, Explicit, None as Nothing};
    let vanilla = Cluster::Absent;
    let openshift = cluster("Modern");
    let old = Some(ProfileType::Old);
    let rows = [
        (&vanilla, Auto, None, Kind::Intermediate, Origin::BuiltIn),
        (&vanilla, Auto, old, Kind::Old, Origin::Written),
        (&vanilla, Explicit, old, Kind::Old, Origin::Written),
        (&openshift, Auto, None, Kind::Modern, Origin::Cluster),
        (&openshift, Auto, old, Kind::Modern, Origin::Cluster),
        (&openshift, OfCluster, None, Kind::Modern, Origin::Cluster),
        (&openshift, Explicit, old, Kind::Old, Origin::Written),
    ];
    for (platform, source, written, kind, origin) in rows {
        let decision = decide(&from(source, written), platform, None, EC);
        let case = format!("{platform:?} {source:?} {written:?}");
        assert_eq!(decision.profile, named(kind), "{case}");
        assert_eq!(decision.origin, origin, "{case}");
    }
    for platform in [&vanilla, &openshift] {
        let decision = decide(&from(Nothing, None), platform, None, EC);
        assert_eq!(decision.profile, Profile::LibraryDefaults, "{platform:?}");
        assert_eq!(decision.outcome, Outcome::Honoured);
    }
    // The one cell with nothing to give: said, and nothing falls silently to a default.
    let decision = decide(&from(OfCluster, None), &vanilla, None, EC);
    assert!(matches!(&decision.outcome, Outcome::Unusable(why) if why.contains("no APIServer")));
}

#[test]
fn an_adherence_never_changes_which_profile_is_in_force() {
    for adherence in [
        "",
        "LegacyAdheringComponentsOnly",
        "StrictAllComponents",
        "Later",
    ] {
        let spec = json!({"tlsSecurityProfile": {"type": "Modern"}, "tlsAdherence": adherence});
        let decision = auto(&api_server(spec));
        assert_eq!(decision.profile, named(Kind::Modern), "{adherence}");
        assert_eq!(decision.outcome, Outcome::Honoured, "{adherence}");
    }
}

#[test]
fn an_adherence_decides_whether_a_profile_not_fully_honoured_is_a_failure() {
    let rows = [
        (json!(null), false, false),
        (json!(""), false, false),
        (json!("LegacyAdheringComponentsOnly"), false, false),
        (json!("LegacyExternalAPIServerComponentsOnly"), false, false),
        (json!("StrictAllComponents"), true, false),
        (json!("StricterStill"), true, true),
        (json!(7), true, true),
    ];
    for (adherence, strict, noted) in rows {
        let spec = json!({"tlsSecurityProfile": {"type": "Old"}, "tlsAdherence": adherence});
        let decision = auto(&api_server(spec.clone()));
        assert_eq!(decision.strict, strict, "{adherence}");
        assert_eq!(!decision.notes.is_empty(), noted, "{adherence}");
        assert!(
            matches!(decision.outcome, Outcome::Partly(_)),
            "{adherence}"
        );
        // A profile of one's own is nobody's promise to the cluster.
        let own = from(ProfileSource::Explicit, Some(ProfileType::Old));
        assert!(!decide(&own, &api_server(spec), None, EC).strict);
    }
}

#[test]
fn a_cluster_that_says_nothing_about_tls_means_intermediate() {
    for spec in [
        json!({}),
        json!({"tlsSecurityProfile": null}),
        json!({"tlsSecurityProfile": {}}),
        json!({"tlsSecurityProfile": {"type": ""}}),
        json!({"tlsSecurityProfile": {"type": null}}),
    ] {
        let decision = auto(&api_server(spec.clone()));
        assert_eq!(decision.profile, named(Kind::Intermediate), "{spec}");
        assert_eq!(decision.origin, Origin::Cluster, "{spec}");
    }
}

#[test]
fn groups_are_read_in_their_order_and_curves_are_another_name_for_them() {
    let suites = json!(["TLS_AES_128_GCM_SHA256"]);
    for key in ["groups", "curves"] {
        let body = json!({"minTLSVersion": "VersionTLS13", "ciphers": suites, key: ["secp384r1", "X25519"]});
        let Profile::Listed(listed) = auto(&custom(body)).profile else {
            panic!("{key}: no listed profile");
        };
        assert_eq!(listed.groups, ["secp384r1", "X25519"], "{key}");
    }
    let without = auto(&custom(json!({"ciphers": suites}))).profile;
    let Profile::Listed(Listed {
        groups, minimum, ..
    }) = without
    else {
        panic!("no listed profile");
    };
    assert_eq!((groups, minimum), (Vec::new(), Version::Tls12));
}

#[test]
fn what_is_wrong_with_the_clusters_profile_is_said_with_its_place() {
    let rows = [
        (
            api_server(json!({"tlsSecurityProfile": []})),
            "tlsSecurityProfile is not an object",
        ),
        (cluster("Ancient"), "unknown TLS profile type \"Ancient\""),
        (
            api_server(json!({"tlsSecurityProfile": {"type": 3}})),
            "type is not a string",
        ),
        (
            api_server(json!({"tlsSecurityProfile": {"type": "Custom"}})),
            "nothing is written under custom",
        ),
        (custom(json!(null)), "nothing is written under custom"),
        (custom(json!(["TLS13"])), "custom is not an object"),
        (
            custom(json!({"ciphers": "all"})),
            "ciphers of the TLS profile is not a list of strings",
        ),
        (
            custom(json!({"minTLSVersion": "TLS12"})),
            "minTLSVersion \"TLS12\" is unknown",
        ),
        (custom(json!({"ciphers": []})), "lists no cipher at all"),
        (
            custom(json!({"ciphers": ["DES-CBC3-SHA"]})),
            "none of the TLS profile's ciphers",
        ),
        (
            custom(json!({"groups": ["secp521r1"]})),
            "none of the TLS profile's groups",
        ),
        (
            custom(json!({"ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"]})),
            "EC key",
        ),
    ];
    for (cluster, said) in rows {
        let decision = auto(&cluster);
        let Outcome::Unusable(why) = &decision.outcome else {
            panic!("{cluster:?}: {:?}", decision.outcome);
        };
        assert!(why.contains(said), "{said:?} is not in {why:?}");
        assert_eq!(decision.profile, Profile::intermediate(), "{said}");
    }
}

#[test]
fn fields_of_a_later_version_and_a_body_of_another_type_change_nothing() {
    let later = custom(json!({"ciphers": ["TLS_AES_128_GCM_SHA256"], "signatures": ["x"]}));
    assert_eq!(auto(&later).outcome, Outcome::Honoured);
    let left = json!({"type": "Modern", "custom": {"ciphers": ["nonsense"]}});
    let decision = auto(&api_server(json!({"tlsSecurityProfile": left})));
    assert_eq!(decision.profile, named(Kind::Modern));
    assert_eq!(decision.outcome, Outcome::Honoured);
}

#[test]
fn old_is_served_as_far_as_it_goes_and_what_is_left_out_is_named() {
    let decision = auto(&cluster("Old"));
    let Outcome::Partly(said) = &decision.outcome else {
        panic!("{:?}", decision.outcome);
    };
    for part in [
        "TLS 1.0 is raised to TLS 1.2",
        "DES-CBC3-SHA",
        "RSA key exchange",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
    assert_eq!(auto(&cluster("Intermediate")).outcome, Outcome::Honoured);
}

#[test]
fn what_cannot_be_served_replaces_nothing() {
    let modern = named(Kind::Modern).canonical();
    let broken = custom(json!({"ciphers": ["DES-CBC3-SHA"]}));
    let decision = decide(&TlsConfig::default(), &broken, Some(&modern), EC);
    assert_eq!(decision.profile, named(Kind::Modern));
    assert_eq!(decision.origin, Origin::LastGood);
    // And what nobody could read is not taken for a cluster without a profile.
    let unread = Cluster::Unread("the API server answered 503".to_owned());
    let written = from(ProfileSource::Auto, Some(ProfileType::Old));
    let decision = decide(&written, &unread, Some(&modern), EC);
    assert_eq!(decision.profile, named(Kind::Modern));
    assert_eq!(
        decision.outcome,
        Outcome::Unread("the API server answered 503".to_owned())
    );
}

#[test]
fn a_last_profile_that_is_no_good_itself_is_not_kept() {
    let broken = custom(json!({"ciphers": ["DES-CBC3-SHA"]}));
    for last in [
        &b"not json"[..],
        br#"{"ciphers":[]}"#,
        br#"{"ciphers":["AES128-SHA"]}"#,
    ] {
        let decision = decide(&TlsConfig::default(), &broken, Some(last), EC);
        assert_eq!(decision.profile, Profile::intermediate());
        assert_eq!(decision.origin, Origin::BuiltIn);
    }
}

#[test]
fn none_is_none_also_where_the_cluster_is_strict_broken_or_unreadable() {
    let broken = custom(json!({"ciphers": []}));
    let unread = Cluster::Unread("no answer".to_owned());
    for cluster in [&cluster("Modern"), &broken, &unread, &Cluster::Absent] {
        let config = from(ProfileSource::None, None);
        let decision = decide(&config, cluster, Some(&named(Kind::Modern).canonical()), EC);
        assert_eq!(decision.profile.canonical(), br#"{"source":"None"}"#);
        assert_eq!(decision.outcome, Outcome::Honoured);
    }
}

#[test]
fn a_profile_has_to_fit_every_certificate_it_is_served_with() {
    let body = json!({"ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"]});
    let rsa = &[SignatureAlgorithm::RSA];
    let both = &[SignatureAlgorithm::RSA, SignatureAlgorithm::ECDSA];
    let decision = |keys| decide(&TlsConfig::default(), &custom(body.clone()), None, keys).outcome;
    assert_eq!(decision(rsa), Outcome::Honoured);
    assert!(matches!(decision(both), Outcome::Unusable(_)));
}

#[test]
fn a_custom_profile_of_ones_own_is_read_like_the_clusters() {
    let config = TlsConfig {
        source: ProfileSource::Explicit,
        profile: Some(TlsProfile {
            type_: ProfileType::Custom,
            custom: Some(CustomProfile {
                min_tls_version: Some(TlsVersion::Tls13),
                ciphers: vec!["TLS_AES_256_GCM_SHA384".to_owned()],
                groups: vec!["X25519MLKEM768".to_owned(), "secp521r1".to_owned()],
            }),
        }),
    };
    let own = decide(&config, &Cluster::Absent, None, EC);
    let same = auto(&custom(json!({
        "minTLSVersion": "VersionTLS13",
        "ciphers": ["TLS_AES_256_GCM_SHA384"],
        "groups": ["X25519MLKEM768", "secp521r1"],
    })));
    assert_eq!(own.profile, same.profile);
    assert_eq!(own.outcome, same.outcome);
    assert!(matches!(&own.outcome, Outcome::Partly(said) if said.contains("secp521r1")));
}

fn any_value() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("TLS_AES_128_GCM_SHA256"),
        Just("ECDHE-ECDSA-AES128-GCM-SHA256"),
        Just("ECDHE-RSA-AES128-GCM-SHA256"),
        Just("DES-CBC3-SHA"),
        Just("X25519"),
        Just("secp521r1"),
        Just("VersionTLS13"),
        Just("Custom"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
        names.clone().prop_map(Value::from),
        prop::collection::vec(names, 0..4).prop_map(Value::from),
    ];
    prop_oneof![2 => Just(Value::Null), 5 => leaf]
}

proptest! {
    /// Whatever is written where, what is in force can be served, and falls back only with a reason.
    #[test]
    fn whatever_is_said_the_profile_in_force_can_be_served(
        ciphers in any_value(),
        minimum in any_value(),
        groups in any_value(),
        adherence in any_value(),
        source in prop::sample::select(vec![ProfileSource::Auto, ProfileSource::Cluster, ProfileSource::None]),
        last in prop::option::of(any_value()),
    ) {
        let said = api_server(json!({
            "tlsAdherence": adherence,
            "tlsSecurityProfile": {"type": "Custom", "custom": {
                "ciphers": ciphers, "minTLSVersion": minimum, "groups": groups,
            }},
        }));
        let last = last.map(|it| it.to_string().into_bytes());
        let decision = decide(&from(source, None), &said, last.as_deref(), EC);
        let honoured = decision.profile.honour().map(|it| it.for_key(SignatureAlgorithm::ECDSA));
        prop_assert!(matches!(honoured, Ok(Ok(_))), "{decision:?}");
        let fell_back = matches!(decision.outcome, Outcome::Unusable(_) | Outcome::Unread(_));
        prop_assert_eq!(fell_back, matches!(decision.origin, Origin::LastGood | Origin::BuiltIn));
        // Deciding again on what was written is the same decision.
        let bytes = decision.profile.canonical();
        let again = decide(&from(source, None), &said, Some(&bytes), EC);
        prop_assert_eq!(again.profile, decision.profile);
    }
}
