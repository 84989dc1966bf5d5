//! Files as seid and people leave them: quoted numbers, missing names, and where leniency ends.

use keelson_seid_config::{File, Mode, Settings, Texts, Unreadable, read, validate_files};

use super::world::new;

fn texts(config: &str, app: &str) -> Texts {
    Texts {
        config: Some(config.into()),
        app: Some(app.into()),
        client: None,
    }
}

fn value(settings: &Settings, key: &str) -> String {
    settings.get(key).expect(key).to_string()
}

#[test]
fn what_was_written_is_read_back_whole() {
    for mode in Mode::ALL {
        let applied = new(mode, &[("chain.index_events", "a,b")]);
        let back = read(&applied.texts).expect("readable");
        for field in keelson_seid_config::schema::fields() {
            // The chain's name stands in client.toml alone, which is not read.
            if field.file == File::Client {
                assert_eq!(back.get(field.key), None);
                continue;
            }
            let (written, read) = (applied.settings.get(field.key), back.get(field.key));
            assert_eq!(read, written, "{} of {mode}", field.key);
        }
    }
}

#[test]
fn quoted_numbers_and_flags_are_understood_as_seid_understands_them() {
    let texts = texts(
        "[mempool]\nduplicate-txs-cache-size = \"100000\"\nbroadcast = \"true\"\nttl-duration = \"1s\"\n\
         drop-priority-threshold = \"0.5\"\ndrop-utilisation-threshold = 1\n\
         [tx-index]\nindexer = \"kv\"\n[statesync]\nrpc-servers = [\"a:1\", \"b:2\"]\n\
         [consensus]\nunsafe-commit-timeout-override = 0\nunsafe-bypass-commit-timeout-override = \"false\"\n",
        "pruning-keep-recent = 5\nhalt-height = \"7\"\n[telemetry]\nglobal-labels = [[\"a\", \"b\"]]\n",
    );
    let settings = read(&texts).expect("readable");
    for (key, expected) in [
        ("mempool.duplicate_txs_cache_size", "100000"),
        ("mempool.broadcast", "true"),
        ("mempool.ttl_duration", "1s"),
        ("mempool.drop_priority_threshold", "0.5"),
        ("mempool.drop_utilisation_threshold", "1"),
        ("tx_index.indexer", "kv"),
        ("state_sync.rpc_servers", "a:1,b:2"),
        ("consensus.unsafe_commit_timeout_override", "0s"),
        ("consensus.unsafe_bypass_commit_timeout_override", "false"),
        ("storage.pruning_keep_recent", "5"),
        ("chain.halt_height", "7"),
        ("metrics.global_labels", "[[\"a\", \"b\"]]"),
    ] {
        assert_eq!(value(&settings, key), expected, "{key}");
    }
}

#[test]
fn what_a_file_does_not_name_is_zero_or_absent() {
    let settings = read(&texts("", "")).expect("readable");
    assert_eq!(value(&settings, "network.p2p.max_connections"), "0");
    assert_eq!(value(&settings, "network.p2p.pex"), "false");
    assert_eq!(value(&settings, "state_sync.trust_period"), "0s");
    assert_eq!(settings.get("chain.index_events"), None);
    assert_eq!(
        settings.get("consensus.unsafe_bypass_commit_timeout_override"),
        None
    );
}

#[test]
fn mode_and_version_come_from_our_section_then_from_config_toml_then_from_today() {
    for (config, app, mode, version) in [
        (
            "mode = \"full\"",
            "[sei]\nmode = \"archive\"\nversion = 1",
            "archive",
            1,
        ),
        ("mode = \"seed\"", "", "seed", 2),
        (
            "mode = \"seed\"",
            "[sei]\nmode = \"rpc\"\nversion = 0",
            "seed",
            2,
        ),
        ("mode = \"archive\"", "[sei]\nversion = -1", "archive", 2),
        ("mode = \"indexer\"", "", "full", 2),
        ("", "", "full", 2),
    ] {
        let settings = read(&texts(config, app)).expect("readable");
        assert_eq!(
            (settings.mode(), settings.version()),
            (mode, version),
            "{config} {app}"
        );
    }
}

#[test]
fn what_means_nothing_is_refused_with_its_place() {
    for (config, app, sentence) in [
        (
            "[mempool]\nsize = \"banana\"",
            "",
            "mempool.size in config.toml cannot be read: \"banana\" is not a whole number",
        ),
        (
            "[mempool]\nsize = \"\"",
            "",
            "mempool.size in config.toml cannot be read: \"\" is not a",
        ),
        (
            "[mempool]\nbroadcast = \"\"",
            "",
            "\"\" is not true or false",
        ),
        (
            "[mempool]\nttl-duration = \"soon\"",
            "",
            "\"soon\" is not a duration",
        ),
        ("[mempool]\nttl-duration = 5", "", "\"5\" is not a duration"),
        ("[mempool]\nsize = 1.5", "", "\"1.5\" is not a whole number"),
        ("[mempool]\nsize = [1]", "", "it is not a whole number"),
        (
            "[rpc]\ncors-allowed-origins = [1]",
            "",
            "it is not a list of texts",
        ),
        (
            "",
            "halt-height = -1",
            "halt-height in app.toml cannot be read: -1 is out of range",
        ),
        (
            "",
            "[telemetry]\nglobal-labels = [1]",
            "it is not a list of lists of texts",
        ),
        (
            "rpc = 5",
            "",
            "rpc in config.toml is not a section: write it as [rpc]",
        ),
        ("a = 1\nb = \n", "", "config.toml is not TOML (line 2): "),
        ("", "x", "app.toml is not TOML (line 1): "),
    ] {
        let error = read(&texts(config, app)).expect_err(sentence).to_string();
        assert!(error.contains(sentence), "{error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let good = new(Mode::Full, &[]).texts;
    let without_app = Texts {
        app: None,
        ..good.clone()
    };
    assert_eq!(
        validate_files(&without_app),
        Err(Unreadable::Missing(File::App))
    );
    let nothing = read(&Texts::default()).expect_err("no files");
    assert!(
        nothing
            .to_string()
            .starts_with("config.toml does not exist"),
        "{nothing}"
    );
}
