//! The handler: brings the network of its host to what policies ask for, and can always undo it.
//!
//! What decides is a function of values and knows no client, no clock and no NetworkManager: what a
//! network state says ([`state`]), which policies are for this host ([`selection`]), what is told of a
//! policy ([`enactment`]), whose turn it is ([`claims`]), whether the host is still reachable
//! ([`probe`]), and what to do about a change that was begun ([`decide`]). The one effect here is the
//! [`journal`], without which nothing is changed.

pub mod claims;
pub mod decide;
pub mod enactment;
pub mod journal;
pub mod probe;
pub mod selection;
pub mod state;
