//! Whatever a profile says, it is served or refused; there is nothing between.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{ALL_KX_GROUPS, DEFAULT_KX_GROUPS, default_provider};
use std::sync::{Arc, OnceLock};

use super::pki::{Pem, one_of_each_kind};
use super::world::{client_of, default_client, shake};
use keelson_tls::profile::{Listed, Version};
use keelson_tls::{ClientAuth, Profile, Report, group, server_config, suite};

/// Names of suites: the table's, in both spellings, and nonsense.
fn cipher_names() -> Vec<String> {
    let table = suite::SUITES.iter().flat_map(|row| [row.openssl, row.iana]);
    table
        .chain(["", "nonsense", "ECDHE"])
        .map(str::to_owned)
        .collect()
}

fn group_names() -> Vec<String> {
    let table = group::GROUPS
        .iter()
        .flat_map(|row| row.names.iter().copied());
    table
        .chain(["", "brainpoolP256r1"])
        .map(str::to_owned)
        .collect()
}

/// Few names more often than many: that is where nothing is left.
fn some_of(names: Vec<String>) -> impl Strategy<Value = Vec<String>> {
    let all = names.len();
    prop_oneof![
        subsequence(names.clone(), 0..4).prop_shuffle(),
        subsequence(names, 0..all).prop_shuffle(),
    ]
}

fn profiles() -> impl Strategy<Value = Profile> {
    let listed = (
        proptest::option::weighted(0.9, some_of(cipher_names())),
        select(Version::ALL),
        some_of(group_names()),
    );
    prop_oneof![
        1 => Just(Profile::LibraryDefaults),
        20 => listed.prop_map(|(ciphers, minimum, groups)| {
            Profile::Listed(Listed { ciphers, minimum, groups })
        }),
    ]
}

fn kinds() -> &'static [Pem; 3] {
    static KINDS: OnceLock<[Pem; 3]> = OnceLock::new();
    KINDS.get_or_init(one_of_each_kind)
}

/// The library's default client, unless the profile allows only groups it does not offer by itself.
fn client_for(report: &Report) -> Arc<rustls::ClientConfig> {
    let offered = |name: &&str| {
        let group = group::by_name(name).and_then(|row| row.served.ok());
        group.is_some_and(|group| DEFAULT_KX_GROUPS.iter().any(|it| it.name() == group.name()))
    };
    if report.groups.iter().any(offered) {
        return default_client();
    }
    let provider = CryptoProvider {
        kx_groups: ALL_KX_GROUPS.to_vec(),
        ..default_provider()
    };
    client_of(provider, rustls::DEFAULT_VERSIONS)
}

/// Whether TLS 1.3 alone would already serve this profile, whatever the key.
fn surely_usable(profile: &Profile) -> bool {
    let Profile::Listed(listed) = profile else {
        return true;
    };
    let served = |name: &String| {
        suite::by_name(name).is_some_and(|row| row.served.is_ok_and(|it| it.tls13().is_some()))
    };
    let group = |name: &String| group::by_name(name).is_some_and(|row| row.served.is_ok());
    let suites = listed
        .ciphers
        .as_ref()
        .is_none_or(|names| names.iter().any(served));
    suites && (listed.groups.is_empty() || listed.groups.iter().any(group))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_profile_serves_a_client_or_is_refused_with_a_sentence(
        profile in profiles(),
        kind in 0..3_usize,
    ) {
        let pair = kinds()[kind].pair();
        match server_config(&profile, &pair, ClientAuth::None, None, &[]) {
            Ok((config, report)) => {
                let shaken = shake(&client_for(&report), &Arc::new(config));
                prop_assert!(shaken.is_ok(), "{:?} under {report:?}", shaken.err());
                let (client, _) = shaken.expect("checked");
                let suite = client.negotiated_cipher_suite().and_then(suite::iana_name);
                prop_assert!(suite.is_some_and(|name| report.suites.contains(&name)), "{suite:?}");
                let chosen = client.negotiated_key_exchange_group().map(|it| it.name());
                let allowed = report.groups.iter().filter_map(|name| {
                    group::by_name(name).and_then(|row| row.served.ok()).map(|it| it.name())
                });
                prop_assert!(allowed.into_iter().any(|it| Some(it) == chosen), "{chosen:?}");
            }
            Err(refusal) => {
                prop_assert!(!surely_usable(&profile), "{refusal}");
                let sentence = refusal.to_string();
                prop_assert!(sentence.contains("the TLS profile") && !sentence.contains('\n'));
            }
        }
    }

    #[test]
    fn any_profile_reads_back_from_its_canonical_bytes(profile in profiles()) {
        let again = Profile::parse(&profile.canonical());
        prop_assert_eq!(again.expect("canonical"), profile);
    }

    #[test]
    fn no_bytes_make_the_parser_fail_otherwise_than_with_an_error(bytes in any::<Vec<u8>>()) {
        let _ = Profile::parse(&bytes);
    }
}
