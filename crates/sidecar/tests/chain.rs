//! Tasks that ask nodes, before the nodes of a real chain.

#[path = "chain/cloud.rs"]
mod cloud;
#[path = "chain/front.rs"]
mod front;
#[path = "chain/machines.rs"]
mod machines;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "chain/node.rs"]
mod node;
#[path = "chain/peers.rs"]
mod peers;
#[path = "chain/rpc.rs"]
mod rpc;
#[path = "chain/shared.rs"]
mod shared;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "outside/stage.rs"]
mod stage;
#[path = "chain/state_sync.rs"]
mod state_sync;
#[path = "chain/witnesses.rs"]
mod witnesses;
