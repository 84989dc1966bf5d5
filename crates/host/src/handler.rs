//! The handler: brings the network of its host to what policies ask for, and can always undo it.
//!
//! What decides is a function of values and knows no client, no clock and no NetworkManager: what a
//! network state says ([`state`]), which policies are for this host ([`selection`]), what is told of a
//! policy ([`enactment`]) and whose turn it is ([`claims`]).

pub mod claims;
pub mod enactment;
pub mod selection;
pub mod state;
