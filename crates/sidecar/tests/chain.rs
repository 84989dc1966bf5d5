//! Tasks that ask nodes, before the nodes of a real chain.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "chain/node.rs"]
mod node;
#[path = "chain/rpc.rs"]
mod rpc;
#[path = "chain/shared.rs"]
mod shared;
