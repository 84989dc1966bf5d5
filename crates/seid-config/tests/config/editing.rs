//! Files that exist: what people and seid wrote there stays, what is set changes in its place.

use keelson_seid_config::{Mode, Texts, apply, fingerprint};

use super::world::{app, at, config, host, intent, new};

/// In the manner of the file `seid init` writes: remarks everywhere, numbers in quotes, names that no
/// table of ours has.
const CONFIG: &str = r#"# This is a TOML config file.

# The name others see
moniker = "my-node" # chosen by hand

mode = 'full'

#######################################################
###           RPC Server Configuration              ###
#######################################################
[rpc]

# Where to listen
laddr = "tcp://127.0.0.1:26657"
# Ours alone
some-future-name = { a = 1 } # keep

[mempool]
size = "5000" # quoted by the template
ttl-duration = "5s"

[our-own]
note = "hands off"
# the end
"#;

const APP: &str = r#"minimum-gas-prices = "0.02usei" # agreed with the others
pruning = "default"

[receipt-store]
# seid refuses to start with this one
backend = "pebbledb"

[state-commit]
# rejected by newer nodes
sc-write-mode = "cosmos_only"
sc-enable = true # on
"#;

fn existing() -> Texts {
    Texts {
        config: Some(CONFIG.into()),
        app: Some(APP.into()),
        client: None,
    }
}

fn applied() -> Texts {
    let intent = intent(Mode::Validator, &[("chain.moniker", "validator-1")]);
    apply(&intent, &host(), &existing()).expect("files").texts
}

#[test]
fn remarks_and_unknown_names_survive_and_known_ones_are_set_in_place() {
    let texts = applied();
    let config = config(&texts);
    for kept in [
        "# This is a TOML config file.\n\n# The name others see\n",
        "moniker = \"validator-1\" # chosen by hand\n",
        "###           RPC Server Configuration              ###",
        "# Where to listen\nladdr = \"tcp://0.0.0.0:26657\"\n",
        "# Ours alone\nsome-future-name = { a = 1 } # keep\n",
        "size = 5000 # quoted by the template\n",
        "[our-own]\nnote = \"hands off\"\n",
        "# the end\n",
    ] {
        assert!(config.contains(kept), "{kept}\nin\n{config}");
    }
    let app = app(&texts);
    assert!(app.contains("minimum-gas-prices = \"0.01usei\" # agreed with the others\n"));
    assert!(app.contains("sc-enable = true # on\n"), "{app}");
}

#[test]
fn a_new_file_and_an_existing_one_mean_the_same() {
    let fresh = new(Mode::Validator, &[("chain.moniker", "validator-1")]).texts;
    let edited = applied();
    assert_eq!(
        keelson_seid_config::read(&fresh),
        keelson_seid_config::read(&edited)
    );
}

#[test]
fn names_that_are_left_out_are_taken_out() {
    let texts = applied();
    assert_eq!(at(app(&texts), "receipt-store.backend"), None);
    assert_eq!(
        at(app(&texts), "receipt-store.rs-backend").as_deref(),
        Some("\"pebbledb\"")
    );
    assert_eq!(at(app(&texts), "state-commit.sc-write-mode"), None);
}

#[test]
fn a_second_apply_changes_nothing() {
    let intent = intent(Mode::Validator, &[("chain.moniker", "validator-1")]);
    let once = applied();
    let twice = apply(&intent, &host(), &once).expect("files").texts;
    assert_eq!(once, twice);
}

#[test]
fn apply_takes_peers_and_state_sync_away() {
    let overrides = [
        ("network.p2p.persistent_peers", "a@b:1"),
        ("state_sync.trust_height", "5"),
    ];
    let before = new(Mode::Full, &overrides).texts;
    let after = apply(&intent(Mode::Full, &[]), &host(), &before)
        .expect("files")
        .texts;
    assert_eq!(
        at(config(&after), "p2p.persistent-peers").as_deref(),
        Some("\"\"")
    );
    assert_eq!(
        at(config(&after), "statesync.trust-height").as_deref(),
        Some("0")
    );
}

#[test]
fn a_file_that_is_not_toml_is_left_alone() {
    let broken = Texts {
        config: Some("[rpc\n".into()),
        ..existing()
    };
    let error = apply(&intent(Mode::Full, &[]), &host(), &broken).expect_err("no TOML");
    assert!(
        error
            .to_string()
            .starts_with("config-apply: config.toml is not TOML (line 1)")
    );
}

#[test]
fn sections_written_on_one_line_are_changed_where_they_are() {
    let texts = Texts {
        config: Some("p2p = { pex = false, note = 1 }\nrpc.unsafe = true\n".into()),
        app: Some(String::new()),
        client: None,
    };
    let after = apply(&intent(Mode::Full, &[]), &host(), &texts)
        .expect("files")
        .texts;
    assert_eq!(at(config(&after), "p2p.pex").as_deref(), Some("true"));
    assert_eq!(at(config(&after), "p2p.note").as_deref(), Some("1"));
    assert_eq!(at(config(&after), "rpc.unsafe").as_deref(), Some("false"));
    assert!(
        keelson_seid_config::validate_files(&after)
            .expect("readable")
            .valid
    );
}

#[test]
fn any_edit_of_a_file_changes_the_fingerprint() {
    let texts = new(Mode::Full, &[]).texts;
    let print = fingerprint(&texts);
    assert_eq!(print, fingerprint(&texts.clone()));
    assert_eq!(print.len(), 64);
    assert!(
        print
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    );
    let swapped = Texts {
        config: texts.app.clone(),
        app: texts.config.clone(),
        client: None,
    };
    let remark = Texts {
        config: Some(format!("{}# a remark\n", config(&texts))),
        ..texts.clone()
    };
    let gone = Texts {
        config: None,
        ..texts.clone()
    };
    let empty = Texts {
        client: Some(String::new()),
        ..texts.clone()
    };
    for other in [swapped, remark, gone, empty] {
        assert_ne!(print, fingerprint(&other));
    }
}
