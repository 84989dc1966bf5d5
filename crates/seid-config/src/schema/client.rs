//! Rows of `client.toml`, what `seid` reads when a person runs it as a command.
//!
//! The original leaves this file alone. Here it is written for a node whose chain is named, so that
//! a command run in the pod asks the node beside it; what a file already says is kept.

use super::{Field, Spelling, section};
use crate::value::Kind::Text;

const KEBAB: Spelling = Spelling::Kebab("");

pub(super) const ROWS: &[&[Field]] = &[section! { Client "" KEBAB;
    "chain.chain_id", Text, "" omit;
    @Initial "" => "keyring-backend", Text, "os";
    @Initial "" => "output", Text, "text";
    @Initial "" => "node", Text, "tcp://localhost:26657";
    @Initial "" => "broadcast-mode", Text, "sync";
}];
