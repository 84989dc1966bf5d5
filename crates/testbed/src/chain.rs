//! A new chain with one validator, as the chain's own program makes it: its genesis, and the two keys
//! of the validator.
//!
//! Nothing runs afterwards. Who puts the genesis into a bucket and the keys into Secrets is
//! [`crate::install`].

use crate::command::run;
use crate::error::{Doing, Error};
use crate::peers::{Peer, peer};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the nodes of a new chain are given.
#[derive(Clone, PartialEq, Eq)]
pub struct Founding {
    /// The chain.
    pub chain: String,
    /// `genesis.json`.
    pub genesis: String,
    /// `priv_validator_key.json` of the only validator.
    pub signing_key: String,
    /// `node_key.json` of the same.
    pub node_key: String,
}

impl std::fmt::Debug for Founding {
    /// The chain alone: the rest is long, and half of it secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Founding").field(&self.chain).finish()
    }
}

/// Founds a chain. What the program wrote on the way is removed again.
pub fn found(chain: &str) -> Result<Founding, Error> {
    let home = Home::new(chain)?;
    let test = ["--keyring-backend", "test"];
    home.seid(&["init", "validator", "--chain-id", chain, "--overwrite"])?;
    home.seid(&[&["keys", "add", "validator"][..], &test].concat())?;
    let address = home.seid(&[&["keys", "show", "validator", "-a"][..], &test].concat())?;
    home.seid(&["add-genesis-account", address.trim(), "1000000000000usei"])?;
    let signed = [
        "gentx",
        "validator",
        "500000000000usei",
        "--chain-id",
        chain,
    ];
    home.seid(&[&signed[..], &test].concat())?;
    home.seid(&["collect-gentxs"])?;
    Ok(Founding {
        chain: chain.to_owned(),
        genesis: home.read("genesis.json")?,
        signing_key: home.read("priv_validator_key.json")?,
        node_key: home.read("node_key.json")?,
    })
}

/// A home of the chain's program, until it is dropped.
struct Home {
    program: PathBuf,
    folder: PathBuf,
}

impl Home {
    fn new(chain: &str) -> Result<Self, Error> {
        let name = format!("keelson-founding-{}-{chain}", std::process::id());
        let home = Self {
            program: peer(Peer::Seid)?,
            folder: std::env::temp_dir().join(name),
        };
        make_private(&home.folder)
            .doing(|| format!("{} could not be made", home.folder.display()))?;
        Ok(home)
    }

    fn seid(&self, words: &[&str]) -> Result<String, Error> {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--home").arg(&self.folder);
        command.stdin(Stdio::null());
        run(command)
    }

    fn read(&self, file: &str) -> Result<String, Error> {
        let path = self.folder.join("config").join(file);
        std::fs::read_to_string(&path).doing(|| format!("{} could not be read", path.display()))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Keys are made in it.
fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_founded_chain_has_its_name_and_the_validator_whose_key_comes_with_it() {
        let founding = found("founded-1").expect("a chain");
        let read = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
        let genesis = read(&founding.genesis);
        assert_eq!(genesis["chain_id"], "founded-1");
        let key = &read(&founding.signing_key)["pub_key"]["value"];
        let signed = &genesis["app_state"]["genutil"]["gen_txs"][0]["body"]["messages"][0];
        assert_eq!(&signed["pubkey"]["key"], key);
        assert!(read(&founding.node_key)["priv_key"]["value"].is_string());
        let shown = format!("{founding:?}");
        assert!(!shown.contains("value"), "{shown}");
        let name = format!("keelson-founding-{}-founded-1", std::process::id());
        assert!(!std::env::temp_dir().join(name).exists());
    }
}
