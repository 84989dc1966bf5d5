//! Words into flags: pflag's messages (§1.1), and the table of flags (§1.2).

use std::collections::BTreeSet;

use keelson_proxy::flags::{self, Field, Flags, Invocation, Version};
use keelson_proxy::settings::settle;

#[test]
fn words_are_refused_in_pflags_words() {
    for (words, text) in [
        (
            &["word", "x"][..],
            r#""kube-rbac-proxy" does not take any arguments, got ["word" "x"]"#,
        ),
        (
            &["--auth-header-fields-enabled", "false"],
            r#""kube-rbac-proxy" does not take any arguments, got ["false"]"#,
        ),
        (&["--upstream_x"], "unknown flag: --upstream_x"),
        (
            &["--v=x"],
            r#"invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax"#,
        ),
        (
            &["--v=99999999999"],
            r#"invalid argument "99999999999" for "-v, --v" flag: strconv.ParseInt: parsing "99999999999": value out of range"#,
        ),
        (
            &["--vmodule=x"],
            r#"invalid argument "x" for "--vmodule" flag: syntax error: expect comma-separated list of filename=N"#,
        ),
        (
            &["--version=v9"],
            r#"invalid argument "v9" for "--version" flag: illegal version string "v9""#,
        ),
        (
            &["--version=zz"],
            r#"invalid argument "zz" for "--version" flag: strconv.ParseBool: parsing "zz": invalid syntax"#,
        ),
        (
            &["--logtostderr=maybe"],
            r#"invalid argument "maybe" for "--logtostderr" flag: strconv.ParseBool: parsing "maybe": invalid syntax"#,
        ),
        (
            &["--log-file-max-size=x"],
            r#"invalid argument "x" for "--log-file-max-size" flag: strconv.ParseUint: parsing "x": invalid syntax"#,
        ),
        (
            &["--stderrthreshold"],
            "flag needs an argument: --stderrthreshold",
        ),
        (&["--help", "--bogus"], "unknown flag: --bogus"),
    ] {
        let error = flags::parse(words.iter().copied()).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn help_and_version_are_asked_for() {
    for words in [
        &["--help"][..],
        &["-h"],
        &["--help", "word"],
        &["--version", "-h"],
    ] {
        assert_eq!(flags::parse(words.iter().copied()), Ok(Invocation::Help));
    }
    assert_eq!(
        flags::parse(["--version"]),
        Ok(Invocation::Version(Version::Plain))
    );
    assert_eq!(
        flags::parse(["--version=raw"]),
        Ok(Invocation::Version(Version::Raw))
    );
    for words in [&["--version=false"][..], &["--version=v1.2.3"], &[""]] {
        let parsed = flags::parse(words.iter().copied());
        assert!(matches!(parsed, Ok(Invocation::Run(..))), "{words:?}");
    }
}

#[test]
fn help_names_every_flag_that_is_not_hidden() {
    let help = flags::help();
    for flag in flags::flags() {
        let named = help.lines().any(|line| {
            let line = line.trim_start().trim_start_matches("-h, ");
            line.split(' ').next() == Some(&format!("--{}", flag.name))
        });
        assert_eq!(named, !flag.hidden, "{}", flag.name);
    }
    assert!(help.contains("  --oidc-sign-alg stringArray\n            Signing algorithm to accept; may be given more than once. (default [RS256])\n"));
    assert!(help.contains("(default 1m0s)"));
    assert!(help.contains("(default \"x-remote-user\")"));
}

#[test]
fn no_two_flags_have_one_name() {
    let mut names: Vec<&str> = flags::flags().map(|flag| flag.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// Each flag moves a value away from its default, and no two the same one.
#[test]
fn every_flag_has_a_place_of_its_own() {
    let mut seen = BTreeSet::new();
    for flag in flags::flags() {
        let value = match flag.field {
            Field::Bool(_) => "true",
            Field::Text(_) | Field::List(_) | Field::Array(_) => "other",
            Field::Int(_) | Field::Uint32(_) | Field::Level(_) => "7",
            Field::Float32(_) => "0.5",
            Field::Duration(_) => "7m",
            Field::LevelsByFile(_) => "file=1",
            Field::Version(_) => "raw",
            Field::Removed(_) => "1",
        };
        let word = format!("--{}={value}", flag.name);
        let parsed = flags::parse([word.as_str()]).unwrap();
        let Invocation::Run(flags, given) = parsed else {
            assert!(matches!(flag.name, "help" | "version"), "{word}");
            continue;
        };
        assert!(given.len() == 1 && given.contains(flag.name));
        let removed = matches!(flag.field, Field::Removed(_));
        assert_eq!(*flags == Flags::default(), removed, "{word}");
        let before = removed || seen.insert(format!("{flags:?}"));
        assert!(before, "{word} goes where another flag goes");
    }
}

proptest::proptest! {
    #[test]
    fn no_words_make_a_panic(words in proptest::collection::vec("(--?)?[a-z_=,\"-]{0,24}", 0..4)) {
        if let Ok(Invocation::Run(flags, given)) = flags::parse(words) {
            let _ = settle(&flags, &given);
        }
    }
}
