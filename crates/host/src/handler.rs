//! The handler: brings the network of its host to what policies ask for, and can always undo it.
//!
//! What decides is a function of values and knows no client, no clock and no NetworkManager: what a
//! network state says ([`state`]) and which policies are for this host ([`selection`]).

pub mod selection;
pub mod state;
