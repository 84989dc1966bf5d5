//! The handler: brings the network of its host to what policies ask for, and can always undo it.
//!
//! What decides is a function of values and knows no client, no clock and no NetworkManager: what a
//! network state says ([`state`]), which policies are for this host ([`selection`]) and due ([`turn`]),
//! what is told of a policy ([`enactment`]), whose turn it is ([`claims`]), whether the host is still
//! reachable ([`probe`]), what profiles take to be those of before ([`profiles`]), and what to do about
//! a change that was begun ([`decide`]).
//!
//! Effects stand beside that: nmstate on a thread of its own ([`worker`]), NetworkManager's checkpoints
//! and profiles ([`network_manager`]), asking the probes ([`probing`]), files that survive any crash
//! ([`disk`]) with the [`journal`] and the [`records`] in them, and the API server ([`server`]).
//! [`changes`] makes a change and brings it to its end; [`run`] is the process, which answers for itself
//! on a [`socket`], and [`console`] is what a person does on the host.

pub mod bootstrap;
pub mod changes;
pub mod claims;
pub mod clock;
pub mod console;
pub mod counts;
pub mod decide;
pub mod disk;
pub mod enactment;
pub mod journal;
pub mod lock;
pub mod network_manager;
pub mod points;
pub mod probe;
pub mod probing;
pub mod profiles;
pub mod pulse;
pub mod records;
pub mod run;
pub mod selection;
pub mod server;
pub mod socket;
pub mod state;
pub mod turn;
pub mod worker;

mod account;
mod depart;
mod enact;
mod report;
