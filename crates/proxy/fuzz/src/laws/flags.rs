//! The command line: flags that were read can be written and read again, and settings that were
//! settled are within their bounds.

use std::collections::BTreeSet;

use keelson_proxy::flags::{self, Field, Flag, Flags, Given, Invocation};
use keelson_proxy::refusal::Refusal;
use keelson_proxy::settings::{Authenticator, Settings, settle};

/// The input is the words after the program's name, a line each.
pub fn flags(data: &[u8]) {
    let Some(text) = super::text(data) else {
        return;
    };
    match flags::parse(text.split('\n')) {
        Ok(Invocation::Run(flags, given)) => {
            written_and_read(&flags, &given);
            settled(&flags, &given);
        }
        Ok(Invocation::Help | Invocation::Version(_)) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// In every spelling of a word.
fn written_and_read(flags: &Flags, given: &Given) {
    // A list is CSV, which cannot hold every line end.
    if format!("{flags:?}").contains("\\r") {
        return;
    }
    let pairs = written(flags, given);
    for spell in [in_one_word, with_underscores, in_two_words] {
        let words: Vec<String> = pairs.iter().flat_map(spell).collect();
        let again = flags::parse(words.clone());
        let Ok(Invocation::Run(read, given_again)) = again else {
            panic!("{words:?}: {again:?}");
        };
        assert_eq!(&given_again, given, "{words:?}");
        // As text: a number that is none is not equal to itself.
        assert_eq!(format!("{read:?}"), format!("{flags:?}"), "{words:?}");
    }
}

fn in_one_word((name, value): &(String, String)) -> Vec<String> {
    vec![format!("--{name}={value}")]
}

fn with_underscores((name, value): &(String, String)) -> Vec<String> {
    vec![format!("--{}={value}", name.replace('-', "_"))]
}

fn in_two_words((name, value): &(String, String)) -> Vec<String> {
    match bare(name) {
        true => vec![format!("--{name}={value}")],
        false => vec![format!("--{name}"), value.clone()],
    }
}

/// Whether a flag takes no word of its own.
fn bare(name: &str) -> bool {
    let flag = flags::flags().find(|flag| flag.name == name);
    let boolean = |flag: &Flag| matches!(flag.field, Field::Bool(_) | Field::Version(_));
    let removed = |flag: &Flag| matches!(flag.field, Field::Removed(_));
    flag.is_some_and(|flag| boolean(flag) || removed(flag))
}

fn written(flags: &Flags, given: &Given) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut flags = flags.clone();
    for flag in flags::flags().filter(|flag| given.contains(flag.name)) {
        for value in values(flag, &mut flags) {
            pairs.push((flag.name.to_owned(), value));
        }
    }
    pairs
}

fn values(flag: &Flag, flags: &mut Flags) -> Vec<String> {
    vec![match flag.field {
        Field::Array(at) => return at(flags).clone(),
        Field::List(at) => csv(at(flags)),
        Field::Bool(at) => at(flags).to_string(),
        Field::Text(at) | Field::LevelsByFile(at) => at(flags).clone(),
        Field::Int(at) => at(flags).to_string(),
        Field::Uint32(at) => at(flags).to_string(),
        Field::Float32(at) => at(flags).to_string(),
        Field::Duration(at) => at(flags).to_string(),
        Field::Level(at) => at(flags).to_string(),
        // Whoever asks for a version does not run.
        Field::Version(_) => "false".to_owned(),
        // Any of the types they had takes this.
        Field::Removed(_) => "1".to_owned(),
    }]
}

/// A list as one record of CSV, every field quoted.
pub(super) fn csv(items: &[String]) -> String {
    let quoted = |item: &String| format!("\"{}\"", item.replace('"', "\"\""));
    items.iter().map(quoted).collect::<Vec<_>>().join(",")
}

/// What was settled is within its bounds, and what the log says about it is a line each.
fn settled(flags: &Flags, given: &Given) {
    match settle(flags, given) {
        Ok((settings, notices)) => {
            within_bounds(&settings, flags);
            for notice in notices {
                assert!(super::is_one_line(&notice), "{notice:?}");
            }
        }
        Err(Refusal::Flags(faults)) => {
            for fault in faults {
                assert!(super::is_one_line(&fault), "{fault:?}");
            }
        }
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
}

fn within_bounds(settings: &Settings, flags: &Flags) {
    let rules = &settings.rules;
    for (globs, patterns) in [
        (&rules.allow, &flags.paths.allow),
        (&rules.ignore, &flags.paths.ignore),
    ] {
        let globs: Vec<&str> = globs.iter().map(|glob| glob.as_str()).collect();
        assert_eq!(&globs, patterns, "a pattern is lost");
    }
    let both = !rules.allow.is_empty() && !rules.ignore.is_empty();
    assert!(!both || flags.paths.allow_and_ignore);

    let cache = &settings.cache;
    assert!((0.0..1.0).contains(&cache.refresh_window));
    assert!(cache.stale_if_error.as_secs() <= 3600);
    assert!(cache.authn_size > 0 && cache.authz_size > 0);
    assert!(settings.checks.most_values > 0);
    assert!(settings.api.max_token_reviews > 0 && settings.api.max_access_reviews > 0);
    if let Some((rate, burst)) = settings.api.throttle {
        assert!(rate > 0.0 && burst > 0);
    }

    let order = &settings.authn.order;
    let different: BTreeSet<String> = order.iter().map(|way| format!("{way:?}")).collect();
    assert!(!order.is_empty() && different.len() == order.len());
    let oidc = order.contains(&Authenticator::Oidc);
    assert_eq!(oidc, settings.authn.oidc.is_some());
    let told = &settings.headers.identity;
    let distinct = told.user != told.groups
        && told.uid.as_ref() != Some(&told.user)
        && told.uid.as_ref() != Some(&told.groups);
    assert!(!told.enabled || distinct, "{told:?}");
}
