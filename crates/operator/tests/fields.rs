//! Every field of a SeiNode's spec, edited on a running node: what it does, what is started again for
//! it and what is not; and everything about changes that has nothing to do with TLS.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "fields/covered.rs"]
mod covered;
#[path = "fields/mark.rs"]
mod mark;
#[path = "tls/story.rs"]
mod story;

#[path = "fields/failures.rs"]
mod failures;
#[path = "fields/inplace.rs"]
mod inplace;
#[path = "fields/peers.rs"]
mod peers;
#[path = "fields/process.rs"]
mod process;
#[path = "fields/quiet.rs"]
mod quiet;
#[path = "fields/refused.rs"]
mod refused;
#[path = "fields/rolls.rs"]
mod rolls;
#[path = "fields/scaled.rs"]
mod scaled;
#[path = "fields/set_up.rs"]
mod set_up;
#[path = "fields/silent.rs"]
mod silent;
#[path = "fields/table.rs"]
mod table;
#[path = "fields/together.rs"]
mod together;
#[path = "fields/upgrades.rs"]
mod upgrades;
#[path = "fields/volumes.rs"]
mod volumes;
#[path = "fields/without.rs"]
mod without;
